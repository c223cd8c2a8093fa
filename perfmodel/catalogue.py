"""Catalogues: things by name, from a shipped table or from files in three places.

`Table` holds the entries of one YAML file of the package. `Catalogue` finds files, one a name: the
user's (folders of a kind in PERFMODEL_PATH), the shipped ones, those of other packages (entry point
`perfmodel.KIND`); the first one that is found is used. Nothing is read before it is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from perfmodel import plugins, yamlfile, yamltable
from perfmodel.entries import Misfit, made
from perfmodel.errors import PerfmodelError, SpecError, UnknownName, reason

VERSION = 1
"""Version of the shipped tables."""
_T = TypeVar("_T")


def normalise(name: str) -> str:
    """Lower case, with dashes for spaces and underscores: "H100 SXM5" becomes "h100-sxm5"."""
    return "-".join(name.lower().replace("_", " ").split())


def is_path(text: str) -> bool:
    """Whether a name is the path of a file: it has a slash or ends in .yaml."""
    return "/" in text or os.sep in text or text.endswith((".yaml", ".yml"))


class Table(Mapping[str, _T]):
    """The entries of one shipped file by name, in its order."""

    def __init__(self, kind: str, noun: type[_T], file: Path, key: str) -> None:
        """`kind` names an entry in messages; `noun` is a dataclass with a `name`, and perhaps
        `aliases`; the entries stand under `key`."""
        self._kind, self._noun, self._file, self._key = kind, noun, file, key

    def read(self, file: Path) -> dict[str, _T]:
        """The entries of a file; those that are `like` another one have its values too.

        Raises `SpecError` in one line.
        """
        try:
            document = yamltable.parse(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise SpecError(f"{file}: {' '.join(str(error).split())}") from None
        if not isinstance(document, Mapping) or document.get("version") != VERSION:
            raise SpecError(f"{file}: {self._key} of another version; this code reads {VERSION}")
        entries = document.get(self._key)
        if not isinstance(entries, Mapping) or not all(map(_is_mapping, entries.values())):
            raise SpecError(f"{file}: no mapping {self._key}; write {self._key}: {{name: {{...}}}}")
        return {name: self._entry(file, name, entries) for name in entries}

    def _entry(self, file: Path, name: str, entries: Mapping[str, Any]) -> _T:
        entry = {**entries.get(entries[name].get("like"), {}), **entries[name]}
        try:
            decoded: _T = made(self._noun, entry, {"name": name})
        except Misfit as misfit:
            raise SpecError(f"{file}: {name}: {misfit}") from None
        return decoded

    @cached_property
    def _entries(self) -> dict[str, _T]:
        return yamltable.kept(self._file, self._key, lambda: self.read(self._file))

    @cached_property
    def _spellings(self) -> dict[str, _T]:
        """Every entry by its normalised name and aliases."""
        aliases = {
            normalise(alias): entry
            for entry in self.values()
            for alias in getattr(entry, "aliases", ())
        }
        return aliases | {normalise(name): entry for name, entry in self.items()}

    def load(self, name: str) -> _T:
        """The entry with this name or alias. Raises `UnknownName` with the nearest names."""
        entry = self._spellings.get(normalise(name))
        if entry is None:
            raise UnknownName(self._kind, name, self)
        return entry

    def names(self) -> tuple[str, ...]:
        """Every name, without aliases."""
        return tuple(self)

    def __getitem__(self, name: str) -> _T:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


class Catalogue(Generic[_T]):
    """Files of a kind by name; a file may give itself further names."""

    def __init__(
        self,
        kind: str,
        read: Callable[[Path], _T],
        folders: Callable[[], list[Path]],
        packages: Callable[[], Iterable[Path]],
        spellings: tuple[str, ...] = (),
    ) -> None:
        """`kind` names one in messages. `read` raises `SpecError`.

        `folders` are searched before those that `packages` gives, which is slower. `spellings` are
        the keys of a file with its names.
        """
        self._kind, self._folders, self._packages = kind, folders, packages
        self._keys = frozenset(spellings)
        self._cached = lru_cache(maxsize=256)(lambda path, _mtime: read(path))

    def load(self, name_or_path: str | Path) -> _T:
        """The one with this name, or in this file (a name with a slash or ending in .yaml).

        Raises `UnknownName` with the nearest names, or `SpecError` for a file that cannot be used.
        """
        text = str(name_or_path)
        if is_path(text):
            return self.read(Path(text))
        path = self.located(text)
        entry = self.read(path)
        slug = getattr(entry, "slug", path.stem)
        if slug != path.stem:
            raise SpecError(f"{path}:1: slug {slug!r} is not the file's name {path.stem!r}")
        return entry

    def read(self, path: Path) -> _T:
        """What a file holds; it is read again once it has changed. Raises `SpecError`."""
        try:
            mtime = path.stat().st_mtime_ns
        except (OSError, ValueError) as error:
            raise SpecError(f"{path}: cannot be read: {reason(error)}; check the path") from None
        return self._cached(path, mtime)

    def stamp(self) -> tuple[tuple[str, int], ...]:
        """The folders with the time of their last change, as a key of what is derived from all."""
        folders = [folder for folder in self._folders() if folder.is_dir()]
        return tuple((str(folder), folder.stat().st_mtime_ns) for folder in folders)

    def names(self) -> list[str]:
        """The name of every file, sorted; opens none."""
        return sorted({path.stem for path in plugins.files(self.places())})

    def every(self) -> Iterator[_T]:
        """All that can be read, by name; a warning names each file that cannot."""
        return plugins.readable(self.names(), self.load)

    def places(self) -> list[Path]:
        """Every folder, in the order of the search."""
        return [*self._folders(), *self._packages()]

    def located(self, name: str) -> Path:
        """The file with this name or alias. Raises `UnknownName` with the nearest names."""
        slug = normalise(name)
        for places in (self._folders, self.places):
            path = self._located(slug, list(places()))
            if path is not None:
                return path
        names = self.names()
        known = [*names, *self.aliases()]
        matches = get_close_matches(slug[:100], known, n=3, cutoff=0.5)
        raise UnknownName(self._kind, name, matches or names)

    def _located(self, slug: str, places: Sequence[Path]) -> Path | None:
        for folder in places:
            path = folder / f"{slug}.yaml"
            if _is_file(path):
                return path
        return self.aliases(places).get(slug)

    def aliases(self, places: Sequence[Path] | None = None) -> dict[str, Path]:
        """Every name that files give themselves, normalised, with its file; the first folder
        wins."""
        paths: dict[str, Path] = {}
        for folder in (self.places() if places is None else places) if self._keys else ():
            files = tuple(path for path in plugins.files([folder]) if _is_file(path))
            versions = tuple(path.stat().st_mtime_ns for path in files)
            for path, names in zip(files, _names_in(files, versions, self._keys), strict=True):
                for name in names:
                    paths.setdefault(name, path)
        return paths


def of_kind(kind: str, shipped: Path, variable: str = "") -> tuple[Any, Any]:
    """The folders of a kind of file before those of packages, and those."""
    return (
        lambda: [*plugins.folders(kind, variable), shipped],
        lambda: plugins.packages(kind),
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is longer than names of files may be
        return False


@lru_cache(maxsize=64)
def _names_in(
    files: tuple[Path, ...], _versions: tuple[int, ...], keys: frozenset[str]
) -> Sequence[Sequence[str]]:
    """The names that the files of a folder give themselves; a broken file has none (loading it says
    why)."""
    if not files:
        return []
    return yamltable.kept(files[0].parent, "names", lambda: [_own_names(f, keys) for f in files])


def _own_names(path: Path, keys: frozenset[str]) -> list[str]:
    """The names under some top-level keys of a file, normalised."""
    try:
        top = yamlfile.head(yamlfile.read(path), "", keys)
    except PerfmodelError:
        return []
    values = (top.get(key) for key in sorted(keys))
    names = [name for value in values for name in (value if isinstance(value, list) else [value])]
    return [normalise(name) for name in names if isinstance(name, str)]
