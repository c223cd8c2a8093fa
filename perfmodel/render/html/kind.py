"""What a kind of results is on the page: how it is recognised, what names a row, what is drawn.

    KINDS["requests"] = Kind("Requests", ("wait_us", "model"), ("model",), best="-wait_us")

The name is the member of a JSON document that has the rows. A CSV is of the kind with most of its
keys in the header. The summary has the document's own title and notes, then the best row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from perfmodel.columns import Column, Row
from perfmodel.quantities import ends_of, header_of, kind_of, shown
from perfmodel.render.bars import Bar, stacked
from perfmodel.render.dots import Dots
from perfmodel.render.html.columns import columns, telling
from perfmodel.render.html.sections import Section, Views, table
from perfmodel.units import binary

_DRAWN = 16  # number of rows with bars
_BARE = ("network", "device", "system", "engine", "library", "collective", "tool", "operator",
         "problem", "module", "file", "schedule")  # fmt: skip


@dataclass(frozen=True)
class Document:
    """The rows of one kind in one file."""

    source: str
    """The file's name."""
    rows: Sequence[Row]
    """Rows as in JSON or CSV."""
    head: Row = field(default_factory=dict)
    """Members of a JSON document besides the rows."""


def flat(row: Row, prefix: str = "") -> dict[str, Any]:
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


def own_rows(document: Document) -> Iterator[dict[str, Any]]:
    """The rows of a document, flat; the members of a plan are the row's."""
    for row in document.rows:
        yield {key.removeprefix("plan_"): value for key, value in flat(row).items()}


def described(row: Row, keys: Iterable[str], headers: Mapping[str, str] | None = None) -> str:
    """A row by its values under some keys: names as they are, others with their heading, and the
    ends of their range."""
    parts = []
    for key in keys:
        value, kind = row.get(key), kind_of(key)
        if value in (None, ""):
            continue
        ends = [shown(row[end], kind) for end in ends_of(key) if row.get(end) is not None]
        span = f" ({' to '.join(ends)})" if len(ends) == 2 else ""
        words = "" if key in _BARE else f"{(headers or {}).get(key) or header_of(key)} "
        parts.append(f"{words}{shown(value, kind)}{span}")
    return ", ".join(parts)


@dataclass(frozen=True)
class Stacks:
    """Stacked bars: each row is one, or rows are pieces of one."""

    title: str
    """What is shown."""
    lengths: str
    """Pattern of the keys of a row's lengths, whose group names the piece; of rows that are pieces,
    the key of their length."""
    kind: str = "time"
    """Kind of the lengths, as in `quantities`."""
    pieces: Sequence[str] = ()
    """Keys that name a row's piece, each a view of the bars; empty: a row is a bar."""
    limit: str = ""
    """Key of the upper limit of a bar."""
    range: str = ""
    """Key of the value whose range is that of the bar."""
    noted: Sequence[str] = ()
    """Keys of the note behind a bar; by default whether it is within its limit."""
    labelled: Sequence[str] = ()
    """Keys of a bar's label; by default the name of its row."""
    whole: str = "all"
    """Name of the piece that is the whole."""
    ordered: bool = False
    """Whether pieces are in the order of their keys; else the longest over all bars come first."""
    largest: str = ""
    """Key: only rows with some of it have bars, and those with most come first."""

    def views(self, groups: Sequence[Sequence[Row]], label: str) -> Views:
        """The bars of the rows by their pieces, those of a file together; empty without a
        length."""
        views = {}
        for key in self.pieces or ("",):
            bars = [bar for rows in groups for bar in self._view(rows, key, label)]
            views[key] = [bar for bar in bars if bar.total > 0]
        count = max(map(len, views.values()))
        title = f"{self.title} (the first {_DRAWN} of {count})" if count > _DRAWN else self.title
        limit = header_of(self.limit) if self.limit else "limit"
        return {
            key: stacked(title, self.kind, bars[:_DRAWN], limit, ranked=not self.ordered)
            for key, bars in views.items() if bars
        }  # fmt: skip

    def _view(self, rows: Sequence[Row], key: str, label: str) -> Iterator[Bar]:
        """The bars of a file, with pieces by `key`."""
        if self.largest:
            rows = sorted((row for row in rows if (row.get(self.largest) or 0) > 0),
                          key=lambda row: -row[self.largest])  # fmt: skip
        if not key:
            pattern = re.compile(f"{self.lengths}$")
            names = {each: match for each in (rows[0] if rows else ())
                     if (match := pattern.match(each))}  # fmt: skip
            for row in rows:
                lengths = {match[1].replace("_", " "): row.get(each) or 0.0
                           for each, match in names.items()}  # fmt: skip
                name = described(row, self.labelled) or str(row[label])
                yield self._bar(name, lengths, row)
            return
        bars: dict[str, list[Row]] = {}
        for row in rows:
            if row.get(self.lengths) is not None:
                bars.setdefault(str(row[label]), []).append(row)
        for name, mine in bars.items():
            pieces: dict[str, float] = {}
            for row in mine:
                if row.get(key) not in (None, "") and not self.is_whole(row):
                    pieces[str(row[key])] = pieces.get(str(row[key]), 0.0) + row[self.lengths]
            yield self._bar(name, pieces, next(filter(self.is_whole, mine), {}))

    def is_whole(self, row: Row) -> bool:
        """Whether a row is the whole of its bar."""
        return any(row.get(key) == self.whole for key in self.pieces)

    def _bar(self, name: str, lengths: Mapping[str, float], row: Row) -> Bar:
        limit = row.get(self.limit)
        low, high = map(row.get, ends_of(self.range)) if self.range else (None, None)
        note = described(row, self.noted)
        if self.limit and not self.noted:
            room = None if limit is None else limit - sum(lengths.values())
            note = (
                "capacity not in the spec" if room is None
                else f"fits, {binary(room)} free" if room >= 0
                else f"does not fit by {binary(-room)}"
            )  # fmt: skip
        return Bar(name, lengths, low, high, limit, note)


