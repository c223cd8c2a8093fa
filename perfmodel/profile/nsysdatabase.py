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

from collections.abc import Mapping
from typing import Any

import numpy as np

from perfmodel.profile import operations
from perfmodel.profile.database import Database, whole
from perfmodel.profile.nsys import TOOL
from perfmodel.profile.timeline import Columns, Recorded, Timeline, What, innermost

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
GRAPH = "CUDA graph"
"""How the launch of a whole graph is called, before its number."""
_COLUMNS = (
    "start", "end", "correlationId", "demangledName", "shortName",
    "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
)  # fmt: skip
_PUSH_POP = (59, 60, 70)


def read(base: Database) -> Timeline:
    """Every launch."""
    names = dict(base.rows("StringIds", ("id", "value")))
    columns, rows = Columns(), list(base.rows(KERNELS, _COLUMNS, "start"))
    for row, (call, recorded) in zip(rows, _operators(base, names, rows), strict=True):
        kernel = names.get(row[3]) or names.get(row[4]) or f"kernel {row[3] or row[4]}"
        start, duration, fault = base.span(row[0], row[1])
        launch = What(str(kernel), recorded, _sizes(row[5:8]), _sizes(row[8:11]))
        columns.add(launch, start, duration, call, fault)
    notes = _graphs(base, columns)
    gpus = (str(name) for (name,) in base.rows("TARGET_INFO_GPU", ("name",)) if name)
    return columns.timeline(TOOL, device=next(gpus, ""), notes=notes)


def _graphs(base: Database, columns: Columns) -> tuple[str, ...]:
    """Add launches of whole graphs; and a line about them."""
    count, total = 0, 0.0
    for first, last, graph in base.rows(GRAPHS, ("start", "end", "graphId")):
        start, duration, fault = base.span(first, last)
        columns.add(What(f"{GRAPH} {graph}"), start, duration, fault=fault)
        count, total = count + (not fault), total + duration
    if not count:
        return ()
    line = (
        f"{count} launches of whole CUDA graphs, {total / 1e6:.1f} ms, are not explained: their "
        "kernels were not recorded; profile with nsys profile --cuda-graph-trace=node"
    )
    return (line,)


def _sizes(cells: tuple[Any, ...]) -> tuple[int, ...]:
    sizes = tuple(whole(cell, 1) for cell in cells)
    return tuple(size for size in sizes if size is not None) if None not in sizes else ()


def _operators(
    base: Database, names: Mapping[Any, Any], kernels: list[tuple[Any, ...]]
) -> list[tuple[int, Recorded | None]]:
    """Number and operator of the range that each kernel was launched in; (-1, None) for none."""
    threads: dict[object, int] = {}
    spans: list[tuple[int, int, int]] = []  # start, end, thread
    recorded: list[Recorded] = []
    columns = ("start", "end", "text", "textId", "globalTid", "eventType")
    for start, end, text, key, tid, kind in base.rows("NVTX_EVENTS", columns):
        first, last = whole(start), whole(end)
        label = text if isinstance(text, str) else names.get(key)
        if first is None or last is None or not isinstance(label, str):
            continue
        operator = operations.from_text(label) if kind is None or kind in _PUSH_POP else None
        if operator is not None and operator.dims:
            spans.append((first, last, threads.setdefault(tid, len(threads))))
            recorded.append(operator)
    calls = base.rows("CUPTI_ACTIVITY_KIND_RUNTIME", ("correlationId", "start", "globalTid"))
    launches = {key: (whole(start), threads.get(tid, -1)) for key, start, tid in calls}
    moments = [launches.get(row[2], (None, -1)) for row in kernels]
    starts, ends, tids = np.array(spans, dtype=np.int64).reshape(-1, 3).T
    calls_of = innermost(starts, ends, tids, [(moment or 0, tid) for moment, tid in moments])
    calls_of[[moment is None for moment, _ in moments]] = -1
    return [(i, recorded[i]) if i >= 0 else (-1, None) for i in calls_of.tolist()]
