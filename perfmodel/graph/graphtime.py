"""Graph × device → `GraphPrediction`.

The host makes one call after another without waiting; the device takes them from a queue. A kernel
begins after the end of the kernel before it plus the gap, and not before its own call has reached
the device:

    begin = max(end before + gap, host + start)      end = begin + kernel      host += its call

Hence the end is the maximum, over every point of the order, of the host's time up to there plus the
device's time from there. Kernels of a captured graph, and those that are timed alone, wait for no
calls: their time is the sum of kernels and gaps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from perfmodel.graph import touches
from perfmodel.graph.asks import Ask, answers, ask
from perfmodel.graph.graph import Graph
from perfmodel.graph.graphprediction import GraphPrediction, NodePrediction
from perfmodel.graph.graphspread import Spread, together
from perfmodel.graph.live import live_bytes
from perfmodel.hardware import Device
from perfmodel.operators import operator_of
from perfmodel.prediction import Prediction
from perfmodel.timing import capacity, physical
from perfmodel.timing.constants import Constants, default
from perfmodel.timing.machine import machine


def predict_graph(
    graph: Graph, device: Device, *, harness: str = "kernel", constants: Constants | None = None
) -> GraphPrediction:
    """Predict a graph on a device.

    `harness` is how it would be timed: from a captured graph, by a framework's calls, or as device
    time alone ("kernel"). With a harness that does not clear the caches the graph runs repeatedly.

    Where a board rests before each run, it rests before the first node; each node is predicted as
    if the power limit had not responded yet. Raises the errors of `perfmodel.predict.predict` for a
    node.
    """
    values = constants or default()
    warm = values.run(harness).warm > 0.0

    def asks(scratch: Sequence[float]) -> list[Ask]:
        reuses = touches.reuses(graph, scratch, device, again=warm)
        return [ask(node, _places(graph, i), reuses[i]) for i, node in enumerate(graph.nodes)]

    first = asks([0.0] * len(graph.nodes))
    predictions = answers(first, device, harness=harness, constants=values)
    scratch = [_scratch_bytes(graph, i, prediction) for i, prediction in enumerate(predictions)]
    if any(scratch):  # scratch passes through the caches too
        second = asks(scratch)
        indices = [i for i, prediction in enumerate(second) if prediction.found != first[i].found]
        others = answers([second[i] for i in indices], device, harness=harness, constants=values)
        for i, prediction in zip(indices, others, strict=True):
            predictions[i] = prediction
    return _graph_prediction(graph, device, harness, values, predictions, scratch)


def _places(graph: Graph, i: int) -> dict[str, str]:
    """The level of each input of a node; outputs are written to device memory."""
    return {
        edge.operand: graph.tensors[edge.tensors[0]].place
        for edge in graph.nodes[i].reads
        if edge.tensors
    }


def _scratch_bytes(graph: Graph, i: int, prediction: Prediction) -> float:
    """Bytes that a node holds in the device's memory beyond its operands."""
    node, places = graph.nodes[i], _places(graph, i)
    operands = [edge.operand for edge in node.edges if places.get(edge.operand, "hbm") == "hbm"]
    scratch = prediction.footprint_bytes - sum(node.operand_bytes(name) for name in operands)
    return scratch if scratch > 0.5 else 0.0  # sizes are whole bytes


def _graph_prediction(
    graph: Graph,
    device: Device,
    harness: str,
    constants: Constants,
    predictions: Sequence[Prediction],
    scratch: Sequence[float],
) -> GraphPrediction:
    """The prediction from kernels, gaps and host, with live memory and assumptions."""
    gap = float(machine(device).at_clock(constants["kernel_gap"]))
    calls = [_call(graph, i, one) for i, one in enumerate(predictions)]
    spreads = [_spread(graph, i, one, calls[i], device) for i, one in enumerate(predictions)]
    low, seconds, high = (
        elapsed_seconds([replace(c, kernel_seconds=c.kernel_seconds * factor) for c in calls], gap)
        for factor in (together(spreads)[0], 1.0, together(spreads)[1])
    )
    live = live_bytes(graph, scratch)
    nodes = _nodes(graph, predictions, spreads, live["hbm"], scratch)
    gaps = gap * (graph.launches - 1)
    peaks = {level: max(held) for level, held in live.items()}
    rooms = capacity.rooms(device, peaks)
    return GraphPrediction(
        graph=graph.name,
        device=device.slug,
        harness=harness,
        sizes=graph.sizes,
        nodes=nodes,
        seconds=seconds,
        low_seconds=low,
        high_seconds=high,
        gap_seconds=gaps,
        waiting_seconds=seconds - gaps - sum(node.seconds for node in nodes),
        by_operator=_operator_seconds(nodes),
        live_bytes={level: tuple(held) for level, held in live.items()},
        fits_at={level: peaks[level] <= room for level, room in rooms.items()},
        assumptions=_assumptions(device, predictions, peaks, rooms),
    )


