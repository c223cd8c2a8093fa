"""The declared graphs by name: those that come with the package, and a user's files."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import resources
from pathlib import Path

from perfmodel import plugins
from perfmodel.errors import UnknownName
from perfmodel.graph.declaration import DeclaredGraph, read


def names() -> list[str]:
    """Every name that `load` knows, sorted; opens no file."""
    return plugins.listed("graphs", _shipped_folder())


def load(name_or_path: str | Path) -> DeclaredGraph:
    """The graph with this name, or in this file (a name with a slash or ending in .yaml).

    Folders in PERFMODEL_PATH are searched before the shipped one, those of packages (entry point
    `perfmodel.graphs`) after it. Raises `UnknownName` with the nearest names, or `SpecError` for a
    file that declares nothing usable.
    """
    text = str(name_or_path)
    if "/" in text or os.sep in text or text.endswith((".yaml", ".yml")):
        return read(text)
    name = "-".join(text.lower().replace("_", " ").split())
    path = plugins.located("graphs", name, _shipped_folder())
    if path is None:
        raise UnknownName("graph", text, names())
    return _read_cached(path, path.stat().st_mtime_ns)


def _shipped_folder() -> Path:
    return Path(str(resources.files("perfmodel.graph").joinpath("declared")))


@lru_cache(maxsize=16)
def _read_cached(path: Path, _mtime: int) -> DeclaredGraph:
    return read(path)
