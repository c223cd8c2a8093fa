"""The table of predicted graphs: one line for each node or operator, and a total."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfmodel.graph import GraphPrediction, NodePrediction
from perfmodel.render.report import (
    Column,
    Report,
    Row,
    around,
    assumed,
    binary,
    keyed,
    micros,
    percent,
    quantity,
    several,
    span,
    text,
)

BY = ("node", "operator")
"""What a line is for."""


def data(predictions: Sequence[GraphPrediction]) -> Report:
    """All data, one document for each graph and device."""
    rows = [prediction.as_dict() for prediction in predictions]
    return Report("graphs", rows, [], examples=rows)


def report(predictions: Sequence[GraphPrediction], by: str = "node") -> Report:
    """Lines for people and spreadsheets; `by` is one of `BY`."""
    rows = [row for prediction in predictions for row in _rows(prediction, by)]
    device = several("device", rows)
    repeats = any(node.repeat > 1 for prediction in predictions for node in prediction.nodes)
    columns = [
        *device,
        text(by, by),
        *([text("operator", "operator", rank=3)] if by == "node" else []),
        *([keyed("runs", "repeat", rank=4)] if repeats else []),
        keyed("time", "time_us", micros),
        percent("share", "share", rank=1),
        Column("range", span, rank=2, brief=Column("range", around)),
        text("limiter", "limiter"),
        keyed("memory traffic", "hbm_bytes", quantity("B"), rank=5),
        keyed("live", "live_bytes", binary, rank=6),
    ]
    first = predictions[0]
    sizes = " ".join(f"{name}={value}" for name, value in first.sizes.items())
    title = f"{first.graph}{'' if device else f' on {first.device}'}: {sizes}"
    notes = [*map(_sentence, predictions), *assumed(each.assumptions for each in predictions)]
    return Report("graphs", rows, columns, title, notes=notes, examples=rows)


def _rows(prediction: GraphPrediction, by: str) -> Iterator[Row]:
    """The lines of one graph; the last is their sum."""
    groups: dict[str, list[NodePrediction]] = {}
    for node in prediction.nodes:
        groups.setdefault(getattr(node, "name" if by == "node" else by), []).append(node)
    rows = [
        {**_sums(prediction, label if by == "node" else "", nodes), "operator": nodes[0].operator}
        for label, nodes in groups.items()
    ]
    yield from rows if by == "node" else sorted(rows, key=lambda row: -row["time_us"])
    total = {
        **_sums(prediction, "all", prediction.nodes),
        "low_us": prediction.low_seconds * 1e6,
        "high_us": prediction.high_seconds * 1e6,
        "limiter": "",
        "live_bytes": prediction.peak_bytes,
    }
    counted = ("repeat", "low_us", "high_us", "hbm_bytes", "live_bytes")
    for label, seconds, row in (
        ("gaps", prediction.gap_seconds, total | dict.fromkeys(counted)),
        ("waiting", prediction.waiting_seconds, total | dict.fromkeys(counted)),
        ("all", prediction.seconds, total),
    ):
        time = {"time_us": seconds * 1e6, "share": seconds / prediction.seconds}
        yield {**row, **time, "node": label, "operator": "" if by == "node" else label}


def _sums(prediction: GraphPrediction, label: str, nodes: Sequence[NodePrediction]) -> Row:
    """What some nodes add up to."""
    seconds = sum(node.seconds for node in nodes)
    return {
        "graph": prediction.graph,
        "device": prediction.device,
        "node": label,
        "operator": "",
        "repeat": sum(node.repeat for node in nodes),
        "time_us": seconds * 1e6,
        "share": seconds / prediction.seconds,
        "low_us": sum(node.low_seconds for node in nodes) * 1e6,
        "high_us": sum(node.high_seconds for node in nodes) * 1e6,
        "limiter": limiter(nodes),
        "hbm_bytes": sum(node.repeat * node.prediction.bytes["hbm"] for node in nodes),
        "live_bytes": max(node.live_bytes for node in nodes),
    }


def limiter(nodes: Sequence[NodePrediction]) -> str:
    """What limits the longest of some nodes."""
    longest = max(nodes, key=lambda node: node.seconds)
    return longest.prediction.levels.get(longest.limiter, longest.limiter)


def _sentence(prediction: GraphPrediction) -> str:
    """The peak of live memory, and whether it fits."""
    parts = [
        f"{binary(size)} of {'memory' if level == 'hbm' else level}"
        for level, size in prediction.footprints.items()
    ]
    levels = [level for level, fits in prediction.fits_at.items() if not fits]
    lack = f"; does not fit in {', '.join(levels)}" if levels else ""
    return f"{prediction.device}: holds {', '.join(parts)}, most at {prediction.peak_node}{lack}"
