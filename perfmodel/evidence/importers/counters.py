"""Hardware counters as measured runs: bytes per level and unit utilisation beside the time.

    rows, said = import_counters("report.csv", device="h200-sxm")

The case of a launch comes from a range named after it (`Case.label`, through NVTX, roctx or
record_function), or from a table of cases. The table is matched in the order of launches, or by
kernel name for a file of sums over launches. Launches of one case are added; repetitions of a case
give the median. `traffic_report` compares predicted with counted bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from perfmodel.errors import TableError, UnknownName
from perfmodel.evidence import casefile
from perfmodel.evidence.cases import Case, implementation_of, is_label
from perfmodel.evidence.importers import ncu, profileformats
from perfmodel.evidence.importers.profiles import BYTES, PIPES, Instance, Launch, Profile, Summed
from perfmodel.evidence.profiled.timeline import check_host
from perfmodel.evidence.records import records
from perfmodel.evidence.records.documents import shown
from perfmodel.evidence.replay.traffic import traffic_report
from perfmodel.hardware import load

__all__ = ["COLUMNS", "NCU_METRICS", "import_counters", "traffic_report", "write"]

ADDED = (*BYTES, *PIPES, "kernels", "instances", "reason")
COLUMNS = (*records.COLUMNS, *ADDED)
NCU_METRICS = ncu.METRICS
_NAME = 60  # characters of a kernel's name

Rows = list[dict[str, str]]


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
    for a file of another format, for launches that cannot be matched to cases, and for a file
    without times and bytes.
    """
    files = [paths] if isinstance(paths, str | Path) else list(paths)
    if not files:
        raise TableError("no profile given; name a file")
    place = " + ".join(str(path) for path in files)
    profile = _merge([profileformats.read(path) for path in files], place)
    if profile.on_host:
        with suppress(UnknownName):  # any name may stand in a table
            check_host(place, load(device))
    notes = list(profile.said)
    if profile.instances:
        measurements = _instance_cases(profile, place, notes)
    elif cases is None:
        measurements = _range_cases(profile, place, notes)
    elif profile.kernels:
        measurements = _name_cases(profile, casefile.read(cases), place)
    else:
        measurements = _order_cases(profile, casefile.read(cases), place, str(cases))
    rows = [_row(each, device) for each in measurements]
    _check_values(rows, place)
    if not any(row["hbm_bytes_measured"] for row in rows):
        notes.append(f"{place}: no bytes of memory; {profile.advice}")
    return rows, notes


def _check_values(rows: Rows, place: str) -> None:
    """Raise `TableError` if no row has a time or a counter."""
    if not any(row[name] for row in rows for name in ("measured_us", *BYTES, *PIPES)):
        raise TableError(f"{place}: no time and no counter of any case; profile with metrics")


def _merge(profiles: Sequence[Profile], place: str) -> Profile:
    """Passes of one program as one profile: the same launches, all their metrics."""
    first, *rest = profiles
    if not rest:
        return first
    for p in rest:
        kernels = [launch.kernel for launch in p.launches]
        if not kernels or kernels != [launch.kernel for launch in first.launches]:
            raise TableError(
                f"{place}: not passes of one program: their launches are not the same kernels"
            )
    launches = []
    for passes in zip(*(profile.launches for profile in profiles), strict=True):
        metrics = {name: value for each in reversed(passes) for name, value in each.metrics.items()}
        times = [each.seconds for each in passes if each.seconds is not None]
        seconds = median(times) if times else None
        launches.append(replace(passes[0], seconds=seconds, metrics=metrics))
    notes = tuple(line for profile in profiles for line in profile.said)
    return replace(first, launches=tuple(launches), said=notes)


# ---- Where cases get their names -----------------------------------------------------------------


def _range_cases(profile: Profile, place: str, notes: list[str]) -> list[_Timing]:
    """Launches grouped by the range that they ran in; a range's first kernel starts each run."""
    if profile.kernels:
        raise TableError(
            f"{place}: a sum over kernels names no cases; give --cases FILE with a column "
            "'kernel', or read the whole program by perfmodel profile"
        )
    groups: dict[str, list[Launch]] = {}
    count = 0
    for launch in profile.launches:
        label = _label(launch)
        if label is None:
            count += 1
        else:
            groups.setdefault(label, []).append(launch)
    if not groups:
        raise TableError(
            f"{place}: none of {len(profile.launches)} launches ran in a range named after a case; "
            "name ranges by Case.label(), give --cases FILE, or read the whole program by "
            "perfmodel profile"
        )
    if count:
        notes.append(f"{place}: {count} launches without a case's range left out")
    if any(len(group) > 1 and group[0].kernel in groups for group in groups.values()):
        notes.append(
            f"{place}: kernels are called after their range, so each launch is taken as a run of "
            "its own; give --cases where a case takes several"
        )
    measurements = []
    for label, group in groups.items():
        runs = [_sum(run, profile) for run in _runs(group)]
        name = implementation_of(label) or f"{profile.tool}:{_short_name(group[0].kernel)}"
        measurements.append(_Timing(casefile.case(label, place), name, runs, len(runs)))
    return measurements


