"""Extensions from other packages and from a user's own folders.

A package lists them under entry points: `perfmodel.kernels`, `perfmodel.operators`,
`perfmodel.libraries`, and `perfmodel.hardware`, `perfmodel.algorithms`, `perfmodel.graphs`, whose
objects are folders or functions that return one. Files need no package: PERFMODEL_PATH lists
folders, each with hardware/, algorithms/, graphs/ or libraries/ in it. A broken extension is left
out with a warning that names it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENVIRONMENT = "PERFMODEL_PATH"
"""Environment variable: folders of files of one's own, before those of packages and our own."""


class PluginWarning(UserWarning):
    """An extension was left out."""


@lru_cache(maxsize=16)
def points(group: str) -> tuple[EntryPoint, ...]:
    """The entry points `perfmodel.{group}` of all packages, by name."""
    from importlib.metadata import entry_points  # slow to import: as long as a prediction

    found = entry_points(group=f"perfmodel.{group}")
    return tuple(sorted(found, key=lambda point: point.name))


def leave_out(point: EntryPoint, error: Exception) -> None:
    """Warn that the extension at an entry point is left out, and why."""
    said = " ".join(f"{type(error).__name__}: {error}".split())
    message = f"{point.group} {point.name} ({point.value}) is left out: {said}"
    warnings.warn(message, PluginWarning, stacklevel=2)


@lru_cache(maxsize=16)
def brought(group: str) -> tuple[tuple[EntryPoint, Any], ...]:
    """Every entry point of a group with its object; those that fail to load are left out."""
    found = []
    for point in points(group):
        try:
            found.append((point, point.load()))
        except Exception as error:  # anything may go wrong in another package
            leave_out(point, error)
    return tuple(found)


def folders(kind: str, variable: str = "") -> list[Path]:
    """A user's own folders of a kind of file: those in `variable`, then those in PERFMODEL_PATH."""
    own = [Path(folder) for folder in os.environ.get(variable, "").split(os.pathsep) if folder]
    roots = os.environ.get(ENVIRONMENT, "").split(os.pathsep)
    return [*own, *(Path(root) / kind for root in roots if root)]


def packages(kind: str) -> Iterator[Path]:
    """Folders of a kind of file that packages bring."""
    for point, found in brought(kind):
        try:
            yield Path(os.fspath(found() if callable(found) else found))
        except Exception as error:  # anything may go wrong in another package
            leave_out(point, error)


def listed(kind: str, shipped: Path, variable: str = "") -> list[str]:
    """Names of all files of a kind, sorted; opens none."""
    every = [*folders(kind, variable), shipped, *packages(kind)]
    return sorted({path.stem for folder in every for path in folder.glob("*.yaml")})


def located(kind: str, name: str, shipped: Path, variable: str = "") -> Path | None:
    """The file with that name: a user's own, else the shipped one, else a package's."""
    for places in ([*folders(kind, variable), shipped], packages(kind)):
        for folder in places:
            path = folder / f"{name}.yaml"
            if path.is_file():
                return path
    return None
