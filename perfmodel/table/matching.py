"""Matches a table's headings to a layout's columns, and finds the measured column."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from perfmodel.errors import TableError, UnknownName
from perfmodel.plaintext import quoted
from perfmodel.table.headings import Measure, measure, without_unit
from perfmodel.table.vocabulary import Unit, normal, vocabulary

_STATISTICS = ("median", "", "mean", "min")
"""Statistics of times, preferred first, if a table has several times."""
_KINDS = ("time", "flops", "bandwidth")
_SHOWN = 20  # headings in a message


@dataclass(frozen=True)
class Found:
    """A heading matched to a column."""

    heading: str
    """The heading."""
    unit: Unit | None = None
    """The unit that it names."""


@dataclass(frozen=True)
class Timed:
    """A heading of a measurement."""

    heading: str
    """The heading."""
    measure: Measure
    """The measurement that it names."""


@dataclass(frozen=True)
class Match:
    """A table's headings matched to a layout's columns."""

    columns: Mapping[str, Found] = field(default_factory=dict)
    """Headings by column."""
    measured: Timed | None = None
    """The measured column; None if there is none, or one for each implementation (`wide`)."""
    wide: tuple[Timed, ...] = ()
    """Measured columns of several implementations or directions."""
    spread: Mapping[str, Timed] = field(default_factory=dict)
    """Other quantiles of the same samples: min, max, std, p20 ..."""
    check: Timed | None = None
    """A rate beside the time, which shows how operations were counted."""

    def headings(self) -> list[str]:
        """The headings that are read."""
        measures = [self.measured, *self.wide, *self.spread.values(), self.check]
        return [e.heading for e in (*self.columns.values(), *measures) if e is not None]


def match(
    headings: Sequence[str],
    columns: Collection[str],
    measured: str,
    mapping: Mapping[str, str],
    tells: Callable[[str, str], bool],
    denies: Callable[[str, str], bool] = lambda heading, column: False,
) -> Match:
    """Match headings to `columns`, of which `measured` is the measurement.

    `mapping` has the user's headings by column. For a heading that several columns may have,
    `tells(heading, column)` is whether its cells show that it is this column, and `denies` whether
    they show that it is not. Raises `UnknownName` for a mapping with an unknown heading or column.
    """
    aliases = {_heading(theirs, headings): ours for theirs, ours in mapping.items()}
    matches: dict[str, Found] = {}
    times: list[Timed] = []
    for heading, ours in aliases.items():
        if ours == measured:
            times.append(Timed(heading, _time_measure(heading, ours)))
        elif ours in columns:
            matches[ours] = Found(heading, without_unit(heading)[1])
        elif (metric := measure(ours)) is not None:
            times.append(Timed(heading, replace(metric, other="")))
        else:
            raise UnknownName("column to map to", ours, (*columns, measured, "tflops", "gb/s"))
    if len(times) > 1:  # one for each implementation, named by its heading
        times = [replace(t, measure=replace(t.measure, other=t.heading)) for t in times]
    rest = [heading for heading in headings if heading not in aliases]
    if measured in rest:
        times.append(Timed(measured, _time_measure(measured, measured)))
        rest.remove(measured)
    for column, entry in _matches(rest, columns, tells, denies).items():
        matches.setdefault(column, entry)
    sources = {entry.heading for entry in matches.values()}
    free = [heading for heading in rest if heading not in sources]
    times += [Timed(heading, m) for heading in free if (m := measure(heading)) is not None]
    return _timed_match(Match(matches), times, measured, [*aliases, measured])


def _heading(theirs: str, headings: Sequence[str]) -> str:
    """The heading that a user means; raises `UnknownName`."""
    by_name = {normal(heading): heading for heading in headings}
    heading = theirs if theirs in headings else by_name.get(normal(theirs))
    if heading is None:
        raise UnknownName("column of the table", theirs, headings)
    return heading


def _time_measure(heading: str, ours: str) -> Measure:
    """The measurement of a heading that the user mapped to the time; without a unit, in ours."""
    unit = without_unit(heading)[1]
    if unit is None or unit.kind != "time":
        unit = without_unit(ours)[1] if heading == ours else None
    base = measure(heading)
    return Measure("time", unit if unit is not None else base.unit if base else None, "", "")


def _matches(
    headings: Sequence[str],
    columns: Collection[str],
    tells: Callable[[str, str], bool],
    denies: Callable[[str, str], bool],
) -> dict[str, Found]:
    """Columns by name: our own names first, then the nearest of the known spellings."""
    matches: dict[str, Found] = {}
    ours = {normal(column): column for column in columns}
    exact = {heading: heading for heading in headings if heading in columns}
    similar = {h: ours.get(normal(h)) or ours.get(normal(_last_name(h))) for h in headings}
    for heading, column in (*exact.items(), *similar.items()):
        if column is not None and column not in matches and not denies(heading, column):
            matches[column] = Found(heading)
    sources = {entry.heading for entry in matches.values()}
    rest = [heading for heading in headings if heading not in sources]
    candidates = sorted(_meanings(rest, columns, tells), key=lambda item: item[0])
    for _, column, entry in candidates:
        if column in matches or entry.heading in sources or denies(entry.heading, column):
            continue
        matches[column] = entry
        sources.add(entry.heading)
    return matches


def _last_name(heading: str) -> str:
    """The last name of a path: batch_size of shape.batch_size."""
    return heading.rpartition(".")[2] or heading


def _meanings(
    headings: Iterable[str], columns: Collection[str], tells: Callable[[str, str], bool]
) -> Iterable[tuple[tuple[bool, int], str, Found]]:
    terms = vocabulary()
    for heading in headings:
        name, unit = without_unit(heading)
        spellings: list[tuple[str, Unit | None]] = [(normal(heading), None)]
        if _last_name(heading) != heading:
            spellings.append((normal(_last_name(heading)), None))
        if unit is not None and unit.kind == "bytes":
            spellings.append((name, unit))
        for spelling, byte_unit in spellings:
            for meaning in terms.meanings.get(spelling, ()):
                if meaning.column not in columns:
                    continue
                if byte_unit is not None and meaning.column not in terms.in_bytes:
                    continue
                if meaning.shared and not tells(heading, meaning.column):
                    continue
                # A shared spelling that the cells confirm ranks first.
                order = (not meaning.shared, meaning.rank)
                yield order, meaning.column, Found(heading, byte_unit)


def _timed_match(
    match: Match, times: Sequence[Timed], measured: str, certain: Collection[str]
) -> Match:
    """The match with its measured column: the user's, else a time, else a rate."""
    candidates = [t for t in times if not t.measure.other]
    order = [
        t
        for kind in _KINDS
        for statistic in _STATISTICS
        for t in candidates
        if t.measure.kind == kind and t.measure.statistic == statistic
    ]
    sure = [t for t in order if t.heading in certain]
    best = next(iter([*sure, *order]), None)
    if best is None:
        return replace(match, wide=_wide_columns(times))
    spread = {
        t.measure.statistic: t
        for t in candidates
        if t is not best and t.measure.kind == "time" and t.measure.statistic
    }
    rates = [t for t in candidates if t.measure.kind == "flops" and t is not best]
    check = rates[0] if rates and best.measure.kind == "time" else None
    return replace(match, measured=best, spread=spread, check=check)


