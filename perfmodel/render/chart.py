"""A chart: its figure, its description in words, and its numbers.

Figures are made without pyplot, so nothing is shown and no state is kept. An SVG has the same bytes
on every run, its text as text, a title and a description.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfmodel.errors import OutputError
from perfmodel.evidence.records.replacing import replacing
from perfmodel.render.labels import wrapped
from perfmodel.render.page import Page, Palette, styled
from perfmodel.render.report import Row
from perfmodel.render.svg import document
from perfmodel.render.ticks import plain_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".pdf", ".png")


@dataclass(frozen=True)
class Chart:
    """One picture, ready to be written."""

    figure: Figure = field(repr=False)
    """The Matplotlib figure."""
    title: str
    """One line: what is shown, and for what."""
    description: str = field(repr=False)
    """Sentences for readers who cannot see the picture."""
    rows: Sequence[Row] = field(default=(), repr=False)
    """The numbers of the chart, one row for each mark or line, in SI units with the unit in the
    name."""
    caption: Sequence[str] = field(default=(), repr=False)
    """Sentences below the picture; the page decides whether they are drawn."""
    page: Page = field(default_factory=Page, repr=False)
    """Layout."""
    marks: Mapping[str, Sequence[int]] = field(default_factory=dict, repr=False)
    """Rows that an artist shows, by the artist's id."""

    def __post_init__(self) -> None:
        """Write the ticks of log axes as plain numbers."""
        plain_ticks(self.figure)

    def _repr_svg_(self) -> str:
        """The picture in a notebook."""
        return document(self)


def dress(
    figure: Figure, page: Page, palette: Palette, title: str, caption: Sequence[str] = ()
) -> None:
    """Draw a title above and a caption below a figure of constrained layout, both at its left
    edge."""
    from matplotlib import rcParams

    width = figure.get_size_inches()[0]
    heading = page.titled(title)
    if heading:
        points = float(rcParams["axes.titlesize"])
        lines = wrapped(heading, 1.12 * points, width - 0.1)
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
    """The suffix of a chart's file. Raises `OutputError` for an unknown one."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise OutputError(f"{path}: a chart is written as {', '.join(SUFFIXES)}; change the name")
    return suffix


def save(chart: Chart, path: str | Path) -> None:
    """Write `chart` whole or not at all, in the format of the suffix. Raises `OutputError`."""
    suffix = chart_suffix(str(path))
    if suffix == ".svg":
        with replacing(path) as partial:
            partial.write_text(document(chart), encoding="utf-8")
        return
    metadata = {"Title": chart.title, "Subject" if suffix == ".pdf" else "Description": ""}
    metadata = {name: value or chart.description for name, value in metadata.items()}
    dates: dict[str, Any] = {"CreationDate": None} if suffix == ".pdf" else {}
    with replacing(path) as partial, styled(chart.page):
        chart.figure.savefig(
            partial,
            format=suffix[1:],
            dpi=chart.page.dpi,
            metadata={**metadata, **dates},
            transparent=chart.page.transparent,
        )
