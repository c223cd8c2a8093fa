"""Tables of runs other than of one operator: collectives, training, serving.

    read_runs("collectives.csv.gz", Layout(needed=("device", "latency_us"), ...))

A `Layout` defines the columns and the types of their cells. Other spellings of column names are
recognised (`perfmodel.evidence.tables`).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from perfmodel.evidence.tables.layout import Layout
from perfmodel.evidence.tables.reading import read

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Layout", "read_runs"]


def read_runs(paths: str | Path | Iterable[str | Path], layout: Layout) -> pd.DataFrame:
    """The rows of one or more tables of a layout; `-` reads standard input.

    Raises `TableError`, one line, for a file or a value that is not what it should be.
    """
    return read(paths, layout).strict()
