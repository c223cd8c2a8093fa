"""Hardware counters as measured runs: bytes per level and unit utilisation beside the time.

    rows, said = import_counters("report.csv", device="h200-sxm")

The case of a launch comes from a range named after it (`Case.label`, through NVTX, roctx or
record_function), or from a table of cases. The table is matched in the order of launches, or by
kernel name for a file of sums over launches. Launches of one case are added; repetitions of a case
give the median.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import median

import numpy as np

from perfmodel import casefile
from perfmodel.cases import Case, implementation_of, is_label
from perfmodel.documents import shown
from perfmodel.errors import TableError, UnknownName
from perfmodel.hardware import load
from perfmodel.profile import formats, ncu, nsys, rocprof, torchtrace
from perfmodel.profile.ncu import BYTES, PIPES
from perfmodel.profile.timeline import Instance, Timeline, What, check_host
from perfmodel.table import records

ADDED = (*BYTES, *PIPES, "kernels", "instances", "reason")
COLUMNS = (*records.COLUMNS, *ADDED)
_NAME = 60  # characters of a kernel's name

Rows = list[dict[str, str]]


@dataclass(frozen=True)
class _Tool:
    """A profiler."""

    name: str
    """What implementations without a name of their own are called after."""
    advice: str
    """What to tell a user whose profile has no bytes."""
    counted: Callable[[Mapping[str, float]], dict[str, float]] = dict
    """Turns a launch's metrics into columns: bytes, percent of a pipe's peak."""


_TOOLS = {
    ncu.TOOL: _Tool("ncu", ncu.ADVICE, ncu.counted),
    nsys.TOOL: _Tool("nsys", nsys.ADVICE),
    rocprof.TOOL: _Tool("rocprof", rocprof.ADVICE, rocprof.counted),
    torchtrace.TOOL: _Tool("profiler", torchtrace.ADVICE),
}


@dataclass(frozen=True)
class _Launch:
    """One launch."""

    what: What
    """Its kernel and ranges."""
    seconds: float
    """Its time; NaN: not measured."""
    values: Mapping[str, float]
    """Its counted columns."""


@dataclass(frozen=True)
class _Run:
    """One run of a case: seconds (0: not measured), counted columns and the number of launches."""

    seconds: float
    values: Mapping[str, float]
    launches: int


@dataclass(frozen=True)
class _Timing:
    """A case, its implementation and its runs; `repeats` is how often it ran."""

    case: Case
    implementation: str
    runs: Sequence[_Run]
    repeats: int


def import_counters(
    paths: str | Path | Sequence[str | Path], *, device: str, cases: str | Path | None = None
) -> tuple[Rows, list[str]]:
    """Rows of the measured-run table, and lines about what was left out.

    Several files are passes of one program with different metrics. Raises `TableError`, one line,
    for a file of another format, for launches that are damaged or cannot be matched to cases, and
    for a file without times and bytes.
    """
    files = [paths] if isinstance(paths, str | Path) else list(paths)
    if not files:
        raise TableError("no profile given; name a file")
    place = " + ".join(str(path) for path in files)
    timeline = _merge([formats.contents(path) for path in files], place)
    if timeline.fault:
        raise TableError(timeline.fault)
    if timeline.on_host and timeline.instances:
        with suppress(UnknownName):  # any name may stand in a table
            check_host(place, load(device))
    notes = list(timeline.notes)
    entries = None if cases is None else casefile.read(cases)
    if timeline.instances or timeline.tool == torchtrace.TOOL:
        measurements = _instance_cases(timeline, place, notes)
    elif not timeline.ordered:
        measurements = _name_cases(timeline, entries, place)
    elif entries is None:
        measurements = _range_cases(timeline, place, notes)
    else:
        measurements = _order_cases(timeline, entries, place, notes, str(cases))
    rows = [_row(each, device) for each in measurements]
    _check_values(rows, place)
    if not any(row["hbm_bytes_measured"] for row in rows):
        notes.append(f"{place}: no bytes of memory; {_TOOLS[timeline.tool].advice}")
    return rows, notes


def _check_values(rows: Rows, place: str) -> None:
    """Raise `TableError` if no row has a time or a counter."""
    if not any(row[name] for row in rows for name in ("measured_us", *BYTES, *PIPES)):
        raise TableError(f"{place}: no time and no counter of any case; profile with metrics")


def _merge(passes: Sequence[Timeline], place: str) -> Timeline:
    """Passes of one program as one profile: the same launches, all their metrics."""
    first, *rest = passes
    if not rest:
        return first
    kernels = [[each.whats[i].kernel for i in each.what] for each in passes]
    if not kernels[0] or any(names != kernels[0] for names in kernels):
        raise TableError(
            f"{place}: not passes of one program: their launches are not the same kernels"
        )
    counters = zip(*(each.metrics or [{}] * len(each.what) for each in passes), strict=True)
    metrics = [
        {name: value for counted in reversed(launch) for name, value in counted.items()}
        for launch in counters
    ]
    durations = np.stack([each.duration for each in passes])
    untimed = np.isnan(durations).all(axis=0)
    return replace(
        first,
        duration=np.where(
            untimed, math.nan, np.nanmedian(np.where(untimed, 0.0, durations), axis=0)
        ),
        metrics=metrics,
        notes=tuple(line for each in passes for line in each.notes),
        fault=next((each.fault for each in passes if each.fault), ""),
    )


def _launches(timeline: Timeline, place: str, notes: list[str]) -> list[_Launch]:
    """Kernels in order with what was counted of them."""
    counted = _TOOLS[timeline.tool].counted
    launches = [
        _Launch(timeline.whats[what], float(duration) * 1e-9, counted(metrics))
        for what, duration, metrics in zip(
            timeline.what,
            timeline.duration,
            timeline.metrics or [{}] * len(timeline.what),
            strict=True,
        )
    ]
    kernels = [launch for launch in launches if not launch.what.is_copy]
    copies = len(launches) - len(kernels)
    if not kernels:
        raise TableError(f"{place}: no kernel among {copies} rows; only copies ran")
    if copies:
        notes.append(f"{place}: {copies} copies and fills of memory left out")
    return kernels


# ---- Where cases get their names -----------------------------------------------------------------


def _range_cases(timeline: Timeline, place: str, notes: list[str]) -> list[_Timing]:
    """Launches grouped by the range that they ran in; a range's first kernel starts each run."""
    launches = _launches(timeline, place, notes)
    groups: dict[str, list[_Launch]] = {}
    count = 0
    for launch in launches:
        label = _label(launch.what)
        if label is None:
            count += 1
        else:
            groups.setdefault(label, []).append(launch)
    if not groups:
        raise TableError(
            f"{place}: none of {len(launches)} launches ran in a range named after a case; "
            "name ranges by Case.label(), give --cases FILE, or read the whole program by "
            "perfmodel profile"
        )
    if count:
        notes.append(f"{place}: {count} launches without a case's range left out")
    if any(len(group) > 1 and group[0].what.kernel in groups for group in groups.values()):
        notes.append(
            f"{place}: kernels are called after their range, so each launch is taken as a run of "
            "its own; give --cases where a case takes several"
        )
    measurements = []
    for label, group in groups.items():
        runs = [_sum(run) for run in _runs(group)]
        name = implementation_of(label) or _named_after(timeline, group[0].what.kernel)
        measurements.append(_Timing(casefile.case(label, place), name, runs, len(runs)))
    return measurements


