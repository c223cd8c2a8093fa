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

from perfmodel.errors import TableError
from perfmodel.evidence.cases import is_label
from perfmodel.evidence.importers.profiles import Instance, Launch, Profile, Row, Summed, Table

ADVICE = "Nsight Systems counts no bytes; profile with ncu for them"
_SECONDS = {
    "ns": 1e-9, "nsec": 1e-9, "us": 1e-6, "µs": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3,
    "s": 1.0, "sec": 1.0,
}  # fmt: skip
_TIMED = re.compile(r"(.+?) ?\((\w+)\)")
_MEDIAN, _MEAN = ("Med", "Median"), ("Avg", "Average")
TOTAL, START, DURATION = ("Total Time",), ("Start",), ("Duration",)


def is_trace(columns: Sequence[str]) -> bool:
    """cuda_gpu_trace."""
    return {"GrdX", "BlkX", "Name"} <= set(columns) and _column(columns, DURATION) is not None


def is_ranges(columns: Sequence[str]) -> bool:
    """nvtx_kern_sum."""
    names = {"NVTX Range", "NVTX Inst", "Kern Inst", "Kernel Name"}
    return names <= set(columns) and _column(columns, TOTAL) is not None


def is_kernels(columns: Sequence[str]) -> bool:
    """cuda_gpu_kern_sum."""
    names = {"Instances", "Name"}
    return names <= set(columns) and _column(columns, TOTAL, bare=True) is not None


def is_other(columns: Sequence[str]) -> bool:
    """Another report of `nsys stats`: all have a total time or averages with their unit."""
    return any(_column(columns, names) for names in (TOTAL, ("Total Proj Time",), ("AAvg",)))


def trace(table: Table) -> Profile:
    """Kernel launches in order, without copies and fills of memory."""
    column, scale = needed(table, DURATION)
    kernels = [row for row in table.rows if row["GrdX"]]
    if not kernels:
        raise TableError(f"{table.where}: no kernel among {len(table.rows)} rows; only copies ran")
    launches = (Launch(row["Name"], table.positive(row, column) * scale) for row in kernels)
    copies = len(table.rows) - len(kernels)
    notes = (f"{table.where}: {copies} copies and fills of memory left out",) if copies else ()
    return Profile("nsys", ADVICE, tuple(launches), said=notes)


def kernels(table: Table) -> Profile:
    """One row a kernel; the time of a launch is the median if reported, else the mean."""
    for row in table.rows:
        if any(is_label(part) for part in row["Name"].split(":")):
            raise TableError(
                f"{table.where}:{row.line}: kernels named after ranges do not say how often a "
                "range ran; export nvtx_kern_sum"
            )
    return Profile(
        "nsys",
        ADVICE,
        kernels=tuple(
            Summed(row["Name"], _time(table, row, "Instances"), table.whole(row, "Instances"))
            for row in table.rows
        ),
    )


def ranges(table: Table) -> Profile:
    """Ranges named after cases, each with the seconds of one run: the sum over its kernels.

    A kernel that did not run in every run (a first run's preparations) counts by its share of runs.
    """
    groups: dict[str, dict[str, list[Row]]] = {}
    for row in table.rows:
        label = next((part for part in row["NVTX Range"].split(":") if is_label(part)), None)
        if label is not None:
            groups.setdefault(label, {}).setdefault(row["Kernel Name"], []).append(row)
    if not groups:
        raise TableError(
            f"{table.where}: none of {len(table.rows)} rows is of a range named after a case; "
            "name ranges by Case.label()"
        )
    return Profile("nsys", ADVICE, instances=tuple(_range(table, k, v) for k, v in groups.items()))


def _range(table: Table, label: str, groups: dict[str, list[Row]]) -> Instance:
    """One range from its kernels' rows; a kernel has a row for each thread that launched it."""
    runs = max(sum(table.whole(row, "NVTX Inst") for row in rows) for rows in groups.values())
    seconds = launches = 0.0
    for rows in groups.values():
        for row in rows:
            count = table.whole(row, "Kern Inst")
            launches += count / runs
            seconds += count / runs * _time(table, row, "Kern Inst")
    return Instance(label, seconds, next(iter(groups)), max(round(launches), 1), runs)


def _time(table: Table, row: Row, count: str) -> float:
    """Seconds of one launch: the median where the report has one, else the mean."""
    for names in (_MEDIAN, _MEAN):
        match = _column(table.columns, names, bare=True)
        if match is not None:
            return table.positive(row, match[0]) * match[1]
    column, scale = needed(table, TOTAL)
    return table.positive(row, column) * scale / table.whole(row, count)


def needed(table: Table, names: Sequence[str]) -> tuple[str, float]:
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
