"""Reads a file as a sheet; the format is found from its contents, not its name.

Formats are CSV and similar text (`delimited`), JSON lines and lists (`objects`), and Parquet and
Excel (`binary`), with or without gzip. Raises `TableError`, one line, for a file that is missing or
damaged.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from perfmodel import documents
from perfmodel.errors import TableError, reason
from perfmodel.table import binary, delimited, nccltests, objects
from perfmodel.table.sheet import Sheet

WANTED = "give CSV, JSON lines, Parquet or Excel"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_EXCEL = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_JSON = re.compile(r"\s*(?:\{|\[\s*[{\[\]])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")


def read(path: str) -> Sheet:
    """The table in a file; `-` is standard input."""
    place = named(path)
    data = _bytes(path)
    if data[:2] == documents.GZIP or path.endswith(".gz"):
        data = _decompress(data, place) if data else data
    if not data:
        raise TableError(f"{place}: the file is empty; a table starts with a line of column names")
    if path.endswith((".parquet", ".pq")) or data[:4] == b"PAR1":
        return binary.parquet(data, place)
    if path.endswith((".xlsx", ".xls", ".ods")) or data[:4] in _EXCEL:
        return binary.excel(data, place)
    text, notes = _text(data, place)
    if _JSON.match(text):
        return objects.read(text, place)
    return nccltests.read(text, place) or delimited.read(text, place, notes)


def named(path: str) -> str:
    """A file's name in messages."""
    return "standard input" if path == "-" else path


def _bytes(path: str) -> bytes:
    try:
        if path != "-":
            return Path(path).read_bytes()
        if sys.stdin is None:
            raise TableError("standard input is closed; name a file")
        return sys.stdin.buffer.read()
    except (OSError, ValueError) as error:
        message = f"{named(path)}: cannot be read: {reason(error)}"
        raise TableError(f"{message}; check the path") from None


def _decompress(data: bytes, place: str) -> bytes:
    import zlib

    try:
        return documents.unpacked(data, place)
    except EOFError:
        raise TableError(f"{place}: the gzip file is cut short; fetch or write it again") from None
    except (OSError, zlib.error) as error:
        raise TableError(
            f"{place}: not a sound gzip file ({error}); fetch or write it again"
        ) from None


def _text(data: bytes, place: str) -> tuple[str, tuple[str, ...]]:
    """Decodes UTF-8, UTF-16 with a byte order mark, or else Windows-1252; also notes for the
    user."""
    try:
        if data[:2] in _UTF16:
            return data.decode("utf-16"), ()
        if b"\x00" in data:
            raise TableError(f"{place}: binary data, not CSV; {WANTED}")
        return data.decode("utf-8-sig"), ()
    except UnicodeDecodeError as error:
        text = data.decode("cp1252", "replace")
        if data[:2] in _UTF16 or "\ufffd" in text or _CONTROL.search(text):
            raise TableError(f"{place}: not UTF-8 text (byte {error.start}); {WANTED}") from None
        return text, (f"{place}: not UTF-8; read as Windows-1252",)
