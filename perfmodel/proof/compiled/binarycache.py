"""Cache of compiled kernels; a file's name is the hash of the compiler's inputs.

A folder of small files in the user's cache folder. Files are written whole or not at all. A file
that is damaged, or whose content does not match its name, is ignored and written again. The folder
can be deleted at any time: kernels are then compiled again.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from perfmodel import usercache
from perfmodel.errors import OutputError
from perfmodel.replacing import replacing

_FORMAT = 1  # of the files: raise it when what is stored changes


def folder() -> Path:
    """The folder of compiled kernels; it may not exist yet. Raises `OSError` without a home."""
    return usercache.folder("compiled")


def key(content: Mapping[str, Any]) -> str:
    """The file name for the compiler inputs `content`: a hash of them as JSON."""
    return _digest({"format": _FORMAT, **content})


def read(name: str) -> dict[str, Any] | None:
    """The value stored under `name`; None where there is none or it is damaged."""
    try:
        entry = json.loads(gzip.decompress((folder() / f"{name}.json.gz").read_bytes()))
        value = entry["value"]
        sound = entry["name"] == name and entry["digest"] == _digest(value)
    except (OSError, EOFError, ValueError, KeyError, TypeError, zlib.error):
        return None
    return value if sound and isinstance(value, dict) else None


def write(name: str, value: Mapping[str, Any]) -> None:
    """Store `value` under `name`. A folder that cannot be written is no error: nothing is kept."""
    entry = {"name": name, "digest": _digest(value), "value": value}
    with suppress(OSError, OutputError):
        folder().mkdir(parents=True, exist_ok=True)
        with replacing(folder() / f"{name}.json.gz") as partial:
            partial.write_bytes(gzip.compress(json.dumps(entry).encode(), 6, mtime=0))


def _digest(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
