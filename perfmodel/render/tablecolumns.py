"""The report of a measured table's columns: meaning, unit, default, spellings."""

from __future__ import annotations

from collections.abc import Sequence

from perfmodel.render.report import Column, Report, Row, listed, text


def report(kind: str, rows: Sequence[Row]) -> Report:
    """One line for each column; `rows` are `perfmodel.table.reference` as plain
    values."""
    return Report("columns", rows, _COLUMNS, f"columns of {kind} tables", {"kind": kind})


def _meaning(row: Row) -> str:
    """The meaning of a column, with its unit."""
    return f"{row['about']} ({row['unit']})" if row["unit"] else str(row["about"])


_COLUMNS = (
    text("column", "name"),
    text("needed", "needed", wrap=10, fold=9),
    text("cells", "holds", rank=2),
    Column("meaning", _meaning, number=False, wrap=38, fold=20),
    text("if empty", "empty", wrap=20, fold=12),
    Column(
        "also read as", lambda row: listed(row["names"], 32), number=False, wrap=18, fold=14, rank=1
    ),
)
