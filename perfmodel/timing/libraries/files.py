"""Files of facts: the shipped ones, one a library, and those that other packages bring.

A package brings a file under the entry point `perfmodel.libraries`: its path, or a function that
returns the path. Such a file may also list names of its kernels, as names.yaml does for the shipped
ones. Names of kernels are unique over all files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from perfmodel import plugins, yamltable
from perfmodel.entries import Misfit, made
from perfmodel.errors import PerfmodelError, UnknownName, nearest
from perfmodel.frozen import dataclass
from perfmodel.timing.libraries.facts import GIVEN, KINDS, ChainFacts, KernelFacts
from perfmodel.timing.libraries.soundness import check, check_links

_T = TypeVar("_T")
GROUP = "libraries"
"""Name of the entry point, after `perfmodel.`."""
FOLDER = Path(__file__).parent
"""Folder of the shipped files."""
NAMES = "names"
"""Name of the shipped file that belongs to no library."""
_CHAIN = {"launches", "fusion", "sending"}
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
        names = sorted(item.name for item in FOLDER.iterdir() if item.name.endswith(".yaml"))
    except OSError:
        names = []
    documents = {}
    for name in names:
        try:
            parts = yamltable.read(FOLDER / name)
        except (OSError, ValueError) as error:
            line = " ".join(str(error).split())
            raise PerfmodelError(f"{name}: cannot be read ({line}); reinstall perfmodel") from None
        documents[name.removesuffix(".yaml")] = Document(name.removesuffix(".yaml"), name, parts)
    if NAMES not in documents or len(documents) == 1:
        raise PerfmodelError(f"{FOLDER}: there are no files of facts; reinstall perfmodel")
    return documents


@lru_cache(maxsize=1)
def brought() -> tuple[Document, ...]:
    """The files of other packages and of the user's folders; broken ones are left out."""
    files = []
    for point, path in plugins.brought(GROUP):
        try:
            files.append(document(Path(os.fspath(path() if callable(path) else path)), point.name))
        except Exception as error:  # anything may go wrong in another package
            plugins.leave_out(point, error)
    paths = plugins.files(plugins.folders(GROUP))
    return (*files, *plugins.readable(paths, lambda path: document(path, path.stem)))


def document(path: Path, name: str) -> Document:
    """A file of facts; raises `PerfmodelError` where it cannot be read or has no kernels."""
    try:
        file = Document(name, str(path), yamltable.read(path))
    except (OSError, ValueError) as error:
        line = " ".join(str(error).split())
        raise PerfmodelError(f"{path}: cannot be read ({line}); repair the file") from None
    if not isinstance(file.parts, Mapping) or not isinstance(file.parts.get("kernels"), Mapping):
        raise file.error("it has no kernels; add kernels: {name: {operator: ..., ...}}")
    for key in file.parts:
        if key not in _PARTS:
            raise file.error(f"no such key as {key}", nearest(str(key), _PARTS))
    return file


def kept(form: str, make: Callable[[], _T]) -> _T:
    """What `make` makes of the shipped files, kept from one process to the next."""
    return yamltable.kept(FOLDER / f"{NAMES}.yaml", form, make)


@lru_cache(maxsize=1)
def shipped() -> Mapping[str, KernelFacts]:
    """The kernels of shipped files by name."""
    return kept("kernels", lambda: facts_of([d for n, d in load().items() if n != NAMES], {}))


@lru_cache(maxsize=1)
def kernels() -> Mapping[str, KernelFacts]:
    """All kernels by name, those of other packages included; packages with wrong facts are left
    out."""
    others = brought()
    if not others:
        return shipped()
    bases = entries(load().values())
    try:
        return {**shipped(), **facts_of(others, bases)}
    except PerfmodelError:
        return {**shipped(), **dict(_sound_kernels(others, bases))}


