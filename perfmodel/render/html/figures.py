"""Charts on the page: each is drawn by Matplotlib in every form that its page offers.

A figure has choices, as of its axes, and a drawing for each combination of them. The script shows
one of the drawings, hides marks of rows that are filtered out, and colours them by another key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from perfmodel.errors import ProblemError
from perfmodel.render.chart import Chart
from perfmodel.render.dots import Dots, dots_chart
from perfmodel.render.html import controls
from perfmodel.render.html.kind import Document
from perfmodel.render.html.kinds import KINDS
from perfmodel.render.html.markup import Markup, tag
from perfmodel.render.html.sections import Row, Section, Views
from perfmodel.render.page import Page
from perfmodel.render.report import Report
from perfmodel.render.roofline import roofline_chart
from perfmodel.render.roofs import Kernel, Roofs
from perfmodel.render.spans import Spans, spans_chart
from perfmodel.render.svg import inline

_BARE = Page(title="", captioned=False, width=5.0)
_ROOFLINE = Page(title="", captioned=False, width=5.6, height=3.9)
_LABELS = 80  # limit on marks with labels


@dataclass(frozen=True)
class Figure:
    """A chart with its choices."""

    id: str
    """Its id on the page."""
    title: str
    """What is shown."""
    choices: Sequence[tuple[str, Sequence[str]]]
    """Name and options of each choice."""
    drawings: Mapping[tuple[int, ...], str]
    """SVG by the indices of the options."""
    script: Mapping[str, Any] = field(default_factory=dict)
    """What the script needs to know of it."""
    captions: Sequence[str] = ()
    """A text below each drawing."""

    def markup(self, section: Section) -> Markup:
        """Its choices, what is told of the marks, and its drawings, of which the first is shown."""
        drawings = []
        for i, (indices, svg) in enumerate(self.drawings.items()):
            caption = tag("p", self.captions[i], class_="note") if self.captions else ""
            chosen = " ".join(map(str, indices))
            drawings.append(
                tag("div", tag("div", Markup(svg), class_="wide"), caption, class_="drawing",
                    data_choice=chosen, hidden=any(indices))
            )  # fmt: skip
        keys, colours = self.script.get("filters", ()), self.script.get("by", ())
        headers = headers_of(section)
        choices = [
            *controls.filters(section, [key for key in keys if key != self.script.get("apart")]),
            *(controls.select(name, enumerate(text or "(none)" for text in options),
                              data_axis=i, data_choice=name)
              for i, (name, options) in enumerate(self.choices) if len(options) > 1),
            controls.select("colour by", [(key, headers.get(key, key)) for key in colours],
                            data_by=True) if len(colours) > 1 else "",
            controls.levels(self.script["levels"]) if "levels" in self.script else "",
        ]  # fmt: skip
        return tag(
            "figure",
            tag("h3", self.title) if self.title else "",
            tag("div", choices, class_="controls"),
            tag("p", class_="note", aria_live="polite"),
            tag("p", class_="legend"),
            drawings,
            id=self.id,
            class_="chart",
        )


def chart_of(report: Report, kind: type[Dots | Spans] = Dots, page: Page | None = None) -> Chart:
    """The first chart of a kind that a page of these results has, as a picture of its own.

    Raises `ProblemError` for results without one.
    """
    rows = list(report.rows)
    names = [
        ", ".join(dict.fromkeys(str(row[key]) for row in rows)) for key in ("network", "device")
    ]
    for section in KINDS[report.name].sections([Document("", rows, report.head)]) if rows else ():
        for chart in section.charts:
            part = chart if isinstance(chart, Dots) else next(iter(chart.values()))
            if isinstance(part, kind):
                title = f"{' on '.join(names)}: {part.title[0].lower()}{part.title[1:]}"
                sentence = " ".join(section.sentences)
                if isinstance(part, Spans):
                    return spans_chart(replace(part, title=title), sentence=sentence, page=page)
                part = replace(part, title=title, headers=headers_of(section))
                return dots_chart(section.rows, part, sentence=sentence, page=page)
    raise ProblemError("these results have nothing to draw")


def headers_of(section: Section) -> dict[str, str]:
    """The headings of a section's columns by key."""
    return {column.name: column.header for column in section.columns}


