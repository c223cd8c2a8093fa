"""The declared algorithms by name: those that come with the package, and a user's files."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import resources
from pathlib import Path

from perfmodel import plugins
from perfmodel.algorithms.declaration import Declaration, read
from perfmodel.errors import UnknownName

ENVIRONMENT = "PERFMODEL_ALGORITHM_PATH"
_SPELLINGS = {"gemm": "matmul", "mha": "attention", "mqa": "gqa"}


def names() -> list[str]:
    """Every name that `load` knows, sorted; opens no file."""
    return plugins.listed("algorithms", _shipped_folder(), ENVIRONMENT)


def load(name_or_path: str | Path) -> Declaration:
    """The declaration with this name, or in this file (a name with a slash or ending in .yaml).

    Folders in PERFMODEL_ALGORITHM_PATH and PERFMODEL_PATH are searched before the shipped one,
    those of packages (entry point `perfmodel.algorithms`) after it. Raises `UnknownName` with the
    nearest names, or `SpecError` for a file that declares nothing usable.
    """
    text = str(name_or_path)
    if "/" in text or os.sep in text or text.endswith((".yaml", ".yml")):
        return read(text)
    name = "-".join(text.lower().replace("_", " ").split())
    name = _SPELLINGS.get(name, name)
    path = plugins.located("algorithms", name, _shipped_folder(), ENVIRONMENT)
    if path is None:
        raise UnknownName("algorithm", text, names())
    return _read_cached(path, path.stat().st_mtime_ns)


def _shipped_folder() -> Path:
    return Path(str(resources.files("perfmodel.algorithms").joinpath("declared")))


@lru_cache(maxsize=64)
def _read_cached(path: Path, _mtime: int) -> Declaration:
    return read(path)
