"""Registry of the kinds of results: how their files are recognised, and the sections of their rows.

    @kind("requests", keys=("ttft_ms",))
    def requests(documents): yield Section("Requests", rows, columns(rows))

The name is the member of a JSON document that has the rows. A CSV is of the kind with most of its
keys in the header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perfmodel.quantities import header_of, kind_of, shown
from perfmodel.render.html.sections import Section


@dataclass(frozen=True)
class Document:
    """The rows of one kind in one file."""

    source: str
    """The file's name."""
    rows: Sequence[Mapping[str, Any]]
    """Rows as in JSON or CSV."""
    head: Mapping[str, Any] = field(default_factory=dict)
    """Members of a JSON document besides the rows."""


TOLD = 6
"""Number of rows or systems that a summary tells of; it counts the others."""

Sections = Callable[[Sequence[Document]], Iterable[Section]]
Cases = Callable[[Sequence[Document]], Iterable[dict[str, Any]]]


@dataclass(frozen=True)
class Kind:
    """One kind of results."""

    keys: frozenset[str]
    """Keys that every row has."""
    sections: Sections
    """Makes the page's sections of all documents of the kind."""
    cases: Cases | None = None
    """Makes the cases for rooflines and for the table of cases; None: none."""
    late: bool = False
    """Whether its sections follow the cases."""


KINDS: dict[str, Kind] = {}
"""Kinds by name."""


def kind(
    name: str, keys: Iterable[str], *, cases: Cases | None = None, late: bool = False
) -> Callable[[Sections], Sections]:
    """Register the function that makes sections of a kind's documents."""

    def register(function: Sections) -> Sections:
        KINDS[name] = Kind(frozenset(keys), function, cases, late)
        return function

    return register


def of_header(header: Iterable[str]) -> str | None:
    """The kind of a table by its header; None if it matches none."""
    columns = set(header)
    matches = [name for name, k in KINDS.items() if k.keys and k.keys <= columns]
    return max(matches, key=lambda name: len(KINDS[name].keys), default=None)


def flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A row with nested members flattened: `known.engine` becomes `known_engine`, as in CSV.

    Lists are omitted.
    """
    members: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            members |= flat(value, f"{prefix}{key}_")
        elif not isinstance(value, list | tuple):
            members[prefix + key] = value
    return members


def rows_of(documents: Sequence[Document]) -> list[dict[str, Any]]:
    """The rows of all documents, flat."""
    return [flat(row) for document in documents for row in document.rows]


def described(row: Mapping[str, Any], keys: Iterable[str]) -> str:
    """A row by its values under some keys: words as they are, numbers with their heading."""
    values = ((key, row[key]) for key in keys if row.get(key) not in (None, ""))
    return ", ".join(
        value if isinstance(value, str) else f"{header_of(key)} {shown(value, kind_of(key))}"
        for key, value in values
    )


def first(sentences: Iterable[str], what: str) -> Iterator[str]:
    """The first sentences of a summary, and how many more `what` there are."""
    lines = list(sentences)
    yield from lines[:TOLD]
    if len(lines) > TOLD:
        yield f"And {len(lines) - TOLD} more {what}, in the table."


def assumptions(documents: Sequence[Document]) -> list[str]:
    """The assumptions of the rows, each once a row."""
    lines: list[str] = []
    for row in (row for d in documents for row in d.rows):
        entry = row.get("assumptions") or ()
        lines += entry.split("; ") if isinstance(entry, str) else entry
    return [str(line) for line in lines]
