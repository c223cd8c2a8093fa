"""Nsight Compute: its CSV as launches with metrics in SI units, and the metrics to request.

Two forms are read: the raw page (`--csv --page raw`: one column a metric, with a row of units below
the header) and the long form of the details page (one row a metric). Lines that the profiler or the
program print around the table are skipped.

The names are those of the Nsight Compute documentation (docs.nvidia.com/nsight-compute) and `ncu
--query-metrics`. On Blackwell the DRAM bytes are dram__bytes_op_read and dram__bytes_op_write. If a
chip lacks one requested name, the profiler refuses the whole run; `metrics_for` chooses names.

The profiler replays and serialises launches, so there are no start times and no gaps between them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from perfmodel.documents import shown
from perfmodel.errors import TableError
from perfmodel.profile import operations
from perfmodel.profile.profiletable import Row, Table, number
from perfmodel.profile.timeline import Columns, Recorded, Timeline, What

TOOL = "Nsight Compute"
BYTES = ("hbm_bytes_measured", "l2_bytes_measured", "shared_bytes_measured")
PIPES = ("tensor_pipe_pct", "xu_pipe_pct", "fma_pipe_pct")
DURATION = "gpu__time_duration.sum"
METRICS = (
    DURATION,
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_sectors_srcunit_tex.sum",
    "lts__t_bytes.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "sm__inst_executed_pipe_tensor.sum",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
    "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
)
"""The metrics to request from the profiler; docs/counters.md has the whole command."""

ADVICE = (
    "for bytes of memory ask ncu for dram__bytes_read.sum,dram__bytes_write.sum "
    "(dram__bytes_op_read.sum,dram__bytes_op_write.sum on Blackwell)"
)
_NANO = 1e9
_SECTOR, _WAVEFRONT = 32.0, 128.0
# Each quantity by the metrics that give it, the best first: (metrics to add up, factor).
_COUNTED: Mapping[str, tuple[tuple[tuple[str, ...], float], ...]] = {
    "hbm_bytes_measured": (
        (("dram__bytes_read.sum", "dram__bytes_write.sum"), 1.0),
        (("dram__bytes_op_read.sum", "dram__bytes_op_write.sum"), 1.0),
        (("dram__bytes.sum",), 1.0),
        (("dram__sectors_read.sum", "dram__sectors_write.sum"), _SECTOR),
    ),
    "l2_bytes_measured": (
        (("lts__t_sectors_srcunit_tex.sum",), _SECTOR),
        (("lts__t_bytes_srcunit_tex.sum",), 1.0),
        (("lts__t_bytes.sum",), 1.0),
        (("lts__t_sectors.sum",), _SECTOR),
    ),
    "shared_bytes_measured": (
        (("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",), _WAVEFRONT),
        (
            (
                "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
                "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
            ),
            _WAVEFRONT,
        ),
    ),
}
_PIPE_WORDS = {
    "tensor_pipe_pct": "pipe_tensor",
    "xu_pipe_pct": "pipe_xu",
    "fma_pipe_pct": "pipe_fma",
}
_SHARES = ("pct_of_peak_sustained_active", "pct_of_peak_sustained_elapsed")

# Units of the profiler to SI factors; percentages stay percentages.
_SECONDS = {
    "second": 1.0, "s": 1.0, "msecond": 1e-3, "ms": 1e-3, "usecond": 1e-6, "us": 1e-6,
    "nsecond": 1e-9, "ns": 1e-9,
}  # fmt: skip
_BYTE_UNITS = {
    "byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12,
    "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9,
}  # fmt: skip
UNITS = {**_SECONDS, **_BYTE_UNITS}
_LONG = ("Metric Name", "Metric Unit", "Metric Value")
# Names of the details page for what the raw page calls otherwise.
_SPOKEN = {
    "Duration": DURATION,
    "DRAM Throughput": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "SM Frequency": "sm__cycles_elapsed.avg.per_second",
}
_ERROR = re.compile(r"==ERROR==\s*(.*\S)")
_OPERATOR = re.compile(r"[\w.]+::[\w.]+(?:, seq = \d+)?(?:, op_id = \d+)?, sizes = \[.*\]")


# ---- What to ask for -----------------------------------------------------------------------------


def complaints(said: str) -> tuple[str, ...]:
    """The profiler's ==ERROR== messages in its output `said`, in order, without repetitions."""
    return tuple(dict.fromkeys(" ".join(text.split()) for text in _ERROR.findall(said)))


