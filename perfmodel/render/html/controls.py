"""What a reader may choose on the page: selections, filters, sliders, and the frame of a table.

The script finds these by their `data-` attributes and makes them work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perfmodel.columns import ASIDE
from perfmodel.quantities import shown
from perfmodel.render.html.columns import hidden
from perfmodel.render.html.markup import Markup, tag
from perfmodel.render.html.sections import Section

_PRINTED = 40  # rows on paper, as style.css has it


def select(label: str, options: Iterable[tuple[object, str]], **attributes: object) -> Markup:
    """A selection with its label; options are (value, text)."""
    choices = [tag("option", text, value=value) for value, text in options]
    return tag("label", f"{label} ", tag("select", choices, **attributes))


def filters(section: Section, keys: Sequence[str]) -> Iterable[Markup]:
    """A selection of one of the values of each key, or of all."""
    known = {column.name: column for column in section.columns}
    for key in keys:
        if key in known:
            column, values = known[key], [row.get(key) for row in section.rows]
            texts = {"" if v is None else shown(v, column.kind): v for v in values}
            order = sorted(texts, key=lambda text: (_number(texts[text]), text))
            options = [("", "all"), *((text, text or "(none)") for text in order)]
            yield select(column.header, options, data_filter=key)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def levels(names: Mapping[str, str]) -> Markup:
    """A tick for each level of memory."""
    boxes = [
        tag("label", tag("input", type="checkbox", value=level, checked=True), f" {name}")
        for level, name in names.items()
    ]
    return tag("fieldset", tag("legend", "Levels"), boxes)


def sliders(names: Mapping[str, str]) -> Markup:
    """A slider for each hardware number, from half to twice what it is."""
    labels = [
        tag("label", tag("span", title), tag("output", "×1.00"),
            tag("input", type="range", min=-1, max=1, step=0.05, value=0, data_quantity=name))
        for name, title in names.items()
    ]  # fmt: skip
    return tag("div", labels, class_="sliders")


def table(ident: str, section: Section, caption: str) -> Markup:
    """The frame of a section's table, whose rows the script writes: they can be sorted by a column,
    filtered by words, and saved."""
    columns = [column for column in section.columns if column.when != ASIDE]
    alike = ", ".join(
        f"{column.header} {shown(column.value(section.rows[0]), column.kind)}"
        for column in columns
        if column.header and hidden(column, section.rows)
    )
    heads = [
        tag("th", tag("button", column.header, type="button", data_sort=column.name), scope="col",
            aria_sort="none", class_=None if column.kind == "text" else "number")
        for column in columns if not hidden(column, section.rows)
    ]  # fmt: skip
    count = len(section.rows)
    long = count > _PRINTED
    frame = tag("caption", caption, class_="hidden-text"), tag("thead", tag("tr", heads))
    words = f"Printed are the first {_PRINTED} of {count} rows as they are sorted."
    return tag(
        "div",
        tag("div", tag("label", "Rows with ", tag("input", type="search")),
            tag("button", "CSV", type="button", data_save=True),
            tag("span", class_="note", aria_live="polite"), class_="controls"),
        tag("p", f"In all rows: {alike}.", class_="note") if alike else "",
        tag("p", "Wider than the page: scroll the table sideways.", class_="note wider"),
        tag("p", words, class_="note printed") if long else "",
        tag("div", tag("table", *frame, tag("tbody"), class_="long" if long else None),
            class_="scroll rows", tabindex=0, role="region", aria_label=caption),
        tag("button", "Show all rows", type="button", class_="more"),
        data_table=ident,
    )  # fmt: skip


def terms(names: Sequence[str], note: str) -> Sequence[Markup]:
    """The choice of a case, and the frame of the table of its terms."""
    columns = [tag("col", class_=name) for name in ("name", "value", "bar")]
    caption = tag("caption", "Terms and how they join", class_="hidden-text")
    return (
        tag("div", select("Case", enumerate(names), id="case"), class_="controls"),
        tag("p"),
        tag("table", caption, tag("colgroup", columns), tag("tbody"), class_="terms"),
        tag("p", note, class_="note"),
    )


def explorer(frames: Mapping[str, str], note: str) -> Sequence[Markup]:
    """The choices of the explorer, and the parts that the script fills; `frames` are the axes of
    its curves by the title of the operator."""
    caption = tag("caption", "Devices by time, with a bar on a log scale", class_="hidden-text")
    table = tag("table", caption, tag("thead"), tag("tbody"), class_="explorer")
    search = tag("input", type="search", id="explorer-search")
    drawings = [tag("div", Markup(each), class_="drawing") for each in frames.values()]
    return (
        tag("div", select("Question", enumerate(frames), id="explorer-operator"),
            tag("label", "Devices with ", search), class_="controls"),
        tag("div", class_="sliders", data_part=True),
        tag("div", aria_live="polite", id="explorer-result", data_part=True),
        tag("div",
            tag("div", table, class_="scroll rows", tabindex=0, role="region",
                aria_label="Devices by time", data_part=True),
            tag("div", drawings, tag("p", class_="legend"), class_="wide", id="explorer-chart",
                data_part=True), class_="two"),
        tag("p", f"{note} The bars are on a log scale.", class_="note"),
    )  # fmt: skip
