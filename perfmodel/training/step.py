"""Network × plan × device × links → a training step: seconds, breakdown, memory.

    micro-batch   Σ layers: forward; recomputation and backward, with exchanges between kernels
    step          micro-batches, through pipeline stages if any; exposed exchanges of weights and
                  gradients; the optimiser

Host and device run concurrently (`perfmodel.graph.stretch`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from perfmodel.errors import ProblemError, SizeError
from perfmodel.graph.live import Memory
from perfmodel.graph.tree import Tree
from perfmodel.hardware import Device, System, systems
from perfmodel.networks import hosts
from perfmodel.networks.expand import expand
from perfmodel.networks.hosts import Host
from perfmodel.networks.network import Network
from perfmodel.networks.networktime import predict_networks
from perfmodel.networks.segment import Segment
from perfmodel.offload.links import host_bytes_per_s
from perfmodel.timing.constants import Constants
from perfmodel.training.copies import Copies
from perfmodel.training.fabric import fabric
from perfmodel.training.layers import LayerWork, layers
from perfmodel.training.pairing import pair_seconds
from perfmodel.training.pipeline import Schedule, StageTimes, Timeline, schedule, simulate
from perfmodel.training.plan import Plan
from perfmodel.training.result import Step
from perfmodel.training.stages import Part, parts
from perfmodel.training.stepmemory import memory, paged
from perfmodel.training.steptree import recompute_seconds, step_tree
from perfmodel.training.weightupdate import host_traffic_bytes, updates


def predict_step(
    network: Network,
    plan: Plan,
    device: Device,
    system: System | None = None,
    *,
    host: Host | None = None,
    constants: Constants | None = None,
) -> Step:
    """Predict one step on a system, or on the device's default system.

    `host` replaces the launch times of the stack's host. Raises as `check`.
    """
    check(network, plan, device, system)
    (step,) = predict_steps(network, [plan], device, system, host=host, constants=constants)
    return step


def predict_steps(
    network: Network,
    plans: Sequence[Plan],
    device: Device,
    system: System | None = None,
    *,
    host: Host | None = None,
    constants: Constants | None = None,
) -> list[Step]:
    """The steps of plans that `check` lets pass, whose kernels are predicted together."""
    settings = [plan.setting for plan in plans]
    predictions = predict_networks(network, settings, device, constants=constants)
    drafts = [
        _draft(network, plan, prediction, device, system, host)
        for plan, prediction in zip(plans, predictions, strict=True)
    ]
    last = updates([(draft.pairs, draft.copies.plan) for draft in drafts], device, constants)
    return [
        _step(network, draft, device, system, trees)
        for draft, trees in zip(drafts, last, strict=True)
    ]


@dataclass(frozen=True)
class _Draft:
    """A step before its update."""

    prediction: Tree
    """The passes of one micro-batch."""
    copies: Copies
    """The exchanges among the copies of its plan."""
    order: Schedule
    """Its schedule."""
    cut: Sequence[Part]
    """Its layers by part."""
    timing: Timed
    """Its micro-batches."""

    @property
    def stage(self) -> Sequence[Part]:
        """The parts of the stage that computes longest."""
        return self.order.by_stage(self.cut)[self.timing.busiest]

    @property
    def pairs(self) -> list[tuple[Segment, int]]:
        """The segments of that stage with their numbers of layers."""
        return [pair for part in self.stage for pair in part.segments]


def _draft(
    network: Network, plan: Plan, prediction: Tree, device: Device, system: System | None,
    host: Host | None,
) -> _Draft:  # fmt: skip
    copies = Copies(
        plan,
        fabric(plan, device, system),
        host or hosts.load(plan.setting.stack.host),
        host_bytes_per_s=host_bytes_per_s(device) if device.level("host") else None,
    )
    order = schedule(plan.schedule_kind, plan.pipeline, plan.accumulation, plan.chunks)
    cut = parts(layers(prediction, expand(network, plan.setting), plan), order.parts)
    return _Draft(prediction, copies, order, cut, _timing(cut, order, copies))


def _step(
    network: Network, draft: _Draft, device: Device, system: System | None, last: Sequence[Tree]
) -> Step:
    """The step of a draft and the device's update."""
    prediction, copies, order = draft.prediction, draft.copies, draft.order
    plan, timing, stage, pairs = copies.plan, draft.timing, draft.stage, draft.pairs
    if plan.offloads:
        last = _host_update(pairs, copies, _host_memory_bytes_per_s(plan, device, system))
    tail = copies.exit_seconds(pairs) if plan.training else 0.0
    storage = _memory(order, draft.cut, plan, device)
    if plan.paged:
        storage = paged(storage)
    updating = sum(spread.seconds for spread in last)
    paging = copies.page_seconds(storage.footprints.get("host", 0.0)) if plan.paged else 0.0
    seconds = timing.seconds + tail + updating + paging
    # Each direction of a pipeline with two has its share of the micro-batches.
    share = replace(plan, accumulation=plan.accumulation // order.copies)
    tree = step_tree(
        stage, replace(copies, plan=share), last, timing.bubble_seconds, seconds,
        timing.hidden_seconds,
    )  # fmt: skip
    return Step(
        network=network,
        plan=plan,
        device=device.slug,
        seconds=seconds,
        low_seconds=tree.low_seconds,
        high_seconds=tree.high_seconds,
        forward_seconds=timing.forward_seconds,
        backward_seconds=timing.backward_seconds,
        bubble_seconds=timing.bubble_seconds,
        recompute_seconds=recompute_seconds(stage, share),
        classes={kind: each for kind, each in tree.classes.items() if each},
        memory=storage,
        peak_flops=_peak(device, plan),
        assumptions=prediction.assumptions,
        known_device=prediction.known_device,
        timeline=timing.line,
        tree=replace(tree, settings={"network": network.name, **plan.settings}, device=device.slug),
    )


SOCKETS = 2
"""Sockets of a node with several devices. Memory lies beside the socket that first writes it
(Linux), so that a process has that socket's at most."""


def _host_memory_bytes_per_s(plan: Plan, device: Device, system: System | None) -> float:
    """One device's share of the rate of its host's memory. Raises `ProblemError` without one."""
    place = system or systems.usual(device)
    if place.host is None or place.host.memory_bandwidth is None:
        known = [each.slug for each in systems.every() if each.host and each.host.memory_bandwidth]
        raise ProblemError(
            f"{place.slug} has no rate of the host's memory, which offload optimiser needs; add "
            f"host.memory_bandwidth to a system's file, or take one of {', '.join(known)}"
        )
    sharing = max(min(plan.devices, place.node_devices), SOCKETS)
    return place.host.memory_bandwidth.si / sharing


def _host_update(
    layers: Sequence[tuple[Segment, int]], copies: Copies, memory_bytes_per_s: float
) -> tuple[Tree, ...]:
    """The host's update of the layers, at the rate of its memory. It begins when the norm of all
    gradients is known; updated weights return beside it, and what they take longer is waited for
    (2101.06840, §4.1)."""
    seconds = host_traffic_bytes(layers, copies.plan) / memory_bytes_per_s
    rest = copies.weights_in_seconds(layers) - seconds
    return (
        Tree.part("update by the host", "optimiser", seconds, resource="host memory"),
        *([Tree.part("weights from the host", "communication", rest)] if rest > 0.0 else ()),
    )


def step_memory(network: Network, plan: Plan, device: Device) -> Memory:
    """Memory of a step on its fullest device, without timing it."""
    order = schedule(plan.schedule_kind, plan.pipeline, plan.accumulation, plan.chunks)
    work = [
        LayerWork(s, Tree.series(s.name, "forward", ()), None, (), s.repeat)
        for s in expand(network, plan.setting)
    ]
    storage = _memory(order, parts(work, order.parts), plan, device)
    return paged(storage) if plan.paged else storage


def check(network: Network, plan: Plan, device: Device, system: System | None = None) -> None:
    """Raise `SizeError` for a plan that does not fit the network or the system, with sizes that
    do."""
    try:
        _check(network, plan, device, system)
    except SizeError as error:

        def works(axis: str, size: int) -> None:
            if axis in Plan.__dataclass_fields__:
                change: dict[str, Any] = {axis: size}
                _check(network, replace(plan, **change), device, system)

        raise error.those(works) from None


def _check(network: Network, plan: Plan, device: Device, system: System | None) -> None:
    plan.check(network)
    expand(network, plan.setting)
    fabric(plan, device, system)
    if plan.offloads:
        _host_memory_bytes_per_s(plan, device, system)
    schedule(plan.schedule_kind, plan.pipeline, plan.accumulation, plan.chunks)


@dataclass(frozen=True)
class Timed:
    """Micro-batches of a step, without the exchanges and the update that follow them."""

    seconds: float
    """Seconds of all micro-batches."""
    forward_seconds: float
    """Forward pass of one micro-batch through all parts."""
    backward_seconds: float
    """Backward pass of one micro-batch through all parts."""
    bubble_seconds: float
    """Seconds that the busiest stage waits for other stages."""
    busiest: int
    """The stage that computes longest."""
    line: Timeline | None = None
    """A pipeline's tasks with their times."""
    hidden_seconds: float = 0.0
    """Seconds of exchanges with experts that other passes of the busiest stage hide."""


def _timing(cut: Sequence[Part], order: Schedule, copies: Copies) -> Timed:
    """Time of all micro-batches on one device, or through a pipeline's stages."""
    plan = copies.plan
    pause = copies.host.micro_batch_seconds
    forwards = [part.forward(copies) for part in cut]
    if plan.pipeline == 1 and plan.chunks == 1:
        micro = forwards[0]
        if plan.training:
            micro = micro.then(cut[0].backward(copies))
        rest = micro.times(plan.accumulation - 1)
        last = forwards[0]
        if plan.training:
            last = last.then(cut[0].backward(copies, edge=True))
        seconds = rest.then(last).seconds + plan.accumulation * pause
        return Timed(seconds, forwards[0].seconds, last.seconds - forwards[0].seconds, 0.0, 0)
    backwards = [part.backward(copies) for part in cut]
    steady = [s.steady_seconds for s in forwards], [s.steady_seconds for s in backwards]
    share = [part.weight_share() for part in cut]
    first = np.zeros(len(cut))
    first[0] = pause  # the host fetches batches
    times = StageTimes(
        order.by_place(np.array(steady[0]) + first),
        order.by_place(np.array([b * (1 - w) for b, w in zip(steady[1], share, strict=True)])),
        order.by_place(np.array([b * w for b, w in zip(steady[1], share, strict=True)])),
    )
    sends, pair = _send_seconds(cut[0], copies), pair_seconds(order, cut, copies)
    line = simulate(order, replace(times, pair=pair), sends)
    stage = int(np.argmax(line.busy_seconds))
    hidden = 0.0
    if pair is not None:
        hidden = float((simulate(order, times, sends).busy_seconds - line.busy_seconds)[stage])
    # What exchanges that run once a step add to its first and its last micro-batch.
    sums = sum(
        run(copies, edge=True).steady_seconds - run(copies).steady_seconds
        for part in order.by_stage(cut)[stage]
        for run in (part.forward, part.backward)
    )
    return Timed(
        line.barrier_seconds + sums,
        float(sum(steady[0])),
        float(sum(steady[1])),
        float(line.barrier_seconds - line.busy_seconds[stage]),
        stage,
        line,
        hidden,
    )


def _send_seconds(first: Part, copies: Copies) -> float:
    """Seconds to send a micro-batch's activations to the next stage: rows of the residual stream.

    Devices that share a layer each send their share, and gather the rest (Narayanan et al.,
    2104.04473, section 4.1), or each send all of it, as the stack does.
    """
    x = first.work[-1].segment.operations[-1].outputs[0]
    full = copies.plan.splits_rows or copies.plan.setting.stack.sends_whole
    shared = 1 if full else copies.plan.tensor
    return copies.links.take("send-receive", x.bytes / shared, "pipeline").seconds


def _memory(order: Schedule, cut: Sequence[Part], plan: Plan, device: Device) -> Memory:
    """Memory of the fullest stage."""
    flights = order.peak_held() * order.parts / order.stages
    fullest: dict[tuple[tuple[int, int], ...], tuple[float, list[tuple[Segment, int]]]] = {}
    for stage, flight in zip(order.by_stage(cut), flights, strict=True):
        pairs = [pair for part in stage for pair in part.segments]
        key = tuple((id(segment), count) for segment, count in pairs)
        load = float(flight) / max(len(stage), 1)
        if key not in fullest or fullest[key][0] < load:  # most micro-batches in flight
            fullest[key] = (load, pairs)
    losses = _losses_in_flight(order)
    peaks = (
        memory(pairs, plan, plan.recipe, device.memory_bytes, flight, losses)
        for flight, pairs in fullest.values()
    )
    return max(peaks, key=lambda m: m.peak_bytes)


def _losses_in_flight(order: Schedule) -> float:
    """Peak number of micro-batches that wait for their backward pass in the part with the head."""
    losses = np.zeros((order.stages, order.chunks))
    for path in order.paths:
        losses[path[-1]] = 1.0
    return float(order.peak_held(losses).max())


def _peak(device: Device, plan: Plan) -> float:
    """The dense peak of the products' type by the data sheet, in FLOP/s."""
    if plan.dtype in device.matrix_types:
        return float(device.matrix_flops(plan.dtype))
    return float(device.vector_flops("fp32"))
