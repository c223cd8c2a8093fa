"""Names of kernels in tables and on the command line: names.yaml, and those that other packages
bring.

Only this module matches names by patterns. Patterns of other packages are tried first, since the
shipped ones cover whole frameworks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, TypeVar

from perfmodel.entries import Misfit, made
from perfmodel.errors import nearest
from perfmodel.frozen import dataclass
from perfmodel.timing.architectures import Instruction
from perfmodel.timing.libraries.facts import ROW_OPERATORS, Caller, KernelFacts
from perfmodel.timing.libraries.files import NAMES, Document, brought, find, kept, kernels, load

_T = TypeVar("_T")


@dataclass(frozen=True)
class Named:
    """Names of a kernel in tables."""

    kernel: str
    """The kernel."""
    names: tuple[str, ...]
    """Regular expressions, searched in the name; one must match."""


@dataclass(frozen=True)
class Called:
    """How runs with some names are called."""

    names: tuple[str, ...]
    """Regular expressions, searched in the name; one must match."""
    source: str
    """Source."""
    changes: Mapping[str, Any]
    """Fields of `Caller`."""
    operators: tuple[str, ...] = ()
    """Operators that it holds for; empty: all."""
    formats: tuple[str, ...] = ()
    """Types that it holds for; empty: all."""
    instruction: tuple[Instruction, ...] = ()
    """Matrix instructions of the devices that it holds for; empty: all."""


@dataclass(frozen=True)
class Usual:
    """A kernel that is taken where none is named."""

    kernel: str
    """The kernel."""
    formats: tuple[str, ...] = ()
    """Types that it is taken for; empty: all."""


@dataclass(frozen=True)
class Spelling:
    """Another spelling of a kernel's name."""

    pattern: str
    """A regular expression that matches the whole name in lower case."""
    kernel: str
    """The kernel's name, with references to groups of the pattern."""


def known_as(item: Document) -> tuple[Named, ...]:
    """Names of kernels in a file. Raises `PerfmodelError` with file and entry."""
    entries = []
    for i, entry in enumerate(_part_entries(item, "names")):
        try:
            entries.append(_checked_entry(made(Named, entry)))
        except Misfit as misfit:
            raise item.error(f"names, entry {i + 1}", misfit) from None
    return tuple(entries)


def called_as(item: Document) -> tuple[Called, ...]:
    """How a file says that runs are called. Raises `PerfmodelError` with file and entry."""
    entries = []
    for i, entry in enumerate(_part_entries(item, "callers")):
        try:
            entries.append(_checked_entry(_call(entry)))
        except Misfit as misfit:
            raise item.error(f"callers, entry {i + 1}", misfit) from None
    return tuple(entries)


def _call(entry: Mapping[str, Any]) -> Called:
    """An entry with the fields of `Called` and of `Caller` in one mapping."""
    call_keys, caller_keys = ({field.name for field in fields(kind)} for kind in (Called, Caller))
    call_keys.remove("changes")
    for key in entry:
        if key not in call_keys | caller_keys:
            hint = nearest(str(key), call_keys | caller_keys)
            raise Misfit(str(key), f"there is no such key; {hint}")
    caller = made(Caller, {key: value for key, value in entry.items() if key in caller_keys})
    changes = {key: getattr(caller, key) for key in entry if key in caller_keys}
    rest = {key: value for key, value in entry.items() if key in call_keys}
    call = made(Called, rest, {"changes": changes})
    assert isinstance(call, Called)
    return call


def _part_entries(item: Document, part: str) -> Sequence[Mapping[str, Any]]:
    entries = item.parts.get(part, [])
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise item.error(part, "must be a list of entries; write - {names: [...], ...}")
    return entries


def _checked_entry(entry: Any) -> Any:
    """The entry, after its patterns have been compiled as a check."""
    for pattern in entry.names:
        try:
            re.compile(pattern)
        except re.error as error:
            raise Misfit("names", f"{pattern!r} is not a regular expression ({error})") from None
    return entry


@lru_cache(maxsize=1)
def _shipped_names() -> tuple[Named, ...]:
    return kept("named", lambda: known_as(load()[NAMES]))


@lru_cache(maxsize=1)
def names() -> tuple[Named, ...]:
    """Every entry on names, in the order of trial."""
    additions = [entry for item in brought() for entry in known_as(item)]
    return (*additions, *_shipped_names())


@lru_cache(maxsize=1)
def callers() -> tuple[Called, ...]:
    """Every entry on how runs are called."""
    shipped = kept("callers", lambda: called_as(load()[NAMES]))
    return (*shipped, *(entry for item in brought() for entry in called_as(item)))


