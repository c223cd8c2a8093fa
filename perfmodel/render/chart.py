"""A chart: its figure, what it says in words, and the numbers that it draws.

A figure is made without pyplot, so nothing is shown and no state is kept; an SVG is the same bytes
on every run, with its text left as text, a title and a description.
"""

from __future__ import annotations

import html
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfmodel.errors import OutputError
from perfmodel.evidence.records.records import replacing
from perfmodel.render.labels import wrapped
from perfmodel.render.page import Page, Palette, styled
from perfmodel.render.report import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".pdf", ".png")


@dataclass(frozen=True)
class Chart:
    """One picture, ready to be written."""

    figure: Figure = field(repr=False)
    """The picture."""
    title: str
    """One line: what is shown, and of what."""
    description: str = field(repr=False)
    """Sentences that stand for the picture where it cannot be seen."""
    rows: Sequence[Row] = field(default=(), repr=False)
    """What is drawn, a row a mark or a line, in SI units with the unit in the name."""
    caption: Sequence[str] = field(default=(), repr=False)
    """Sentences below the picture, drawn or not."""
    page: Page = field(default_factory=Page, repr=False)
    """How it is set."""

    def _repr_svg_(self) -> str:
        """The picture in a notebook."""
        return _svg(self)


def dress(
    figure: Figure, page: Page, palette: Palette, title: str, caption: Sequence[str] = ()
) -> None:
    """Title above and caption below a figure of constrained layout, both from its left edge."""
    from matplotlib import rcParams

    width = figure.get_size_inches()[0]
    said = page.titled(title)
    if said:
        points = float(rcParams["axes.titlesize"])
        lines = wrapped(said, 1.12 * points, width - 0.1)
        figure.suptitle(
            "\n".join(lines), x=0.01, ha="left", fontsize=points, fontweight="bold", gid="title"
        )
    if page.caption and caption:
        lines = [line for each in caption for line in wrapped(each, palette.small, width - 0.1)]
        figure.supxlabel(
            "\n".join(lines),
            x=0.01,
            ha="left",
            fontsize=palette.small,
            color=palette.grey,
            gid="caption",
        )


def chart_suffix(path: str) -> str:
    """The suffix that says how a chart is written; raises `OutputError` for another one."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise OutputError(f"{path}: a chart is written as {', '.join(SUFFIXES)}; change the name")
    return suffix


def save(chart: Chart, path: str | Path) -> None:
    """Write `chart` whole or not at all; the suffix says how. Raises `OutputError`."""
    suffix = chart_suffix(str(path))
    if suffix == ".svg":
        with replacing(path) as partial:
            partial.write_text(_svg(chart), encoding="utf-8")
        return
    said = {"Title": chart.title, "Subject" if suffix == ".pdf" else "Description": ""}
    said = {name: value or chart.description for name, value in said.items()}
    dates: dict[str, Any] = {"CreationDate": None} if suffix == ".pdf" else {}
    with replacing(path) as partial:
        _write(chart, partial, suffix[1:], {**said, **dates})


def _write(chart: Chart, target: Any, form: str, metadata: dict[str, Any]) -> None:
    with styled(chart.page):
        chart.figure.savefig(
            target,
            format=form,
            dpi=chart.page.dpi,
            metadata=metadata,
            transparent=chart.page.transparent,
        )


def _svg(chart: Chart) -> str:
    """SVG that a screen reader can tell: a picture with a title and a description."""
    buffer = io.StringIO()
    _write(chart, buffer, "svg", {"Date": None})
    head, root, rest = buffer.getvalue().partition("<svg ")
    attributes, close, body = rest.partition(">")
    title, description = (html.escape(text) for text in (chart.title, chart.description))
    return (
        f'{head}{root}role="img" aria-labelledby="chart-title chart-description" {attributes}'
        f'{close}\n <title id="chart-title">{title}</title>'
        f'\n <desc id="chart-description">{description}</desc>{body}'
    )