def _sound_kernels(
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
    kernel = find(name)
    if kernel is None:
        raise UnknownName("implementation", name, kernels())
    return kernel


Entries = Mapping[str, tuple[Document, Mapping[str, Any]]]
"""Each kernel's file and entry, by name."""


def facts_of(documents: Any, others: Entries) -> Mapping[str, KernelFacts]:
    """The kernels of some files; their entries may be `like` kernels in `others`.

    Raises `PerfmodelError` with file, kernel and key where a fact is wrong.
    """
    additions = entries(documents, others)
    table = {**others, **additions}
    facts = {name: _facts(name, *additions[name], table) for name in additions}
    pool = {**{name: shipped()[name] for name in others}, **facts}
    for name, kernel in facts.items():
        try:
            check_links(kernel, pool)
        except Misfit as misfit:
            raise additions[name][0].error(name, misfit) from None
    return facts


def entries(documents: Any, others: Entries | None = None) -> Entries:
    """Every kernel's entry; raises `PerfmodelError` for a name that is already taken."""
    table: dict[str, tuple[Document, Mapping[str, Any]]] = {}
    for item in documents:
        for name, entry in item.parts.get("kernels", {}).items() if item.name != NAMES else ():
            holder = table.get(name) or (others or {}).get(name)
            if holder is not None:
                raise item.error(name, f"the name is taken in {holder[0].place}; choose another")
            if not isinstance(name, str) or not isinstance(entry, Mapping):
                raise item.error(name, "it has no facts; write operator: ... and its facts")
            table[name] = (item, entry)
    return table


def _facts(name: str, home: Document, entry: Mapping[str, Any], table: Entries) -> KernelFacts:
    mapping = dict(_ancestry(name, home, entry, table))
    operator = mapping.get("operator")
    if not isinstance(operator, str) or (operator not in KINDS and not _CHAIN & mapping.keys()):
        kinds = ", ".join(KINDS)
        raise home.error(
            name,
            "operator",
            f"no such operator as {operator!r}; write one of {kinds}, or add launches or fusion",
        )
    identity = {"name": name, "library": home.name, "caller": KernelFacts.caller}
    assert identity.keys() == set(GIVEN)
    try:
        facts = made(KINDS.get(operator, ChainFacts), mapping, identity)
        check(facts)
    except Misfit as misfit:
        raise home.error(name, misfit) from None
    assert isinstance(facts, KernelFacts)
    return facts


def stated(name: str) -> Mapping[str, str]:
    """Which kernel states each fact of a kernel: itself or the one that it is `like`. Defaults are
    left out.

    Facts are named by the key of their entry, those of a rule or a layout by `key.fact`. Raises
    `UnknownName` for an unknown kernel.
    """
    table = entries((*load().values(), *brought()))
    if name not in table:
        raise UnknownName("implementation", name, table)
    origins: dict[str, str] = {}
    for owner, entry in reversed(_lineage(name, *table[name], table)):
        for key, value in entry.items():
            origins = {at: by for at, by in origins.items() if not at.startswith(f"{key}.")}
            parts = value if isinstance(value, Mapping) else {}
            origins |= dict.fromkeys((key, *(f"{key}.{part}" for part in parts)), owner)
    origins.pop("like", None)
    return origins


def _ancestry(
    name: str, home: Document, entry: Mapping[str, Any], table: Entries
) -> Iterator[tuple[str, Any]]:
    """The keys of the kernel that an entry is `like`, then its own; source and about are
    not inherited."""
    for owner, facts in reversed(_lineage(name, home, entry, table)):
        for key, value in facts.items():
            if key != "like" and (key not in ("source", "about") or owner == name):
                yield key, value


def _lineage(
    name: str, home: Document, entry: Mapping[str, Any], table: Entries
) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """A kernel and its entry, then the kernel that it is `like`, and so on."""
    lineage, parent = [(name, entry)], entry.get("like")
    names = {name}
    while parent is not None:
        if not isinstance(parent, str) or parent not in table or parent in names:
            hint = nearest(str(parent), table.keys() - names)
            raise home.error(name, "like", f"there is no kernel {parent!r}; {hint}")
        names.add(parent)
        lineage.append((parent, table[parent][1]))
        parent = table[parent][1].get("like")
    return lineage