def bars_figure(views: Views, ident: str) -> Figure:
    """Bars, with a choice of their views."""
    drawings: dict[tuple[int, ...], str] = {
        (i,): inline(spans_chart(each, page=_BARE), f"{ident}-{i}", labelled=True)
        for i, each in enumerate(views.values())
    }
    title = next(iter(views.values())).title
    return Figure(ident, title, [("by", list(views))], drawings)


def dots_figure(part: Dots, section: Section, ident: str, table: str) -> Figure | None:
    """Marks of a section's rows, with choices of axes; None without a row that can be drawn."""
    rows = section.rows
    kinds = {**{column.name: column.kind for column in section.columns}, **part.kinds}
    part = replace(part, headers={**headers_of(section), **part.headers}, kinds=kinds,
                   labelled=part.labelled if len(rows) <= _LABELS else "")  # fmt: skip
    xs, ys = _usable(part.x, rows), _usable(part.y, rows)
    apart = list(dict.fromkeys(str(row.get(part.apart)) for row in rows)) if part.apart else [""]
    drawings: dict[tuple[int, ...], str] = {}
    for (i, x), (j, y), (k, value) in product(enumerate(xs), enumerate(ys), enumerate(apart)):
        mine = [
            row if not part.apart or str(row.get(part.apart)) == value else {**row, x: None}
            for row in rows
        ]
        if any(part.drawable(row, x, y) for row in mine):
            chart = dots_chart(mine, part, x=x, y=y, page=_BARE, legend=False)
            drawings[i, j, k] = inline(chart, f"{ident}-{i}{j}{k}")
    if not drawings:
        return None
    choices = [
        ("across", [part.header(x) for x in xs]),
        ("up", [part.header(y) for y in ys]),
        (part.header(part.apart), apart),
    ]
    script = {
        "table": table, "filters": part.filters, "by": part.by, "fits": part.fits or None,
        "compared": part.compared, "apart": part.apart or None,
        **section.told(part.name, [*xs, *ys]),
    }  # fmt: skip
    title = "" if part.compared else part.title
    return Figure(ident, title, choices, drawings, script)


def _usable(keys: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """The keys with a number in some row; of several those that vary."""
    known = [key for key in keys if any(row.get(key) is not None for row in rows)]
    return [key for key in known if len({row.get(key) for row in rows}) > 1] or known[:1]


def roofline_figure(
    devices: Sequence[Roofs], kernels: Sequence[Kernel], script: Mapping[str, Any]
) -> Figure:
    """The roofline of each device. A kernel's label is the index of its row."""
    drawings: dict[tuple[int, ...], str] = {}
    captions = []
    for i, device in enumerate(devices):
        mine = [kernel for kernel in kernels if kernel.device == device.device]
        chart = roofline_chart([device], mine, page=_ROOFLINE, named=False)
        rows = {
            gid: [int(str(chart.rows[place]["name"])) for place in places]
            for gid, places in chart.marks.items()
        }
        chart = replace(chart, marks=rows)
        drawings[i,] = _placed(inline(chart, f"roofline-{i}", clipped=True), chart)
        captions.append(" ".join(chart.caption))
    names = [device.device for device in devices]
    return Figure("roofline-chart", "", [("device", names)], drawings, script, captions)


def frame(operator: Mapping[str, Any], ident: str) -> str:
    """The axes of the explorer's curves of an operator: times over the first size. The script draws
    the curves."""
    name, sizes = operator["sizes"][0]["name"], operator["sizes"][0]["values"]
    every = ",".join(answer["us"] for answer in operator["times"].values())
    times = [float(us) for us in every.split(",") if us]
    ends = ((min(sizes), min(times)), (max(sizes), max(times)))
    rows = [{name: float(size), "time_us": float(us)} for size, us in ends]
    dots = Dots(f"Time over {name}", [name], ["time_us"], measured="measured")
    chart = dots_chart(rows, dots, page=_BARE)
    return _placed(inline(chart, ident), chart)


def _placed(svg: str, chart: Chart) -> str:
    """The SVG of a chart on log axes with the points of a decade across and up, and the place of
    one."""
    (axes,) = chart.figure.axes
    scale = 72 / chart.figure.dpi
    (left, low), (right, high) = (axes.transData.transform((end, end)) for end in (1.0, 10.0))
    numbers = (right - left, high - low, left, chart.figure.bbox.height - low)
    decades = " ".join(f"{number * scale:.4g}" for number in numbers)
    return svg.replace("<svg ", f'<svg data-decades="{decades}" ', 1)
