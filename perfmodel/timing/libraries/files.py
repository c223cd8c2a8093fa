"""Files of facts: the shipped ones, one a library, and those that other packages bring.

A package brings a file under the entry point `perfmodel.libraries`: its path, or a function that
returns the path. Such a file may also list names of its kernels, as names.yaml does for the shipped
ones. Names of kernels are unique over all files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfmodel import plugins, yamltable
from perfmodel.entries import Misfit, made
from perfmodel.errors import PerfmodelError, UnknownName, nearest
from perfmodel.timing.libraries.facts import GIVEN, KINDS, KernelFacts
from perfmodel.timing.libraries.soundness import check, check_links

GROUP = "libraries"
"""Name of the entry point, after `perfmodel.`."""
FOLDER = Path(__file__).parent
"""Folder of the shipped files."""
NAMES = "names"
"""Name of the shipped file that belongs to no library."""
_PARTS = ("library", "kernels", "names", "callers")


@dataclass(frozen=True)
class Document:
    """A file of facts as read."""

    name: str
    """Name of the library: the file's name without its ending, or the entry point."""
    place: str
    """Path or entry point, for error messages."""
    parts: Mapping[str, Any]
    """Its content."""

    def error(self, *said: object) -> PerfmodelError:
        """A `PerfmodelError` on this file, in one line."""
        return PerfmodelError(": ".join(str(item) for item in (self.place, *said)))


@lru_cache(maxsize=1)
def load() -> Mapping[str, Document]:
    """Every shipped file by name, names.yaml included; nothing else reads them.

    Raises `PerfmodelError` where one is missing or damaged.
    """
    try:
        listed = sorted(item.name for item in FOLDER.iterdir() if item.name.endswith(".yaml"))
    except OSError:
        listed = []
    found = {}
    for name in listed:
        try:
            parts = yamltable.read(FOLDER / name)
        except (OSError, ValueError) as error:
            line = " ".join(str(error).split())
            raise PerfmodelError(f"{name}: cannot be read ({line}); reinstall perfmodel") from None
        found[name.removesuffix(".yaml")] = Document(name.removesuffix(".yaml"), name, parts)
    if NAMES not in found or len(found) == 1:
        raise PerfmodelError(f"{FOLDER}: there are no files of facts; reinstall perfmodel")
    return found


@lru_cache(maxsize=1)
def brought() -> tuple[Document, ...]:
    """The files of other packages and of the user's folders; broken ones are left out."""
    found = []
    for point, path in plugins.brought(GROUP):
        try:
            found.append(document(Path(os.fspath(path() if callable(path) else path)), point.name))
        except Exception as error:  # anything may go wrong in another package
            plugins.leave_out(point, error)
    own = plugins.files(plugins.folders(GROUP))
    return (*found, *plugins.readable(own, lambda path: document(path, path.stem)))


def document(path: Path, name: str) -> Document:
    """A file of facts; raises `PerfmodelError` where it cannot be read or has no kernels."""
    try:
        found = Document(name, str(path), yamltable.read(path))
    except (OSError, ValueError) as error:
        line = " ".join(str(error).split())
        raise PerfmodelError(f"{path}: cannot be read ({line}); repair the file") from None
    if not isinstance(found.parts, Mapping) or not isinstance(found.parts.get("kernels"), Mapping):
        raise found.error("it has no kernels; add kernels: {name: {operator: ..., ...}}")
    for key in found.parts:
        if key not in _PARTS:
            raise found.error(f"no such key as {key}", nearest(str(key), _PARTS))
    return found


@lru_cache(maxsize=1)
def shipped() -> Mapping[str, KernelFacts]:
    """The kernels of shipped files by name."""
    return facts_of([item for name, item in load().items() if name != NAMES], {})


@lru_cache(maxsize=1)
def kernels() -> Mapping[str, KernelFacts]:
    """All kernels by name, those of other packages included; packages with wrong facts are left
    out."""
    others, known = brought(), entries(load().values())
    try:
        return {**shipped(), **facts_of(others, known)} if others else shipped()
    except PerfmodelError:
        return {**shipped(), **dict(_one_by_one(others, known))}


def _one_by_one(
    documents: Iterable[Document], others: Entries
) -> Iterator[tuple[str, KernelFacts]]:
    """The kernels of the files without wrong facts; a warning names each file that is left out."""
    for item in documents:
        try:
            yield from facts_of([item], others).items()
        except PerfmodelError as error:
            plugins.left_out(error)


