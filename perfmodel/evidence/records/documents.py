"""Reads text and JSON files from other programs; every error is one line."""

from __future__ import annotations

import json
import math
import zlib
from pathlib import Path
from typing import Any

from perfmodel.errors import TableError


def text(path: str | Path, wanted: str) -> str:
    """The text of a file, decompressed if it is gzip.

    Raises `TableError` for a file that cannot be read or is not text; `wanted` names what to give
    instead.
    """
    import gzip

    try:
        data = Path(path).read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise TableError(f"{path}: cannot be read: {reason}; check the path") from None
    try:
        return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        raise TableError(f"{path}: binary data; give {wanted}") from None


def parsed(content: str, where: str, wanted: str) -> Any:
    """A JSON document with finite numbers; raises `TableError` if it is malformed."""
    try:
        return json.loads(content, parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise TableError(f"{where}: nested too deeply for {wanted}; export it again") from None
    except ValueError as error:
        said = " ".join(str(error).split())
        raise TableError(f"{where}: not {wanted} ({said}); export it again") from None


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits} is no finite number")
    return value


def shown(value: Any, most: int = 60) -> str:
    """A value of a file as a message quotes it: on one line, cut to `most` characters."""
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."
