"""The facts that the tables state of a library's kernel or of a harness, each with its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from perfmodel import entryschema
from perfmodel.entries import plain
from perfmodel.timing.libraries import kernel_facts
from perfmodel.timing.libraries.facts import GIVEN, KernelFacts
from perfmodel.timing.libraries.files import brought, load, stated
from perfmodel.timing.libraries.naming import names
from perfmodel.timing.runs import BY_OPERATOR, Run

_APART = {*GIVEN, "operator", "source", "about"}  # fields that identify the kernel


@dataclass(frozen=True)
class Fact:
    """One value of a table."""

    name: str
    """Key in its file; a part of a rule or a layout after a dot."""
    value: Any
    """Value as plain YAML data; None where there is none."""
    unit: str
    """Unit; for a text its possible values, for a flag `yes or no`."""
    meaning: str
    """One line of explanation."""
    by: str | None
    """Name of the kernel or harness whose entry states it; None for the default."""
    source: str | None
    """Source; None for the default."""


def of_kernel(name: str) -> tuple[Fact, ...]:
    """The facts of a library's kernel. Raises `UnknownName` with the nearest names."""
    kernel, origins = kernel_facts(name), stated(name)
    return tuple(_facts(kernel, origins, ""))


def library_of(kernel: KernelFacts) -> str:
    """Name of the kernel's library."""
    homes = {item.name: item for item in (*load().values(), *brought())}
    return str(homes[kernel.library].parts.get("library", kernel.library))


def goes_by(name: str) -> tuple[str, ...]:
    """Names of a kernel in tables, as regular expressions."""
    return tuple(each for entry in names() if entry.kernel == name for each in entry.names)


def _facts(holder: Any, origins: Mapping[str, str], prefix: str) -> Iterator[Fact]:
    """Facts of a kernel's dataclass, or of a part of it called `prefix`."""
    kind: Any = type(holder)
    docs = entryschema.about(kind)
    for item in fields(holder):
        if not prefix and item.name in _APART:
            continue
        name, value, doc = prefix + item.name, getattr(holder, item.name), docs[item.name]
        if is_dataclass(value) and not isinstance(value, type):
            yield from _facts(value, origins, f"{name}.")
            continue
        teller = origins.get(name)
        source = kernel_facts(teller).source if teller is not None else None
        yield Fact(name, plain(value), doc.unit, doc.meaning, teller, source)


def of_harness(run: Run) -> tuple[Fact, ...]:
    """The values of a harness; starts and calls by operator."""
    return tuple(_values(run))


def _values(run: Run) -> Iterator[Fact]:
    for key, doc in entryschema.about(Run).items():
        if key in ("name", "about", "pace", "sources"):
            continue
        parts: Mapping[str, Any] = {key: plain(getattr(run, key))}
        if key in BY_OPERATOR:
            parts = {f"{key}.{operator}": value for operator, value in parts[key].items()}
        for name, value in parts.items():
            source = run.sources.get(name)
            owner = run.name if source is not None else None
            yield Fact(name, value, doc.unit, doc.meaning, owner, source)
