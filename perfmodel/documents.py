"""Reads text and JSON files from other programs; every error is one line.

`opened` and `unpacked` are the one way in for gzip. A small file may unpack to more than a machine
holds: deflate packs equal bytes up to 1,032 to 1 (zlib.net, "zlib Technical Details"). Tables and
traces pack 5 to 40 to 1.

So a file may unpack to `FREE_BYTES` whatever its own size, beyond that to
`MOST_RATIO` times what was read of it, and never to more than `MOST_BYTES`. A file that does is
left while it is unpacked, before it fills the memory.
"""

from __future__ import annotations

import io
import json
import math
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from perfmodel.errors import TableError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

FREE_BYTES = 64 << 20
MOST_RATIO = 200
MOST_BYTES = 8 << 30
GZIP = b"\x1f\x8b"


def most_unpacked(packed_bytes: int) -> int:
    """Bytes that so many bytes of a compressed file may unpack to."""
    return min(max(FREE_BYTES, MOST_RATIO * packed_bytes), MOST_BYTES)


def too_large(where: str, packed_bytes: int) -> TableError:
    """The error of a compressed file that unpacks to more than `most_unpacked`."""
    limit = most_unpacked(packed_bytes) >> 20
    return TableError(
        f"{where}: {packed_bytes:,} bytes of it unpack to more than {limit:,} MiB, which no table "
        "or trace does; unpack it yourself if it is sound"
    )


class _Unpacking(io.RawIOBase):
    """The contents of a gzip file, which end in an error where they are too large."""

    def __init__(self, stream: IO[bytes], place: str) -> None:
        import gzip

        self._file = gzip.GzipFile(fileobj=stream)
        self._packed, self._where = stream, place
        self._unpacked_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        piece = self._file.read(len(view))
        self._unpacked_bytes += len(piece)
        packed_bytes = self._packed.tell()
        if self._unpacked_bytes > most_unpacked(packed_bytes):
            raise too_large(self._where, packed_bytes)
        view[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._packed.close()
        super().close()


def opened(path: str | Path) -> IO[bytes]:
    """A file for reading, unpacked if it is gzip.

    Raises `OSError` for a file that cannot be opened. Reading raises `TableError` where it unpacks
    to too much (`most_unpacked`), and `OSError`, `EOFError` or `zlib.error` where it is damaged.
    """
    file = Path(path).open("rb")  # noqa: SIM115 - closed by the caller
    is_gzip = file.read(2) == GZIP
    file.seek(0)
    return io.BufferedReader(_Unpacking(file, str(path)), 1 << 16) if is_gzip else file


def unpacked(data: bytes, where: str) -> bytes:
    """The contents of a gzip file. Raises as reading from `opened` does."""
    return io.BufferedReader(_Unpacking(io.BytesIO(data), where), 1 << 16).read()


def text(path: str | Path, wanted: str) -> str:
    """The text of a file, decompressed if it is gzip.

    Raises `TableError` for a file that cannot be read or is not text; `wanted` names what to give
    instead.
    """
    try:
        with opened(path) as file:
            data = file.read()
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
        return json.loads(content, parse_float=_finite_float, parse_constant=_finite_float)
    except RecursionError:
        raise TableError(f"{where}: nested too deeply for {wanted}; export it again") from None
    except ValueError as error:
        text = " ".join(str(error).split())
        raise TableError(f"{where}: not {wanted} ({text}); export it again") from None


def _finite_float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits} is no finite number")
    return value


def shown(value: Any, most: int = 60) -> str:
    """A value of a file as a message quotes it: on one line, cut to `most` characters."""
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."