@dataclass(frozen=True)
class Kind:
    """One kind of results."""

    title: str
    """Heading of its section."""
    keys: Sequence[str]
    """Keys that every row has."""
    named: Sequence[str] = ()
    """Keys of the name of a row: those that tell rows apart."""
    label: str = "_name"
    """Key of that name, which is a column unless an underline begins it."""
    best: str = ""
    """Key of which the best row has the most, or behind a minus the least; the summary tells it."""
    charts: Sequence[Dots | Stacks] = ()
    """Its charts. Filters and colours of dots are those keys of theirs that distinguish rows."""
    first: Sequence[str] = ()
    """Keys of the first columns."""
    left_out: str = ""
    """Pattern of keys without a column."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headings that do not follow from the key."""
    head: Sequence[str] = ()
    """Members of the document that are columns of its rows; `file` is its name."""
    rows: Callable[[Document], Iterable[dict[str, Any]]] = own_rows
    """Makes flat rows of a document."""
    sentences: Callable[[Sequence[Row]], Iterable[str]] | None = None
    """Makes the sentences of the rows, where the number and the best of them say too little."""
    cases: Callable[[Document], Iterable[dict[str, Any]]] | None = None
    """Makes the cases for rooflines and for the table of cases: predictions as in the JSON Schema,
    of which some lack terms, and perhaps with a `label`."""
    needed: Sequence[str] = ()
    """Keys under which every row has a value."""
    effects: bool = False
    """Whether its rows are what-ifs of cases, which are cases too where no other kind has them."""
    sectioned: bool = True
    """Whether its rows have a section, beside their cases."""
    late: bool = False
    """Whether its section follows the cases."""
    id: str = ""
    """Anchor of its section; numbered if empty."""

    def sections(self, documents: Sequence[Document]) -> Iterator[Section]:
        """The section of all documents, and one of what was left out."""
        groups = [list(self._rows(document)) for document in documents]
        every = [row for rows in groups for row in rows]
        for row, name in zip(every, self._names(every), strict=True):
            row[self.label] = name
        dots = [self._dots(chart, every) for i, chart in enumerate(self.charts)
                if isinstance(chart, Dots) and (not i or _varies(every, chart.x))]  # fmt: skip
        many = self.best and len(every) > _DRAWN
        ranked = [sorted(every, key=self._order)] if many else groups
        stacks = [chart.views(groups if chart.pieces else ranked, self.label)
                  for chart in self.charts if isinstance(chart, Stacks)]  # fmt: skip
        yield Section(
            self.title,
            every,
            self._columns(every),
            [*dots, *filter(None, stacks)],
            list(dict.fromkeys([*told(documents), *self._sentences(every)])),
            _assumptions(every, documents),
            self.id,
        )
        refused = [row for document in documents for row in document.head.get("refused") or ()]
        if refused:
            yield table(f"{self.title}: left out", refused)
        near = list(_near(documents))
        if near:
            yield table(f"{self.title}: nearest published runs", near)

    def _rows(self, document: Document) -> Iterator[dict[str, Any]]:
        head = {**document.head, "file": document.source}
        for row in self.rows(document):
            yield {**{key: head[key] for key in self.head if key in head}, **row}

    def _names(self, rows: Sequence[Row]) -> list[str]:
        """The name of each row: the values that tell rows apart, or else the first ones."""
        keys = telling(rows, self.named)
        known = [key for key in self.named if any(row.get(key) not in (None, "") for row in rows)]
        return [described(row, keys or known[:2], self.headers) for row in rows]

    def _columns(self, rows: Sequence[Row]) -> list[Column]:
        """Columns of the rows; values of a comparison are of the rows' own unit."""
        units = {row.get("unit", "") for row in rows}
        unit = units.pop() if len(units) == 1 else "number"
        first = (self.label, *self.first)
        left_out = "|".join(filter(None, ["^(_|nearest)", self.left_out]))
        compared = ("measured", "predicted", "low", "high") if unit else ()
        return [
            replace(each, show=unit) if each.key in compared else each
            for each in columns(rows, first, left_out, self.headers)
        ]

    def _dots(self, dots: Dots, rows: Sequence[Row]) -> Dots:
        """A chart of the rows, whose colours and filters tell them apart."""
        ranges = {y: ends_of(y) for y in dots.y if any(ends_of(y)[0] in row for row in rows)}
        keys = telling(rows, dots.filters)
        name = [key for key in dots.name if any(key in row for row in rows)]
        return replace(dots, filters=keys, by=keys, ranges=ranges, name=name)

    def _sentences(self, rows: Sequence[Row]) -> Iterator[str]:
        """How many rows there are and fit, and which is the best; of rows that are pieces only the
        whole ones count."""
        if self.sentences is not None:
            yield from self.sentences(rows)
            return
        stacks = [chart for chart in self.charts if isinstance(chart, Stacks)]
        units = [row for row in rows if any(chart.is_whole(row) for chart in stacks)] or rows
        words = f"{self.title}: {len(units):,} {'row' if len(units) == 1 else 'rows'}"
        fitting = sum(row.get("fits") is not False for row in units)
        words += f", {fitting:,} fit" if fitting < len(units) else ""
        key = self.best.removeprefix("-")
        scored = [row for row in units if key and row.get(key) is not None]
        if scored:
            best = min(scored, key=self._order)
            word = "least" if self.best.startswith("-") else "most"
            name = f" of {best[self.label]}" if best[self.label] else ""
            words += f"; the {word} {described(best, [key], self.headers)}{name}"
        yield f"{words}."

    def _order(self, row: Row) -> tuple[bool, float]:
        """Where a row is among others by what is best; what does not fit is last."""
        value = row.get(self.best.removeprefix("-")) or 0.0
        return row.get("fits") is False, value if self.best.startswith("-") else -value


