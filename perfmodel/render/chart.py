"""A chart: its figure, its description in words, and its numbers.

Figures are made without pyplot, so nothing is shown and no state is kept. An SVG has the same bytes
on every run, its text as text, a title and a description.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.errors import OutputError, ProblemError
from perfmodel.render.labels import wrapped
from perfmodel.render.page import Page, Palette, styled
from perfmodel.render.report import Row
from perfmodel.render.svg import document
from perfmodel.replacing import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".pdf", ".png")
_LEAST = 0.6, 0.25  # inches of a panel, across and up


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
    unplaced: Sequence[str] = field(default=(), repr=False)
    """Labels without room."""

    def _repr_svg_(self) -> str:
        """The picture in a notebook."""
        return document(self)


def dress(
    figure: Figure,
    page: Page,
    palette: Palette,
    title: str,
    caption: Sequence[str] = (),
    handles: Sequence[Any] = (),
) -> None:
    """Draw a title above, a legend of `handles` and a caption below, all at the left edge.

    It completes the constrained layout of the figure and keeps it, so that labels can be placed.
    Raises `ProblemError` where that leaves too little room.
    """
    from matplotlib import rcParams
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    width, height = figure.get_size_inches()
    heading = page.titled(title)
    if heading:
        points = float(rcParams["axes.titlesize"])
        lines = wrapped(heading, 1.12 * points, width - 0.1)
        figure.suptitle(
            "\n".join(lines), x=0.01, ha="left", fontsize=points, fontweight="bold", gid="title"
        )
    below = 0.0
    if page.caption and caption:
        lines = [line for each in caption for line in wrapped(each, palette.small, width - 0.1)]
        text = figure.text(
            0.01, 0.05 / height, "\n".join(lines), fontsize=palette.small, color=palette.grey,
            va="bottom", gid="caption", in_layout=False,
        )  # fmt: skip
        below = (text.get_window_extent().y1 + 3) / figure.bbox.height
    if handles:
        below = _legend(figure, handles, below)
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    engine.set(rect=(0, below, 1, max(1 - below, 0.01)))
    with warnings.catch_warnings(action="ignore"):  # of axes without any room
        engine.execute(figure)
    for axes in figure.axes:
        if below > 0.9 or (axes.bbox.size < np.multiply(_LEAST, figure.dpi)).any():
            raise ProblemError(
                f"{width:.3g} x {height:.3g} inches are too small for this chart; give it more "
                "room, or leave the caption out"
            )
    figure.set_layout_engine("none")
    for axes in figure.axes:  # the solver's last digits differ from run to run
        left, low, right, high = np.round(axes.get_position(original=True).extents, 6)
        axes.set_position((left, low, right - left, high - low))


def _legend(figure: Figure, handles: Sequence[Any], below: float) -> float:
    """A legend at the figure's lower edge in as many columns as fit; returns its upper end."""
    for columns in range(len(handles), 0, -1):
        legend = figure.legend(
            handles=handles, loc="lower left", bbox_to_anchor=(0.005, below), ncols=columns,
            borderaxespad=0.2, borderpad=0.1, columnspacing=1.2, handletextpad=0.4,
            labelspacing=0.3,
        )  # fmt: skip
        legend.set_in_layout(False)
        box = legend.get_window_extent()
        if box.x1 <= figure.bbox.x1 or columns == 1:
            break
        legend.remove()
    return float(box.y1 + 3) / figure.bbox.height


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