def _wide_columns(times: Sequence[Timed]) -> tuple[Timed, ...]:
    """Measured columns of the first one's kind."""
    candidates = [t for t in times if t.measure.statistic in ("", "median", "mean")]
    for kind in _KINDS:
        group = tuple(t for t in candidates if t.measure.kind == kind)
        if group:
            return group
    return ()


def missing(
    where: str,
    columns: Sequence[str],
    measured: str,
    headings: Sequence[str],
    example: str,
    besides: str = "",
) -> TableError:
    """One message with all missing columns and what to do.

    `besides` is text about another problem, `example` an example for such a table.
    """
    texts = [_spelling_hint(column, measured) for column in columns]
    names = ", ".join(quoted(heading, 40) for heading in headings[:_SHOWN])
    rest = f" and {len(headings) - _SHOWN} more" if len(headings) > _SHOWN else ""
    return TableError(
        f"{where}: no column for {'; '.join(texts)}; it has {names}{rest}{besides}. Name yours by "
        f"--map theirs=ours, say what holds for all rows by --set column=value, or see: {example}"
    )


def _spelling_hint(column: str, measured: str) -> str:
    """A column's name with some of its other spellings."""
    spellings = vocabulary().spellings(column) if len(column) > 1 else []
    if column == measured and not spellings:
        spellings = ["time_ms", "latency_us", "TFLOPS"]
    return f"{column} (or {', '.join(spellings)} ...)" if spellings else column
