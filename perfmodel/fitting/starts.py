"""Times of calls before their kernels start, from a measured-run table, for `runs.yaml`.

Short runs are mostly start time, so no fit is needed. Of the rows of one harness, operator, source
and device, the tenth with the shortest predicted device time is taken:

- start: the median of (measured time − predicted device time) over these rows;
- where the host's work goes on beside the kernel, a short run shows the whole call instead: its
  median measured time. The start is then read where the device takes half to one and a half calls,
  long enough to outlast the host and short enough that its own error is small.

The median over sources and devices (at least two) is the operator's value. Operators grouped under
one name get the median of the group, and all others the median of all. Where even the shortest
tenth is mostly device time, the start cannot be read, and the present value is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.hardware import load
from perfmodel.table.provenance import as_ran
from perfmodel.timing.constants import Constants
from perfmodel.timing.floors import pace
from perfmodel.timing.machine import machine
from perfmodel.timing.runs import AMONG, ANY, HARNESSES, Run
from perfmodel.validation.compare import predict_table
from perfmodel.validation.judging import LEFT_OUT

if TYPE_CHECKING:
    import pandas as pd

# The share of rows that are the smallest problems, and the fewest rows of a source and device.
_SMALLEST, _FEWEST = 0.1, 20
# Fewest sources and devices: with one alone, a start cannot be told from a slow kernel.
_FEWEST_GROUPS = 2
# Largest share of the measured time that may be device time, for reading a start and a whole call.
_MOST_FOR_START, _MOST_FOR_CALL = 0.75, 0.5
# Device times, as multiples of a whole call, from which a start is read if the host works in
# parallel.
_BESIDE = (0.5, 1.5)
# Seconds used as markers of operators; longer than any kernel.
_MARK = 1e4
_MICRO = 1e-6
# Words in the source of a value that was read from rows.
_READ = "smallest problems timed so"


@dataclass(frozen=True)
class _Start:
    """Start and call times of one operator under a harness, read from rows."""

    start: float
    """Seconds before the kernel."""
    call: float | None
    """Host seconds of a whole call, if the host works in parallel with the kernel; else None."""
    rows: int
    """Number of rows that were used."""


def called(rows: pd.DataFrame, constants: Constants) -> np.ndarray:
    """The operator whose start each row has; empty for rows with several calls or none.

    It is found with the model itself: each operator's start is set to a different power of two of
    `_MARK` seconds, and the predicted time shows which was added.
    """
    names = sorted({name for run in HARNESSES.values() for name in run.starts} - {ANY})
    names = [*dict.fromkeys([*names, *AMONG]), ANY]
    marks = {name: _MARK * 2.0**i for i, name in enumerate(names)}
    probe = constants.with_runs(
        {
            name: replace(
                run, starts=marks, calls={}, calls_as=None, by_clock=(), library_start=False
            )
            for name, run in constants.runs.items()
        }
    )
    seconds = predict_table(rows, constants=probe)["predicted_us"].to_numpy(float) * _MICRO
    place = np.log2(np.where(seconds > 0, seconds, np.nan) / _MARK)
    operators = np.full(len(rows), "", dtype=object)
    for i, name in enumerate(names):
        operators[np.abs(place - i) < 0.01] = name
    return operators


def measured_runs(rows: pd.DataFrame, constants: Constants) -> dict[str, Run]:
    """The harnesses, with starts and calls read from the rows of a table."""
    return runs_of(shown(rows, constants), constants)


def shown(rows: pd.DataFrame, constants: Constants) -> pd.DataFrame:
    """The rows that are usable for reading starts, with `device_s`, `taken_s` and `called`.

    Rows flagged as mostly launch are included. Rows of kernels whose library has its own start
    (`callers` in names.yaml) are not, since they do not show the harness's start.
    """
    runs = rows[~rows["flag"].isin(set(LEFT_OUT) - {"timer_floor"})]
    base, full = (
        predict_table(runs, constants=constants.with_runs(_without_starts(constants, library)))
        for library in (False, True)
    )
    device = base["predicted_us"].to_numpy(float)
    mask = device == full["predicted_us"].to_numpy(float)
    runs = runs.assign(harness=as_ran(runs)["harness"])
    timings = runs.assign(device_s=device * _MICRO, taken_s=runs["measured_us"] * _MICRO)
    part = timings.assign(called=called(runs, constants))[mask]
    frame: pd.DataFrame = part[part["called"] != ""]
    return frame


def runs_of(seen: pd.DataFrame, constants: Constants, *, forget: bool = False) -> dict[str, Run]:
    """The constants' harnesses with starts and calls read from the rows of `shown`.

    With `forget`, values that were read from rows for single operators are dropped first; such an
    operator then has its group's value.
    """
    runs = {}
    for name, run in constants.runs.items():
        rows = seen[seen["harness"] == name]
        values = {
            str(operator): start
            for operator, group in rows.groupby("called", sort=True)
            if (start := _start(group, run, str(operator), constants)) is not None
        }
        runs[name] = _run_with(_unread_run(run) if forget else run, values)
    return runs


def _unread_run(run: Run) -> Run:
    """A harness without the values that were read from rows for single operators."""

    def remainder(part: str, values: Mapping[str, float]) -> dict[str, float]:
        names = {op for op in values if _READ in run.sources.get(f"{part}.{op}", "")}
        return {op: value for op, value in values.items() if op == ANY or op not in names}

    return replace(run, starts=remainder("starts", run.starts), calls=remainder("calls", run.calls))


def _without_starts(constants: Constants, library_start: bool) -> dict[str, Run]:
    """Harnesses without starts, except those of libraries if `library_start`."""
    none = {ANY: 0.0}
    return {
        name: replace(run, starts=none, calls={}, calls_as=None, library_start=library_start)
        for name, run in constants.runs.items()
    }


def _start(rows: pd.DataFrame, run: Run, operator: str, constants: Constants) -> _Start | None:
    """Start and call of one operator from its rows; None if they cannot be read.

    The values are normalised as `floors.pace` expects: to the constants' clock and a host of its
    year.
    """
    has_calls = bool(run.calls)
    starts, calls, number = [], [], 0
    for (_, device_name), group in rows.groupby(["source", "device"], sort=True):
        device, total = group["device_s"].to_numpy(), group["taken_s"].to_numpy()
        mask = device <= np.quantile(device, _SMALLEST)
        share = np.median(device[mask]) / np.median(total[mask])
        if len(group) < _FEWEST or share > (_MOST_FOR_CALL if has_calls else _MOST_FOR_START):
            continue
        number += int(mask.sum())
        slower = pace(run, operator, machine(load(str(device_name))), constants)
        launch = total - device
        if has_calls:
            call = float(np.median(total[mask]))
            calls.append(call / slower)
            mask = (device >= _BESIDE[0] * call) & (device <= _BESIDE[1] * call)
            launch = np.minimum(launch, call)
        if mask.any():
            starts.append(max(float(np.median(launch[mask])) / slower, 0.0))
    if len(starts) < _FEWEST_GROUPS:
        return None
    return _Start(float(np.median(starts)), float(np.median(calls)) if has_calls else None, number)


def _run_with(run: Run, readings: Mapping[str, _Start]) -> Run:
    """A harness with the values read, the group values from them, and other values unchanged."""
    if not readings:
        return run
    starts, calls, sources = dict(run.starts), dict(run.calls), dict(run.sources)
    for name, values in _operator_values(readings):
        starts[name] = _round(np.median([value.start for value in values]))
        rows = sum(value.rows for value in values)
        source = f"the {rows} {_READ}" + (
            "" if name in readings else f", by the median of {len(values)} operators"
        )
        sources[f"starts.{name}"] = source
        durations = [value.call for value in values if value.call is not None]
        if durations:
            calls[name] = _round(np.median(durations))
            sources[f"calls.{name}"] = source
    return replace(run, starts=starts, calls=calls, sources=sources)


def _operator_values(readings: Mapping[str, _Start]) -> Iterator[tuple[str, list[_Start]]]:
    """Each operator with values, each group of operators, and `any`, with the values behind it."""
    for name in dict.fromkeys([ANY, *AMONG.values(), *readings]):
        if name in readings:
            yield name, [readings[name]]
        elif name == ANY:
            yield name, list(readings.values())
        else:
            members = [value for operator, value in readings.items() if _belongs(operator, name)]
            if members:
                yield name, members


def _belongs(operator: str, name: str) -> bool:
    """Whether an operator belongs to the group of a name."""
    while operator in AMONG and operator != name:
        operator = AMONG[operator]
    return operator == name


def _round(seconds: float) -> float:
    """Seconds rounded to three digits, the accuracy of a start."""
    return float(f"{seconds:.3g}")
