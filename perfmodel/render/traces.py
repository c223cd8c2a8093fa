"""The report of a predicted trace: one line for each module, class, operator or kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from perfmodel.graph import GraphPrediction, NodePrediction
from perfmodel.render.graphs import limiter
from perfmodel.render.report import (
    Column,
    Report,
    Row,
    assumed,
    keyed,
    micros,
    percent,
    quantity,
    several,
    text,
)
from perfmodel.tracing.operation import KINDS, Operation
from perfmodel.tracing.trace import Trace
from perfmodel.units import binary, si

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


def report(trace: Trace, predictions: Sequence[GraphPrediction], by: str = "module") -> Report:
    """Lines of all devices, with a total for each; notes list estimated operators."""
    rows = [row for each in predictions for row in _rows(trace, each, by)]
    device = several("device", rows)
    columns = [
        *device,
        text(by, "line"),
        *([text("ATen operators", "aten", wrap=40)] if by == "node" else []),
        keyed("kernels", "kernels"),
        keyed("time", "time_us", micros),
        percent("share", "share"),
        Column("FLOP", lambda row: row["useful_flops"] or None, quantity("FLOP")),
        Column("rate", _rate, quantity("FLOP/s")),
        keyed("memory traffic", "hbm_bytes", quantity("B")),
        text("limiter", "limiter"),
    ]
    title = (
        f"{trace.graph.name}: {si(trace.parameters, '')} parameters, {trace.aten_nodes} ATen "
        f"nodes → {len(trace.operations)} kernels"
    )
    title += "" if device else f" on {predictions[0].device}"
    notes = _notes(trace, predictions)
    for each in predictions:
        size = binary(each.footprints.get("hbm", 0.0))
        notes.append(f"{each.device}: holds {size} of memory, most at {each.peak_node}")
    notes += assumed(each.assumptions for each in predictions)
    return Report("trace", rows, columns, title, _head(trace), notes, examples=rows)


def _rate(row: Row) -> float | None:
    return row["useful_flops"] / row["time_us"] * 1e6 if row["useful_flops"] else None


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


def _rows(trace: Trace, graph: GraphPrediction, by: str) -> Iterator[Row]:
    """The lines of one device; the last is their sum."""
    groups: dict[str, list[tuple[Operation, NodePrediction]]] = {}
    for pair in zip(trace.operations, graph.nodes, strict=True):
        groups.setdefault(BY[by](*pair), []).append(pair)
    if by == "kind":
        groups = {kind: groups[kind] for kind in KINDS if kind in groups}
    for line, pairs in groups.items():
        nodes = [node for _, node in pairs]
        ends = (sum(getattr(node, end) for node in nodes) for end in _ENDS)
        aten = pairs[0][0].aten if len(pairs) == 1 else ""
        row = _row(graph, line, pairs, *ends)
        yield {**row, "aten": aten, "limiter": limiter(nodes)}
    for line, seconds in (("gaps", graph.gap_seconds), ("waiting", graph.waiting_seconds)):
        yield _row(graph, line, [], seconds, seconds, seconds)  # has no range of its own
    pairs = [pair for group in groups.values() for pair in group]
    yield _row(graph, "all", pairs, *(getattr(graph, end) for end in _ENDS))


_ENDS = ("seconds", "low_seconds", "high_seconds")


def _row(
    graph: GraphPrediction,
    line: str,
    pairs: Sequence[tuple[Operation, NodePrediction]],
    seconds: float,
    low: float,
    high: float,
) -> Row:
    items = [item for item, _ in pairs]
    return {
        "device": graph.device,
        "line": line,
        "aten": "",
        "kernels": len(pairs) or None,
        "time_us": seconds * 1e6,
        "share": seconds / graph.seconds,
        "low_us": low * 1e6,
        "high_us": high * 1e6,
        "flops": sum(item.flops for item in items),
        "useful_flops": sum(item.useful_flops for item in items),
        "hbm_bytes": sum(node.repeat * node.prediction.bytes["hbm"] for _, node in pairs) or None,
        "limiter": "",
        "estimated": any(item.estimated for item in items),
    }
