"""Streams the events of a Chrome trace: memory holds one event and one piece of the file.

Each event is parsed by `json` (`raw_decode`), so that a trace of 100 MB takes seconds and no
further library is needed. Two things are read beyond JSON. Kineto writes numbers as C++ prints
them, `inf` and `nan` among them (pytorch/kineto#105). A trace whose program was ended lacks its
last bracket, which the Trace Event Format allows; an event that was cut in two is left out.
"""

from __future__ import annotations

import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from json import JSONDecoder
from pathlib import Path
from typing import IO, Any

from perfmodel.documents import opened, shown
from perfmodel.errors import TableError, reason

_PIECE = 1 << 20  # characters read at a time
_LONGEST = 64 << 20  # characters of one event, or of the text before the list
_KEY = '"traceEvents"'
_SPACE = " \t\r\n,"
_NUMBERS = {"nan": "NaN", "-nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""C++'s words for numbers that are none, and Python's."""
_WORD = re.compile("-?(?:inf|nan)(?![a-z])")
_LONGEST_WORD = 9  # characters of `-Infinity`


def events(path: str | Path, notes: list[str] | None = None) -> Iterator[Mapping[str, Any]]:
    """Every event of a trace that is an object; raises `TableError` for a malformed file.

    `notes` is given a line where the trace ends early.
    """
    place = str(path)
    try:
        with io.TextIOWrapper(opened(path), encoding="utf-8-sig") as file:
            stream = _Stream(file, place)
            yield from stream.events()
    except UnicodeDecodeError:
        raise TableError(f"{place}: binary data, not a trace; export it again") from None
    except (OSError, EOFError, zlib.error) as error:
        cause = reason(error) if isinstance(error, OSError) else str(error).lower()
        raise TableError(f"{place}: cannot be read: {cause}; check the path") from None
    except ValueError as error:  # a number of thousands of digits
        raise TableError(f"{place}: not a sound trace ({error}); export it again") from None
    if stream.ended and notes is not None:
        notes.append(f"{place}: the trace is cut short; the events before that are read")


def real(value: Any) -> float | None:
    """A number of a trace, which some writers put in quotes; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


class _Stream:
    """A text read piece by piece."""

    def __init__(self, file: IO[str], place: str) -> None:
        self.file, self.where = file, place
        self.text, self.at = "", 0
        self.ended = False
        self.decode = JSONDecoder().raw_decode

    def more(self) -> bool:
        """Read another piece; False at the end of the file."""
        piece = self.file.read(_PIECE)
        if piece:
            self.text, self.at = self.text[self.at :] + piece, 0
        if len(self.text) > _LONGEST:
            raise TableError(f"{self.where}: an event is longer than any is; export it again")
        return bool(piece)

    def next(self) -> str:
        """The next character other than spaces and commas; empty at the end."""
        while True:
            while self.at < len(self.text):
                if self.text[self.at] not in _SPACE:
                    return self.text[self.at]
                self.at += 1
            if not self.more():
                return ""

    def events(self) -> Iterator[Mapping[str, Any]]:
        """Events of the list under `traceEvents`, or of a list that is the whole document."""
        if self.next() != "[":
            self._to_list()
        self.at += 1
        while (first := self.next()) != "]":
            event = self._value() if first else None
            if self.ended or not first:
                self.ended = True
                return
            if isinstance(event, Mapping):
                yield event

    def _to_list(self) -> None:
        """Move to the bracket that opens the list of events."""
        while (place := self.text.find(_KEY, self.at)) < 0:
            keep = max(len(self.text) - len(_KEY), self.at)
            if not self.more():
                raise TableError(f"{self.where}: no traceEvents; write it with export_chrome_trace")
            self.at = min(keep, len(self.text)) if len(self.text) <= _PIECE * 2 else self.at
        self.at = place + len(_KEY)
        if self.next() == ":":
            self.at += 1
        if self.next() != "[":
            raise TableError(f"{self.where}: traceEvents is no list; export it again")

    def _value(self) -> Any:
        """The next value, reading as many pieces as it needs; nothing where the text ends in it."""
        while True:
            try:
                value, self.at = self.decode(self.text, self.at)
            except json.JSONDecodeError as error:
                if self._mend(error.pos) or self.more():
                    continue
                in_word = len(self.text) - error.pos < _LONGEST_WORD
                if in_word or error.msg.startswith("Unterminated string"):
                    self.ended = True
                    return None
                excerpt = shown(self.text[self.at : self.at + 40])
                raise TableError(
                    f"{self.where}: not sound JSON ({error.msg} in {excerpt}); export it again"
                ) from None
            except RecursionError:
                raise TableError(f"{self.where}: nested too deeply for a trace") from None
            else:
                return value

    def _mend(self, place: int) -> bool:
        """Whether one of C++'s words stood where JSON has a number, and is Python's now."""
        word = _WORD.match(self.text, place)
        if word is None or word.end() == len(self.text):
            return False
        self.text = self.text[:place] + _NUMBERS[word[0]] + self.text[word.end() :]
        return True
