"""Shipped YAML files: decoded once, then kept as JSON in the user's cache folder.

Decoding YAML takes longer than a prediction. A kept document belongs to a file's name and its exact
text, so the result always is what the file says, and copies of one version share it. A cached file
that is damaged is ignored and written again. Where the folder cannot be written, nothing is kept.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from perfmodel import __version__, usercache

_T = TypeVar("_T")

FORMAT = 1
"""Raise it where a file is decoded or kept otherwise than before in the same version."""
_DIGITS_FIRST = re.compile(rb'\{"\d')  # a mapping whose first key may be a number
_PACKAGE = Path(__file__).parent
_SHIPPED = tuple(f"{place}{os.sep}" for place in (_PACKAGE, _PACKAGE.parent / "hardware_specs"))


def read(path: Path) -> Any:
    """The document of a YAML file. Raises `OSError`, or `ValueError` for invalid YAML."""
    text = path.read_text(encoding="utf-8")
    return kept(path, text, lambda: parse(text))


def parse(text: str) -> Any:
    """The document of a YAML text. Raises `ValueError` for invalid YAML."""
    import yaml

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def is_shipped(path: Path) -> bool:
    """Whether a file comes with perfmodel: it is in the package, or in the checkout's specs."""
    return str(path).startswith(_SHIPPED)


def kept(path: Path, text: str, decode: Callable[[], _T]) -> _T:
    """What `decode` makes of `text`, as plain data; that of a shipped file is kept.

    `text` is all that it is made of: that of the file at `path`, and of others that it needs.
    Raises what `decode` raises.
    """
    if not is_shipped(path):
        return decode()
    content = text.encode()
    file = None
    with suppress(OSError, ValueError):
        name = f"{path.name}-{len(content):x}-{zlib.crc32(content):08x}.json"
        file = usercache.folder(f"yaml-{__version__}-{FORMAT}") / name
        check, _, payload = file.read_bytes().partition(b"\n")
        if check == _check(payload):
            document: _T = _loads(payload)
            return document
    document = decode()
    if file is not None:
        _keep(file, document)
    return document


def _keep(file: Path, document: Any) -> None:
    """Write a cached file, whole or not at all; what JSON does not restore is not kept."""
    from tempfile import mkstemp

    with suppress(OSError, TypeError, ValueError):
        payload = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        if repr(_loads(payload)) != repr(document):
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, partial = mkstemp(dir=file.parent)
        try:
            with open(descriptor, "wb") as stream:
                stream.write(_check(payload) + b"\n" + payload)
            os.replace(partial, file)
        finally:
            Path(partial).unlink(missing_ok=True)


def _check(payload: bytes) -> bytes:
    """The first line of a cached file, which damage of the rest changes."""
    return f"{zlib.crc32(payload):08x}".encode()


def _loads(payload: bytes) -> Any:
    hook = _int_keys if _DIGITS_FIRST.search(payload) else None  # it takes a quarter of the time
    return json.loads(payload, object_hook=hook)


def _int_keys(mapping: dict[str, Any]) -> dict[Any, Any]:
    """A mapping from JSON, whose keys are texts, with integer keys where all are digits."""
    if mapping and all(map(str.isdecimal, mapping)):
        return {int(key): value for key, value in mapping.items()}
    return mapping
