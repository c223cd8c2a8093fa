"""Nsight Systems' reports, as `nsys stats --report NAME --format csv` writes them.

    cuda_gpu_trace      a row a launch or copy
    cuda_gpu_kern_sum   a row a kernel, over all its launches
    nvtx_kern_sum       a row a kernel inside a range, over all runs of the range

They hold times and no counters: their MB columns are copies and shared memory, never memory
traffic. The columns follow NVIDIA's Post-Collection Analysis Guide
(docs.nvidia.com/nsight-systems/AnalysisGuide) and public exports of 2022.4 to 2025.6: units stand
in parentheses (`--timeunit`), copies have no grid, and "nvtx-name" puts a range before a kernel's
name. Before 2022.4 they were called gputrace, gpukernsum and nvtxkernsum, and some of their times
had no unit: nanoseconds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from perfmodel.cases import is_label
from perfmodel.documents import shown
from perfmodel.errors import TableError
from perfmodel.plaintext import whole_number
from perfmodel.profile.profiletable import Row, Table, number
from perfmodel.profile.timeline import Columns, Instance, Timeline, What

TOOL = "Nsight Systems"
MEDIAN = "median_s"
"""The metric of sums by kernel: the time of one launch, the median where it is reported."""
ADVICE = "Nsight Systems counts no bytes; profile with ncu for them"
_NANO = 1e9
_MOST_LAUNCHES = 10_000_000
"""Launches that the sums of one file may have: a million take 30 MB."""
_SECONDS = {
    "ns": 1e-9, "nsec": 1e-9, "us": 1e-6, "µs": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3,
    "s": 1.0, "sec": 1.0,
}  # fmt: skip
_TIMED = re.compile(r"(.+?) ?\((\w+)\)")
_MEDIAN, _MEAN = ("Med", "Median"), ("Avg", "Average")
_TOTAL, _START, _DURATION = ("Total Time",), ("Start",), ("Duration",)


def is_trace(columns: Sequence[str]) -> bool:
    """cuda_gpu_trace."""
    return {"GrdX", "BlkX", "Name"} <= set(columns) and _column(columns, _DURATION) is not None


def is_ranges(columns: Sequence[str]) -> bool:
    """nvtx_kern_sum."""
    names = {"NVTX Range", "NVTX Inst", "Kern Inst", "Kernel Name"}
    return names <= set(columns) and _column(columns, _TOTAL) is not None


def is_kernels(columns: Sequence[str]) -> bool:
    """cuda_gpu_kern_sum."""
    names = {"Instances", "Name"}
    return names <= set(columns) and _column(columns, _TOTAL, bare=True) is not None


def is_other(columns: Sequence[str]) -> bool:
    """Another report of `nsys stats`: all have a total time or averages with their unit."""
    return any(_column(columns, names) for names in (_TOTAL, ("Total Proj Time",), ("AAvg",)))


def trace(table: Table) -> Timeline:
    """Every launch and copy."""
    starts, durations = (_needed(table, names) for names in (_START, _DURATION))
    columns, devices = Columns(), set()
    for row in table.rows():
        start, duration = (_nanoseconds(row, column) for column in (starts, durations))
        grid, block = (_sizes(row, f"{side}X", f"{side}Y", f"{side}Z") for side in ("Grd", "Blk"))
        fault = ""
        if start is None or duration is None or not row["Name"]:
            cells = ", ".join(shown(row[name]) for name in (starts[0], durations[0], "Name"))
            fault = f"{row.place}: start, duration and name of a launch are {cells}"
        launch = What(row["Name"], None, grid, block, is_copy=not row["GrdX"])
        columns.add(launch, start or 0.0, duration or 0.0, fault=fault)
        devices.add(row.get("Device"))
    devices.discard("")
    device = devices.pop().rpartition(" (")[0] if len(devices) == 1 else ""
    return columns.timeline(TOOL, device=device)


def _nanoseconds(row: Row, column: tuple[str, float]) -> float | None:
    value = number(row[column[0]])
    return None if value is None or value < 0 else value * column[1] * _NANO


def _sizes(row: Row, *names: str) -> tuple[int, ...]:
    numbers = [number(row.get(name)) for name in names]
    return tuple(int(size) for size in numbers if size) if all(numbers) else ()


def kernels(table: Table) -> Timeline:
    """Each kernel as often as it ran, each time for its mean time; `MEDIAN` is its usual time."""
    column, scale = _needed(table, _TOTAL)
    columns, clock = Columns(), 0.0
    medians: list[dict[str, float]] = []
    for row in table.rows():
        launches = row.integer("Instances")
        if len(medians) + launches > _MOST_LAUNCHES:
            raise TableError(
                f"{row.place}: more than {_MOST_LAUNCHES:,} launches; profile a part of the program"
            )
        duration = row.positive(column) * scale * _NANO / launches
        launch = What(
            row["Name"], None, _product(row.get("GridXYZ")), _product(row.get("BlockXYZ"))
        )
        medians += [{MEDIAN: _time(table, row, "Instances")}] * launches
        for _ in range(launches):
            columns.add(launch, clock, duration)
            clock += duration
    return columns.timeline(TOOL, ordered=False, clocked=False, metrics=medians)


def _product(text: str) -> tuple[int, ...]:
    """Extents in one cell: "  132    1    1"."""
    extents = tuple(extent for extent in map(whole_number, text.split()) if extent is not None)
    return extents if len(extents) == len(text.split()) == 3 else ()


def ranges(table: Table) -> Timeline:
    """Ranges named after cases, each with the seconds of one run: the sum over its kernels.

    A kernel that did not run in every run (a first run's preparations) counts by its share of runs.
    """
    groups: dict[str, dict[str, list[Row]]] = {}
    count = 0
    for row in table.rows():
        count += 1
        label = next((part for part in row["NVTX Range"].split(":") if is_label(part)), None)
        if label is not None:
            groups.setdefault(label, {}).setdefault(row["Kernel Name"], []).append(row)
    if not groups:
        raise TableError(
            f"{table.where}: none of {count} rows is of a range named after a case; name ranges by "
            "Case.label()"
        )
    instances = tuple(_range(table, label, rows) for label, rows in groups.items())
    return Columns().timeline(TOOL, instances=instances)


def _range(table: Table, label: str, groups: dict[str, list[Row]]) -> Instance:
    """One range from its kernels' rows; a kernel has a row for each thread that launched it."""
    runs = max(sum(row.integer("NVTX Inst") for row in rows) for rows in groups.values())
    seconds = launches = 0.0
    for rows in groups.values():
        for row in rows:
            count = row.integer("Kern Inst")
            launches += count / runs
            seconds += count / runs * _time(table, row, "Kern Inst")
    return Instance(label, seconds, next(iter(groups)), max(round(launches), 1), runs)


def _time(table: Table, row: Row, count: str) -> float:
    """Seconds of one launch: the median where the report has one, else the mean."""
    for names in (_MEDIAN, _MEAN):
        match = _column(table.columns, names, bare=True)
        if match is not None:
            return row.positive(match[0]) * match[1]
    column, scale = _needed(table, _TOTAL)
    return row.positive(column) * scale / row.integer(count)


def _needed(table: Table, names: Sequence[str]) -> tuple[str, float]:
    """The column of a time, and its unit in seconds; raises `TableError` where there is none."""
    match = _column(table.columns, names, bare=True)
    if match is None:
        raise TableError(f"{table.where}: no column {names[0]!r}; export it again")
    return match


def _column(
    columns: Sequence[str], names: Sequence[str], *, bare: bool = False
) -> tuple[str, float] | None:
    """The column of a time, and its unit in seconds; `bare` ones without a unit too."""
    for column in columns:
        match = _TIMED.fullmatch(column)
        if match and match[1] in names and match[2] in _SECONDS:
            return column, _SECONDS[match[2]]
    return next(((name, _SECONDS["ns"]) for name in names if bare and name in columns), None)
