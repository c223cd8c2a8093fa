"""Nsight Systems' SQLite (`nsys export --type sqlite`).

CUPTI_ACTIVITY_KIND_KERNEL has a row a launch: start and end in nanoseconds, correlationId, grid and
block, and names as numbers of StringIds. CUPTI_ACTIVITY_KIND_RUNTIME has the calls that launched
them (correlationId, globalTid), NVTX_EVENTS ranges on threads (eventType 59 is push and pop), with
`torch.autograd.profiler.emit_nvtx(record_shapes=True)` the operators with their sizes. Tables and
columns exist only if needed, and differ by version (docs.nvidia.com/nsight-systems/UserGuide,
"SQLite Schema Reference"); missing ones are skipped.

At its default, --cuda-graph-trace=graph, CUPTI_ACTIVITY_KIND_GRAPH_TRACE has a row a launch of a
whole CUDA graph, and the kernels inside are not recorded (UserGuide, "CUDA Graph Trace").
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path

from perfmodel.errors import TableError
from perfmodel.evidence.profiled import operations
from perfmodel.evidence.profiled.database import Database, opened, whole
from perfmodel.evidence.profiled.timeline import Columns, Recorded, Timeline, What

TOOL = "Nsight Systems"
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
GRAPH = "CUDA graph"
"""How the launch of a whole graph is called, before its number."""
_COLUMNS = (
    "start", "end", "correlationId", "demangledName", "shortName",
    "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
)  # fmt: skip
_PUSH_POP = (59, 60, 70)


def read(path: str | Path) -> Timeline:
    """Every launch; raises `TableError` for another database, and where nothing was launched."""
    with opened(path) as database:
        return _read(database)


def _read(database: Database) -> Timeline:
    names = _strings(database)
    launches = _launches(database)
    ranges = _ranges(database, names)
    columns, skips = Columns(), 0
    for row in database.rows(KERNELS, _COLUMNS, "start") if KERNELS in database.tables else ():
        start, end = whole(row[0]), whole(row[1])
        if start is None or end is None or end < start:
            skips += 1
            continue
        kernel = names.get(row[3]) or names.get(row[4]) or f"kernel {row[3] or row[4]}"
        call, recorded = _call(launches.get(row[2]), ranges)
        launch = What(str(kernel), recorded, _sizes(row[5:8]), _sizes(row[8:11]))
        columns.add(launch, float(start), float(end - start), call)
    notes, graph_skips = _graphs(database, columns)
    skips += graph_skips
    if not columns.start:
        raise TableError(f"{database.where}: no kernel was launched while it was profiled")
    if skips:
        notes.append(f"{skips} launches without times left out")
    return columns.timeline(TOOL, device=_device(database), notes=tuple(notes))


def _graphs(database: Database, columns: Columns) -> tuple[list[str], int]:
    """Add launches of whole graphs; a line about them, and how many have no times."""
    rows = database.rows(GRAPHS, ("start", "end", "graphId")) if GRAPHS in database.tables else ()
    count, skips, total = 0, 0, 0.0
    for first, last, graph in rows:
        start, end = whole(first), whole(last)
        if start is None or end is None or end < start:
            skips += 1
            continue
        columns.add(What(f"{GRAPH} {graph}"), float(start), float(end - start))
        count, total = count + 1, total + (end - start)
    if not count:
        return [], skips
    line = (
        f"{count} launches of whole CUDA graphs, {total / 1e6:.1f} ms, are not explained: their "
        "kernels were not recorded; profile with nsys profile --cuda-graph-trace=node"
    )
    return [line], skips


def _strings(database: Database) -> Mapping[object, object]:
    if "StringIds" not in database.tables:
        return {}
    return {row[0]: row[1] for row in database.rows("StringIds", ("id", "value"))}


def _sizes(cells: tuple[object, ...]) -> tuple[int, ...]:
    sizes = tuple(whole(cell, 1) for cell in cells)
    return tuple(size for size in sizes if size is not None) if None not in sizes else ()


def _launches(database: Database) -> Mapping[object, tuple[int, object]]:
    """Start time and thread of each launch, by correlation id."""
    table = "CUPTI_ACTIVITY_KIND_RUNTIME"
    if table not in database.tables:
        return {}
    rows = database.rows(table, ("correlationId", "start", "globalTid"))
    return {key: (moment, tid) for key, start, tid in rows if (moment := whole(start)) is not None}


class _Ranges:
    """Ranges of a thread, sorted by start, each with the index of its enclosing range."""

    def __init__(self, spans: list[tuple[int, int, int, Recorded | None]]) -> None:
        spans.sort(key=lambda span: (span[0], -span[1]))
        self.starts = [span[0] for span in spans]
        self.spans = spans
        self.around: list[int] = []
        stack: list[int] = []
        for place, (start, *_) in enumerate(spans):
            while stack and spans[stack[-1]][1] < start:
                stack.pop()
            self.around.append(stack[-1] if stack else -1)
            stack.append(place)

    def at(self, moment: int) -> tuple[int, Recorded | None]:
        """Number and operator of the innermost range at a time."""
        place = bisect_right(self.starts, moment) - 1
        while place >= 0:
            _, end, number, recorded = self.spans[place]
            if end >= moment:
                return number, recorded
            place = self.around[place]
        return -1, None


def _ranges(database: Database, names: Mapping[object, object]) -> Mapping[object, _Ranges]:
    """Ranges that name operators with sizes, by thread."""
    threads: dict[object, list[tuple[int, int, int, Recorded | None]]] = {}
    columns = ("start", "end", "text", "textId", "globalTid", "eventType")
    rows = database.rows("NVTX_EVENTS", columns) if "NVTX_EVENTS" in database.tables else ()
    for number, (start, end, text, key, tid, kind) in enumerate(rows):
        first, last = whole(start), whole(end)
        label = text if isinstance(text, str) else names.get(key)
        if first is None or last is None or not isinstance(label, str):
            continue
        if kind is not None and kind not in _PUSH_POP:
            continue
        recorded = operations.from_text(label)
        if recorded is not None and recorded.dims:
            threads.setdefault(tid, []).append((first, last, number, recorded))
    return {tid: _Ranges(spans) for tid, spans in threads.items()}


def _call(
    launch: tuple[int, object] | None, ranges: Mapping[object, _Ranges]
) -> tuple[int, Recorded | None]:
    """Number and operator of the range that a launch was made in."""
    if launch is None or launch[1] not in ranges:
        return -1, None
    return ranges[launch[1]].at(launch[0])


def _device(database: Database) -> str:
    if "TARGET_INFO_GPU" not in database.tables:
        return ""
    return next((str(name) for (name,) in database.rows("TARGET_INFO_GPU", ("name",)) if name), "")