def _label(launch: What) -> str | None:
    """The case's label among a launch's ranges, which the profiler wraps in other fields."""
    for text in (*launch.ranges, launch.kernel):
        for part in text.replace('"', " ").replace(":", " ").split():
            if is_label(part):
                return part
    return None


def _runs(group: Sequence[_Launch]) -> list[list[_Launch]]:
    runs: list[list[_Launch]] = []
    for launch in group:
        if launch.what.kernel == group[0].what.kernel:
            runs.append([])
        runs[-1].append(launch)
    return runs


def _order_cases(
    timeline: Timeline,
    entries: Sequence[casefile.Listed],
    place: str,
    notes: list[str],
    cases: str,
) -> list[_Timing]:
    """Launches in the order of a table of cases, `kernels` of them each."""
    launches = _launches(timeline, place, notes)
    total = sum(entry.launches for entry in entries)
    if total != len(launches):
        raise TableError(
            f"{cases}: asks for {total} launches, {place} has {len(launches)}; "
            "set the column 'kernels' to how many launches each case takes"
        )
    measurements, queue = [], iter(launches)
    for entry in entries:
        group = list(islice(queue, entry.launches))
        name = entry.implementation or _named_after(timeline, group[0].what.kernel)
        measurements.append(_Timing(entry.case, name, [_sum(group)], 1))
    return measurements


