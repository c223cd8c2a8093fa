"""Matches a table's headings to a layout's columns, and finds the measured column."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from perfmodel.errors import TableError, UnknownName
from perfmodel.evidence.tables.headings import Measure, measure, without_unit
from perfmodel.evidence.tables.vocabulary import Unit, normal, vocabulary
from perfmodel.plaintext import quoted

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
        timed = [self.measured, *self.wide, *self.spread.values(), self.check]
        return [one.heading for one in (*self.columns.values(), *timed) if one is not None]


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
    said = {_heading(theirs, headings): ours for theirs, ours in mapping.items()}
    found: dict[str, Found] = {}
    times: list[Timed] = []
    for heading, ours in said.items():
        if ours == measured:
            times.append(Timed(heading, _as_time(heading, ours)))
        elif ours in columns:
            found[ours] = Found(heading, without_unit(heading)[1])
        elif (meant := measure(ours)) is not None:
            times.append(Timed(heading, replace(meant, other="")))
        else:
            raise UnknownName("column to map to", ours, (*columns, measured, "tflops", "gb/s"))
    if len(times) > 1:  # one for each implementation, named by its heading
        times = [replace(t, measure=replace(t.measure, other=t.heading)) for t in times]
    left = [heading for heading in headings if heading not in said]
    if measured in left:
        times.append(Timed(measured, _as_time(measured, measured)))
        left.remove(measured)
    for column, one in _named(left, columns, tells, denies).items():
        found.setdefault(column, one)
    taken = {one.heading for one in found.values()}
    others = [heading for heading in left if heading not in taken]
    times += [Timed(heading, m) for heading in others if (m := measure(heading)) is not None]
    return _measured(Match(found), times, measured, [*said, measured])


def _heading(theirs: str, headings: Sequence[str]) -> str:
    """The heading that a user means; raises `UnknownName`."""
    by = {normal(heading): heading for heading in headings}
    heading = theirs if theirs in headings else by.get(normal(theirs))
    if heading is None:
        raise UnknownName("column of the table", theirs, headings)
    return heading


def _as_time(heading: str, ours: str) -> Measure:
    """The measurement of a heading that the user mapped to the time; without a unit, in ours."""
    unit = without_unit(heading)[1]
    if unit is None or unit.kind != "time":
        unit = without_unit(ours)[1] if heading == ours else None
    own = measure(heading)
    return Measure("time", unit if unit is not None else own.unit if own else None, "", "")


def _named(
    headings: Sequence[str],
    columns: Collection[str],
    tells: Callable[[str, str], bool],
    denies: Callable[[str, str], bool],
) -> dict[str, Found]:
    """Columns by name: our own names first, then the nearest of the known spellings."""
    found: dict[str, Found] = {}
    ours = {normal(column): column for column in columns}
    exact = {heading: heading for heading in headings if heading in columns}
    near = {h: ours.get(normal(h)) or ours.get(normal(_last(h))) for h in headings}
    for heading, column in (*exact.items(), *near.items()):
        if column is not None and column not in found and not denies(heading, column):
            found[column] = Found(heading)
    taken = {one.heading for one in found.values()}
    left = [heading for heading in headings if heading not in taken]
    ranked = sorted(_meanings(left, columns, tells), key=lambda item: item[0])
    for _, column, one in ranked:
        if column in found or one.heading in taken or denies(one.heading, column):
            continue
        found[column] = one
        taken.add(one.heading)
    return found


def _last(heading: str) -> str:
    """The last name of a path: batch_size of shape.batch_size."""
    return heading.rpartition(".")[2] or heading


def _meanings(
    headings: Iterable[str], columns: Collection[str], tells: Callable[[str, str], bool]
) -> Iterable[tuple[tuple[bool, int], str, Found]]:
    known = vocabulary()
    for heading in headings:
        plain, unit = without_unit(heading)
        spellings: list[tuple[str, Unit | None]] = [(normal(heading), None)]
        if _last(heading) != heading:
            spellings.append((normal(_last(heading)), None))
        if unit is not None and unit.kind == "bytes":
            spellings.append((plain, unit))
        for spelling, named in spellings:
            for meaning in known.meanings.get(spelling, ()):
                if meaning.column not in columns:
                    continue
                if named is not None and meaning.column not in known.in_bytes:
                    continue
                if meaning.shared and not tells(heading, meaning.column):
                    continue
                # A shared spelling that the cells confirm ranks first.
                order = (not meaning.shared, meaning.rank)
                yield order, meaning.column, Found(heading, named)


def _measured(
    match: Match, times: Sequence[Timed], measured: str, certain: Collection[str]
) -> Match:
    """The match with its measured column: the user's, else a time, else a rate."""
    plain = [one for one in times if not one.measure.other]
    ranked = [
        one
        for kind in _KINDS
        for statistic in _STATISTICS
        for one in plain
        if one.measure.kind == kind and one.measure.statistic == statistic
    ]
    sure = [one for one in ranked if one.heading in certain]
    best = next(iter([*sure, *ranked]), None)
    if best is None:
        return replace(match, wide=_wide(times))
    spread = {
        one.measure.statistic: one
        for one in plain
        if one is not best and one.measure.kind == "time" and one.measure.statistic
    }
    rates = [one for one in plain if one.measure.kind == "flops" and one is not best]
    check = rates[0] if rates and best.measure.kind == "time" else None
    return replace(match, measured=best, spread=spread, check=check)


def _wide(times: Sequence[Timed]) -> tuple[Timed, ...]:
    """Measured columns of the first one's kind."""
    usual = [one for one in times if one.measure.statistic in ("", "median", "mean")]
    for kind in _KINDS:
        found = tuple(one for one in usual if one.measure.kind == kind)
        if found:
            return found
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
    said = [_also(column, measured) for column in columns]
    has = ", ".join(quoted(heading, 40) for heading in headings[:_SHOWN])
    more = f" and {len(headings) - _SHOWN} more" if len(headings) > _SHOWN else ""
    return TableError(
        f"{where}: no column for {'; '.join(said)}; it has {has}{more}{besides}. Name yours by "
        f"--map theirs=ours, say what holds for all rows by --set column=value, or see: {example}"
    )


def _also(column: str, measured: str) -> str:
    """A column's name with some of its other spellings."""
    known = vocabulary().spellings(column) if len(column) > 1 else []
    if column == measured and not known:
        known = ["time_ms", "latency_us", "TFLOPS"]
    return f"{column} (or {', '.join(known)} ...)" if known else column