def metrics_for(listed: str) -> tuple[str, ...]:
    """The metrics to request on a chip, from the output of `ncu --query-metrics`.

    These are the `METRICS` that the chip has, and for a quantity whose names it lacks, its other
    names for it. If the output lists no metric, the result is `METRICS`.
    """
    words = (line.split()[:1] for line in listed.splitlines())
    bases = {word.split(".")[0] for first in words for word in first if "__" in word}
    if not bases:
        return METRICS

    def has(metric: str) -> bool:
        return metric.split(".")[0] in bases

    metrics = [metric for metric in METRICS if has(metric)]
    for ways in _COUNTED.values():
        complete = [names for names, _ in ways if all(map(has, names))]
        if complete and not any(set(names) <= set(metrics) for names in complete):
            metrics += complete[0]
    return tuple(metrics)


# ---- What it writes ------------------------------------------------------------------------------


def is_table(columns: Sequence[str]) -> bool:
    """Whether columns are the raw page's (one a metric, unit__quantity) or the long form's."""
    return "Kernel Name" in columns and (
        set(_LONG) <= set(columns) or any("__" in name for name in columns)
    )


def read(table: Table) -> Timeline:
    """Every launch in the order of the file; raises `TableError` where there is none."""
    launches = _long_launches(table) if set(_LONG) <= set(table.columns) else _raw_launches(table)
    columns, counters, clock = Columns(), [], 0.0
    for row, values in launches:
        metrics = _metrics(values)
        duration = metrics.get(DURATION, math.nan) * _NANO
        ranges = tuple(row[name] for name in table.columns if "Range" in name and row[name])
        launch = What(row["Kernel Name"], _operator(ranges), ranges=ranges)
        columns.add(launch, clock, duration)
        clock += metrics.get(DURATION, 0.0) * _NANO
        counters.append(metrics)
    if not counters:
        raise TableError(
            f"{table.where}: no kernel was profiled; was anything launched on the device?"
        )
    return columns.timeline(TOOL, clocked=False, metrics=tuple(counters))


def _operator(ranges: Iterable[str]) -> Recorded | None:
    matches = (_OPERATOR.search(text) for text in ranges)
    return next((operations.from_text(match[0]) for match in matches if match), None)


_Cells = Iterable[tuple[str, str, str]]
"""(metric, unit, value) of a launch."""


def _raw_launches(table: Table) -> Iterator[tuple[Row, _Cells]]:
    """Launches of the raw page, one a row; the first row holds the units."""
    units, *rows = table.rows()
    if units["Kernel Name"]:
        raise TableError(
            f"{table.where}: no row of units as wide as the header stands below it, and numbers "
            "without units say nothing; export it again"
        )
    names = [name for name in table.columns if "__" in name]
    for name in names:
        _check_unit(name, units[name], table.where)
    for row in rows:
        yield row, [(name, units[name], row[name]) for name in names]


def _long_launches(table: Table) -> Iterator[tuple[Row, _Cells]]:
    """Launches of the long form, one row a metric, grouped by ID, or by kernel name without IDs."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in table.rows():
        groups.setdefault((row.get("ID"), row["Kernel Name"]), []).append(row)
    for rows in groups.values():
        values = [[row[column] for column in _LONG] for row in rows]
        cells = [(_SPOKEN.get(name, name), unit, value) for name, unit, value in values]
        for metric, unit, _ in cells:
            _check_unit(metric, unit, table.where)
        yield rows[0], cells


def _check_unit(metric: str, unit: str, place: str) -> None:
    """Raise `TableError` for a metric in a unit of another dimension, such as a duration in
    bytes."""
    is_bytes = "__bytes" in metric and metric.endswith(".sum")  # no rate, no share of the peak
    units = _SECONDS if "__time_" in metric else _BYTE_UNITS if is_bytes else None
    if units is not None and unit not in units:
        raise TableError(
            f"{place}: {metric} is in {shown(unit)}, which is no unit of "
            f"{'time' if units is _SECONDS else 'bytes'}; export it again"
        )


def _metrics(cells: _Cells) -> dict[str, float]:
    """Metrics that hold a number, in SI units."""
    metrics = {}
    for name, unit, text in cells:
        value = number(text)
        if value is not None and value >= 0:
            metrics[name] = value * UNITS.get(unit.strip(), 1.0)
    return metrics


def counted(metrics: Mapping[str, float]) -> dict[str, float]:
    """Bytes of each level and utilisation of the units, where they were counted."""
    values: dict[str, float] = {}
    for level in BYTES:
        for names, factor in _COUNTED[level]:
            if all(name in metrics for name in names):
                values[level] = factor * sum(metrics[name] for name in names)
                break
    for pipe in PIPES:
        share = _utilisation(pipe, metrics)
        if share is not None:
            values[pipe] = share
    return values


def _utilisation(pipe: str, metrics: Mapping[str, float]) -> float | None:
    """Utilisation of the unit's busiest pipe in percent of active cycles, or else of elapsed
    cycles."""
    for share in _SHARES:
        values = [
            value
            for metric, value in metrics.items()
            if _PIPE_WORDS[pipe] in metric and metric.endswith(share)
        ]
        if values:
            return max(values)
    return None
