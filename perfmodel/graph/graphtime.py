"""Graph × device → a tree of predictions.

The host makes one call after another without waiting; the device takes them from a queue. A kernel
begins after the end of the kernel before it plus the gap, and not before its own call has reached
the device:

    begin = max(end before + gap, host + start)      end = begin + kernel      host += its call

Hence the end is the maximum, over every point of the order, of the host's time up to there plus the
device's time from there (`perfmodel.graph.stretch`). Kernels of a captured graph, and those that
are timed alone, wait for no calls: their time is the sum of kernels and gaps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from perfmodel.graph import touches
from perfmodel.graph.asks import Ask, answers, ask
from perfmodel.graph.graph import Graph
from perfmodel.graph.live import Memory, alive, spans
from perfmodel.graph.node import Node
from perfmodel.graph.stretch import Stretch, joined
from perfmodel.graph.tree import Tree, together, waits
from perfmodel.hardware import Device
from perfmodel.operators import operator_of
from perfmodel.prediction import Prediction
from perfmodel.timing import capacity, physical
from perfmodel.timing.constants import Constants, default
from perfmodel.timing.machine import machine


def predict_graph(
    graph: Graph, device: Device, *, harness: str = "kernel", constants: Constants | None = None
) -> Tree:
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
) -> Tree:
    """The prediction from kernels, gaps and host, with live memory and assumptions."""
    gap = float(machine(device).at_clock(constants["kernel_gap"]))
    tensors = spans(graph, scratch)
    live = alive(tensors, len(graph.nodes))
    kernels = [
        replace(
            _kernel(node, prediction, device),
            gap_seconds=gap,
            live_bytes=live["hbm"][i],
            scratch_bytes=scratch[i],
        )
        for i, (node, prediction) in enumerate(zip(graph.nodes, predictions, strict=True))
    ]
    low, high = together(kernels)
    gaps, seconds = gap * (graph.launches - 1), elapsed_seconds(kernels)
    waiting = seconds - gaps - sum(node.seconds for node in kernels)
    peaks = {level: max(sums) for level, sums in live.items()}
    rooms = capacity.rooms(device, peaks)
    excess = {level: peak for level, peak in peaks.items() if peak > rooms.get(level, math.inf)}
    lines = [line for prediction in predictions for line in prediction.assumptions]
    return Tree(
        name=graph.name,
        kind="graph",
        seconds=seconds,
        low_seconds=elapsed_seconds(kernels, low),
        high_seconds=elapsed_seconds(kernels, high),
        children=(*kernels, *waits(gaps=gaps, waiting=waiting)),
        settings={"graph": graph.name, "harness": harness, "sizes": graph.sizes},
        device=device.slug,
        phases={"gap": gaps, "waiting": waiting},
        live_bytes=peaks["hbm"],
        memory=Memory(tensors, tuple(node.name for node in graph.nodes), rooms),
        assumptions=tuple(dict.fromkeys([*lines, *capacity.too_large(device, excess)])),
    )


def _kernel(node: Node, run: Prediction, device: Device) -> Tree:
    """All runs of a node, with the library's own host time in its kernels: the range of its
    prediction applied to them, not below the floor."""
    floor = float(physical.floor_seconds(node.problem, device, run.flops["matrix"]))
    seconds = run.seconds - run.terms["launch"] + run.dispatch["library_seconds"]
    low = max(seconds * run.low_seconds / run.seconds, min(floor, seconds))
    high = seconds * run.high_seconds / run.seconds
    return Tree(
        name=node.name,
        kind=node.operator,
        family=operator_of(node.problem).family(node.problem),
        seconds=node.repeat * seconds,
        low_seconds=node.repeat * low,
        high_seconds=node.repeat * high,
        repeat=node.repeat,
        run=run,
    )


def elapsed_seconds(kernels: Iterable[Tree], factor: float = 1.0) -> float:
    """Seconds from the first call to the last instruction, or to the end of the last call, with the
    kernels' time `factor` as long.

    The first kernel has no gap before it, and a kernel that waits for its call has none either.
    """
    calls, gap, least = [], 0.0, 0.0
    for kernel in kernels:
        assert kernel.run is not None
        host, gap = kernel.run.dispatch, kernel.gap_seconds
        each = factor * kernel.seconds / kernel.repeat
        call = Stretch(gap + each, host["queued_seconds"], host["start_seconds"] + each)
        calls.append(call.times(int(kernel.repeat)))
        least += kernel.repeat * host["least_seconds"]
    order = joined(calls)
    return max(order.device_seconds - gap, order.latest_seconds, least)
