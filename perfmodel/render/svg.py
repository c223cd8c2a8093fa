"""A chart as SVG: a document of its own, or a part of a page.

Marks carry their numbers: in a document each has an id and a title, which browsers show under the
pointer; in a page each names its row, and the page's script shows that row. On a page colours are
the page's own variables, so a chart is light or dark as its page is.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from perfmodel.quantities import header_of, kind_of, shown
from perfmodel.render.page import COLOURS, MARKERS, Page, styled
from perfmodel.render.report import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from perfmodel.render.chart import Chart

_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_HREF = f"{{{_LINK}}}href"
_OWN = re.compile(r"[a-z]+(-.*)?", re.DOTALL)  # ids that charts give; Matplotlib's have digits
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_SIZE = 4.2  # points of the shapes that a page defines
_PLAIN = ("fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity",
          "stroke-opacity", "text-anchor")  # fmt: skip
ElementTree.register_namespace("", _SVG)
ElementTree.register_namespace("xlink", _LINK)


def described(row: Row) -> str:
    """The numbers of a row, one a line, with their units; a title stands alone."""
    return "\n".join(
        str(value) if key == "title" else f"{header_of(key)}: {shown(value, kind_of(key))}"
        for key, value in row.items()
        if value not in (None, "") and not isinstance(value, list | dict)
    )


def document(chart: Chart) -> str:
    """SVG that a screen reader can read: an image with a title and a description, and a title with
    its numbers in each mark."""
    root = _drawn(chart.figure, chart.page)
    for gid, element, i in _marks(root, chart):
        element.set("id", f"{gid}-{i}")
        ElementTree.SubElement(element, f"{{{_SVG}}}title").text = described(chart.rows[i])
    head, _, body = ElementTree.tostring(root, encoding="unicode").partition("<svg ")
    attributes, close, rest = body.partition(">")
    title, description = (html.escape(text) for text in (chart.title, chart.description))
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n{head}<svg role="img" '
        f'aria-labelledby="chart-title chart-description" {attributes}{close}\n '
        f'<title id="chart-title">{title}</title>\n '
        f'<desc id="chart-description">{description}</desc>{rest}\n'
    )


def inline(chart: Chart, name: str, *, labelled: bool = False, clipped: bool = False) -> str:
    """The chart as an element of a page, its ids beginning with `name`.

    Each mark names its row as `data-row`; with `labelled` its label has its numbers. Other artists
    have the first part of their id as class, the rest as `data-of`. Only a chart whose lines end
    outside of its panel has to be `clipped`.
    """
    root = _drawn(chart.figure, chart.page)
    for _, element, i in list(_marks(root, chart)):
        element.set("data-row", str(i))
        if labelled:
            element.set("aria-label", described(chart.rows[i]))
    _clean(root, name, clipped=clipped)
    for group in root.iter(f"{{{_SVG}}}g"):
        if group.get("class") in ("dots", "pale"):
            _shape(group)
        elif group.get("class") == "axis":
            _axis(group)
    box = root.get("viewBox", "")
    root.attrib.clear()
    root.set("viewBox", box)
    root.set("role", "group")
    root.set("aria-label", f"{chart.title}. {chart.description}")
    text = ElementTree.tostring(root, encoding="unicode")
    text = text.replace(f' xmlns="{_SVG}"', "").replace(f' xmlns:xlink="{_LINK}"', "")
    text = re.sub(r">\s+<", "><", text.replace("xlink:href", "href")).replace(" />", "/>")
    text = text.replace("<defs/>", "").replace(' text-anchor="start"', "")
    return re.sub(r"<g>(<(?:path|use|text)[^<]*(?:/>|</text>))</g>", r"\1", text)


@cache
def shapes() -> str:
    """The shapes of marks, for a page: `shape-0` and so on, in the order of series."""
    from matplotlib.figure import Figure

    with styled(Page()):
        figure = Figure()
        axes = figure.add_subplot()
        for i, marker in enumerate(MARKERS):
            axes.plot([0], [0], linestyle="none", marker=marker, markersize=_SIZE,
                      markeredgewidth=0, gid=f"dots-{i}")  # fmt: skip
    groups = _groups(_drawn(figure, Page()), [f"dots-{i}" for i in range(len(MARKERS))])
    paths = (
        f'<path id="shape-{i}" d="{_rounded(path.get("d", ""), 2)}"/>'
        for i, group in enumerate(groups)
        for path in group.iter(f"{{{_SVG}}}path")
    )
    return f'<svg class="hidden-text" aria-hidden="true"><defs>{"".join(paths)}</defs></svg>'


def _drawn(figure: Figure, page: Page) -> ElementTree.Element:
    buffer = io.StringIO()
    with styled(page):
        figure.savefig(
            buffer, format="svg", dpi=page.dpi, metadata={"Date": None},
            transparent=page.transparent,
        )  # fmt: skip
    return ElementTree.fromstring(buffer.getvalue())


def _groups(root: ElementTree.Element, gids: list[str]) -> list[ElementTree.Element]:
    """The elements with these ids, in their order."""
    by_id = {element.get("id"): element for element in root.iter(f"{{{_SVG}}}g")}
    return [by_id[gid] for gid in gids if gid in by_id]


def _marks(
    root: ElementTree.Element, chart: Chart
) -> Iterator[tuple[str, ElementTree.Element, int]]:
    """Id of the artist, element and row of each mark; an artist drawn as pixels has none."""
    for group in _groups(root, list(chart.marks)):
        gid = str(group.get("id"))
        rows = chart.marks[gid]
        kept = {id(each) for each in group.iterfind(f".//{{{_SVG}}}defs/*")}
        marks = list(group.iter(f"{{{_SVG}}}use")) or [
            path for path in group.iter(f"{{{_SVG}}}path") if id(path) not in kept
        ] or list(group.iter(f"{{{_SVG}}}text"))  # fmt: skip
        if len(marks) == len(rows):
            yield from ((gid, mark, i) for mark, i in zip(marks, rows, strict=True))


def _shape(group: ElementTree.Element) -> None:
    """Let the marks of a series use the page's shapes, which its script may change."""
    number = int(group.get("data-of", "0")) % len(MARKERS)
    uses = list(group.iter(f"{{{_SVG}}}use"))
    for child in list(group):
        group.remove(child)
    for use in uses:
        use.set(_HREF, f"#shape-{number}")
        for key in ("fill", "fill-opacity"):
            group.set(key, use.attrib.pop(key, "1"))
        group.append(use)


