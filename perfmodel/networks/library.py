"""Networks by name: those that come with the package, those of other packages, and files.

presets/ has a file a family. A package brings networks under the entry point `perfmodel.networks`:
a `Network`, the path of a YAML file, or a function that returns one of them. What cannot be loaded
is skipped and named by `failures`; the rest stays usable.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from perfmodel.errors import SpecError, UnknownName
from perfmodel.hardware.catalogue import normalise
from perfmodel.networks.network import Network
from perfmodel.networks.reading import Entry, read

GROUP = "perfmodel.networks"
"""The entry point."""


def names() -> list[str]:
    """Every name that `load` knows, aliases apart, as files have them: by family and size."""
    return [entry.network.name for entry in entries()]


def load(name_or_path: str | Path) -> Network:
    """The network with this name or alias, or in this file (a name with a slash, or ending .yaml).

    Raises `UnknownName` with the nearest names, or `SpecError` for a file that describes no single
    network.
    """
    text = str(name_or_path)
    if "/" in text or os.sep in text or text.endswith((".yaml", ".yml", ".json")):
        return _single(text)
    wanted = normalise(text)
    for path in sorted(_files(), key=lambda path: not wanted.startswith(path.stem)):
        for entry in _shipped(path):
            if wanted in spellings(entry):
                return entry.network
    known = {name: entry.network for entry in entries() for name in spellings(entry)}
    if wanted not in known:
        raise UnknownName("network", text, known, hint="; ".join(failures()))
    return known[wanted]


def entries() -> list[Entry]:
    """Every network with its aliases: the shipped ones, then those of other packages."""
    shipped = [entry for path in sorted(_files()) for entry in _shipped(path)]
    return [*shipped, *_brought()[0]]


def spellings(entry: Entry) -> tuple[str, ...]:
    """The name of a network and its aliases, as they are compared."""
    return tuple(normalise(name) for name in (entry.network.name, *entry.aliases))


def failures() -> tuple[str, ...]:
    """One line for each entry point that was skipped, with the reason."""
    return _brought()[1]


def refresh() -> None:
    """Forget what other packages brought, so that their entry points are looked up again."""
    _brought.cache_clear()


def _single(path: str) -> Network:
    """The one network of a file."""
    if path.endswith(".json"):
        raise SpecError(
            f"{path}: a config.json is no network yet; write one with perfmodel network import "
            f"{path} -o my.yaml"
        )
    found = read(path)
    if len(found) > 1:
        listed = ", ".join(entry.network.name for entry in found[:12])
        raise SpecError(f"{path}: holds {len(found)} networks ({listed}); keep the one meant")
    return found[0].network


def _files() -> Iterator[Path]:
    """The shipped files."""
    return Path(str(resources.files("perfmodel.networks").joinpath("presets"))).glob("*.yaml")


@lru_cache(maxsize=128)
def _shipped(path: Path) -> tuple[Entry, ...]:
    return read(path)


@lru_cache(maxsize=1)
def _brought() -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """What other packages bring, and why some of it is left out."""
    from importlib.metadata import entry_points  # takes as long as a prediction to load

    taken = {name for path in _files() for entry in _shipped(path) for name in spellings(entry)}
    found: list[Entry] = []
    skipped: list[str] = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            for entry in _of_package(point.load()):
                clash = taken.intersection(spellings(entry))
                if clash:
                    raise ValueError(f"a network named {min(clash)} is there already")
                found.append(entry)
                taken.update(spellings(entry))
        except Exception as error:  # whatever another package raises must not stop the others
            said = " ".join(str(error).split()) or type(error).__name__
            skipped.append(f"networks of entry point {point.name} ({point.value}) left out: {said}")
    return tuple(found), tuple(skipped)


def _of_package(loaded: Any) -> tuple[Entry, ...]:
    """The networks under an entry point."""
    found = loaded() if callable(loaded) else loaded
    if isinstance(found, Network):
        return (Entry(found),)
    return read(os.fspath(found))
