"""Finds which profiler wrote a file from its contents; any other file is a one-line error."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from perfmodel.errors import TableError, reason
from perfmodel.evidence.profiled import database, ncompute, nsystems, rocprofiler, torchtrace
from perfmodel.evidence.profiled.timeline import Timeline

WANTED = (
    "torch.profiler's trace (export_chrome_trace), the file of nsys export --type sqlite or of "
    "ncu --csv --page raw, or rocprofv3's kernel_trace.csv or .db"
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
    for suffix, what in _REPORTS.items():
        if name.endswith(suffix):
            raise TableError(f"{name}: a report of its profiler's own; {what}")
    head = _head(path)
    if head.startswith(database.MAGIC):
        return _database(path)
    text = head.decode("utf-8-sig", "replace").lstrip()
    if text[:1] in ("{", "["):
        return torchtrace.read(path)
    first = text.split("\n")[0]
    if all(column in first for column in rocprofiler.NEEDED) and "Counter_Name" not in first:
        return rocprofiler.read_csv(path)
    if ("," in text and "Kernel Name" in text) or "==PROF==" in text:
        return ncompute.read(path)
    raise TableError(f"{name}: not a profile that can be read; give {WANTED}")


def _head(path: str | Path) -> bytes:
    try:
        with Path(path).open("rb") as file:
            head = file.read(_HEAD)
        if head[:2] == b"\x1f\x8b":
            with gzip.open(path) as packed:
                head = packed.read(_HEAD)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        said = reason(error) if isinstance(error, OSError | ValueError) else str(error).lower()
        raise TableError(f"{path}: cannot be read: {said}; check the path") from None
    if not head.strip():
        raise TableError(f"{path}: the file is empty; give {WANTED}")
    return head


def _database(path: str | Path) -> Timeline:
    with database.opened(path) as found:
        tables = found.tables
    if nsystems.KERNELS in tables:
        return nsystems.read(path)
    if any(table.startswith(rocprofiler.DISPATCHES) for table in tables):
        return rocprofiler.read_database(path)
    raise TableError(
        f"{path}: a database without kernels ({', '.join(sorted(tables)[:5]) or 'no tables'}); "
        "profile the device, or give the file of nsys export or rocprofv3"
    )
