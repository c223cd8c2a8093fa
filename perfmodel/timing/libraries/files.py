"""Files of facts: the shipped ones, one a library, and those that other packages bring.

A package brings a file under the entry point `perfmodel.libraries`: its path, or a function that
returns the path. Such a file may also say what its kernels are called, as names.yaml does for the
shipped ones. Names of kernels are unique over all files.
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
"""The entry point, after `perfmodel.`."""
FOLDER = Path(__file__).parent
"""The shipped files."""
NAMES = "names"
"""The shipped file that no library stands in."""
_PARTS = ("library", "kernels", "names", "callers")


@dataclass(frozen=True)
class Document:
    """A file of facts as it was read."""

    name: str
    """What the library is called: its file's name without the ending, or the entry point."""
    place: str
    """What an error calls the file."""
    parts: Mapping[str, Any]
    """Its content."""

    def error(self, *said: object) -> PerfmodelError:
        """What is wrong with it, in one line."""
        return PerfmodelError(": ".join(str(item) for item in (self.place, *said)))


@lru_cache(maxsize=1)
def load() -> Mapping[str, Document]:
    """Every shipped file by name, names.yaml among them: the one place that reads them.

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
            raise PerfmodelError(f"{name}: not to be read ({line}); reinstall perfmodel") from None
        found[name.removesuffix(".yaml")] = Document(name.removesuffix(".yaml"), name, parts)
    if NAMES not in found or len(found) == 1:
        raise PerfmodelError(f"{FOLDER}: no files of facts are there; reinstall perfmodel")
    return found


@lru_cache(maxsize=1)
def brought() -> tuple[Document, ...]:
    """The files of other packages and of the user's folders; what is broken is left out."""
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
        raise PerfmodelError(f"{path}: not to be read ({line}); mend the file") from None
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
    """All kernels by name, those of other packages too, but for packages with wrong facts."""
    others, known = brought(), entries(load().values())
    try:
        return {**shipped(), **facts_of(others, known)} if others else shipped()
    except PerfmodelError:
        return {**shipped(), **dict(_one_by_one(others, known))}


def _one_by_one(
    documents: Iterable[Document], others: Entries
) -> Iterator[tuple[str, KernelFacts]]:
    """The kernels of those files that have no wrong fact; the others are named in warnings."""
    for item in documents:
        try:
            yield from facts_of([item], others).items()
        except PerfmodelError as error:
            plugins.left_out(error)


def find(name: str) -> KernelFacts | None:
    """The kernel called so; looks for other packages only where no shipped one is."""
    return shipped().get(name) or kernels().get(name)


def kernel_facts(name: str) -> Any:
    """The facts of the kernel called `name`; raises `UnknownName` with the nearest ones."""
    found = find(name)
    if found is None:
        raise UnknownName("implementation", name, kernels())
    return found


Entries = Mapping[str, tuple[Document, Mapping[str, Any]]]
"""Where each kernel is described, and how."""


def facts_of(documents: Any, others: Entries) -> Mapping[str, KernelFacts]:
    """The kernels of some files; `others` are kernels that these may be like.

    Raises `PerfmodelError` with file, kernel and key for what is no fact.
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
                raise item.error(name, "it has no facts; write operator: ... and what follows")
            found[name] = (item, entry)
    return found


def _facts(name: str, home: Document, entry: Mapping[str, Any], known: Entries) -> KernelFacts:
    whole = dict(_ancestry(name, home, entry, known))
    operator = whole.get("operator")
    if not isinstance(operator, str) or operator not in KINDS:
        kinds = ", ".join(KINDS)
        raise home.error(name, "operator", f"{operator!r} is none; write one of {kinds}")
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
    """Who states each fact of a kernel: itself, or the one that it is like; the rest are usual.

    Facts by the key of their entry, those of a rule or a layout by `key.fact`. Raises `UnknownName`
    where there is no such kernel.
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
    """An entry's keys, after those of the kernel that it is like; a source is its own."""
    for each, found in reversed(_lineage(name, home, entry, known)):
        for key, value in found.items():
            if key != "like" and (key != "source" or each == name):
                yield key, value


def _lineage(
    name: str, home: Document, entry: Mapping[str, Any], known: Entries
) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """A kernel and its entry, then the one that it is like, and so on."""
    lineage, other = [(name, entry)], entry.get("like")
    seen = {name}
    while other is not None:
        if not isinstance(other, str) or other not in known or other in seen:
            said = nearest(str(other), known.keys() - seen)
            raise home.error(name, "like", f"there is no kernel {other!r} to be like; {said}")
        seen.add(other)
        lineage.append((other, known[other][1]))
        other = known[other][1].get("like")
    return lineage