def _axis(group: ElementTree.Element) -> None:
    """Reduce an axis to one path of its grid and its texts."""
    paths, texts = (list(group.iter(f"{{{_SVG}}}{tag}")) for tag in ("path", "text"))
    grid = [path for path in paths if path.get("stroke") == "var(--line)"]
    for child in list(group):
        group.remove(child)
    if grid:
        lines = "".join(path.get("d", "") for path in grid)
        ElementTree.SubElement(group, f"{{{_SVG}}}path", {"class": "grid", "d": lines})
    for key in ("font-size", "text-anchor"):
        common = texts[0].get(key, "") if texts else ""
        group.set(key, common)
        for text in texts:
            if text.get(key) == common:
                del text.attrib[key]
    group.extend(texts)


def _clean(root: ElementTree.Element, name: str, *, clipped: bool) -> None:
    """Remove what a page does not need: backgrounds, ids without use, styles, and digits."""
    for parent in list(root.iter()):
        for child in list(parent):
            ground = str(child.get("id")).startswith("patch_") and _is_ground(child)
            unused = "}clipPath" if not clipped else "}style"
            if child.tag.endswith(("}metadata", "}style", unused)) or ground:
                parent.remove(child)
            if not clipped:
                child.attrib.pop("clip-path", None)
    references = [
        value
        for element in root.iter()
        for key, value in element.items()
        if key in (_HREF, "clip-path")
    ]
    used = dict.fromkeys(value.strip("url(#)") for value in references)
    names = {gid: f"{name}-{i}" for i, gid in enumerate(used)}
    for element in root.iter():
        gid = element.attrib.pop("id", "")
        if gid in names:
            element.set("id", names[gid])
        elif gid.startswith("matplotlib.axis_"):
            element.set("class", "axis")
        elif element.tag == f"{{{_SVG}}}g" and _OWN.fullmatch(gid):
            element.set("class", gid.partition("-")[0])
            element.set("data-of", gid.partition("-")[2])
        _restyle(element)
        if element.get("transform", "").startswith("rotate(-0 "):
            del element.attrib["transform"]
        for key in ("d", "x", "y", "transform"):
            if key in element.attrib:
                element.set(key, _rounded(element.attrib[key], 1))
        for key in (_HREF, "clip-path"):
            if key in element.attrib:
                old = element.attrib[key].strip("url(#)")
                element.set(key, element.attrib[key].replace(old, names[old]))


def _is_ground(group: ElementTree.Element) -> bool:
    """Whether a patch is a background."""
    paths = list(group.iter(f"{{{_SVG}}}path"))
    return len(paths) == 1 and "fill: #ffffff" in paths[0].get("style", "")


def _restyle(element: ElementTree.Element) -> None:
    """Turn an element's style into attributes: a page's policy allows no styles on elements."""
    style = element.attrib.pop("style", "")
    for entry in filter(None, style.split(";")):
        key, _, value = (part.strip() for part in entry.partition(":"))
        if key == "font-size":
            element.set(key, value.removesuffix("px"))
        elif key in _PLAIN:
            element.set(key, _variables().get(value, value))


@cache
def _variables() -> dict[str, str]:
    """The page's variable of each colour of the default style."""
    with styled(Page()) as palette:
        colours = {getattr(palette, name): f"var(--{name})" for name in COLOURS}
        return {**colours, palette.ground: "var(--ground)", palette.faint: "var(--line)"}


def _rounded(text: str, digits: int) -> str:
    """A path or a place with fewer digits and spaces."""
    text = _NUMBER.sub(lambda match: f"{float(match[0]):.{digits}f}".removesuffix(".0"), text)
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", text).strip() if text[:1] == "M" else text