def find(name: str) -> KernelFacts | None:
    """The kernel of this name; searches other packages only where no shipped kernel has it."""
    return shipped().get(name) or kernels().get(name)


def kernel_facts(name: str) -> Any:
    """The facts of the kernel called `name`. Raises `UnknownName` with the nearest names."""
    found = find(name)
    if found is None:
        raise UnknownName("implementation", name, kernels())
    return found


Entries = Mapping[str, tuple[Document, Mapping[str, Any]]]
"""Each kernel's file and entry, by name."""


def facts_of(documents: Any, others: Entries) -> Mapping[str, KernelFacts]:
    """The kernels of some files; their entries may be `like` kernels in `others`.

    Raises `PerfmodelError` with file, kernel and key where a fact is wrong.
    """
    own = entries(documents, others)
    known = {**others, **own}
    found = {name: _facts(name, *own[name], known) for name in own}
    every = {**{name: shipped()[name] for name in others}, **found}
    for name, kernel in found.items():
        try:
            check_links(kernel, every)
        except Misfit as misfit:
            raise own[name][0].error(name, misfit) from None
    return found


def entries(documents: Any, others: Entries | None = None) -> Entries:
    """Every kernel's entry; raises `PerfmodelError` for a name that is already taken."""
    found: dict[str, tuple[Document, Mapping[str, Any]]] = {}
    for item in documents:
        for name, entry in item.parts.get("kernels", {}).items() if item.name != NAMES else ():
            taken = found.get(name) or (others or {}).get(name)
            if taken is not None:
                raise item.error(name, f"the name is taken in {taken[0].place}; choose another")
            if not isinstance(name, str) or not isinstance(entry, Mapping):
                raise item.error(name, "it has no facts; write operator: ... and its facts")
            found[name] = (item, entry)
    return found


def _facts(name: str, home: Document, entry: Mapping[str, Any], known: Entries) -> KernelFacts:
    whole = dict(_ancestry(name, home, entry, known))
    operator = whole.get("operator")
    if not isinstance(operator, str) or operator not in KINDS:
        kinds = ", ".join(KINDS)
        raise home.error(
            name, "operator", f"no such operator as {operator!r}; write one of {kinds}"
        )
    given = {"name": name, "library": home.name, "caller": KernelFacts.caller}
    assert given.keys() == set(GIVEN)
    try:
        found = made(KINDS[operator], whole, given)
        check(found)
    except Misfit as misfit:
        raise home.error(name, misfit) from None
    assert isinstance(found, KernelFacts)
    return found


def stated(name: str) -> Mapping[str, str]:
    """Which kernel states each fact of a kernel: itself or the one that it is `like`. Defaults are
    left out.

    Facts are named by the key of their entry, those of a rule or a layout by `key.fact`. Raises
    `UnknownName` for an unknown kernel.
    """
    known = entries((*load().values(), *brought()))
    if name not in known:
        raise UnknownName("implementation", name, known)
    found: dict[str, str] = {}
    for each, entry in reversed(_lineage(name, *known[name], known)):
        for key, value in entry.items():
            found = {at: by for at, by in found.items() if not at.startswith(f"{key}.")}
            parts = value if isinstance(value, Mapping) else {}
            found |= dict.fromkeys((key, *(f"{key}.{part}" for part in parts)), each)
    found.pop("like", None)
    return found


def _ancestry(
    name: str, home: Document, entry: Mapping[str, Any], known: Entries
) -> Iterator[tuple[str, Any]]:
    """The keys of the kernel that an entry is `like`, then its own; sources are not inherited."""
    for each, found in reversed(_lineage(name, home, entry, known)):
        for key, value in found.items():
            if key != "like" and (key != "source" or each == name):
                yield key, value


def _lineage(
    name: str, home: Document, entry: Mapping[str, Any], known: Entries
) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """A kernel and its entry, then the kernel that it is `like`, and so on."""
    lineage, other = [(name, entry)], entry.get("like")
    seen = {name}
    while other is not None:
        if not isinstance(other, str) or other not in known or other in seen:
            said = nearest(str(other), known.keys() - seen)
            raise home.error(name, "like", f"there is no kernel {other!r}; {said}")
        seen.add(other)
        lineage.append((other, known[other][1]))
        other = known[other][1].get("like")
    return lineage
