"""The declared algorithms by name: those that come with the package, and a user's files."""

from __future__ import annotations

from pathlib import Path

from perfmodel.algorithms.declaration import Declaration, read
from perfmodel.catalogue import Catalogue, normalise, of_kind

ENVIRONMENT = "PERFMODEL_ALGORITHM_PATH"
_SPELLINGS = {"gemm": "matmul", "mha": "attention", "mqa": "gqa"}
_SHIPPED = Path(__file__).with_name("declared")

ALGORITHMS = Catalogue("algorithm", read, *of_kind("algorithms", _SHIPPED, ENVIRONMENT))
"""The algorithms: those in PERFMODEL_ALGORITHM_PATH and PERFMODEL_PATH, the shipped ones, those of
packages (`perfmodel.algorithms`)."""
names = ALGORITHMS.names


def load(name_or_path: str | Path) -> Declaration:
    """The declaration with this name, or in this file (a name with a slash or ending in .yaml).

    Raises `UnknownName` with the nearest names, or `SpecError` for a file that declares nothing
    usable.
    """
    text = str(name_or_path)
    return ALGORITHMS.load(_SPELLINGS.get(normalise(text), text))
