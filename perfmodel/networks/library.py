"""Networks by name: the user's own files, those shipped with perfmodel, those of other packages.

presets/ has one file a family. A user's files are found under networks/ in each folder of
PERFMODEL_PATH. A package brings networks under the entry point `perfmodel.networks`: a `Network`,
the path of a YAML file, or a function that returns either. A broken entry is skipped with a warning
that names it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfmodel import plugins
from perfmodel.catalogue import normalise
from perfmodel.errors import SpecError, UnknownName
from perfmodel.networks.network import Network
from perfmodel.networks.reading import Entry, read

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "networks"
"""The entry point, after `perfmodel.`, and the name of the folder of a user's files."""


def names() -> list[str]:
    """Every name that `load` knows, without aliases, in the order of the files: by family and
    size."""
    return [entry.network.name for entry in entries()]


def load(name_or_path: str | Path) -> Network:
    """The network with this name or alias, or in this file (a name with a slash, or ending in
    .yaml).

    Raises `UnknownName` with the nearest names, or `SpecError` for a file that does not hold
    exactly one network.
    """
    text = str(name_or_path)
    if "/" in text or os.sep in text or text.endswith((".yaml", ".yml", ".json")):
        return _only_network(text)
    slug = normalise(text)
    for place in _places(slug):
        for entry in place:
            if slug in spellings(entry):
                return entry.network
    names = [name for entry in entries() for name in spellings(entry)]
    raise UnknownName("network", text, names, "(perfmodel network list)")


def entries() -> list[Entry]:
    """Every network with its aliases. A user's network replaces a shipped one of the same name."""
    by_name: dict[str, Entry] = {}
    for place in _places():
        for entry in place:
            by_name.setdefault(normalise(entry.network.name), entry)
    return list(by_name.values())


def spellings(entry: Entry) -> tuple[str, ...]:
    """The name of a network and its aliases, normalised for comparison."""
    return tuple(normalise(name) for name in (entry.network.name, *entry.aliases))


def _only_network(path: str) -> Network:
    """The one network of a file."""
    if path.endswith(".json"):
        raise SpecError(
            f"{path}: a config.json is no network yet; write one with perfmodel network import "
            f"{path} -o my.yaml"
        )
    networks = read(path)
    if len(networks) > 1:
        names = ", ".join(entry.network.name for entry in networks[:12])
        raise SpecError(f"{path}: holds {len(networks)} networks ({names}); keep the one meant")
    return networks[0].network


def _places(name: str = "") -> Iterator[Sequence[Entry]]:
    """The groups of networks to search, in order; of the shipped files the likeliest first."""
    yield _user_entries(tuple(plugins.files(plugins.folders(GROUP))))
    for path in sorted(_files(), key=lambda path: not name.startswith(path.stem)):
        yield _read_file(path)
    yield _plugin_entries(plugins.points(GROUP))


def _files() -> list[Path]:
    """The shipped files."""
    return plugins.files([Path(str(resources.files("perfmodel.networks").joinpath("presets")))])


@lru_cache(maxsize=4)
def _user_entries(paths: tuple[Path, ...]) -> Sequence[Entry]:
    return [entry for group in plugins.readable(paths, read) for entry in group]


@lru_cache(maxsize=128)
def _read_file(path: Path) -> Sequence[Entry]:
    return read(path)


@lru_cache(maxsize=4)
def _plugin_entries(points: tuple[EntryPoint, ...]) -> Sequence[Entry]:
    """Networks of other packages whose names are not taken."""
    names = {name for path in _files() for entry in _read_file(path) for name in spellings(entry)}
    extras: list[Entry] = []
    for point, loaded in plugins.brought(GROUP):
        try:
            for entry in _package_entries(loaded):
                clash = names.intersection(spellings(entry))
                if clash:
                    raise ValueError(f"a network named {min(clash)} exists already")
                extras.append(entry)
                names.update(spellings(entry))
        except Exception as error:  # an exception in one package must not stop the others
            plugins.leave_out(point, error)
    return extras


def _package_entries(loaded: Any) -> tuple[Entry, ...]:
    """The networks under an entry point."""
    source = loaded() if callable(loaded) else loaded
    if isinstance(source, Network):
        return (Entry(source),)
    if isinstance(source, str | os.PathLike):
        return read(os.fspath(source))
    raise TypeError(f"{type(source).__name__} is neither a Network nor the path of a file")
