"""rocprofv3: its kernel_trace.csv, and its database (rocpd, the default since ROCm 7).

CSV has a row a dispatch: Kernel_Name, Start_Timestamp and End_Timestamp in nanoseconds, grids in
work-items (rocm.docs.amd.com/projects/rocprofiler-sdk, "Using rocprofv3"). In the database each
table ends with the run's identifier, rocpd_kernel_dispatch_<uuid> (start, end, kernel_id, sizes),
rocpd_info_kernel_symbol_<uuid> (id, display_name, kernel_name), and views without it join them
(rocprofiler-sdk, source/share/rocprofiler-sdk-rocpd).
"""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterable
from io import TextIOWrapper
from pathlib import Path

from perfmodel.errors import TableError
from perfmodel.evidence.profiled.database import Database, opened, whole
from perfmodel.evidence.profiled.timeline import Columns, Timeline, What
from perfmodel.evidence.records import documents
from perfmodel.plaintext import whole_number

TOOL = "rocprofv3"
DISPATCHES = "rocpd_kernel_dispatch"
SYMBOLS = "rocpd_info_kernel_symbol"
NEEDED = ("Kernel_Name", "Start_Timestamp", "End_Timestamp")
_SIZES = tuple(f"{what}_Size_{axis}" for what in ("Grid", "Workgroup") for axis in "XYZ")
_DATABASE = (
    "start", "end", "kernel_id", "grid_size_x", "grid_size_y", "grid_size_z",
    "workgroup_size_x", "workgroup_size_y", "workgroup_size_z",
)  # fmt: skip


def read_csv(path: str | Path) -> Timeline:
    """Every dispatch of a kernel_trace; raises `TableError` where there is none."""
    columns, skips = Columns(), 0
    try:
        with TextIOWrapper(documents.opened(path), encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file):
                start, end = _stamp(row.get(NEEDED[1])), _stamp(row.get(NEEDED[2]))
                name = row.get(NEEDED[0])
                if start is None or end is None or end < start or not name:
                    skips += 1
                    continue
                sizes = [_stamp(row.get(column)) or 0 for column in _SIZES]
                columns.add(_launch(name, sizes), float(start), float(end - start))
    except (csv.Error, UnicodeDecodeError, EOFError, OSError, zlib.error) as error:
        raise TableError(f"{path}: not sound CSV ({error}); export it again") from None
    return _timeline(columns, skips, str(path))


def read_database(path: str | Path) -> Timeline:
    """Every dispatch of a rocpd file; raises `TableError` where there is none."""
    with opened(path) as database:
        columns, skips = Columns(), 0
        for table in _tables(database, DISPATCHES):
            symbols = table.replace(DISPATCHES, SYMBOLS)
            names = {
                key: display or kernel
                for key, display, kernel in database.rows(
                    symbols, ("id", "display_name", "kernel_name")
                )
            } if symbols in database.tables else {}  # fmt: skip
            for start, end, kernel, *sizes in database.rows(table, _DATABASE, "start"):
                first, last = whole(start), whole(end)
                if first is None or last is None or last < first:
                    skips += 1
                    continue
                launch = _launch(
                    str(names.get(kernel, f"kernel {kernel}")), [whole(s) or 0 for s in sizes]
                )
                columns.add(launch, float(first), float(last - first))
    return _timeline(columns, skips, str(path))


def _tables(database: Database, name: str) -> Iterable[str]:
    """The tables called `name` plus a run's identifier, or else the table called `name`."""
    tables = [table for table in database.tables if table.startswith(f"{name}_")]
    return tables or [table for table in database.tables if table == name]


def _launch(name: str, sizes: list[int]) -> What:
    """A dispatch; blocks are the grid's work-items over those of a workgroup."""
    grid, block = sizes[:3], sizes[3:]
    if 0 in block or 0 in grid:
        return What(name)
    blocks = tuple(-(-whole_ // part) for whole_, part in zip(grid, block, strict=True))
    return What(name, None, blocks, tuple(block))


def _stamp(text: str | None) -> int | None:
    return None if text is None else whole_number(text.strip())


def _timeline(columns: Columns, skips: int, place: str) -> Timeline:
    if not columns.start:
        raise TableError(f"{place}: no kernel was dispatched while it was profiled")
    notes = (f"{skips} dispatches without a name or times left out",) if skips else ()
    return columns.timeline(TOOL, notes=notes)
