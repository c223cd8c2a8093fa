"""Kinds of results by name: how files of them are known, and what sections their rows become.

    @kind("requests", keys=("ttft_ms",))
    def requests(documents): yield Section("Requests", rows, columns(rows))

The name is the member of a JSON document that has the rows. A CSV has no member; it is of the kind
that has the most of its keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perfmodel.render.html.sections import Section


@dataclass(frozen=True)
class Document:
    """What one file has of a kind."""

    source: str
    """The file's name."""
    rows: Sequence[Mapping[str, Any]]
    """Its rows, as they stand in JSON or in CSV."""
    head: Mapping[str, Any] = field(default_factory=dict)
    """What a JSON document has beside its rows."""


Sections = Callable[[Sequence[Document]], Iterable[Section]]
Cases = Callable[[Sequence[Document]], Iterable[dict[str, Any]]]


@dataclass(frozen=True)
class Kind:
    """One kind of results."""

    keys: frozenset[str]
    """Keys that each of its rows has."""
    sections: Sections
    """What the page shows of the documents of one page."""
    cases: Cases | None = None
    """What stands on rooflines and in the table of cases."""
    late: bool = False
    """Whether its sections stand behind the cases."""


KINDS: dict[str, Kind] = {}
"""Kinds by name."""


def kind(
    name: str, keys: Iterable[str], *, cases: Cases | None = None, late: bool = False
) -> Callable[[Sections], Sections]:
    """Register what makes sections of the documents of a kind."""

    def register(function: Sections) -> Sections:
        KINDS[name] = Kind(frozenset(keys), function, cases, late)
        return function

    return register


def of_header(header: Iterable[str]) -> str | None:
    """The kind of a table by its header; None where it is of none."""
    there = set(header)
    found = [name for name, one in KINDS.items() if one.keys and one.keys <= there]
    return max(found, key=lambda name: len(KINDS[name].keys), default=None)


def flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A row without members of members: `known.engine` is `known_engine`, as in CSV.

    Lists are left out.
    """
    found: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}_")
        elif not isinstance(value, list | tuple):
            found[prefix + key] = value
    return found


def assumptions(documents: Sequence[Document]) -> list[str]:
    """What the rows say was assumed, once a row."""
    said: list[str] = []
    for row in (row for one in documents for row in one.rows):
        given = row.get("assumptions") or ()
        said += given.split("; ") if isinstance(given, str) else given
    return [str(each) for each in said]
