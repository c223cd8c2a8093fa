"""Strict reading of YAML: plain data, with the line of every key.

`yamlreader` defines what is refused; it is loaded only when there is something to parse.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from pathlib import Path
from typing import Any

from perfmodel.errors import SpecError, reason
from perfmodel.frozen import dataclass
from perfmodel.plaintext import quoted

MAX_BYTES = 256 * 1024
KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Document:
    """Content of a YAML file."""

    where: str
    """Name of the file in messages."""
    data: dict[str, Any]
    """Its content."""
    lines: dict[KeyPath, int] = field(default_factory=dict)
    """The line on which each key or list item starts, from 1."""

    def line(self, path: Iterable[str | int]) -> int:
        """The line of `path`, or of the nearest enclosing key that exists."""
        keys = tuple(path)
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return self.lines.get(keys, 1)

    def error(self, path: Iterable[str | int], message: str) -> str:
        """One line: file, line of `path`, message."""
        return f"{self.where}:{self.line(path)}: {message}"


def read(path: Path) -> str:
    """The text of a spec file; raises `SpecError` if it is missing, too large or not UTF-8."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except ValueError:
        raise SpecError(f"{quoted(str(path))}: a null character in the name; check it") from None
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {reason(error)}; check the path") from None
    if len(content) > MAX_BYTES:
        raise SpecError(f"{path}: larger than {MAX_BYTES // 1024} KiB; a spec describes one device")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecError(f"{path}:{line}: not UTF-8 text") from None


def parse(text: str, where: str) -> Document:
    """The mapping in `text`; every problem is a `SpecError` of one line, "where:line: message"."""
    from perfmodel.yamlreader import Reader

    return Reader(text, where).document()


def head(text: str, where: str, keys: frozenset[str]) -> dict[str, Any]:
    """The values of the top-level `keys`; reading stops once all of them are found."""
    from perfmodel.yamlreader import Reader

    return Reader(text, where).document(stop_after=keys).data
