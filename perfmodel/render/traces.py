"""The report of a predicted trace: one line for each module, class, operator or kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from perfmodel.graph import GraphPrediction, NodePrediction
from perfmodel.render.report import Column, Report, Row, assumed, micros, percent, quantity, text
from perfmodel.tracing.operation import KINDS, Operation
from perfmodel.tracing.trace import Trace
from perfmodel.units import binary, si

_GAPS, _WAITING, _ALL = "gaps", "waiting", "all"
_SHOWN = 8  # limit on operators named in a note; the rest are only counted


def _module(item: Operation, _: NodePrediction) -> str:
    """The path of the module; the layers of a list share one line."""
    return re.sub(r"(?<=\.)\d+(?=\.|$)|^\d+(?=\.|$)", "*", item.module) or "(itself)"


BY: dict[str, Callable[[Operation, NodePrediction], str]] = {
    "module": _module,
    "kind": lambda item, _: item.kind,
    "operator": lambda _, node: node.operator,
    "node": lambda item, _: item.name,
}
"""What a line is for."""


def report(found: Trace, predicted: Sequence[GraphPrediction], by: str = "module") -> Report:
    """Lines of all devices, with a total for each; notes list estimated operators."""
    rows = [row for p in predicted for row in _rows(found, p, by)]
    several = len(predicted) > 1
    columns = [
        *([text("device", "device")] if several else []),
        text(by, "line"),
        *([text("ATen operators", "aten", wrap=40)] if by == "node" else []),
        Column("kernels", lambda row: row["kernels"]),
        Column("time", lambda row: row["time_us"], micros),
        percent("share", "share"),
        Column("FLOP", lambda row: row["useful_flops"] or None, quantity("FLOP")),
        Column("rate", _rate, quantity("FLOP/s")),
        Column("memory traffic", lambda row: row["hbm_bytes"], quantity("B")),
        text("limiter", "limiter"),
    ]
    suffix = "" if several else f" on {predicted[0].device}"
    notes = [*_notes(found, predicted), *(_memory_note(p) for p in predicted)]
    notes += assumed(p.assumptions for p in predicted)
    return Report(
        "trace", rows, columns, f"{_title(found)}{suffix}", _head(found), notes, examples=rows
    )


def _rate(row: Row) -> float | None:
    return row["useful_flops"] / row["time_us"] * 1e6 if row["useful_flops"] else None


def _title(trace: Trace) -> str:
    return (
        f"{trace.graph.name}: {si(trace.parameters, '')} parameters, {trace.aten_nodes} ATen "
        f"nodes → {len(trace.operations)} kernels"
    )


def _head(trace: Trace) -> dict[str, Any]:
    return {
        "module": trace.graph.name,
        "parameters": trace.parameters,
        "aten_nodes": trace.aten_nodes,
        "views": trace.views,
        "kernels": len(trace.operations),
        "flops": trace.flops,
        "useful_flops": trace.useful_flops,
        "estimated": dict(trace.estimated),
        "unknown": dict(trace.unknown),
    }


def _notes(trace: Trace, predictions: Sequence[GraphPrediction]) -> list[str]:
    """What masks leave out or do not, operators counted by their bytes alone, unknown operators."""
    notes = []
    if trace.useful_flops < trace.flops:
        notes.append(
            f"FLOP and rate leave out what causal masks hide; torch's counter has "
            f"{quantity('FLOP')(trace.flops)}"
        )
    if trace.masked:
        kernels = "attention kernel has" if trace.masked == 1 else "attention kernels have"
        notes.append(f"{trace.masked} {kernels} a mask tensor: counted in full")
    share = max(_estimated_share(trace, p) for p in predictions)
    for label, names in (
        (f"counted by their bytes alone, {share:.1%} of the time", trace.estimated),
        ("not known, counted by their bytes", trace.unknown),
    ):
        if names:
            entries = [f"{name} x{n}" if n > 1 else name for name, n in names.items()]
            rest = f" and {len(entries) - _SHOWN} more" if len(entries) > _SHOWN else ""
            notes.append(f"{label}: {', '.join(entries[:_SHOWN])}{rest}")
    return notes


def _estimated_share(trace: Trace, graph: GraphPrediction) -> float:
    """The part of a device's time that kernels take which are counted by their bytes alone."""
    pairs = zip(trace.operations, graph.nodes, strict=True)
    return sum(node.seconds for item, node in pairs if item.estimated) / graph.seconds


def _memory_note(graph: GraphPrediction) -> str:
    size = graph.footprints.get("hbm", 0.0)
    return f"{graph.device}: holds {binary(size)} of memory, most at {graph.peak_node}"


def _rows(trace: Trace, graph: GraphPrediction, by: str) -> list[dict[str, Any]]:
    groups: dict[str, list[tuple[Operation, NodePrediction]]] = {}
    for pair in zip(trace.operations, graph.nodes, strict=True):
        groups.setdefault(BY[by](*pair), []).append(pair)
    if by == "kind":
        groups = {kind: groups[kind] for kind in KINDS if kind in groups}
    rows = [_row(graph, line, pairs) for line, pairs in groups.items()]
    for line, seconds in ((_GAPS, graph.gap_seconds), (_WAITING, graph.waiting_seconds)):
        ends = _range([(seconds, seconds)])  # has no range of its own
        rows.append(_row(graph, line, []) | _times(graph, seconds) | ends)
    all_pairs = [pair for pairs in groups.values() for pair in pairs]
    total = _times(graph, graph.seconds) | _range([(graph.low_seconds, graph.high_seconds)])
    rows.append(_row(graph, _ALL, all_pairs) | total | {"limiter": ""})
    return rows


def _times(graph: GraphPrediction, seconds: float) -> dict[str, Any]:
    return {"time_us": seconds * 1e6, "share": seconds / graph.seconds}


def _range(seconds: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """The ends of the 80 % range of kernels whose errors have one cause: they add up."""
    low, high = (sum(end) for end in zip(*seconds, strict=True)) if seconds else (0.0, 0.0)
    return {"low_us": low * 1e6, "high_us": high * 1e6}


def _row(
    graph: GraphPrediction, line: str, pairs: Sequence[tuple[Operation, NodePrediction]]
) -> dict[str, Any]:
    nodes = [node for _, node in pairs]
    seconds = sum(node.seconds for node in nodes)
    limiter = ""
    if nodes:
        longest = max(nodes, key=lambda node: node.seconds)
        limiter = longest.prediction.levels.get(longest.limiter, longest.limiter)
    return {
        "device": graph.device,
        "line": line,
        "aten": pairs[0][0].aten if len(pairs) == 1 else "",
        "kernels": len(nodes) or None,
        **_times(graph, seconds),
        **_range([(node.low_seconds, node.high_seconds) for node in nodes]),
        "flops": sum(item.flops for item, _ in pairs),
        "useful_flops": sum(item.useful_flops for item, _ in pairs),
        "hbm_bytes": sum(node.repeat * node.prediction.bytes["hbm"] for node in nodes) or None,
        "limiter": limiter,
        "estimated": any(item.estimated for item, _ in pairs),
    }
