"""CSV: every value of every row, nested names joined by underscores (`terms_us_hbm`).

Numbers are written in full. Text that a spreadsheet would run as a formula gets a leading
apostrophe (`perfmodel.plaintext.csv_cell`); the reader of measured-run tables removes it.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from typing import Any

from perfmodel.plaintext import csv_cell, without_controls
from perfmodel.render.report import Report, Row


def render(report: Report) -> Iterator[str]:
    """A header and a line for each row, in the units of the machine-readable formats."""
    rows = report.rows if report.examples else list(report.rows)
    examples = report.examples or rows
    header = dict.fromkeys(key for row in examples for key in _cells(row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(header), restval="", lineterminator="\n")
    writer.writerow({name: _text(name) for name in header})
    for row in rows:
        writer.writerow(_cells(row))
        yield _contents(buffer)
    yield _contents(buffer)


def _text(value: str) -> str:
    return csv_cell(without_controls(value))


def _contents(buffer: io.StringIO) -> str:
    """The contents of `buffer`, which is cleared."""
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text


def _item_text(item: Any) -> str:
    """An item of a list as text; of a table, its members."""
    if isinstance(item, dict):
        return " ".join(f"{key}={value}" for key, value in item.items())
    return str(item)


def _cells(row: Row, prefix: str = "") -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            cells |= _cells(value, f"{prefix}{key}_")
        elif isinstance(value, list | tuple):
            cells[prefix + key] = _text("; ".join(_item_text(item) for item in value))
        elif isinstance(value, float) and math.isnan(value):
            cells[prefix + key] = ""
        else:
            cells[prefix + key] = _text(value) if isinstance(value, str) else value
    return cells
