"""rocprofv3's CSV: launches with their times and counters.

    PREFIX_counter_collection.csv   a row a counter of a dispatch
    PREFIX_kernel_trace.csv         a row a dispatch

The columns follow AMD's "Using rocprofv3" (rocm.docs.amd.com/projects/rocprofiler-sdk) and public
exports; times are nanoseconds. With `--kernel-rename` a kernel is called after the roctx range that
it was launched in.

Bytes are rocprofiler-sdk's derived counters FETCH_SIZE and WRITE_SIZE (also called FetchSize and
WriteSize), in KiB. On gfx942 FetchSize is (TCC_BUBBLE·128 + (TCC_EA0_RDREQ - TCC_BUBBLE -
TCC_EA0_RDREQ_32B)·64 + TCC_EA0_RDREQ_32B·32) / 1024 (counter_defs.yaml). This is the traffic beyond
the L2; the Infinity Cache of MI300 may serve part of it. MfmaUtil is a percentage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfmodel.errors import TableError
from perfmodel.evidence.importers.profiles import Launch, Profile, Row, Table, number
from perfmodel.evidence.records.documents import shown
from perfmodel.plaintext import whole_number

ADVICE = (
    "for bytes of memory ask rocprofv3 for --pmc FETCH_SIZE WRITE_SIZE (FetchSize WriteSize); "
    "where one pass cannot count both, give the files of both passes"
)
_NANO = 1e-9
_KIB = 1024.0
_READ, _WRITTEN = ("FETCH_SIZE", "FetchSize"), ("WRITE_SIZE", "WriteSize")
_TIMES = ("Start_Timestamp", "End_Timestamp")


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


def trace(table: Table) -> Profile:
    """Launches in the order of their start."""
    rows = sorted(table.rows, key=lambda row: _stamp(table, row, "Start_Timestamp"))
    launches = tuple(Launch(row["Kernel_Name"], _seconds(table, row)) for row in rows)
    return Profile("rocprof", ADVICE, launches, counted=counted)


def counters(table: Table) -> Profile:
    """Launches in the order of their dispatch, each with all its counters."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in table.rows:
        place = (row.get("Process_Id"), row.get("Agent_Id"), row["Dispatch_Id"])
        groups.setdefault(place, []).append(row)
    launches = tuple(_launch(table, rows) for rows in groups.values())
    return Profile("rocprof", ADVICE, launches, counted=counted)


def _launch(table: Table, rows: Sequence[Row]) -> Launch:
    metrics: dict[str, float] = {}
    for row in rows:
        name, value = row["Counter_Name"], number(row["Counter_Value"])
        if name in metrics:
            raise TableError(
                f"{table.where}:{row.line}: dispatch {shown(row['Dispatch_Id'])} has "
                f"{shown(name)} twice; give each pass its own file"
            )
        if value is not None and value >= 0:
            metrics[name] = value
    seconds = _seconds(table, rows[0]) if set(_TIMES) <= set(table.columns) else None
    return Launch(rows[0]["Kernel_Name"], seconds, metrics=metrics)


def _seconds(table: Table, row: Row) -> float:
    start, end = (_stamp(table, row, name) for name in _TIMES)
    if end <= start:
        raise TableError(f"{table.where}:{row.line}: End_Timestamp is not after Start_Timestamp")
    return (end - start) * _NANO


def _stamp(table: Table, row: Row, column: str) -> int:
    """A time in whole nanoseconds; a float would lose the last digits after a long uptime."""
    text = row[column]
    stamp = whole_number(text)
    if stamp is None:
        raise TableError(
            f"{table.where}:{row.line}: {column} is {shown(text)}, not a number of nanoseconds"
        )
    return stamp


def counted(metrics: Mapping[str, float]) -> dict[str, float]:
    """Bytes of memory and the matrix unit's utilisation, where they were counted."""
    values = {}
    reads, writes = (next((n for n in names if n in metrics), None) for names in (_READ, _WRITTEN))
    if reads is not None and writes is not None:
        values["hbm_bytes_measured"] = _KIB * (metrics[reads] + metrics[writes])
    if "MfmaUtil" in metrics:
        values["tensor_pipe_pct"] = metrics["MfmaUtil"]
    return values
