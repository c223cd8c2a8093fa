"""The report of a predicted trace: one line for each module, class, operator or kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from perfmodel.columns import SOME, Column
from perfmodel.graph.tree import Tree
from perfmodel.render import trees
from perfmodel.render.report import Report, on_device, quantity
from perfmodel.tracing.operation import Operation
from perfmodel.tracing.trace import Trace
from perfmodel.units import si

_SHOWN = 8  # limit on operators named in a note; the rest are only counted


def _module(item: Operation) -> str:
    """The path of the module; the layers of a list share one line."""
    return re.sub(r"(?<=\.)\d+(?=\.|$)|^\d+(?=\.|$)", "*", item.module) or "(itself)"


BY: dict[str, Callable[[Operation, Tree], str]] = {
    "module": lambda item, _: _module(item),
    "kind": lambda item, _: item.kind,
    "operator": lambda _, kernel: kernel.operator,
    "node": lambda item, _: item.name,
}
"""What a line is for."""


def report(trace: Trace, predictions: Sequence[Tree], by: str = "module") -> Report:
    """Lines of all devices, with a total for each; notes list estimated operators."""
    nodes = (node.name for node in trace.graph.nodes)
    items = dict(zip(nodes, trace.operations, strict=True))

    def label(path: Sequence[Tree]) -> str:
        item = items.get(path[-1].name)
        return "" if item is None else BY[by](item, path[-1])

    table = trees.report(predictions, by, "trace", label, "operator", "live_bytes")
    aten = {item.name: item.aten for item in trace.operations} if by == "node" else {}
    rows = [{**row, "aten": aten.get(row["line"], "")} for row in table.rows]
    title = (
        f"{trace.graph.name}: {si(trace.parameters, '')} parameters, {trace.aten_nodes} ATen "
        f"nodes → {trace.kernels} kernels{on_device(each.device for each in predictions)}"
    )
    return replace(
        table, rows=rows, examples=rows, columns=[*table.columns, _ATEN], title=title,
        head=trace.as_dict(), notes=[*_notes(trace, predictions), *table.notes],
    )  # fmt: skip


_ATEN = Column("ATen operators", "aten", number=False, when=SOME, wrap=40)


def _notes(trace: Trace, predictions: Sequence[Tree]) -> list[str]:
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


def _estimated_share(trace: Trace, graph: Tree) -> float:
    """The part of a device's time that kernels take which are counted by their bytes alone."""
    pairs = zip(trace.operations, graph.kernels, strict=True)
    return sum(leaf.seconds for item, (leaf, _) in pairs if item.estimated) / graph.seconds
