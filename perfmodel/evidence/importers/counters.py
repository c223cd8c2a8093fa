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
class _Measured:
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
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    if not listed:
        raise TableError("no profile given; name a file")
    where = " + ".join(str(path) for path in listed)
    profile = _merged([profileformats.read(path) for path in listed], where)
    if profile.on_host:
        with suppress(UnknownName):  # any name may stand in a table
            check_host(where, load(device))
    said = list(profile.said)
    if profile.instances:
        found = _from_instances(profile, where, said)
    elif cases is None:
        found = _from_ranges(profile, where, said)
    elif profile.kernels:
        found = _from_names(profile, casefile.read(cases), where)
    else:
        found = _from_order(profile, casefile.read(cases), where, str(cases))
    rows = [_row(each, device) for each in found]
    _check_told(rows, where)
    if not any(row["hbm_bytes_measured"] for row in rows):
        said.append(f"{where}: no bytes of memory; {profile.advice}")
    return rows, said


def _check_told(rows: Rows, where: str) -> None:
    """Raise `TableError` if no row has a time or a counter."""
    if not any(row[name] for row in rows for name in ("measured_us", *BYTES, *PIPES)):
        raise TableError(f"{where}: no time and no counter of any case; profile with metrics")


def _merged(profiles: Sequence[Profile], where: str) -> Profile:
    """Passes of one program as one profile: the same launches, all their metrics."""
    first, *others = profiles
    if not others:
        return first
    for other in others:
        kernels = [launch.kernel for launch in other.launches]
        if not kernels or kernels != [launch.kernel for launch in first.launches]:
            raise TableError(
                f"{where}: not passes of one program: their launches are not the same kernels"
            )
    launches = []
    for passes in zip(*(profile.launches for profile in profiles), strict=True):
        metrics = {name: value for each in reversed(passes) for name, value in each.metrics.items()}
        times = [each.seconds for each in passes if each.seconds is not None]
        seconds = median(times) if times else None
        launches.append(replace(passes[0], seconds=seconds, metrics=metrics))
    said = tuple(line for profile in profiles for line in profile.said)
    return replace(first, launches=tuple(launches), said=said)


# ---- Where cases get their names -----------------------------------------------------------------


def _from_ranges(profile: Profile, where: str, said: list[str]) -> list[_Measured]:
    """Launches grouped by the range that they ran in; a range's first kernel starts each run."""
    if profile.kernels:
        raise TableError(
            f"{where}: a sum over kernels names no cases; give --cases FILE with a column "
            "'kernel', or read the whole program by perfmodel profile"
        )
    groups: dict[str, list[Launch]] = {}
    unnamed = 0
    for launch in profile.launches:
        label = _label(launch)
        if label is None:
            unnamed += 1
        else:
            groups.setdefault(label, []).append(launch)
    if not groups:
        raise TableError(
            f"{where}: none of {len(profile.launches)} launches ran in a range named after a case; "
            "name ranges by Case.label(), give --cases FILE, or read the whole program by "
            "perfmodel profile"
        )
    if unnamed:
        said.append(f"{where}: {unnamed} launches without a case's range left out")
    if any(len(group) > 1 and group[0].kernel in groups for group in groups.values()):
        said.append(
            f"{where}: kernels are called after their range, so each launch is taken as a run of "
            "its own; give --cases where a case takes several"
        )
    found = []
    for label, group in groups.items():
        runs = [_sum(run, profile) for run in _runs(group)]
        ran = implementation_of(label) or f"{profile.tool}:{_short(group[0].kernel)}"
        found.append(_Measured(casefile.case(label, where), ran, runs, len(runs)))
    return found


def _label(launch: Launch) -> str | None:
    """The case's label among a launch's ranges, which the profiler wraps in other fields."""
    for text in (*launch.ranges, launch.kernel):
        for part in text.replace('"', " ").replace(":", " ").split():
            if is_label(part):
                return part
    return None


def _runs(group: Sequence[Launch]) -> list[list[Launch]]:
    first = group[0].kernel
    found: list[list[Launch]] = []
    for launch in group:
        if launch.kernel == first or not found:
            found.append([])
        found[-1].append(launch)
    return found


