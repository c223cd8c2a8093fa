"""The formats of profiles: those that are read, with their readers, and those that are not.

A format is found from a file's contents. A table's header is the first line with the columns of a
known format.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfmodel import documents
from perfmodel.errors import TableError, reason
from perfmodel.profile import database, ncu, nsys, nsysdatabase, rocprof, torchtrace
from perfmodel.profile.profiletable import Table, cells
from perfmodel.profile.timeline import Timeline


@dataclass(frozen=True)
class Format:
    """A format of a table."""

    name: str
    """Its name."""
    fits: Callable[[Sequence[str]], bool]
    """Whether columns are those of the format."""
    read: Callable[[Table], Timeline]
    """Its reader."""
    until_blank: bool = False
    """Whether an empty line ends the table."""
    of_cases: bool = False
    """Whether it has no launches of a whole program, only counters or ranges."""

    @property
    def reader(self) -> str:
        """The command that reads it."""
        return "perfmodel counters import" if self.of_cases else "perfmodel profile"


_LONGEST = 300  # characters of a profiler's own message
_HEAD = 4096  # bytes by which a format is known
FORMATS = (
    Format("Nsight Compute's CSV", ncu.is_table, ncu.read),
    Format("nvtx_kern_sum", nsys.is_ranges, nsys.ranges, True, True),
    Format("cuda_gpu_kern_sum", nsys.is_kernels, nsys.kernels, True),
    Format("cuda_gpu_trace", nsys.is_trace, nsys.trace, True),
    Format("rocprofv3's counter_collection", rocprof.is_counters, rocprof.counters, of_cases=True),
    Format("rocprofv3's kernel_trace", rocprof.is_trace, rocprof.trace),
)
_UNREAD: tuple[tuple[Callable[[Sequence[str]], bool], str], ...] = (
    (
        nsys.is_other,
        "a report of nsys stats that names no launches; export nvtx_kern_sum, cuda_gpu_kern_sum "
        "or cuda_gpu_trace",
    ),
    (
        rocprof.is_other,
        "one of rocprofv3's files without kernels' launches; give kernel_trace or "
        "counter_collection",
    ),
    (
        lambda columns: {"Time(%)", "Calls", "Avg", "Name"} <= set(columns),
        "the results of nvprof; profile with nsys",
    ),
    (rocprof.is_old, "the results of an older rocprof; profile with rocprofv3"),
)
"""Formats that are recognised but not read: what the file is, and which to give instead."""
_REPORTS = {
    ".nsys-rep": "write it anew by nsys export --type sqlite",
    ".ncu-rep": "write it anew by ncu --import FILE --csv --page raw",
    ".pftrace": "ask rocprofv3 for --output-format csv",
}
WANTED = (
    "the CSV of ncu --csv --page raw, of nsys stats --format csv (cuda_gpu_kern_sum, "
    "cuda_gpu_trace) or of rocprofv3 (kernel_trace.csv), the file of nsys export --type sqlite, "
    "rocprofv3's .db, or torch.profiler's trace (export_chrome_trace)"
)


def read(path: str | Path) -> Timeline:
    """The launches of a program that have a time; raises `TableError` where there are none."""
    form, timeline = _read(path)
    if form is not None and form.of_cases:
        raise TableError(
            f"{path}: {form.name} has no launches in order; give {WANTED}, or for its counters "
            "perfmodel counters import"
        )
    return timeline.timed(str(path))


def contents(path: str | Path) -> Timeline:
    """All that a profile holds; raises `TableError` if it is missing, damaged or no profile."""
    return _read(path)[1]


def named(columns: Sequence[str]) -> Format | None:
    """The format whose columns these are."""
    return next((form for form in FORMATS if form.fits(columns)), None)


def _read(path: str | Path) -> tuple[Format | None, Timeline]:
    """A profile, and the format of its table if it is one."""
    for suffix, hint in _REPORTS.items():
        if str(path).endswith(suffix):
            raise TableError(f"{path}: a report of its profiler's own; {hint}")
    head = _head(path)
    if head.startswith(database.MAGIC):
        return None, _database(path)
    if head.decode("utf-8-sig", "replace").lstrip()[:1] in ("{", "["):
        return None, torchtrace.read(path)
    form, table = _table(documents.text(path, WANTED), str(path))
    timeline = form.read(table)
    if not table.skipped:
        return form, timeline
    note = f"{path}: {table.skipped} lines that are no rows of {form.name} left out"
    return form, replace(timeline, notes=(*timeline.notes, note))


def _table(text: str, place: str) -> tuple[Format, Table]:
    """The format of a table and its rows; raises `TableError` for one that is not read."""
    lines = text.replace("\r\n", "\n").split("\n")
    for i, line in enumerate(lines):
        columns = cells(line) if "," in line else ()
        form = named(columns) if columns else None
        if form is not None:
            return form, Table(lines, i, place, until_blank=form.until_blank)
        for fits, message in _UNREAD if columns else ():
            if fits(columns):
                raise TableError(f"{place}: {message}")
    complaints = ncu.complaints(text)
    if complaints:
        raise TableError(f"{place}: nothing was profiled: {complaints[0][:_LONGEST]}")
    raise TableError(f"{place}: not a profile that can be read; give {WANTED}")


def _head(path: str | Path) -> bytes:
    try:
        with documents.opened(path) as file:
            head = file.read(_HEAD)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        cause = reason(error) if isinstance(error, OSError | ValueError) else str(error).lower()
        raise TableError(f"{path}: cannot be read: {cause}; check the path") from None
    if not head.strip():
        raise TableError(f"{path}: the file is empty; give {WANTED}")
    return head


def _database(path: str | Path) -> Timeline:
    with database.opened(path) as base:
        if nsysdatabase.KERNELS in base.tables or nsysdatabase.GRAPHS in base.tables:
            return nsysdatabase.read(base)
        if any(table.startswith(rocprof.DISPATCHES) for table in base.tables):
            return rocprof.database(base)
        tables = ", ".join(sorted(base.tables)[:5]) or "no tables"
    raise TableError(
        f"{path}: a database without kernels ({tables}); profile the device, or give the file of "
        "nsys export or rocprofv3"
    )
