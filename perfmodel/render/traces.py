"""The report of a predicted trace: one line for each module, class, operator or kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from perfmodel.columns import row_of
from perfmodel.graph import GraphPrediction, NodePrediction
from perfmodel.render.graphs import ends_of, part_of, waits_of
from perfmodel.render.lines import Part, columns_by, lines
from perfmodel.render.report import Report, assumed, on_device, quantity
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
    columns = columns_by(by, "line", "operator", "live_bytes")
    rows = [
        row_of(line, columns)
        for each in predictions
        for line in lines(each.device, _parts(trace, each, by), ends_of(each), waits_of(each))
    ]
    title = (
        f"{trace.graph.name}: {si(trace.parameters, '')} parameters, {trace.aten_nodes} ATen "
        f"nodes → {trace.kernels} kernels{on_device(each.device for each in predictions)}"
    )
    notes = _notes(trace, predictions)
    for each in predictions:
        size = binary(each.footprints.get("hbm", 0.0))
        notes.append(f"{each.device}: holds {size} of memory, most at {each.peak_node}")
    notes += assumed(each.assumptions for each in predictions)
    return Report("trace", rows, columns, title, trace.as_dict(), notes, examples=rows)


def _parts(trace: Trace, graph: GraphPrediction, by: str) -> list[Part]:
    parts = [
        replace(
            part_of(node, ""), line=BY[by](item, node), live_bytes=0.0, work=item.useful_flops,
            aten=item.aten if by == "node" else "",
        )
        for item, node in zip(trace.operations, graph.nodes, strict=True)
    ]  # fmt: skip
    return sorted(parts, key=lambda part: KINDS.index(part.line)) if by == "kind" else parts


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