def _made(kind: type[_T], part: str) -> tuple[_T, ...]:
    """The entries of a part of names.yaml."""
    return kept(part, lambda: tuple(made(kind, entry) for entry in load()[NAMES].parts[part]))


@lru_cache(maxsize=1)
def usual_kernels() -> tuple[Usual, ...]:
    """Kernels that are taken where none is named, best first."""
    return _made(Usual, "usual")


@lru_cache(maxsize=1)
def spellings() -> tuple[Spelling, ...]:
    """Other spellings that are accepted for kernels, from names.yaml."""
    return _made(Spelling, "spellings")


def computed_by(op: str) -> tuple[str, ...]:
    """Operators of the kernels that compute an operator: row-wise kernels serve every row-wise
    operator."""
    return (op, "rowwise") if op in ROW_OPERATORS else (op,)


def implementations(op: str) -> Mapping[str, KernelFacts]:
    """The kernels that compute an operator."""
    return {name: k for name, k in kernels().items() if k.operator in computed_by(op)}


def framework_of(name: str) -> str:
    """The framework in the name of a run (vllm in vllm-0.24.0:vllm_flash_attn); empty where
    none."""
    match = re.fullmatch(load()[NAMES].parts["frameworks"], name)
    return match[1] if match else ""


def is_known(op: str, name: str) -> bool:
    """Whether a name is a kernel of the operator, or matches one of a kernel's names."""
    kernel = find(name)
    if kernel is not None and kernel.operator in computed_by(op):
        return True
    return any(_matches(entry.names, name) for entry in _operator_entries(op))


def matching(op: str, name: str, dtype: str, variant: str) -> KernelFacts | None:
    """The first kernel that a name matches and that computes the operator with this type and
    variant."""
    for entry in names():
        kernel = find(entry.kernel)
        if kernel is None or kernel.operator != op or not kernel.computes(dtype, variant):
            continue
        if _matches(entry.names, name):
            return kernel
    return None


def caller_of(op: str, name: str | None, dtype: str, instruction: Instruction) -> Caller:
    """How runs of a name are called, on devices with this matrix instruction."""
    if not name:
        return Caller()
    changes: dict[str, Any] = {}
    for entry in callers():
        serves = op in (entry.operators or (op,)) and dtype in (entry.formats or (dtype,))
        runs = instruction in (entry.instruction or (instruction,))
        if serves and runs and _matches(entry.names, name):
            changes |= entry.changes
    return replace(Caller(), **changes)


@lru_cache(maxsize=4096)
def asked_for(op: str, name: str) -> str | None:
    """The name that the model uses for an accepted name: flash2 for FlashAttention-2; else None.

    A name is accepted if it is a kernel's name, another spelling of one (`spellings`, or another
    case), or a framework's name for one. A pattern that only matches part of a name is not enough,
    since the time of another kernel would be given.
    """
    for entry in spellings():
        match = re.fullmatch(entry.pattern, name.lower())
        if match and is_known(op, match.expand(entry.kernel)):
            return match.expand(entry.kernel)
    for spelling in dict.fromkeys((name, name.lower())):
        kernel = find(spelling)
        if (kernel is not None and kernel.operator in computed_by(op)) or _is_name(op, spelling):
            return spelling
    return None


def spelled(op: str, name: str) -> str:
    """The name that the model uses for `name` (`asked_for`); a name not accepted stays as it is."""
    return asked_for(op, name) or name


def plain_names(op: str) -> Iterator[str]:
    """Names of an operator's kernels, and the plain words among their patterns."""
    yield from implementations(op)
    for entry in _operator_entries(op):
        yield from (pattern for pattern in entry.names if re.fullmatch(r"\w+", pattern))


def _is_name(op: str, name: str) -> bool:
    """Whether a kernel has this name, rather than a pattern that is found in it."""
    patterns = [pattern for entry in _operator_entries(op) for pattern in entry.names]
    if any(re.fullmatch(pattern, name) and not re.fullmatch(pattern, "") for pattern in patterns):
        return True
    framework = re.fullmatch(load()[NAMES].parts["frameworks"], name)
    if framework is None or not _matches(patterns, name):
        return False
    stem = framework["name"]
    return any(framework[1] in pattern or re.fullmatch(pattern, stem) for pattern in patterns)


def _operator_entries(op: str) -> Iterator[Named]:
    """The entries on names of an operator's kernels."""
    for entry in names():
        kernel = find(entry.kernel)
        if kernel is not None and kernel.operator in computed_by(op):
            yield entry


def _matches(patterns: Sequence[str], name: str) -> bool:
    """Whether one of some regular expressions is found in a name."""
    return any(re.search(pattern, name) for pattern in patterns)