def _from_order(
    profile: Profile, listed: Sequence[casefile.Listed], where: str, cases: str
) -> list[_Measured]:
    """Launches in the order of a table of cases, `kernels` of them each."""
    launches = profile.launches
    asked = sum(each.launches for each in listed)
    if asked != len(launches):
        raise TableError(
            f"{cases}: asks for {asked} launches, {where} has {len(launches)}; "
            "set the column 'kernels' to how many launches each case takes"
        )
    found = []
    place = 0
    for each in listed:
        group = launches[place : place + each.launches]
        place += each.launches
        ran = each.implementation or f"{profile.tool}:{_short(group[0].kernel)}"
        found.append(_Measured(each.case, ran, [_sum(group, profile)], 1))
    return found


def _from_names(profile: Profile, listed: Sequence[casefile.Listed], where: str) -> list[_Measured]:
    """Cases matched by the column `kernel`: the times of one launch of each kernel in it, added."""
    found = []
    for each in listed:
        if not each.kernel:
            raise TableError(f"{each.where}: no kernel; a sum over kernels needs its name here")
        kernels = [
            _named(name.strip(), profile.kernels, each.where) for name in each.kernel.split(";")
        ]
        run = _Run(sum(kernel.seconds for kernel in kernels), {}, len(kernels))
        ran = each.implementation or f"{profile.tool}:{_short(kernels[0].kernel)}"
        repeats = min(kernel.launches for kernel in kernels)
        found.append(_Measured(each.case, ran, [run], repeats))
    return found


def _named(name: str, kernels: Sequence[Summed], where: str) -> Summed:
    """The one kernel with this name, or the only one whose name contains it."""
    fitting = [kernel for kernel in kernels if kernel.kernel == name]
    fitting = fitting or [kernel for kernel in kernels if name and name in kernel.kernel]
    if len(fitting) != 1:
        count = len(fitting) or "none"
        raise TableError(
            f"{where}: kernel {shown(name)} fits {count} of {len(kernels)}; name one of them"
        )
    return fitting[0]


def _from_instances(profile: Profile, where: str, said: list[str]) -> list[_Measured]:
    """Runs of ranges whose names are labels already."""
    groups: dict[str, list[Instance]] = {}
    for each in profile.instances:
        groups.setdefault(each.label, []).append(each)
    found = []
    for label, group in groups.items():
        timed = [each for each in group if each.seconds > 0]
        if not timed:
            said.append(f"{where}: no kernel ran inside {shown(label, 300)}; left out")
            continue
        ran = implementation_of(label) or f"{profile.tool}:{_short(timed[0].kernel)}"
        runs = [_Run(each.seconds, {}, each.launches) for each in timed]
        repeats = sum(each.repeats for each in timed)
        found.append(_Measured(casefile.case(label, where), ran, runs, repeats))
    if not found:
        raise TableError(f"{where}: no range holds a kernel; profile the device as well")
    return found


# ---- Rows ----------------------------------------------------------------------------------------


def _sum(group: Sequence[Launch], profile: Profile) -> _Run:
    """The launches of one run added: bytes and times are sums, utilisation is weighted by time."""
    times = [launch.seconds or 0.0 for launch in group]
    counted = [profile.counted(launch.metrics) for launch in group]
    weights = times if sum(times) else [1.0] * len(times)
    values: dict[str, float] = {}
    for name in (*BYTES, *PIPES):
        if all(name in each for each in counted):
            parts = [each[name] for each in counted]
            weighted = sum(part * weight for part, weight in zip(parts, weights, strict=True))
            values[name] = sum(parts) if name in BYTES else weighted / sum(weights)
    missing = any(launch.seconds is None for launch in group)
    return _Run(0.0 if missing else sum(times), values, len(group))


def _short(kernel: str) -> str:
    """A kernel's name without its types and arguments."""
    words = kernel.split("<")[0].split("(")[0].split("::")[-1].split()
    return words[-1][:_NAME] if words else "kernel"


def _row(measured: _Measured, device: str) -> dict[str, str]:
    seconds = median(run.seconds for run in measured.runs)
    timed = 0 < seconds < math.inf
    row = dict.fromkeys(COLUMNS, "") | measured.case.columns()
    row |= {
        "source": "perfmodel counters import",
        "device": device,
        "implementation": measured.implementation,
        "harness": "profiler",
        "measured_us": f"{seconds * 1e6:.6g}" if timed else "",
        "flag": "" if timed else "failed",
        "reason": "" if timed else "no time in the profile",
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
