"""Reads the measurement: a time in any unit, or a rate converted to a time by the row's work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.errors import TableError
from perfmodel.plaintext import quoted
from perfmodel.table import cells
from perfmodel.table.draft import READING, Draft
from perfmodel.table.matching import Timed
from perfmodel.table.numerals import number, numbers
from perfmodel.table.vocabulary import Unit, normal, vocabulary

if TYPE_CHECKING:
    import pandas as pd

NONE = "nothing was measured"
"""Result of `problem` for a table without any measurement."""
_UNIT_COLUMNS = ("timeunit", "unit", "units")
"""Columns that name the unit of each row: Google Benchmark's time_unit."""


def problem(draft: Draft, unit: str) -> str:
    """Why the measurements of a table cannot be read; empty where they can."""
    layout = draft.layout
    if layout.unit is None:
        return "" if layout.measured in draft.frame else NONE
    if draft.measured is None:
        return NONE
    col = draft.measured
    text, row_unit = draft.unit_of(col.heading)
    if text and (row_unit is None or row_unit.kind != col.measure.kind):
        return (
            f"column {col.heading!r} is in {quoted(text, 20)} by the row of units, which is no "
            f"unit of {_KIND[col.measure.kind]}; mend that row or export the table again"
        )
    if col.measure.kind == "time" and not unit and _unit(draft) is None and _units(draft) is None:
        names = ", ".join(vocabulary().times())
        return f"column {col.heading!r} is a time without a unit; say --unit {names}"
    return ""


def read(draft: Draft, unit: str, flops: str) -> None:
    """Put the measurement of every row into its column; an invalid one is a fault of the row."""
    layout = draft.layout
    if layout.unit is None:
        values, bad = numbers(draft.frame[layout.measured], draft.comma)
        _check(draft, layout.measured, layout.measured, values.to_numpy(np.float64), bad)
        draft.frame = draft.frame.assign(**{layout.measured: values})
        return
    _, col = _units_of(draft)
    name = layout.measured + READING
    if col.measure.kind == "time":
        readings, bad = _times(draft, name, unit)
    else:
        readings, bad = _rate_times(draft, name, flops)
    _check(draft, layout.measured, name, readings, bad)
    _spread(draft, unit)
    order = [layout.measured if column == name else column for column in draft.frame.columns]
    draft.frame = draft.frame.drop(columns=name).assign(**{layout.measured: readings})[order]


def _units_of(draft: Draft) -> tuple[Unit, Timed]:
    """The layout's unit of time and the measured heading, after `problem` found none missing."""
    assert draft.layout.unit is not None
    assert draft.measured is not None
    return draft.layout.unit, draft.measured


def _check(draft: Draft, column: str, name: str, values: np.ndarray, bad: np.ndarray) -> None:
    """Record faults of rows with an invalid measurement; a failed case may have none."""
    valid = draft.layout.sound(values)
    if "flag" in draft.frame:
        is_failed = (cells.text(draft.frame["flag"]) == "failed").to_numpy(bool)
        valid |= np.isnan(values) & is_failed & ~bad
    texts = cells.text(draft.frame[name])
    heading = column if draft.measured is None else draft.measured.heading
    for row in np.flatnonzero(~valid).tolist():
        cell = texts.iloc[row]
        text = quoted(cell, 40) if cell else "empty"
        rule = "a number" if bad[row] else draft.layout.wanted
        draft.fault(row, f"{heading} is {text}, not {rule}")


# ---- Times ---------------------------------------------------------------------------------------


def _times(draft: Draft, name: str, unit: str) -> tuple[np.ndarray, np.ndarray]:
    """Times in the layout's unit; a cell may have its own unit."""
    ours, _ = _units_of(draft)
    column_unit = _unit(draft)
    theirs = vocabulary().time(unit) if unit else column_unit
    factors: Any = 1.0
    if theirs is not None:
        factors = theirs.over(ours)
    elif (units := _units(draft)) is not None:
        factors = units
    values, bad = numbers(draft.frame[name], draft.comma)
    times = values.to_numpy(np.float64) * factors
    for row in np.flatnonzero(bad).tolist():
        pair = _with_unit(str(draft.frame[name].iloc[row]), draft.comma)
        if pair is not None:
            times[row], bad[row] = pair[0] * pair[1].over(ours), False
    _note_unit(draft, theirs, column_unit, unit)
    return times, bad


