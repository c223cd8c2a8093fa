"""The formats of profiles: those that are read, with their readers, and those that are not.

A table's format is recognised by its columns. Its header is the first line with the columns of a
known format.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfmodel.errors import TableError
from perfmodel.evidence.importers import ncu, nsys, rocprof, traces
from perfmodel.evidence.importers.profiles import Profile, Table, cells, table
from perfmodel.evidence.records import documents


@dataclass(frozen=True)
class Format:
    """A format of profiles."""

    name: str
    """Its name."""
    command: str
    """The command that writes it."""
    fits: Callable[[Sequence[str]], bool]
    """Whether columns are those of the format."""
    read: Callable[[Table], Profile]
    """Its reader."""
    whole: bool = False
    """Whether an empty line ends the table."""
    of_cases: bool = False
    """Whether it has no launches of a whole program, only counters or ranges."""

    @property
    def reader(self) -> str:
        """The command that reads it."""
        return "perfmodel counters import" if self.of_cases else "perfmodel profile"


@dataclass(frozen=True)
class Unread:
    """A format that is recognised but not read."""

    fits: Callable[[Sequence[str]], bool]
    """Whether columns are those of the format."""
    said: str
    """What the file is, and which file to give instead."""


_LONGEST = 300  # characters of a profiler's own message
_STATS = "nsys stats --format csv --report"
_ROCPROF = "rocprofv3 --output-format csv"
FORMATS = (
    Format("Nsight Compute's CSV", "ncu --csv --page raw", ncu.is_table, ncu.read),
    Format("nvtx_kern_sum", f"{_STATS} nvtx_kern_sum", nsys.is_ranges, nsys.ranges, True, True),
    Format("cuda_gpu_kern_sum", f"{_STATS} cuda_gpu_kern_sum", nsys.is_kernels, nsys.kernels, True),
    Format("cuda_gpu_trace", f"{_STATS} cuda_gpu_trace", nsys.is_trace, nsys.trace, True),
    Format(
        "rocprofv3's counter_collection", f"{_ROCPROF} --pmc ...",
        rocprof.is_counters, rocprof.counters, of_cases=True,
    ),
    Format(
        "rocprofv3's kernel_trace", f"{_ROCPROF} --kernel-trace", rocprof.is_trace, rocprof.trace
    ),
)  # fmt: skip
UNREAD = (
    Unread(
        nsys.is_other,
        "a report of nsys stats that names no launches; export nvtx_kern_sum, cuda_gpu_kern_sum "
        "or cuda_gpu_trace",
    ),
    Unread(
        rocprof.is_other,
        "one of rocprofv3's files without kernels' launches; give kernel_trace or "
        "counter_collection",
    ),
    Unread(
        lambda columns: {"Time(%)", "Calls", "Avg", "Name"} <= set(columns),
        "the results of nvprof; profile with nsys",
    ),
    Unread(rocprof.is_old, "the results of an older rocprof; profile with rocprofv3"),
)
WANTED = "the CSV of ncu, nsys stats or rocprofv3, or torch profiler's trace (docs/counters.md)"


def read(path: str | Path) -> Profile:
    """The profile in a file; raises `TableError`, one line, for any other file."""
    place = str(path)
    text = documents.text(path, WANTED)
    if traces.is_trace(text):
        return traces.read(text, place)
    return profile(*find(text, place, WANTED))


def find(text: str, where: str, wanted: str) -> tuple[Format, Table]:
    """The format of a table and its rows; raises `TableError` for one that is not read."""
    lines = text.replace("\r\n", "\n").split("\n")
    for place, line in enumerate(lines):
        columns = cells(line) if "," in line else ()
        for form in FORMATS if columns else ():
            if form.fits(columns):
                return form, table(lines, place, where, whole=form.whole)
        for kind in UNREAD if columns else ():
            if kind.fits(columns):
                raise TableError(f"{where}: {kind.said}")
    complaints = ncu.complaints(text)
    if complaints:
        raise TableError(f"{where}: nothing was profiled: {complaints[0][:_LONGEST]}")
    raise TableError(f"{where}: not a profile that can be read; give {wanted}")


def named(columns: Sequence[str]) -> Format | None:
    """The format whose columns these are."""
    return next((form for form in FORMATS if form.fits(columns)), None)


def profile(known: Format, found: Table) -> Profile:
    """The profile, and a line about lines of the table that were left out."""
    contents = known.read(found)
    if not found.skipped:
        return contents
    line = f"{found.where}: {found.skipped} lines that are no rows of {known.name} left out"
    return replace(contents, said=(*contents.said, line))
