"""A table as text: full width in a pipe, fitted to the width of a terminal.

Columns are two spaces apart, numbers aligned right, with a rule below the header. A pipe gets every
column in full.

On a terminal columns of rank 0 are always shown. The others follow by rank while they fit, each in
its briefest form, and a note names the rest. Remaining room goes to full forms, and last to columns
whose cells are broken into lines. If not even rank 0 fits, each row is a block of lines.

No cell is ever cut. Cells are stored in a temporary file until all widths are known, so memory does
not grow with the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from tempfile import SpooledTemporaryFile
from textwrap import wrap
from typing import IO

from perfmodel.frozen import dataclass
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


@dataclass(frozen=True)
class _Form:
    """One way to write a column."""

    column: int
    """Index among all columns."""
    field: int
    """Index of its cells among all cells of a row."""
    least: int
    """Minimum characters: of its longest cell, or of a line where cells are broken."""
    most: int
    """Characters of its longest cell."""
    width: int
    """Characters that it has."""


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
        forms = cells.forms(folded=width is not None)
        places = [each[-1] for each in forms] if width is None else cells.fitted(forms, width)
        if not places and width is not None:
            yield from _blocks(cells, width)
        else:
            yield from _lines(cells, places)
            visible = {place.column for place in places}
            hidden = [c.header for i, c in enumerate(report.visible) if i not in visible]
            if hidden:
                sentence = f"not in {width} columns: {', '.join(hidden)} ({_BRIEFER})"
                yield from _text(sentence, width, "dim" if coloured else "")
    for note in report.notes:
        yield from _text(note, width, "")


class _Cells:
    """The cells of all rows in a file, and the width of each field.

    A row has its full cells, then its brief ones, then (in colour) the style of each column.
    """

    def __init__(self, columns: Sequence[Column], file: IO[str], coloured: bool) -> None:
        self.columns, self.coloured = columns, coloured
        self._file = file
        self._unstyled = ("",) * len(columns)
        self._brief = [i for i, column in enumerate(columns) if column.brief is not None]
        self._fields = [*columns, *(brief for column in columns if (brief := column.brief))]
        self.headers = [field.header for field in self._fields]
        self._most = [_cell_width(header) for header in self.headers]

    def add(self, row: Row) -> None:
        """Store the cells of a row."""
        texts = [field.cell(row) for field in self._fields]
        for i, text in enumerate(texts):
            self._most[i] = max(self._most[i], _cell_width(text))
        if self.coloured:
            texts += [column.style(row) if column.style else "" for column in self.columns]
        self._file.write(_END.join(texts) + "\n")

    def rows(self) -> Iterator[list[str]]:
        """The fields of each row."""
        self._file.seek(0)
        for line in self._file:
            yield line.removesuffix("\n").split(_END)

    def styles(self, row: Sequence[str]) -> Sequence[str]:
        """The style of each column of a row."""
        return row[len(self._fields) :] if self.coloured else self._unstyled

    def forms(self, *, folded: bool) -> list[list[_Form]]:
        """The forms of each column, briefest first; `folded`: cells may be broken, as on a
        terminal."""
        forms = [[self._form(i, i, folded)] for i in range(len(self.columns))]
        for place, i in enumerate(self._brief, len(self.columns)):
            forms[i].insert(0, self._form(i, place, folded))
        return forms

    def _form(self, column: int, field: int, folded: bool) -> _Form:
        most = self._most[field]
        limit = (folded and self._fields[field].fold) or self._fields[field].wrap or most
        least = max(min(most, limit), _cell_width(self.headers[field]))
        return _Form(column, field, least, most, least)

    def fitted(self, forms: Sequence[Sequence[_Form]], room: int) -> list[_Form]:
        """The columns that fit into `room` characters, in their order; none if rank 0 does not."""
        ranks = [column.rank for column in self.columns]
        chosen = {i: each[0] for i, each in enumerate(forms) if ranks[i] == 0}
        if _width(chosen.values()) > room:
            return []
        by_rank = sorted(range(len(forms)), key=ranks.__getitem__)
        for form in (0, -1):
            for i in by_rank:
                trial = {**chosen, i: forms[i][form]}
                if (i in chosen or form == 0) and _width(trial.values()) <= room:
                    chosen = trial
        spare = room - _width(chosen.values())
        places = []
        for _, form_of in sorted(chosen.items()):
            extra = min(spare, form_of.most - form_of.least)
            spare -= extra
            places.append(replace(form_of, width=form_of.least + extra))
        return places


def _width(forms: Iterable[_Form]) -> int:
    """Characters of columns beside each other."""
    widths = [form.width for form in forms]
    return sum(widths) + _GAP * (len(widths) - 1)


def _lines(cells: _Cells, places: Sequence[_Form]) -> Iterator[str]:
    """The header, the rule and the rows."""
    header = [cells.headers[place.field] for place in places]
    yield _line(cells.columns, places, header, [""] * len(places))
    yield "─" * _width(places) + "\n"
    for row in cells.rows():
        row_styles = cells.styles(row)
        styles = [row_styles[place.column] for place in places]
        pieces = [_text_lines(row[place.field], place.width, keep_words=False) for place in places]
        for texts in zip_longest(*pieces, fillvalue=""):
            yield _line(cells.columns, places, texts, styles)


def _line(
    columns: Sequence[Column], places: Sequence[_Form], texts: Sequence[str], styles: Sequence[str]
) -> str:
    cells = []
    for place, text, style in zip(places, texts, styles, strict=True):
        pad = " " * (place.width - _cell_width(text))
        cell = _paint(text, style)
        cells.append(pad + cell if columns[place.column].number else cell + pad)
    return (" " * _GAP).join(cells).rstrip() + "\n"


def _blocks(cells: _Cells, width: int) -> Iterator[str]:
    """A block for each row with a line for each column, for a terminal too narrow for a table."""
    label = max(_cell_width(column.header) for column in cells.columns)
    room = max(_LEAST, width - label - _GAP)
    for number, row in enumerate(cells.rows()):
        if number:
            yield "\n"
        styles = cells.styles(row)
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
