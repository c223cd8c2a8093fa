"""Layers of a step as stretches of work: forward, backward, and what runs again before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from perfmodel.networks import rematerialise
from perfmodel.networks.dispatch import Stretch, joined
from perfmodel.networks.hosts import Host
from perfmodel.networks.prediction import KernelTime, NetworkPrediction, PassTime
from perfmodel.networks.recorder import Exchanged
from perfmodel.networks.segment import Segment
from perfmodel.training.plan import Plan

ExchangeSeconds = Callable[[Exchanged], float]
"""Seconds of an exchange between the devices of a mesh axis."""


@dataclass(frozen=True)
class LayerWork:
    """One layer of a segment: its kernels by pass, and the exchanges among them."""

    segment: Segment
    """What it is."""
    forward: PassTime
    """Its forward pass."""
    backward: PassTime | None
    """Its backward pass; None where nothing trains."""
    again: tuple[int, ...]
    """Kernels of the forward pass that run again, by their place."""
    repeat: int
    """Layers like it that run the same."""

    def stretch(self, way: str, host: Host, exchange: ExchangeSeconds) -> Stretch:
        """One layer's forward pass, backward pass, or what runs `again`."""
        if way == "again":
            places = set(self.again)
            last = max(places, default=-1)
            launch = host.forward_seconds
            return _stretch(self.forward, launch, exchange, places, last)
        each = self.forward if way == "forward" else self.backward
        if each is None:
            return Stretch()
        launch = host.forward_seconds if way == "forward" else host.backward_seconds
        return _stretch(each, launch, exchange)

    def exchanged(self, exchange: ExchangeSeconds) -> float:
        """Seconds of exchanges in both passes and what runs again."""
        found = sum(exchange(one) for one in self.forward.exchanges)
        if self.backward is not None:
            found += sum(exchange(one) for one in self.backward.exchanges)
        last = max(self.again, default=-1)
        return found + sum(exchange(one) for one in self.forward.exchanges if one.before <= last)

    def kernels(self) -> Iterable[tuple[KernelTime, int]]:
        """Every kernel of one layer and step, with how often it runs."""
        places = set(self.again)
        for i, one in enumerate(self.forward.kernels):
            yield one, 1 + (i in places)
        if self.backward is not None:
            for one in self.backward.kernels:
                yield one, 1


def _stretch(
    each: PassTime,
    launch: float,
    exchange: ExchangeSeconds,
    places: set[int] | None = None,
    last: int | None = None,
) -> Stretch:
    """Kernels of one layer, those at `places` only, with the exchanges between them.

    A ring of keys and values goes round while attention computes (2310.01889, section 3).
    """
    parts: list[Stretch] = []
    exchanges = [one for one in each.exchanges if not one.kind.startswith("ring")]
    hidden = sum(exchange(one) for one in each.exchanges if one.kind.startswith("ring"))
    for i, one in enumerate(each.kernels):
        while exchanges and exchanges[0].before <= i:
            _append(parts, exchanges.pop(0), launch, exchange, i, last)
        if places is None or i in places:
            seconds = one.seconds
            if hidden and one.kind == "attention":  # the ring goes round beside it
                seconds, hidden = max(seconds, hidden), 0.0
            stretch = one.stretch(each.gap_seconds, launch)
            if seconds > one.seconds:
                stretch = Stretch.of(seconds + each.gap_seconds, launch)
            parts.append(stretch)
    for left in exchanges:
        _append(parts, left, launch, exchange, len(each.kernels), last)
    return joined(parts)


def _append(
    parts: list[Stretch],
    one: Exchanged,
    launch: float,
    exchange: ExchangeSeconds,
    place: int,
    last: int | None,
) -> None:
    if last is None or place <= last:
        parts.append(Stretch.of(exchange(one), launch))


def layers(found: NetworkPrediction, segments: Sequence[Segment], plan: Plan) -> list[LayerWork]:
    """The layers of a prediction, in order; those that recompute apart from those that do not."""
    forward = {one.segment: one for one in found.passes if one.way == "forward"}
    backward = {one.segment: one for one in found.passes if one.way == "backward"}
    left = plan.recompute_layers
    work: list[LayerWork] = []
    for segment in segments:
        mode = rematerialise.mode(plan.recompute)
        some = segment.repeat if left is None else min(left, segment.repeat)
        runs = rematerialise.again(segment, mode) if segment.block else ()
        left = left if left is None or not segment.block else left - some
        name = segment.name
        both = (forward[name], backward.get(name))
        if runs and some:
            work.append(LayerWork(segment, *both, runs, some))
        if not runs or segment.repeat > some:
            rest = segment.repeat - (some if runs else 0)
            work.append(LayerWork(segment, *both, (), rest))
    return work