def _note_unit(draft: Draft, theirs: Unit | None, column_unit: Unit | None, unit: str) -> None:
    layout, (_, col) = draft.layout, _units_of(draft)
    if unit and column_unit is not None and column_unit.name != unit:
        draft.notes.append(f"{col.heading} is taken in {unit}, as --unit says")
    elif col.heading != layout.measured:
        source = theirs.name if theirs is not None else "the unit of each row"
        draft.notes.append(f"read {col.heading} as {layout.measured}, from {source}")


def _unit(draft: Draft) -> Unit | None:
    """The unit of the measured column, from its heading or the row of units."""
    _, col = _units_of(draft)
    return col.measure.unit or draft.unit_of(col.heading)[1]


def _units(draft: Draft) -> np.ndarray | None:
    """Each row's factor to our unit, from a column of units; None if there is none."""
    ours, _ = _units_of(draft)
    for name in draft.frame.columns:
        if normal(str(name)) not in _UNIT_COLUMNS:
            continue
        texts = cells.text(draft.frame[name])
        units = {word: vocabulary().units.get(word.lower()) for word in texts.unique()}
        if any(unit is not None and unit.kind == "time" for unit in units.values()):
            factors = {
                word: unit.over(ours) if unit is not None and unit.kind == "time" else np.nan
                for word, unit in units.items()
            }
            return texts.map(factors).to_numpy(np.float64)
    return None


def _with_unit(cell: str, comma: bool) -> tuple[float, Unit] | None:
    """Number and unit of a cell such as "1.2 ms"; None for any other."""
    text = cell.strip()
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzµ\u03bcABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = vocabulary().units.get(text[len(digits) :].lower().replace("\u03bc", "µ"))
    value = number(digits, comma)
    return (value, unit) if unit is not None and unit.kind == "time" and value else None


def _spread(draft: Draft, unit: str) -> None:
    """Other quantiles of the same samples, in columns of their own: min_us, p20_us, std_us ..."""
    ours, _ = _units_of(draft)
    shared = vocabulary().time(unit) if unit else _unit(draft)
    columns: dict[str, Any] = {}
    for statistic, timed in draft.matched.spread.items():
        column = f"{statistic}_{ours.name}"
        theirs = timed.measure.unit or draft.unit_of(timed.heading)[1] or shared
        if theirs is None or (column in draft.frame and column != timed.heading):
            continue
        values, _ = numbers(draft.frame[timed.heading], draft.comma)
        columns[column] = values.to_numpy(np.float64) * theirs.over(ours)
    draft.frame = draft.frame.assign(**columns)


# ---- Rates ---------------------------------------------------------------------------------------

_KIND = {"time": "time", "flops": "FLOP/s", "bandwidth": "B/s"}
_COUNTED = {
    "bandwidth": ": each tensor is moved once",
    "causal": ": a causal mask leaves half of the operations (--flops full: all are counted)",
    "full": ": all operations of a causal square are counted",
}


def _rate_times(draft: Draft, name: str, flops: str) -> tuple[np.ndarray, np.ndarray]:
    """Times of the rows from measured rates."""
    ours, col = _units_of(draft)
    unit = _unit(draft)
    assert unit is not None  # a rate always has a unit
    values, bad = numbers(draft.frame[name], draft.comma)
    rates = values.to_numpy(np.float64) * unit.factor
    rates = np.where(rates > 0, rates, np.nan)
    seconds = draft.layout.seconds(draft.frame, col.measure.kind, rates, flops)
    if len(seconds) and np.isnan(seconds).all() and not np.isnan(rates).all():
        raise TableError(
            f"{draft.sheet.where}: column {col.heading!r} is a rate, and what a row "
            f"{'computes' if col.measure.kind == 'flops' else 'moves'} is not known from its other "
            "columns; give a column of times"
        )
    suffix = _COUNTED["bandwidth"] if col.measure.kind == "bandwidth" else ""
    if col.measure.kind == "flops" and "causal" in draft.frame:
        suffix = _COUNTED[flops]
    draft.notes.append(f"read {col.heading} as {draft.layout.measured}, from {unit.name}{suffix}")
    unknown = np.isnan(seconds) & ~np.isnan(rates)
    for row in np.flatnonzero(unknown).tolist():
        draft.fault(row, f"{col.heading} is a rate of an operation that is not known")
    return seconds / ours.factor, bad


def positive_rates(column: pd.Series[Any], comma: bool, factor: float) -> np.ndarray:
    """Rates per second of a column; invalid ones are missing."""
    values, _ = numbers(column, comma)
    rates = values.to_numpy(np.float64) * factor
    return np.where(rates > 0, rates, np.nan)
