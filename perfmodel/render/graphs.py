"""The table of predicted graphs: one line for each node or operator, and a total."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfmodel.columns import Column, row_of
from perfmodel.graph import GraphPrediction, NodePrediction
from perfmodel.render.lines import Part, columns_by, lines
from perfmodel.render.report import Report, assumed, binary, on_device

BY = ("node", "operator")
"""What a line is for."""


def data(predictions: Sequence[GraphPrediction]) -> Report:
    """All data, one document for each graph and device."""
    return Report.of("graphs", predictions, **_words(predictions))


def report(predictions: Sequence[GraphPrediction], by: str = "node") -> Report:
    """Lines for people and spreadsheets; `by` is one of `BY`."""
    columns = (Column(key="graph"), *columns_by(by, by, "aten"))
    rows = [
        {"graph": each.graph, **row_of(line, columns[1:])}
        for each in predictions
        for line in lines(
            each.device, (part_of(node, by) for node in each.nodes), ends_of(each), waits_of(each),
            ranked=by == "operator",
        )
    ]  # fmt: skip
    return Report("graphs", rows, columns, examples=rows, **_words(predictions))


def _words(predictions: Sequence[GraphPrediction]) -> dict[str, Any]:
    """Title and notes."""
    first = predictions[0]
    sizes = " ".join(f"{name}={value}" for name, value in first.sizes.items())
    title = f"{first.graph}{on_device(each.device for each in predictions)}: {sizes}"
    notes = [*map(_sentence, predictions), *assumed(each.assumptions for each in predictions)]
    return {"title": title, "notes": notes}


def part_of(node: NodePrediction, by: str) -> Part:
    """A node in the line that `by` puts it in."""
    run = node.prediction
    line, operator = (node.name, node.operator) if by == "node" else (node.operator, "")
    return Part(
        line, node.repeat, node.seconds, node.low_seconds, node.high_seconds,
        run.levels.get(node.limiter, node.limiter), run,
        node.repeat * run.work if run.flops["matrix"] else 0.0,
        operator=operator, live_bytes=node.live_bytes,
    )  # fmt: skip


def ends_of(graph: GraphPrediction) -> tuple[float, float, float]:
    """Seconds of a graph, and their range."""
    return graph.seconds, graph.low_seconds, graph.high_seconds


def waits_of(graph: GraphPrediction) -> dict[str, float]:
    """Seconds without a kernel, by name."""
    return {"gaps": graph.gap_seconds, "waiting": graph.waiting_seconds}


def _sentence(prediction: GraphPrediction) -> str:
    """The peak of live memory, and whether it fits."""
    parts = [
        f"{binary(size)} of {'memory' if level == 'hbm' else level}"
        for level, size in prediction.footprints.items()
    ]
    levels = [level for level, fits in prediction.fits_at.items() if not fits]
    lack = f"; does not fit in {', '.join(levels)}" if levels else ""
    return f"{prediction.device}: holds {', '.join(parts)}, most at {prediction.peak_node}{lack}"
