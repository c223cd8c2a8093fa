"""What all charts share: colours, type sizes, and how a figure becomes a file.

A figure is made without pyplot, so nothing is shown and no state is kept; an SVG is the same bytes
on every run, with its text left as text.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfmodel.errors import OutputError
from perfmodel.evidence.records.records import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, told apart by colour-blind readers.
BLUE, GREEN, ORANGE = "#0072B2", "#009E73", "#E69F00"
VERMILION, PURPLE, SKY, YELLOW, BLACK = "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#000000"
CYCLE = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, BLACK, "#999999")
GREY = "#8A8A8A"

SUFFIXES = (".svg", ".pdf", ".png")
STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8,
    "axes.labelsize": 8.5,
    "axes.titlesize": 9,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "svg.fonttype": "none",
    "svg.hashsalt": "perfmodel",
    "pdf.fonttype": 42,
    "text.parse_math": False,
    "text.hinting": "no_hinting",  # the same letter widths in PNG as in PDF and SVG
}


def chart_suffix(path: str) -> str:
    """The suffix that says how a chart is written; raises `OutputError` for another one."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise OutputError(f"{path}: a chart is written as {', '.join(SUFFIXES)}; change the name")
    return suffix


def save(figure: Figure, path: str | Path, dpi: int = 200) -> None:
    """Write `figure` whole or not at all; the suffix says how. Raises `OutputError`."""
    from matplotlib import rc_context

    suffix = chart_suffix(str(path))
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix)
    with rc_context(STYLE), replacing(path) as partial:
        figure.savefig(partial, format=suffix[1:], dpi=dpi, metadata=metadata)
