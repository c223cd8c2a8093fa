"""Shipped YAML tables, read from their compiled form.

Parsing YAML takes longer than a prediction. So each shipped document is also a line of JSON in a
file of `perfmodel/compiled`, one file a kind, written by `python -m perfmodel.compiled`:

    ["<hash of the YAML text>", "<file>", <document>]

A document is found by the hash of its YAML text. A text without an entry (a user's, or one edited
since) is parsed, so the result always matches the file.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

Kind = Literal["devices", "systems", "networks", "tables"]
"""What a document describes. Each kind has its own reader and cannot be taken for another."""
FOLDER = Path(__file__).with_name("compiled")
"""Folder of the compiled documents."""
_HASH = slice(2, 18)  # of a line: 16 hexadecimal digits


def read(path: Path) -> Any:
    """The document of a YAML file. Raises `OSError`, or `ValueError` for invalid YAML."""
    text = path.read_text(encoding="utf-8")
    found = compiled("tables", text)
    return parse(text) if found is None else found


def parse(text: str) -> Any:
    """The document of a YAML text. Raises `ValueError` for invalid YAML."""
    import yaml

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def compiled(kind: Kind, text: str) -> Any:
    """The document of the shipped file of this kind with exactly this text; None where there is
    none.

    Callers share it and must not change it.
    """
    return _document(kind, hash_of(text).encode())


def hash_of(text: str) -> str:
    """64 bits of a text: its CRC-32, then its length in bytes.

    Texts of one length that differ in up to 4 adjacent bytes never share a CRC-32.
    """
    content = text.encode()
    return f"{zlib.crc32(content):08x}{len(content):08x}"


def line(text: str, name: str, document: Any) -> str:
    """The compiled form of a file's text. Raises `ValueError` where JSON does not restore the
    document."""
    entry = [hash_of(text), name, document]
    found = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
    if repr(_loads(found)) != repr(entry):
        raise ValueError(f"{name}: JSON gives back another; let keys be words or whole numbers")
    return found


@lru_cache(maxsize=256)
def _document(kind: Kind, digest: bytes) -> Any:
    found = _lines(kind).get(digest)
    return None if found is None else _loads(found)[2]


@lru_cache(maxsize=4)
def _lines(kind: Kind) -> Mapping[bytes, bytes]:
    """The lines of a kind by hash; empty where nothing has been compiled yet."""
    try:
        content = (FOLDER / f"{kind}.jsonl").read_bytes()
    except FileNotFoundError:
        return {}
    return {each[_HASH]: each for each in content.split(b"\n")}


def _loads(found: str | bytes) -> Any:
    return json.loads(found, object_hook=_numbered)


def _numbered(found: dict[str, Any]) -> dict[Any, Any]:
    """A mapping from JSON, whose keys are texts, with integer keys where all are digits."""
    if found and all(map(str.isdecimal, found)):
        return {int(key): value for key, value in found.items()}
    return found