def _label(launch: Launch) -> str | None:
    """The case's label among a launch's ranges, which the profiler wraps in other fields."""
    for text in (*launch.ranges, launch.kernel):
        for part in text.replace('"', " ").replace(":", " ").split():
            if is_label(part):
                return part
    return None


def _runs(group: Sequence[Launch]) -> list[list[Launch]]:
    first = group[0].kernel
    runs: list[list[Launch]] = []
    for launch in group:
        if launch.kernel == first or not runs:
            runs.append([])
        runs[-1].append(launch)
    return runs


def _order_cases(
    profile: Profile, entries: Sequence[casefile.Listed], origin: str, cases: str
) -> list[_Timing]:
    """Launches in the order of a table of cases, `kernels` of them each."""
    launches = profile.launches
    total = sum(entry.launches for entry in entries)
    if total != len(launches):
        raise TableError(
            f"{cases}: asks for {total} launches, {origin} has {len(launches)}; "
            "set the column 'kernels' to how many launches each case takes"
        )
    measurements = []
    place = 0
    for entry in entries:
        group = launches[place : place + entry.launches]
        place += entry.launches
        name = entry.implementation or f"{profile.tool}:{_short_name(group[0].kernel)}"
        measurements.append(_Timing(entry.case, name, [_sum(group, profile)], 1))
    return measurements


def _name_cases(profile: Profile, entries: Sequence[casefile.Listed], place: str) -> list[_Timing]:
    """Cases matched by the column `kernel`: the times of one launch of each kernel in it, added."""
    measurements = []
    for entry in entries:
        if not entry.kernel:
            raise TableError(f"{entry.where}: no kernel; a sum over kernels needs its name here")
        kernels = [
            _find(name.strip(), profile.kernels, entry.where) for name in entry.kernel.split(";")
        ]
        run = _Run(sum(kernel.seconds for kernel in kernels), {}, len(kernels))
        title = entry.implementation or f"{profile.tool}:{_short_name(kernels[0].kernel)}"
        repeats = min(kernel.launches for kernel in kernels)
        measurements.append(_Timing(entry.case, title, [run], repeats))
    return measurements


def _find(name: str, kernels: Sequence[Summed], place: str) -> Summed:
    """The one kernel with this name, or the only one whose name contains it."""
    matches = [kernel for kernel in kernels if kernel.kernel == name]
    matches = matches or [kernel for kernel in kernels if name and name in kernel.kernel]
    if len(matches) != 1:
        count = len(matches) or "none"
        raise TableError(
            f"{place}: kernel {shown(name)} fits {count} of {len(kernels)}; name one of them"
        )
    return matches[0]


def _instance_cases(profile: Profile, place: str, notes: list[str]) -> list[_Timing]:
    """Runs of ranges whose names are labels already."""
    groups: dict[str, list[Instance]] = {}
    for instance in profile.instances:
        groups.setdefault(instance.label, []).append(instance)
    measurements = []
    for label, group in groups.items():
        valid = [instance for instance in group if instance.seconds > 0]
        if not valid:
            notes.append(f"{place}: no kernel ran inside {shown(label, 300)}; left out")
            continue
        name = implementation_of(label) or f"{profile.tool}:{_short_name(valid[0].kernel)}"
        runs = [_Run(instance.seconds, {}, instance.launches) for instance in valid]
        repeats = sum(instance.repeats for instance in valid)
        measurements.append(_Timing(casefile.case(label, place), name, runs, repeats))
    if not measurements:
        raise TableError(f"{place}: no range holds a kernel; profile the device as well")
    return measurements


# ---- Rows ----------------------------------------------------------------------------------------


def _sum(group: Sequence[Launch], profile: Profile) -> _Run:
    """The launches of one run added: bytes and times are sums, utilisation is weighted by time."""
    times = [launch.seconds or 0.0 for launch in group]
    counts = [profile.counted(launch.metrics) for launch in group]
    weights = times if sum(times) else [1.0] * len(times)
    values: dict[str, float] = {}
    for name in (*BYTES, *PIPES):
        if all(name in each for each in counts):
            parts = [each[name] for each in counts]
            total = sum(part * weight for part, weight in zip(parts, weights, strict=True))
            values[name] = sum(parts) if name in BYTES else total / sum(weights)
    has_gap = any(launch.seconds is None for launch in group)
    return _Run(0.0 if has_gap else sum(times), values, len(group))


def _short_name(kernel: str) -> str:
    """A kernel's name without its types and arguments."""
    words = kernel.split("<")[0].split("(")[0].split("::")[-1].split()
    return words[-1][:_NAME] if words else "kernel"


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
