"""rocprofv3: its CSV and its database (rocpd, the default since ROCm 7).

    PREFIX_counter_collection.csv   a row a counter of a dispatch
    PREFIX_kernel_trace.csv         a row a dispatch

The columns follow AMD's "Using rocprofv3" (rocm.docs.amd.com/projects/rocprofiler-sdk) and public
exports; times are nanoseconds, grids are in work-items. With `--kernel-rename` a kernel is called
after the roctx range that it was launched in. In the database each table ends with the run's
identifier, rocpd_kernel_dispatch_<uuid> (start, end, kernel_id, sizes),
rocpd_info_kernel_symbol_<uuid> (id, display_name, kernel_name), and views without it join them
(rocprofiler-sdk, source/share/rocprofiler-sdk-rocpd).

Bytes are rocprofiler-sdk's derived counters FETCH_SIZE and WRITE_SIZE (also called FetchSize and
WriteSize), in KiB. On gfx942 FetchSize is (TCC_BUBBLE·128 + (TCC_EA0_RDREQ - TCC_BUBBLE -
TCC_EA0_RDREQ_32B)·64 + TCC_EA0_RDREQ_32B·32) / 1024 (counter_defs.yaml). This is the traffic beyond
the L2; the Infinity Cache of MI300 may serve part of it. MfmaUtil is a percentage.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from perfmodel.documents import shown
from perfmodel.errors import TableError
from perfmodel.plaintext import whole_number
from perfmodel.profile.database import Database, whole
from perfmodel.profile.profiletable import Row, Table, number
from perfmodel.profile.timeline import Columns, Timeline, What

TOOL = "rocprofv3"
DISPATCHES = "rocpd_kernel_dispatch"
ADVICE = (
    "for bytes of memory ask rocprofv3 for --pmc FETCH_SIZE WRITE_SIZE (FetchSize WriteSize); "
    "where one pass cannot count both, give the files of both passes"
)
_SYMBOLS = "rocpd_info_kernel_symbol"
_TIMES = ("Start_Timestamp", "End_Timestamp")
_SIZES = tuple(f"{what}_Size_{axis}" for what in ("Grid", "Workgroup") for axis in "XYZ")
_COLUMNS = ("start", "end", "kernel_id", *map(str.lower, _SIZES))
_KIB = 1024.0
_READ, _WRITTEN = ("FETCH_SIZE", "FetchSize"), ("WRITE_SIZE", "WriteSize")


# ---- CSV -----------------------------------------------------------------------------------------


def is_counters(columns: Sequence[str]) -> bool:
    """counter_collection."""
    return {"Dispatch_Id", "Kernel_Name", "Counter_Name", "Counter_Value"} <= set(columns)


def is_trace(columns: Sequence[str]) -> bool:
    """kernel_trace."""
    return {"Kernel_Name", *_TIMES} <= set(columns) and "Counter_Name" not in columns


def is_other(columns: Sequence[str]) -> bool:
    """Another of rocprofv3's files: traces of calls, statistics."""
    return {"Function", *_TIMES} <= set(columns) or {"TotalDurationNs", "Calls"} <= set(columns)


def is_old(columns: Sequence[str]) -> bool:
    """The results of rocprof before version 3."""
    return {"KernelName", "gpu-id"} <= set(columns) or {"Kernel_Name", "GPU_ID"} <= set(columns)


def trace(table: Table) -> Timeline:
    """Every dispatch."""
    columns = Columns()
    for row in table.rows():
        start, duration, fault = _times(row)
        sizes = [whole_number(row.get(name)) or 0 for name in _SIZES]
        columns.add(_launch(row["Kernel_Name"], sizes), start, duration, fault=fault)
    return columns.timeline(TOOL)


def counters(table: Table) -> Timeline:
    """Launches in the order of their dispatch, each with all its counters."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in table.rows():
        dispatch = (row.get("Process_Id"), row.get("Agent_Id"), row["Dispatch_Id"])
        groups.setdefault(dispatch, []).append(row)
    columns, is_timed = Columns(), set(_TIMES) <= set(table.columns)
    for i, rows in enumerate(groups.values()):
        _, duration, fault = _times(rows[0]) if is_timed else (0.0, math.nan, "")
        columns.add(What(rows[0]["Kernel_Name"]), float(i), duration, fault=fault)
    metrics = tuple(map(_metrics, groups.values()))
    return columns.timeline(TOOL, clocked=False, metrics=metrics)


def _metrics(rows: Sequence[Row]) -> dict[str, float]:
    """The counters of one dispatch."""
    metrics: dict[str, float] = {}
    for row in rows:
        name, value = row["Counter_Name"], number(row["Counter_Value"])
        if name in metrics:
            raise TableError(
                f"{row.place}: dispatch {shown(row['Dispatch_Id'])} has {shown(name)} twice; give "
                "each pass its own file"
            )
        if value is not None and value >= 0:
            metrics[name] = value
    return metrics


def _times(row: Row) -> tuple[float, float, str]:
    """Start and duration in nanoseconds, or what is wrong with the times.

    They are subtracted as whole numbers: a float would lose the last digits after a long uptime.
    """
    stamps = [whole_number(row[column]) for column in _TIMES]
    for column, stamp in zip(_TIMES, stamps, strict=True):
        if stamp is None:
            cell = shown(row[column])
            return 0.0, 0.0, f"{row.place}: {column} is {cell}, not a number of nanoseconds"
    start, end = (stamp or 0 for stamp in stamps)
    fault = "" if end > start else f"{row.place}: End_Timestamp is not after Start_Timestamp"
    return float(start), float(end - start), fault


def counted(metrics: Mapping[str, float]) -> dict[str, float]:
    """Bytes of memory and the matrix unit's utilisation, where they were counted."""
    values = {}
    reads, writes = (next((n for n in names if n in metrics), None) for names in (_READ, _WRITTEN))
    if reads is not None and writes is not None:
        values["hbm_bytes_measured"] = _KIB * (metrics[reads] + metrics[writes])
    if "MfmaUtil" in metrics:
        values["tensor_pipe_pct"] = metrics["MfmaUtil"]
    return values


# ---- Database ------------------------------------------------------------------------------------


def database(base: Database) -> Timeline:
    """Every dispatch of a rocpd file."""
    columns = Columns()
    tables = [table for table in base.tables if table.startswith(f"{DISPATCHES}_")]
    for table in tables or [DISPATCHES]:
        symbols = table.replace(DISPATCHES, _SYMBOLS)
        rows = base.rows(symbols, ("id", "display_name", "kernel_name"))
        names = {key: display or kernel for key, display, kernel in rows}
        for start, end, kernel, *sizes in base.rows(table, _COLUMNS, "start"):
            launch = _launch(
                str(names.get(kernel, f"kernel {kernel}")), [whole(size) or 0 for size in sizes]
            )
            first, duration, fault = base.span(start, end)
            columns.add(launch, first, duration, fault=fault)
    return columns.timeline(TOOL)


def _launch(name: str, sizes: list[int]) -> What:
    """A dispatch; blocks are the grid's work-items over those of a workgroup."""
    grid, block = sizes[:3], sizes[3:]
    if 0 in block or 0 in grid:
        return What(name)
    blocks = tuple(-(-items // part) for items, part in zip(grid, block, strict=True))
    return What(name, None, blocks, tuple(block))
