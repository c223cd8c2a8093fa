"""The contents of a page: documents of every kind of results, and the predicted cases in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from perfmodel.errors import ProblemError, TableError
from perfmodel.render.html.kind import Document, Kind, told
from perfmodel.render.html.kinds import KINDS, RUNS
from perfmodel.render.html.sections import Section, table

Made = TypeVar("Made")

_MEMBERS = ("problem", "terms_us", "flops", "bytes", "levels", "tile", "known")
"""Members of a case that have members of their own."""

MOST = 5000
"""Limit on cases, and on rows of a kind, in one page; more would take over a second to draw."""


@dataclass
class Results:
    """Collects what files hold, in their order."""

    documents: dict[str, list[Document]] = field(default_factory=dict)
    """Documents, by the name of their kind."""
    tables: list[Section] = field(default_factory=list)
    """Tables of no known kind."""
    sentences: list[str] = field(default_factory=list)
    """Sentences for the summary, of documents without a kind."""
    asked: list[Mapping[str, Any]] = field(default_factory=list)
    """What-ifs of cases that were asked for the page."""

    def add_document(self, kind: str, document: Document) -> None:
        """Add a document of a kind. Raises `ProblemError` beyond `MOST` rows of that kind."""
        documents = self.documents.setdefault(kind, [])
        if sum(len(d.rows) for d in (*documents, document)) > MOST:
            raise ProblemError(f"a page holds {MOST:,} rows of {kind} at most; choose some of them")
        documents.append(document)

    def add_table(self, title: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add a table whose columns are the plain members of its rows."""
        self.tables.append(table(title, list(rows)))

    @property
    def runs(self) -> list[Mapping[str, Any]]:
        """Measured runs of operators, as `compare --output` writes them."""
        return [row for d in self.documents.get(RUNS, ()) for row in d.rows]

    @property
    def cases(self) -> list[dict[str, Any]]:
        """The cases of all kinds; those of what-ifs where no other kind has them.

        Raises `TableError` for malformed rows.
        """
        cases: list[dict[str, Any]] = []
        for name in sorted(self.documents, key=lambda name: KINDS[name].effects):
            mine = _output(name, self.documents[name], partial(_cases, KINDS[name]))
            known = {key_of(case) for case in cases} if KINDS[name].effects else None
            for case in mine:
                if known is None or key_of(case) not in known:
                    cases.append(case)
                    known = known and known | {key_of(case)}
        return cases

    @property
    def told(self) -> list[str]:
        """Titles and notes of documents that have no section of their own."""
        groups = (group for n, group in self.documents.items() if not KINDS[n].sectioned)
        return list(dict.fromkeys(line for group in groups for line in told(group)))

    @property
    def effects(self) -> dict[str, dict[str, list[float | None]]]:
        """What-ifs by a case's key: hardware number → microseconds with it halved and doubled."""
        effects: dict[str, dict[str, list[float | None]]] = {}
        for row in self._changes:
            effects.setdefault(row["key"], {})[row["quantity"]] = [
                row["halved_us"], row["after_us"]
            ]  # fmt: skip
        return effects

    @property
    def quantities(self) -> dict[str, str]:
        """Hardware numbers of the what-ifs, with their names."""
        return {row["quantity"]: row["what_if"].removesuffix(" x2") for row in self._changes}

    @property
    def _changes(self) -> list[Mapping[str, Any]]:
        """What-ifs of documents, then those that were asked, with the keys of their cases."""
        groups = [(n, group) for n, group in self.documents.items() if KINDS[n].effects]
        rows = [row for name, group in groups for row in _output(name, group, _what_ifs)]
        return [*rows, *_changed(self.asked)]

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
            if KINDS[name].late == late and KINDS[name].sectioned
            for section in _output(name, documents, KINDS[name].sections)
        ]


def _cases(kind: Kind, documents: Sequence[Document]) -> Iterator[dict[str, Any]]:
    """The cases of a kind. Raises `TypeError` for members that are not as a prediction has them."""
    for document in documents if kind.cases is not None else ():
        for case in kind.cases(document) if kind.cases is not None else ():
            for name in _MEMBERS:
                if not isinstance(case.get(name) or {}, Mapping):
                    raise TypeError(f"{name}: no named numbers")
            lines = case.get("assumptions") or []
            if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
                raise TypeError("assumptions: no list of texts")
            yield {**case, "key": key_of(case), "source": document.source}


def _what_ifs(documents: Sequence[Document]) -> Iterator[Mapping[str, Any]]:
    return _changed(row for document in documents for row in document.rows)


def _changed(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Rows in which a hardware number changes, with the keys of their cases."""
    return ({**r, "key": key_of(r)} for r in rows if r.get("quantity") is not None)


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


def key_of(row: Mapping[str, Any]) -> str:
    """The key that a case and its what-ifs share: the device and the problem.

    Raises `TypeError` for a device that is not a name.
    """
    device, problem = row["device"], row["problem"]
    if not isinstance(device, str):
        raise TypeError(f"a device is {device!r}; write its name")
    sizes = ", ".join(f"{name}={problem[name]}" for name in sorted(problem) if name != "op")
    return f"{device}: {sizes}"
