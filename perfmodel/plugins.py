"""Extensions from other packages and from a user's own folders.

A package lists them under entry points: `perfmodel.kernels`, `perfmodel.operators`,
`perfmodel.libraries`, `perfmodel.networks`, `perfmodel.tracing`, and those of `KINDS`, whose
objects are folders or functions that return one. Files need no package: PERFMODEL_PATH lists
folders, each with a subfolder for each kind. A broken extension is left out with a warning that
names it.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from perfmodel.errors import PerfmodelError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_A = TypeVar("_A")
_B = TypeVar("_B")

KINDS = ("hardware", "systems", "algorithms", "graphs", "engines")
"""Kinds of files of which packages bring folders."""
ENVIRONMENT = "PERFMODEL_PATH"
"""Environment variable: a user's folders, searched before those of packages and the shipped
ones."""


class PluginWarning(UserWarning):
    """An extension was left out."""


@lru_cache(maxsize=16)
def points(group: str) -> tuple[EntryPoint, ...]:
    """The entry points `perfmodel.{group}` of all packages, by name."""
    if f"[perfmodel.{group}]".encode() not in _declared(tuple(sys.path)):
        return ()
    from importlib.metadata import entry_points  # slow to import: as long as a prediction

    return tuple(sorted(entry_points(group=f"perfmodel.{group}"), key=lambda point: point.name))


@lru_cache(maxsize=1)
def _declared(places: tuple[str, ...]) -> bytes:
    """The entry points of all packages in these places, as text."""
    texts = []
    for folder in map(Path, places):
        for path in folder.glob("*-info/entry_points.txt"):
            with suppress(OSError):
                texts.append(path.read_bytes())
    return b"\n".join(texts)


def leave_out(point: EntryPoint, error: Exception) -> None:
    """Warn that the extension at an entry point is left out, and why."""
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    message = f"{point.group} {point.name} ({point.value}) is left out: {reason}"
    warnings.warn(message, PluginWarning, stacklevel=2)


@lru_cache(maxsize=16)
def brought(group: str) -> tuple[tuple[EntryPoint, Any], ...]:
    """Every entry point of a group with its object; those that fail to load are left out."""
    objects = []
    for point in points(group):
        try:
            objects.append((point, point.load()))
        except Exception as error:  # anything may go wrong in another package
            leave_out(point, error)
    return tuple(objects)


def folders(kind: str, variable: str = "") -> list[Path]:
    """A user's own folders of a kind of file: those in `variable`, then those in PERFMODEL_PATH."""
    paths = [Path(folder) for folder in os.environ.get(variable, "").split(os.pathsep) if folder]
    roots = os.environ.get(ENVIRONMENT, "").split(os.pathsep)
    return [*paths, *(Path(root) / kind for root in roots if root)]


def packages(kind: str) -> Iterator[Path]:
    """Folders of a kind of file that packages bring."""
    for point, target in brought(kind):
        try:
            yield Path(os.fspath(target() if callable(target) else target))
        except Exception as error:  # anything may go wrong in another package
            leave_out(point, error)


def files(places: Iterable[Path]) -> list[Path]:
    """The YAML files in folders: by folder, then by name."""
    return [path for folder in places for path in sorted(folder.glob("*.yaml"))]


def readable(files: Iterable[_A], read: Callable[[_A], _B]) -> Iterator[_B]:
    """What is read of each file, by path or name; one that `read` refuses is named and left out."""
    for file in files:
        try:
            yield read(file)
        except PerfmodelError as error:
            left_out(error)


def left_out(error: PerfmodelError) -> None:
    """Warn that a file is left out; the error names it."""
    warnings.warn(f"left out: {error}", PluginWarning, stacklevel=2)