def _name_cases(
    timeline: Timeline, entries: Sequence[casefile.Listed] | None, place: str
) -> list[_Timing]:
    """Cases matched by the column `kernel`: the times of one launch of each kernel in it, added."""
    kernels: dict[str, list[float]] = {}
    for what, metrics in zip(timeline.what, timeline.metrics, strict=True):
        kernels.setdefault(timeline.whats[what].kernel, []).append(metrics[nsys.MEDIAN])
    if any(_label(launch) for launch in timeline.whats):
        raise TableError(
            f"{place}: kernels named after ranges do not say how often a range ran; export "
            "nvtx_kern_sum"
        )
    if entries is None:
        raise TableError(
            f"{place}: a sum over kernels names no cases; give --cases FILE with a column "
            "'kernel', or read the whole program by perfmodel profile"
        )
    measurements = []
    for entry in entries:
        if not entry.kernel:
            raise TableError(f"{entry.where}: no kernel; a sum over kernels needs its name here")
        names = [_find(name.strip(), kernels, entry.where) for name in entry.kernel.split(";")]
        run = _Run(sum(kernels[name][0] for name in names), {}, len(names))
        title = entry.implementation or _named_after(timeline, names[0])
        repeats = min(len(kernels[name]) for name in names)
        measurements.append(_Timing(entry.case, title, [run], repeats))
    return measurements


def _find(name: str, kernels: Iterable[str], place: str) -> str:
    """The one kernel with this name, or the only one whose name contains it."""
    names = list(kernels)
    matches = [kernel for kernel in names if kernel == name]
    matches = matches or [kernel for kernel in names if name and name in kernel]
    if len(matches) != 1:
        count = len(matches) or "none"
        raise TableError(
            f"{place}: kernel {shown(name)} fits {count} of {len(names)}; name one of them"
        )
    return matches[0]


def _instance_cases(timeline: Timeline, place: str, notes: list[str]) -> list[_Timing]:
    """Runs of ranges whose names are labels already."""
    if not timeline.instances:
        raise TableError(
            f"{place}: no range is named after a case; wrap each call in "
            "record_function(case.label()), or read the whole program by perfmodel profile"
        )
    groups: dict[str, list[Instance]] = {}
    for instance in timeline.instances:
        groups.setdefault(instance.label, []).append(instance)
    measurements = []
    for label, group in groups.items():
        valid = [instance for instance in group if instance.seconds > 0]
        if not valid:
            notes.append(f"{place}: no kernel ran inside {shown(label, 300)}; left out")
            continue
        name = implementation_of(label) or _named_after(timeline, valid[0].kernel)
        runs = [_Run(instance.seconds, {}, instance.launches) for instance in valid]
        repeats = sum(instance.repeats for instance in valid)
        measurements.append(_Timing(casefile.case(label, place), name, runs, repeats))
    if not measurements:
        raise TableError(f"{place}: no range holds a kernel; profile the device as well")
    return measurements


# ---- Rows ----------------------------------------------------------------------------------------


def _sum(group: Sequence[_Launch]) -> _Run:
    """The launches of one run added: bytes and times are sums, utilisation is weighted by time."""
    times = [0.0 if math.isnan(launch.seconds) else launch.seconds for launch in group]
    weights = times if sum(times) else [1.0] * len(times)
    values: dict[str, float] = {}
    for name in (*BYTES, *PIPES):
        if all(name in launch.values for launch in group):
            parts = [launch.values[name] for launch in group]
            total = sum(part * weight for part, weight in zip(parts, weights, strict=True))
            values[name] = sum(parts) if name in BYTES else total / sum(weights)
    has_gap = any(math.isnan(launch.seconds) for launch in group)
    return _Run(0.0 if has_gap else sum(times), values, len(group))


def _named_after(timeline: Timeline, kernel: str) -> str:
    """An implementation called after its kernel, without types and arguments: ncu:matmul."""
    words = kernel.split("<")[0].split("(")[0].split("::")[-1].split()
    return f"{_TOOLS[timeline.tool].name}:{words[-1][:_NAME] if words else 'kernel'}"


def _row(measured: _Timing, device: str) -> dict[str, str]:
    seconds = median(run.seconds for run in measured.runs)
    is_timed = 0 < seconds < math.inf
    row = dict.fromkeys(COLUMNS, "") | measured.case.columns()
    row |= {
        "source": "perfmodel counters import",
        "device": device,
        "implementation": measured.implementation,
        "harness": "profiler",
        "measured_us": f"{seconds * 1e6:.6g}" if is_timed else "",
        "flag": "" if is_timed else "failed",
        "reason": "" if is_timed else "no time in the profile",
        "kernels": str(measured.runs[0].launches),
        "instances": str(measured.repeats),
    }
    for name in (*BYTES, *PIPES):
        values = [run.values[name] for run in measured.runs if name in run.values]
        if values:
            row[name] = f"{median(values):.6g}"
    return row


def write(rows: Iterable[Mapping[str, str]], path: str | Path) -> None:
    """Write rows as a table; .csv, .csv.gz or .parquet."""
    import pandas as pd

    records.write_table(pd.DataFrame(list(rows), columns=list(COLUMNS)), path)
