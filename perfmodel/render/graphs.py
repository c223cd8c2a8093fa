"""The report of predicted graphs: one line for each node or operator, and a total."""

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
    micros,
    percent,
    quantity,
    span,
    text,
)

BY = ("node", "operator")
"""What a line is for."""

_GAPS, _WAITING, _ALL = "gaps", "waiting", "all"


def data(found: Sequence[GraphPrediction]) -> Report:
    """All data, one document for each graph and device."""
    rows = [p.as_dict() for p in found]
    return Report("graphs", rows, [], examples=rows)


def report(found: Sequence[GraphPrediction], by: str = "node") -> Report:
    """Lines for people and spreadsheets; `by` is one of `BY`."""
    rows = [row for p in found for row in _rows(p, by)]
    several = len({p.device for p in found}) > 1
    columns = [
        *([text("device", "device")] if several else []),
        text("node", "node") if by == "node" else text("operator", "operator"),
        *([text("operator", "operator", rank=3)] if by == "node" else []),
        *([Column("runs", lambda row: row["repeat"], rank=4)] if _repeats(found) else []),
        Column("time", lambda row: row["time_us"], micros),
        percent("share", "share", rank=1),
        Column("range", span, rank=2, brief=Column("range", around)),
        text("limiter", "limiter"),
        Column("memory traffic", lambda row: row["hbm_bytes"], quantity("B"), rank=5),
        Column("live", lambda row: row["live_bytes"], binary, rank=6),
    ]
    sizes = " ".join(f"{name}={value}" for name, value in found[0].sizes.items())
    suffix = "" if several else f" on {found[0].device}"
    notes = [*map(_sentence, found), *assumed(p.assumptions for p in found)]
    return Report(
        "graphs", rows, columns, f"{found[0].graph}{suffix}: {sizes}", notes=notes, examples=rows
    )


def _repeats(predictions: Sequence[GraphPrediction]) -> bool:
    return any(node.repeat > 1 for p in predictions for node in p.nodes)


def _rows(prediction: GraphPrediction, by: str) -> Iterator[Row]:
    """The lines of one graph; the last is their sum."""
    by_label: dict[str, list[NodePrediction]] = {}
    for node in prediction.nodes:
        by_label.setdefault(node.name if by == "node" else node.operator, []).append(node)
    groups = list(by_label.values())
    if by == "operator":
        groups.sort(key=lambda nodes: -sum(node.seconds for node in nodes))
    for nodes in groups:
        longest = max(nodes, key=lambda node: node.seconds)
        ends = [sum(getattr(n, end) for n in nodes) for end in ("low_seconds", "high_seconds")]
        limiter = longest.prediction.levels.get(longest.limiter, longest.limiter)
        yield _row(
            prediction,
            longest.name if by == "node" else "",
            sum(node.seconds for node in nodes),
            ends,
            operator=longest.operator,
            repeat=sum(node.repeat for node in nodes),
            limiter=limiter,
            hbm_bytes=sum(node.repeat * node.prediction.bytes["hbm"] for node in nodes),
            live_bytes=max(node.live_bytes for node in nodes),
        )
    for name, seconds in ((_GAPS, prediction.gap_seconds), (_WAITING, prediction.waiting_seconds)):
        yield _row(prediction, name, seconds, operator="" if by == "node" else name)
    yield _row(
        prediction,
        _ALL,
        prediction.seconds,
        (prediction.low_seconds, prediction.high_seconds),
        operator="" if by == "node" else _ALL,
        repeat=sum(node.repeat for node in prediction.nodes),
        hbm_bytes=sum(node.repeat * node.prediction.bytes["hbm"] for node in prediction.nodes),
        live_bytes=prediction.peak_bytes,
    )


def _row(
    prediction: GraphPrediction,
    node: str,
    seconds: float,
    ends: Sequence[float] | None = None,
    **values: object,
) -> Row:
    low, high = ends if ends is not None else (None, None)
    return {
        "graph": prediction.graph,
        "device": prediction.device,
        "node": node,
        "operator": "",
        "repeat": None,
        "time_us": seconds * 1e6,
        "share": seconds / prediction.seconds,
        "low_us": None if low is None else low * 1e6,
        "high_us": None if high is None else high * 1e6,
        "limiter": "",
        "hbm_bytes": None,
        "live_bytes": None,
        **values,
    }


def _sentence(prediction: GraphPrediction) -> str:
    """The peak of live memory, and whether it fits."""
    parts = [
        f"{binary(size)} of {'memory' if level == 'hbm' else level}"
        for level, size in prediction.footprints.items()
    ]
    levels = [level for level, fits in prediction.fits_at.items() if not fits]
    lack = f"; does not fit in {', '.join(levels)}" if levels else ""
    return f"{prediction.device}: holds {', '.join(parts)}, most at {prediction.peak_node}{lack}"
