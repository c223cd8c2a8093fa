"""What tables and people call kernels: names.yaml, and what other packages say of their own.

Only here are such names matched by patterns. Those of other packages are tried first, since the
shipped ones cover whole frameworks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from perfmodel.entries import Misfit, made
from perfmodel.errors import nearest
from perfmodel.timing.architectures import Instruction
from perfmodel.timing.libraries.facts import Caller, KernelFacts
from perfmodel.timing.libraries.files import NAMES, Document, brought, find, kernels, load


@dataclass(frozen=True)
class Named:
    """Names of a kernel."""

    kernel: str
    """The kernel."""
    names: tuple[str, ...]
    """Regular expressions, one of which is found in the name."""


@dataclass(frozen=True)
class Called:
    """How runs that go by some names are called."""

    names: tuple[str, ...]
    """Regular expressions, one of which is found in the name."""
    source: str
    """How that is known."""
    changes: Mapping[str, Any]
    """Fields of `Caller`."""
    operators: tuple[str, ...] = ()
    """Operators that it holds for; none for all."""
    formats: tuple[str, ...] = ()
    """Types that it holds for; none for all."""
    instruction: tuple[Instruction, ...] = ()
    """Matrix instructions of the devices that it holds for; none for all."""


@dataclass(frozen=True)
class Usual:
    """A kernel that runs where none is named."""

    kernel: str
    """The kernel."""
    formats: tuple[str, ...] = ()
    """Types that it is taken for; none for all."""


@dataclass(frozen=True)
class Spelling:
    """Other spellings of a kernel."""

    pattern: str
    """A regular expression that is the whole name, in lower case."""
    kernel: str
    """The kernel, with groups of the pattern."""


def known_as(item: Document) -> tuple[Named, ...]:
    """What a file says its kernels are called; raises `PerfmodelError` with file and entry."""
    found = []
    for i, entry in enumerate(_listed(item, "names")):
        try:
            found.append(_compiled(made(Named, entry)))
        except Misfit as misfit:
            raise item.error(f"names, entry {i + 1}", misfit) from None
    return tuple(found)


def called_as(item: Document) -> tuple[Called, ...]:
    """How a file says that runs are called; raises `PerfmodelError` with file and entry."""
    found = []
    for i, entry in enumerate(_listed(item, "callers")):
        try:
            found.append(_compiled(_called(entry)))
        except Misfit as misfit:
            raise item.error(f"callers, entry {i + 1}", misfit) from None
    return tuple(found)


def _called(entry: Mapping[str, Any]) -> Called:
    """An entry that has fields of `Called` and of `Caller` beside each other."""
    which, circumstances = ({field.name for field in fields(kind)} for kind in (Called, Caller))
    which.remove("changes")
    for key in entry:
        if key not in which | circumstances:
            said = nearest(str(key), which | circumstances)
            raise Misfit(str(key), f"there is no such key; {said}")
    caller = made(Caller, {key: value for key, value in entry.items() if key in circumstances})
    changes = {key: getattr(caller, key) for key in entry if key in circumstances}
    rest = {key: value for key, value in entry.items() if key in which}
    found = made(Called, rest, {"changes": changes})
    assert isinstance(found, Called)
    return found


def _listed(item: Document, part: str) -> Sequence[Mapping[str, Any]]:
    entries = item.parts.get(part, [])
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise item.error(part, "it is no list of entries; write - {names: [...], ...}")
    return entries


def _compiled(entry: Any) -> Any:
    """The entry, if its patterns are sound."""
    for pattern in entry.names:
        try:
            re.compile(pattern)
        except re.error as error:
            raise Misfit("names", f"{pattern!r} is no regular expression ({error})") from None
    return entry


@lru_cache(maxsize=1)
def _shipped_names() -> tuple[Named, ...]:
    return known_as(load()[NAMES])


@lru_cache(maxsize=1)
def names() -> tuple[Named, ...]:
    """Every entry, in the order in which they are tried."""
    own = [entry for item in brought() for entry in known_as(item)]
    return (*own, *_shipped_names())


@lru_cache(maxsize=1)
def callers() -> tuple[Called, ...]:
    """Every entry on how runs are called."""
    return tuple(entry for item in (load()[NAMES], *brought()) for entry in called_as(item))


@lru_cache(maxsize=1)
def usual_kernels() -> tuple[Usual, ...]:
    """What runs where nothing is named, best first."""
    return tuple(made(Usual, entry) for entry in load()[NAMES].parts["usual"])


@lru_cache(maxsize=1)
def spellings() -> tuple[Spelling, ...]:
    """Other spellings that are accepted for kernels, from names.yaml."""
    return tuple(made(Spelling, entry) for entry in load()[NAMES].parts["spellings"])


def computed_by(op: str) -> tuple[str, ...]:
    """What kernels that compute an operator call it: those of rows serve each row-wise one."""
    return (op,) if op in ("attention", "gemm") else (op, "rowwise")


def implementations(op: str) -> Mapping[str, KernelFacts]:
    """The kernels that compute an operator."""
    return {name: k for name, k in kernels().items() if k.operator in computed_by(op)}


def framework_of(name: str) -> str:
    """The framework that a name says ran a kernel (vllm of vllm-0.24.0:vllm_flash_attn), if any."""
    found = re.fullmatch(load()[NAMES].parts["frameworks"], name)
    return found[1] if found else ""


def is_known(op: str, name: str) -> bool:
    """Whether a name is a kernel of the operator, or one that such a kernel goes by."""
    kernel = find(name)
    if kernel is not None and kernel.operator in computed_by(op):
        return True
    return any(_found(entry.names, name) for entry in _of(op))


def matching(op: str, name: str, dtype: str, variant: str) -> KernelFacts | None:
    """The first kernel that goes by a name and computes the operator as asked."""
    for entry in names():
        kernel = find(entry.kernel)
        if kernel is None or kernel.operator != op or not kernel.computes(dtype, variant):
            continue
        if _found(entry.names, name):
            return kernel
    return None


def caller_of(op: str, name: str | None, dtype: str, instruction: Instruction) -> Caller:
    """How runs that go by a name are called, on devices with a matrix instruction."""
    if not name:
        return Caller()
    changes: dict[str, Any] = {}
    for entry in callers():
        meant = op in (entry.operators or (op,)) and dtype in (entry.formats or (dtype,))
        here = instruction in (entry.instruction or (instruction,))
        if meant and here and _found(entry.names, name):
            changes |= entry.changes
    return replace(Caller(), **changes)


def asked_for(op: str, name: str) -> str | None:
    """The name that the model uses for an accepted name: flash2 for FlashAttention-2; else None.

    A name is accepted if it is a kernel's name, another spelling of one (`spellings`, or another
    case), or a framework's name for one. A pattern that only matches part of a name is not enough,
    since the time of another kernel would be given.
    """
    for entry in spellings():
        whole = re.fullmatch(entry.pattern, name.lower())
        if whole and is_known(op, whole.expand(entry.kernel)):
            return whole.expand(entry.kernel)
    for spelling in dict.fromkeys((name, name.lower())):
        kernel = find(spelling)
        if (kernel is not None and kernel.operator in computed_by(op)) or _whole(op, spelling):
            return spelling
    return None


@lru_cache(maxsize=4096)
def spelled(op: str, name: str) -> str:
    """The name that the model uses for `name` (`asked_for`); a name not accepted stays as it is."""
    return asked_for(op, name) or name


def plain_names(op: str) -> Iterator[str]:
    """Names of an operator's kernels, and the plain words among those that they go by."""
    yield from implementations(op)
    for entry in _of(op):
        yield from (pattern for pattern in entry.names if re.fullmatch(r"\w+", pattern))


def _whole(op: str, name: str) -> bool:
    """Whether the name is one that a kernel goes by, rather than one that a pattern is found in."""
    patterns = [pattern for entry in _of(op) for pattern in entry.names]
    if any(re.fullmatch(pattern, name) and not re.fullmatch(pattern, "") for pattern in patterns):
        return True
    framework = re.fullmatch(load()[NAMES].parts["frameworks"], name)
    return framework is not None and any(framework[1] in pattern for pattern in patterns)


def _of(op: str) -> Iterator[Named]:
    """The entries of an operator's kernels."""
    for entry in names():
        kernel = find(entry.kernel)
        if kernel is not None and kernel.operator in computed_by(op):
            yield entry


def _found(patterns: Sequence[str], name: str) -> bool:
    """Whether one of some regular expressions is found in a name."""
    return any(re.search(pattern, name) for pattern in patterns)
