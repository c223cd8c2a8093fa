"""Finds which profiler wrote a file from its contents; any other file is a one-line error."""

from __future__ import annotations

import zlib
from pathlib import Path

from perfmodel.errors import TableError, reason
from perfmodel.evidence.importers import profileformats
from perfmodel.evidence.importers.profiles import Table
from perfmodel.evidence.profiled import (
    database,
    ncompute,
    nsystems,
    nsystemsreports,
    rocprofiler,
    torchtrace,
)
from perfmodel.evidence.profiled.timeline import Timeline
from perfmodel.evidence.records import documents

WANTED = (
    "torch.profiler's trace (export_chrome_trace), the file of nsys export --type sqlite, "
    "cuda_gpu_kern_sum or cuda_gpu_trace of nsys stats --format csv, the file of ncu --csv "
    "--page raw, or rocprofv3's kernel_trace.csv or .db"
)
_HEAD = 4096  # bytes by which a format is known
_REPORTS = {
    ".nsys-rep": "write it anew by nsys export --type sqlite",
    ".ncu-rep": "write it anew by ncu --import FILE --csv --page raw",
    ".pftrace": "ask rocprofv3 for --output-format csv",
}


def read(path: str | Path) -> Timeline:
    """The launches of a file; raises `TableError` if it is missing, damaged or not a profile."""
    name = str(path)
    for suffix, hint in _REPORTS.items():
        if name.endswith(suffix):
            raise TableError(f"{name}: a report of its profiler's own; {hint}")
    head = _head(path)
    if head.startswith(database.MAGIC):
        return _database(path)
    text = head.decode("utf-8-sig", "replace").lstrip()
    if text[:1] in ("{", "["):
        return torchtrace.read(path)
    first = text.split("\n")[0]
    if all(column in first for column in rocprofiler.NEEDED) and "Counter_Name" not in first:
        return rocprofiler.read_csv(path)
    return _table(name, *profileformats.find(documents.text(path, WANTED), name, WANTED))


def _table(name: str, form: profileformats.Format, table: Table) -> Timeline:
    """The launches of a table of a profiler."""
    if form.name == "cuda_gpu_trace":
        return nsystemsreports.trace(table)
    if form.name == "cuda_gpu_kern_sum":
        return nsystemsreports.sums(table)
    profile = profileformats.profile(form, table)
    if profile.tool != "ncu":
        raise TableError(
            f"{name}: {form.name} has no launches in order; give {WANTED}, or for its counters "
            "perfmodel counters import"
        )
    return ncompute.read(profile, name)


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
        tables = base.tables
    if nsystems.KERNELS in tables or nsystems.GRAPHS in tables:
        return nsystems.read(path)
    if any(table.startswith(rocprofiler.DISPATCHES) for table in tables):
        return rocprofiler.read_database(path)
    raise TableError(
        f"{path}: a database without kernels ({', '.join(sorted(tables)[:5]) or 'no tables'}); "
        "profile the device, or give the file of nsys export or rocprofv3"
    )