def _nodes(
    graph: Graph,
    predictions: Sequence[Prediction],
    spreads: Sequence[Spread],
    live: Sequence[float],
    scratch: Sequence[float],
) -> tuple[NodePrediction, ...]:
    """The prediction of each node."""
    return tuple(
        NodePrediction(
            name=node.name,
            operator=node.operator,
            repeat=node.repeat,
            seconds=spreads[i].seconds,
            low_seconds=spreads[i].low_seconds,
            high_seconds=spreads[i].high_seconds,
            live_bytes=live[i],
            scratch_bytes=scratch[i],
            prediction=predictions[i],
        )
        for i, node in enumerate(graph.nodes)
    )


def _assumptions(
    device: Device,
    predictions: Sequence[Prediction],
    peaks: Mapping[str, float],
    rooms: Mapping[str, float],
) -> tuple[str, ...]:
    """The assumptions of all nodes, each once, and the levels that are too small."""
    lines = dict.fromkeys(line for one in predictions for line in one.assumptions)
    excess = {level: peak for level, peak in peaks.items() if peak > rooms.get(level, math.inf)}
    return tuple(lines | dict.fromkeys(capacity.too_large(device, excess)))


def _call(graph: Graph, i: int, prediction: Prediction) -> Call:
    """A node from the device's side."""
    host = prediction.dispatch
    device_seconds = prediction.seconds - prediction.terms["launch"]
    return Call(
        repeat=graph.nodes[i].repeat,
        kernel_seconds=device_seconds + host["library_seconds"],
        start_seconds=host["start_seconds"],
        queued_seconds=host["queued_seconds"],
        least_seconds=host["least_seconds"],
    )


def _spread(graph: Graph, i: int, prediction: Prediction, call: Call, device: Device) -> Spread:
    """A node's range: that of its prediction applied to its kernels, not below the floor."""
    node = graph.nodes[i]
    floor = float(physical.floor_seconds(node.problem, device, prediction.flops["matrix"]))
    seconds = call.kernel_seconds
    low = max(seconds * prediction.low_seconds / prediction.seconds, min(floor, seconds))
    high = seconds * prediction.high_seconds / prediction.seconds
    family = operator_of(node.problem).family(node.problem)
    runs = node.repeat
    return Spread(family, runs * seconds, runs * low, runs * high)


def _operator_seconds(nodes: Sequence[NodePrediction]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for node in nodes:
        sums[node.operator] = sums.get(node.operator, 0.0) + node.seconds
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


@dataclass(frozen=True)
class Call:
    """A node from the device's side: times of one of its runs, in seconds."""

    repeat: int
    """Number of runs, one after another."""
    kernel_seconds: float
    """Seconds from the first instruction to the last."""
    start_seconds: float
    """Seconds from the call to the first instruction, on an idle device."""
    queued_seconds: float
    """Host seconds until the next call; 0 where there are no host calls."""
    least_seconds: float
    """Host seconds that are the least time the harness reports."""


def elapsed_seconds(calls: Iterable[Call], gap_seconds: float) -> float:
    """Seconds from the first call to the last instruction, or to the end of the last call.

    Among `repeat` equal runs only the first or the last can wait for the host, since device time
    and host time per run are constant.
    """
    end, host, least = -gap_seconds, 0.0, 0.0
    for call in calls:
        repeats = call.repeat - 1
        step = gap_seconds + call.kernel_seconds
        begin = host + call.start_seconds + call.kernel_seconds
        end = max(end + call.repeat * step, begin + repeats * max(call.queued_seconds, step))
        host += call.repeat * call.queued_seconds
        least += call.repeat * call.least_seconds
    return max(end, least)
