"""Layers of a step as stretches of launches: forward, backward, and recomputation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from perfmodel.networks import rematerialise
from perfmodel.networks.hosts import Host
from perfmodel.networks.networkprediction import KernelTime, NetworkPrediction, PassTime
from perfmodel.networks.recorder import Exchanged
from perfmodel.networks.segment import Segment
from perfmodel.networks.stretch import Stretch, joined
from perfmodel.training.plan import Plan

ExchangeSeconds = Callable[[Exchanged, float], float]
"""Seconds that an exchange between the devices of a mesh axis adds to the kernels, beside a product
that makes or takes its rows and lasts so many seconds."""


@dataclass(frozen=True)
class LayerWork:
    """One layer of a segment: its kernels by pass, and the exchanges among them."""

    segment: Segment
    """The layer's segment."""
    forward: PassTime
    """Its forward pass."""
    backward: PassTime | None
    """Its backward pass; None where nothing trains."""
    again: tuple[int, ...]
    """Indices of the forward kernels that recomputation runs again."""
    repeat: int
    """Number of equal layers."""

    def stretch(self, way: str, host: Host, exchange: ExchangeSeconds) -> Stretch:
        """One layer's forward pass, backward pass, or recomputation (`again`)."""
        if way == "again":
            return _stretch(self.forward, host.forward_seconds, exchange, set(self.again))
        part = self.forward if way == "forward" else self.backward
        if part is None:
            return Stretch()
        launch = host.forward_seconds if way == "forward" else host.backward_seconds
        return _stretch(part, launch, exchange)

    def exchanged(self, exchange: ExchangeSeconds) -> float:
        """Seconds that kernels wait for exchanges in both passes and recomputation."""
        seconds = _wait(self.forward, exchange)
        if self.backward is not None:
            seconds += _wait(self.backward, exchange)
        return seconds + _wait(self.forward, exchange, set(self.again))

    def kernels(self) -> Iterable[tuple[KernelTime, int]]:
        """Every kernel of one layer and step, with its number of runs."""
        places = set(self.again)
        for i, kernel in enumerate(self.forward.kernels):
            yield kernel, 1 + (i in places)
        if self.backward is not None:
            for kernel in self.backward.kernels:
                yield kernel, 1


def _stretch(
    part: PassTime, launch: float, exchange: ExchangeSeconds, places: set[int] | None = None
) -> Stretch:
    """Kernels of one layer with the exchanges between them; with `places`, only the kernels
    there."""
    parts: list[Stretch] = []
    exchanges = _exchanges(part, places)
    index, ring = _ring(part, exchange)
    for i, kernel in enumerate(part.kernels):
        while exchanges and exchanges[0].before <= i:
            nearest = exchanges.pop(0)
            parts.append(Stretch.of(exchange(nearest, _product(part, nearest)), launch))
        if places is None or i in places:
            parts.append(kernel.stretch(part.gap_seconds, launch))
            if i == index and ring:
                parts.append(Stretch.of(ring, 0.0))
    parts += [Stretch.of(exchange(e, _product(part, e)), launch) for e in exchanges]
    return joined(parts)


def _wait(part: PassTime, exchange: ExchangeSeconds, places: set[int] | None = None) -> float:
    """Seconds of exchanges between kernels; with `places`, only up to the kernels there."""
    index, ring = _ring(part, exchange)
    seconds = sum(exchange(e, _product(part, e)) for e in _exchanges(part, places))
    return seconds + (ring if places is None or index in places else 0.0)


def _exchanges(part: PassTime, places: set[int] | None) -> list[Exchanged]:
    """Exchanges in line with kernels, up to the last of those at `places`."""
    last = math.inf if places is None else max(places, default=-1)
    return [e for e in part.exchanges if not e.kind.startswith("ring") and e.before <= last]


def _product(part: PassTime, exchange: Exchanged) -> float:
    """Seconds of the product that takes the rows of an all-gather, or makes those of a
    reduce-scatter; 0 for other exchanges, and where there is none."""
    consumers, producers = part.kernels[exchange.before :], part.kernels[: exchange.before][::-1]
    kernels = {"all-gather": consumers, "reduce-scatter": producers}.get(exchange.kind, ())
    return next((kernel.seconds for kernel in kernels if kernel.kind == "matmul"), 0.0)


def _ring(part: PassTime, exchange: ExchangeSeconds) -> tuple[int, float]:
    """The kernel that overlaps a ring of keys and values (2310.01889, section 3), and the seconds
    by which the ring is longer.

    It is the attention kernel. Where attention is not one kernel nothing hides the ring: the result
    is the last kernel, and all of the ring's seconds.
    """
    seconds = sum(exchange(e, 0.0) for e in part.exchanges if e.kind.startswith("ring"))
    for i, kernel in enumerate(part.kernels):
        if kernel.kind == "attention":
            return i, max(seconds - kernel.seconds, 0.0)
    return len(part.kernels) - 1, seconds


def layers(found: NetworkPrediction, segments: Sequence[Segment], plan: Plan) -> list[LayerWork]:
    """The layers of a prediction, in order; layers that recompute are separate from the rest."""
    forward = {p.segment: p for p in found.passes if p.way == "forward"}
    backward = {p.segment: p for p in found.passes if p.way == "backward"}
    budget = plan.recompute_layers
    work: list[LayerWork] = []
    for segment in segments:
        mode = rematerialise.mode(plan.recompute)
        count = segment.repeat if budget is None else min(budget, segment.repeat)
        runs = rematerialise.again(segment, mode) if segment.block and segment.active else ()
        budget = budget if budget is None or not segment.block else budget - count
        name = segment.name
        pair = (forward[name], backward.get(name))
        if runs and count:
            work.append(LayerWork(segment, *pair, runs, count))
        if not runs or segment.repeat > count:
            rest = segment.repeat - (count if runs else 0)
            work.append(LayerWork(segment, *pair, (), rest))
    return work
