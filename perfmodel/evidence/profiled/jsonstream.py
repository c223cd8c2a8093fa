"""Streams the events of a Chrome trace: memory holds one event and one piece of the file.

Each event is parsed by `json` (`raw_decode`), so that a trace of 100 MB takes seconds and no
further library is needed.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from json import JSONDecoder
from pathlib import Path
from typing import IO, Any

from perfmodel.errors import TableError, reason
from perfmodel.evidence.records.documents import shown

_PIECE = 1 << 20  # characters read at a time
_LONGEST = 64 << 20  # characters of one event, or of the text before the list
_KEY = '"traceEvents"'
_SPACE = " \t\r\n,"


def events(path: str | Path) -> Iterator[Mapping[str, Any]]:
    """Every event of a trace that is an object; raises `TableError` for a malformed file."""
    where = str(path)
    try:
        with _opened(path) as file:
            yield from _Stream(file, where).events()
    except UnicodeDecodeError:
        raise TableError(f"{where}: binary data, not a trace; export it again") from None
    except (OSError, EOFError, ValueError, zlib.error) as error:
        if isinstance(error, ValueError) and not isinstance(error, UnicodeDecodeError):
            raise TableError(f"{where}: not a sound trace ({error}); export it again") from None
        said = reason(error) if isinstance(error, OSError) else str(error).lower()
        raise TableError(f"{where}: cannot be read: {said}; check the path") from None


def _opened(path: str | Path) -> IO[str]:
    with Path(path).open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if packed:
        return gzip.open(path, "rt", encoding="utf-8-sig")
    return Path(path).open(encoding="utf-8-sig")


class _Stream:
    """A text read piece by piece."""

    def __init__(self, file: IO[str], where: str) -> None:
        self.file, self.where = file, where
        self.text, self.at = "", 0
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
            if not first:
                raise TableError(f"{self.where}: the trace is cut short; export it again")
            event = self._value()
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
        """The next value, reading as many pieces as it needs."""
        while True:
            try:
                value, self.at = self.decode(self.text, self.at)
            except json.JSONDecodeError as error:
                if not self.more():
                    near = shown(self.text[self.at : self.at + 40])
                    raise TableError(
                        f"{self.where}: not sound JSON ({error.msg} in {near}); export it again"
                    ) from None
            except RecursionError:
                raise TableError(f"{self.where}: nested too deeply for a trace") from None
            else:
                return value
