"""The declared graphs by name: those that come with the package, and files of one's own."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import resources
from pathlib import Path

from perfmodel.errors import UnknownName
from perfmodel.graph.declaration import DeclaredGraph, read


def names() -> list[str]:
    """Every name that `load` knows, sorted; opens no file."""
    return sorted(path.stem for path in _folder().glob("*.yaml"))


def load(name_or_path: str | Path) -> DeclaredGraph:
    """The graph with this name, or in this file (a name with a slash or ending in .yaml).

    Raises `UnknownName` with the nearest names, or `SpecError` for a file that declares nothing
    usable.
    """
    text = str(name_or_path)
    if "/" in text or os.sep in text or text.endswith((".yaml", ".yml")):
        return read(text)
    path = _folder() / f"{'-'.join(text.lower().replace('_', ' ').split())}.yaml"
    if not path.is_file():
        raise UnknownName("graph", text, names())
    return _shipped(path)


def _folder() -> Path:
    return Path(str(resources.files("perfmodel.graph").joinpath("declared")))


@lru_cache(maxsize=16)
def _shipped(path: Path) -> DeclaredGraph:
    return read(path)