KINDS: dict[str, Kind] = {}
"""Kinds by name."""


def of_header(header: Iterable[str]) -> str | None:
    """The kind of a table by its header; None if it matches none."""
    names = set(header)
    matches = [name for name, kind in KINDS.items() if kind.keys and names.issuperset(kind.keys)]
    return max(matches, key=lambda name: len(KINDS[name].keys), default=None)


def _varies(rows: Sequence[Row], keys: Iterable[str]) -> bool:
    """Whether rows differ in one of the keys."""
    return any(len({row.get(key) for row in rows}) > 1 for key in keys)


def _near(documents: Sequence[Document]) -> Iterator[Row]:
    """The nearest published runs of rows, each metric once."""
    runs = [row["nearest"] for document in documents for row in document.rows if row.get("nearest")]
    near = {
        run["run"]: run for run in sorted(runs, key=lambda run: -run["distance"])
    }  # the nearest is last and stays
    for run in near.values():
        for metric, value in run["measured"].items():
            kind = kind_of(metric)
            texts = (shown(each, kind) for each in (value, run["predicted"][metric]))
            yield {
                "published run": run["run"], "metric": header_of(metric),
                **dict(zip(("published", "predicted there"), texts, strict=True)),
                "distance": run["distance"], "source": run["source"], "url": run["url"],
            }  # fmt: skip


def told(documents: Sequence[Document]) -> Iterator[str]:
    """Titles and notes of documents. Assumptions have a section of their own."""
    for head in (document.head for document in documents):
        notes = head.get("notes")
        lines = [head.get("title"), *(notes if isinstance(notes, list | tuple) else ())]
        yield from (f"{line}." for line in lines if line and not str(line).startswith("assumed: "))


def _assumptions(rows: Sequence[Row], documents: Sequence[Document]) -> list[str]:
    """The assumptions of the rows, each once a row."""
    lines: list[str] = []
    for row in (row for document in documents for row in document.rows):
        entry = row.get("assumed_of_plan") or row.get("assumed") or row.get("assumptions") or ()
        lines += entry.split("; ") if isinstance(entry, str) else entry
    return [str(line) for line in lines]
