"""A table as text: full width in a pipe, fitted to the width of a terminal.

Columns are two spaces apart, numbers aligned right, with a rule below the header. A pipe gets every
column in full.

On a terminal columns of rank 0 are always shown. The others follow by rank while they fit, and a
note names the rest. Remaining room goes to columns whose cells are broken into lines. If not even
rank 0 fits, each row is a block of lines.

No cell is ever cut. Cells are stored in a temporary file until all widths are known, so memory does
not grow with the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from tempfile import SpooledTemporaryFile
from textwrap import wrap
from typing import IO

from perfmodel.plaintext import printable
from perfmodel.render.report import Column, Report, Row

_IN_MEMORY = 2**24  # bytes of cells held in memory before a temporary file is used
_END = "\t"  # separator of stored cells: no cell contains it, since it is not printable
_GAP = 2  # spaces between two columns
_LEAST = 12  # characters of a value on a terminal that is narrower than one
_UNBROKEN = "\N{NO-BREAK SPACE}"
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=[kMGTPEµmn]?i?(?:B|s|FLOP|OP|exp|Hz|W)\b)")
_MARKS = "._/+"  # a long name may be broken after one of these
_BRIEFER = "a pipe, --format csv or a wider terminal has all"


def render(report: Report) -> Iterator[str]:
    """The table for a pipe or a file: every column in full, no colour."""
    return _table(report, None, coloured=False)


def at_terminal(report: Report, width: int, *, coloured: bool) -> Iterator[str]:
    """The table in `width` characters."""
    return _table(report, width, coloured=coloured)


def _table(report: Report, width: int | None, *, coloured: bool) -> Iterator[str]:
    with SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", errors="surrogatepass") as file:
        cells = _Cells(report.visible, file, coloured)
        for row in report.rows:
            cells.add(row)
        yield from _text(report.title, width, "bold" if coloured else "")
        least = cells.least(folded=width is not None)
        widths = least if width is None else cells.fitted(least, width)
        if not widths and width is not None:
            yield from _blocks(cells, width)
        else:
            yield from _lines(cells, widths)
            hidden = [c.header for i, c in enumerate(report.visible) if i not in widths]
            if hidden:
                sentence = f"not in {width} columns: {', '.join(hidden)} ({_BRIEFER})"
                yield from _text(sentence, width, "dim" if coloured else "")
    for note in report.notes:
        yield from _text(note, width, "")


class _Cells:
    """The cells of all rows in a file, and the width of each column.

    A row has its cells, then (in colour) the style of each.
    """

    def __init__(self, columns: Sequence[Column], file: IO[str], coloured: bool) -> None:
        self.columns, self.coloured = columns, coloured
        self._file = file
        self._most = [_cell_width(column.header) for column in columns]

    def add(self, row: Row) -> None:
        """Store the cells of a row."""
        texts = [column.cell(row) for column in self.columns]
        self._most = [max(n, _cell_width(t)) for n, t in zip(self._most, texts, strict=True)]
        if self.coloured:
            texts += [column.style(row) if column.style else "" for column in self.columns]
        self._file.write(_END.join(texts) + "\n")

    def rows(self) -> Iterator[list[str]]:
        """The cells and styles of each row."""
        self._file.seek(0)
        for line in self._file:
            row = line.removesuffix("\n").split(_END)
            yield row if self.coloured else [*row, *("" for _ in row)]

    def least(self, *, folded: bool) -> dict[int, int]:
        """Characters that each column needs: those of its longest cell, or of a line where cells
        may be broken; `folded`: as on a terminal."""
        widths = {}
        for i, (column, most) in enumerate(zip(self.columns, self._most, strict=True)):
            limit = (folded and column.fold) or column.wrap or most
            widths[i] = max(min(most, limit), _cell_width(column.header))
        return widths

    def fitted(self, least: Mapping[int, int], room: int) -> dict[int, int]:
        """The columns that fit into `room` characters and their widths, in their order; none if
        rank 0 does not."""
        ranks = [column.rank for column in self.columns]
        chosen = {i: width for i, width in least.items() if ranks[i] == 0}
        if _width(chosen) > room:
            return {}
        for i in sorted(least, key=ranks.__getitem__):
            trial = {**chosen, i: least[i]}
            chosen = trial if _width(trial) <= room else chosen
        spare = room - _width(chosen)
        for i in sorted(chosen):
            extra = min(spare, self._most[i] - least[i])
            spare -= extra
            chosen[i] += extra
        return dict(sorted(chosen.items()))


def _width(widths: Mapping[int, int]) -> int:
    """Characters of columns beside each other."""
    return sum(widths.values()) + _GAP * (len(widths) - 1)


def _lines(cells: _Cells, widths: Mapping[int, int]) -> Iterator[str]:
    """The header, the rule and the rows."""
    headers = [cells.columns[i].header for i in widths]
    yield _line(cells, widths, headers, [""] * len(widths))
    yield "─" * _width(widths) + "\n"
    for row in cells.rows():
        styles = [row[len(cells.columns) + i] for i in widths]
        pieces = [_text_lines(row[i], width, keep_words=False) for i, width in widths.items()]
        for texts in zip_longest(*pieces, fillvalue=""):
            yield _line(cells, widths, texts, styles)


def _line(
    cells: _Cells, widths: Mapping[int, int], texts: Sequence[str], styles: Sequence[str]
) -> str:
    parts = []
    for (i, width), text, style in zip(widths.items(), texts, styles, strict=True):
        pad, cell = " " * (width - _cell_width(text)), _paint(text, style)
        parts.append(pad + cell if cells.columns[i].number else cell + pad)
    return (" " * _GAP).join(parts).rstrip() + "\n"


def _blocks(cells: _Cells, width: int) -> Iterator[str]:
    """A block for each row with a line for each column, for a terminal too narrow for a table."""
    label = max(_cell_width(column.header) for column in cells.columns)
    room = max(_LEAST, width - label - _GAP)
    for number, row in enumerate(cells.rows()):
        if number:
            yield "\n"
        styles = row[len(cells.columns) :]
        for column, text, style in zip(cells.columns, row, styles, strict=False):
            name = column.header
            for part in _text_lines(text, room):
                pad = " " * (label - _cell_width(name) + _GAP)
                yield f"{name}{pad}{_paint(part, style)}".rstrip() + "\n"
                name = ""


def _text(text: str, width: int | None, style: str) -> Iterator[str]:
    """A title or note: one line in a pipe, lines of whole words on a terminal."""
    if not text:
        return
    content = printable(text)
    indent = " " * (len(content) - len(content.lstrip()) + _GAP)
    lines = [content] if width is None else _text_lines(content, width, indent)
    yield from (_paint(line, style) + "\n" for line in lines)


def _text_lines(text: str, width: int, indent: str = "", *, keep_words: bool = True) -> list[str]:
    """Lines of words; a word longer than a line stays whole or is broken."""
    if _cell_width(text) <= width:
        return [text]
    if not keep_words:
        text = " ".join(_word_parts(word, width) for word in text.split(" "))
    lines = wrap(
        _BEFORE_UNIT.sub(_UNBROKEN, text),
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_UNBROKEN, " ") for line in lines] or [""]


def _word_parts(word: str, width: int) -> str:
    """A word longer than a line, broken after a mark where possible."""
    parts = []
    while len(word) > width:
        end = max(word.rfind(mark, 0, width) for mark in _MARKS) + 1 or width
        parts.append(word[:end])
        word = word[end:]
    return " ".join([*parts, word])


def _cell_width(text: str) -> int:
    """Width of `text` on a terminal, in characters."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _paint(text: str, style: str) -> str:
    """`text` in a style of rich ("bold", "yellow"); plain without a style."""
    if not style or not text:
        return text
    from rich.style import Style

    return Style.parse(style).render(text)
