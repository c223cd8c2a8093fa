"""The contents of a page: predicted cases, and documents of every other kind of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from perfmodel.errors import ProblemError, TableError
from perfmodel.render.html.kind import Document, Kind
from perfmodel.render.html.kinds import KINDS, RUNS
from perfmodel.render.html.sections import Section, table

Made = TypeVar("Made")

MOST = 5000
"""Limit on cases, and on rows of a kind, in one page; more would take over a second to draw."""


@dataclass
class Results:
    """Collects what the readers find, in the order of the files."""

    cases: list[dict[str, Any]] = field(default_factory=list)
    """Predictions as in the JSON Schema, with `source` and perhaps `label`; some lack terms."""
    documents: dict[str, list[Document]] = field(default_factory=dict)
    """Documents of other kinds, by the name of the kind."""
    tables: list[Section] = field(default_factory=list)
    """Tables of no known kind."""
    sentences: list[str] = field(default_factory=list)
    """Sentences of readers for the summary."""
    effects: dict[str, dict[str, list[float | None]]] = field(default_factory=dict)
    """What-ifs by a case's key: hardware number → microseconds with it halved and doubled."""
    quantities: dict[str, str] = field(default_factory=dict)
    """Hardware numbers of the what-ifs, with their names."""

    def add_case(self, row: Mapping[str, Any], source: str, label: str = "") -> None:
        """Add a prediction. Raises `ProblemError` beyond `MOST`."""
        _room(len(self.cases) + 1, "predictions")
        self.cases.append({**row, "source": source, "label": label})

    def add_document(self, kind: str, document: Document) -> None:
        """Add a document of a kind. Raises `ProblemError` beyond `MOST` rows of that kind."""
        documents = self.documents.setdefault(kind, [])
        _room(sum(len(d.rows) for d in (*documents, document)), f"rows of {kind}")
        documents.append(document)

    def add_table(self, title: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add a table whose columns are the plain members of its rows."""
        self.tables.append(table(title, list(rows)))

    @property
    def runs(self) -> list[Mapping[str, Any]]:
        """Measured runs of operators, as `compare --output` writes them."""
        return [row for d in self.documents.get(RUNS, ()) for row in d.rows]

    @property
    def devices(self) -> list[str]:
        """Devices of cases and rows, each once."""
        documents = (d for group in self.documents.values() for d in group)
        rows = (*self.cases, *(row for d in documents for row in d.rows))
        return list(dict.fromkeys(str(row["device"]) for row in rows if row.get("device")))

    def sections(self, *, late: bool) -> list[Section]:
        """Sections of the kinds; with `late` those after the cases, else those before.

        Raises `TableError` for malformed rows.
        """
        return [
            section
            for name, documents in self.documents.items()
            if KINDS[name].late == late
            for section in _output(name, documents, KINDS[name].sections)
        ]

    def derived(self) -> list[dict[str, Any]]:
        """Cases that kinds make of their rows. Raises what `sections` raises."""
        return [
            case
            for name, documents in self.documents.items()
            for case in _output(name, documents, partial(_cases, KINDS[name]))
        ]


def _cases(kind: Kind, documents: Sequence[Document]) -> Iterator[dict[str, Any]]:
    if kind.cases is not None:
        for document in documents:
            yield from kind.cases(document)


def _output(
    name: str,
    documents: Sequence[Document],
    make: Callable[[Sequence[Document]], Iterable[Made]],
) -> list[Made]:
    """The result of `make` on the documents of a kind; errors name kind and files."""
    try:
        return list(make(documents))
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        fault = f"no {error}" if isinstance(error, KeyError) else str(error)
        sources = ", ".join(dict.fromkeys(d.source for d in documents))
        raise TableError(f"{sources}: {name} are not as perfmodel writes them: {fault}") from None


def case_key(device: Any, problem: Mapping[str, Any]) -> str:
    """The key that a case and its what-ifs share: the device and the problem.

    Raises `TypeError` for a device that is not a name.
    """
    if not isinstance(device, str):
        raise TypeError(f"a device is {device!r}; write its name")
    sizes = ", ".join(f"{name}={problem[name]}" for name in sorted(problem) if name != "op")
    return f"{device}: {sizes}"


def _room(count: int, what: str) -> None:
    if count > MOST:
        raise ProblemError(f"a page holds {MOST:,} {what} at most; choose some of them")
