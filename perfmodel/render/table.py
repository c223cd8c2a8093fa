"""A table for the terminal (rich); plain text in a pipe, no colour where NO_COLOR is set."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from perfmodel.render.report import Report

_UNLIMITED = 100_000


def render(report: Report) -> Iterator[str]:
    """The whole table as text: as wide as the terminal, or as wide as it needs to be in a pipe."""
    terminal = sys.stdout.isatty()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, highlight=False)
    for column in report.columns:
        table.add_column(Text(column.header), justify="right" if column.number else "left")
    for row in report.rows:
        table.add_row(*(Text(column.cell(row)) for column in report.columns))
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        force_terminal=terminal,
        width=None if terminal else _UNLIMITED,
        legacy_windows=False,
        highlight=False,
    )
    if report.title:
        console.print(Text(report.title, style="bold"), soft_wrap=True)
    console.print(table)
    for note in report.notes:
        console.print(Text(note), soft_wrap=True)
    yield "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines())
