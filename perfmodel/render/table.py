"""A table as text: laid out by rich at a terminal, plain in a pipe and where it is long.

Both draw the same: columns three spaces apart, numbers to the right, a rule below the header. Only
rich fits a table to a terminal's width, at a millisecond a row, so that it is given short ones.
Plain rows are written as they come: memory does not grow with the table.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from tempfile import SpooledTemporaryFile

from perfmodel.plaintext import printable
from perfmodel.render.report import Column, Report

SHORT = 200
"""Rows of a table that is still fitted to a terminal."""

_IN_MEMORY = 2**24  # bytes of cells held in memory before a temporary file takes over
_GAP = "   "
_END = "\t"  # between cells on their way: no cell has one, since it does not print


def render(report: Report) -> Iterator[str]:
    """The table as text: as wide as the terminal, or as wide as it needs to be in a pipe."""
    rows = ([column.cell(row) for column in report.columns] for row in report.rows)
    if sys.stdout is None or not sys.stdout.isatty():
        yield from plain(report, rows)
        return
    first = list(islice(rows, SHORT + 1))
    if len(first) > SHORT:
        yield from plain(report, chain(first, rows))
    else:
        yield from _fitted(report, first)


def plain(report: Report, rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The title, a line for each of `rows` (the cells of a report's columns), and the notes."""
    from rich.cells import cell_len

    def width(text: str) -> int:
        return len(text) if text.isascii() else cell_len(text)

    header = [column.header for column in report.columns]
    widths = [width(text) for text in header]
    with SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", errors="surrogatepass") as cells:
        for row in chain.from_iterable(_broken(report.columns, row) for row in rows):
            widths = [max(most, width(text)) for most, text in zip(widths, row, strict=True)]
            cells.write(_END.join(row) + "\n")
        cells.seek(0)
        if report.title:
            yield f"{printable(report.title)}\n"
        lines = (line.removesuffix("\n").split(_END) for line in cells)
        for number, row in enumerate(chain([header], lines)):
            if number == 1:
                yield _rule(widths)
            pads = [" " * (most - width(text)) for most, text in zip(widths, row, strict=True)]
            yield _line(report.columns, row, pads)
        if not number:
            yield _rule(widths)
    for note in report.notes:
        yield f"{printable(note)}\n"


def _broken(columns: Sequence[Column], row: Sequence[str]) -> Iterator[Sequence[str]]:
    """The lines of a row: one, unless a column breaks its cells."""
    if not any(0 < column.wrap < len(text) for column, text in zip(columns, row, strict=True)):
        yield row
        return
    from textwrap import wrap

    cells = (
        (wrap(text, column.wrap) or [""]) if column.wrap else [text]
        for column, text in zip(columns, row, strict=True)
    )
    yield from zip_longest(*cells, fillvalue="")


def _line(columns: Sequence[Column], row: Sequence[str], pads: Sequence[str]) -> str:
    cells = (
        pad + text if column.number else text + pad
        for column, text, pad in zip(columns, row, pads, strict=True)
    )
    return _GAP.join(cells).rstrip() + "\n"


def _rule(widths: Sequence[int]) -> str:
    return "─" * (sum(widths) + len(_GAP) * (len(widths) - 1)) + "\n"


def _fitted(report: Report, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The same, as wide as the terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, highlight=False)
    for column in report.columns:
        table.add_column(Text(column.header), justify="right" if column.number else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    buffer = io.StringIO()
    console = Console(file=buffer, force_terminal=True, legacy_windows=False, highlight=False)
    if report.title:
        console.print(Text(printable(report.title), style="bold"), soft_wrap=True)
    console.print(table)
    for note in report.notes:
        console.print(Text(printable(note)), soft_wrap=True)
    yield "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines())
