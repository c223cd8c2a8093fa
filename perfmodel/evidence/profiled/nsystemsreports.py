"""Nsight Systems' reports as CSV: cuda_gpu_trace and cuda_gpu_kern_sum (`nsys stats`).

The columns, their older names and their units are those of `perfmodel.evidence.importers.nsys`.
cuda_gpu_trace has a row a launch or copy, with its start. cuda_gpu_kern_sum has a row a kernel: its
launches have a mean time, and neither an order nor times between them.
"""

from __future__ import annotations

from perfmodel.errors import TableError
from perfmodel.evidence.importers import nsys
from perfmodel.evidence.importers.profiles import Row, Table, number
from perfmodel.evidence.profiled.nsystems import TOOL
from perfmodel.evidence.profiled.timeline import Columns, Timeline, What
from perfmodel.plaintext import whole_number

_NANO = 1e9
_MOST_LAUNCHES = 10_000_000
"""Launches that the sums of one file may have: a million take 30 MB."""


def trace(table: Table) -> Timeline:
    """Every launch and copy; raises `TableError` where none has times."""
    starts, durations = (nsys.needed(table, name) for name in (nsys.START, nsys.DURATION))
    columns, skips = Columns(), 0
    for row in table.rows:
        start, duration = (_nanoseconds(row, column) for column in (starts, durations))
        if start is None or duration is None or not row["Name"]:
            skips += 1
            continue
        sizes = (_sizes(row, f"{axis}X", f"{axis}Y", f"{axis}Z") for axis in ("Grd", "Blk"))
        columns.add(What(row["Name"], None, *sizes), start, duration)
    if not columns.start:
        raise TableError(f"{table.where}: no row has a start and a duration; export it again")
    devices = {row.get("Device") for row in table.rows} - {""}
    device = devices.pop().rpartition(" (")[0] if len(devices) == 1 else ""
    notes = (f"{skips} launches without times left out",) if skips else ()
    return columns.timeline(TOOL, device=device, notes=notes)


def sums(table: Table) -> Timeline:
    """Each kernel as often as it ran, each time for its mean time."""
    column, seconds = nsys.needed(table, nsys.TOTAL)
    columns, clock = Columns(), 0.0
    for row in table.rows:
        launches = table.whole(row, "Instances")
        if len(columns.start) + launches > _MOST_LAUNCHES:
            raise TableError(
                f"{table.where}:{row.line}: more than {_MOST_LAUNCHES:,} launches; profile a part "
                "of the program"
            )
        duration = table.positive(row, column) * seconds * _NANO / launches
        grid, block = (_product(row.get(name)) for name in ("GridXYZ", "BlockXYZ"))
        for _ in range(launches):
            columns.add(What(row["Name"], None, grid, block), clock, duration)
            clock += duration
    return columns.timeline(TOOL, ordered=False, clocked=False)


def _nanoseconds(row: Row, column: tuple[str, float]) -> float | None:
    value = number(row[column[0]])
    return None if value is None or value < 0 else value * column[1] * _NANO


def _sizes(row: Row, *names: str) -> tuple[int, ...]:
    numbers = [number(row.get(name)) for name in names]
    return tuple(int(size) for size in numbers if size) if all(numbers) else ()


def _product(text: str) -> tuple[int, ...]:
    """Extents in one cell: "  132    1    1"."""
    extents = tuple(extent for extent in map(whole_number, text.split()) if extent is not None)
    return extents if len(extents) == len(text.split()) == 3 else ()
