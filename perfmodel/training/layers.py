"""Layers of a step as stretches of launches: forward, backward, and recomputation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from perfmodel.graph.stretch import Stretch, joined
from perfmodel.graph.tree import Tree
from perfmodel.networks import rematerialise
from perfmodel.networks.hosts import Host
from perfmodel.networks.recorder import Exchanged
from perfmodel.networks.segment import AGAIN, Segment
from perfmodel.training.plan import Plan

ExchangeSeconds = Callable[[Exchanged, float, float], float]
"""Seconds that an exchange between the devices of a mesh axis adds to the kernels, beside a product
that makes or takes its rows, and one that needs none of them, which last so many seconds."""
Kernels = tuple[Tree, ...]
Pass = tuple[Kernels, Sequence[Exchanged]]
"""Kernels of a layer in launch order, and its exchanges."""


@dataclass(frozen=True)
class LayerWork:
    """One layer of a segment: its kernels by pass, and the exchanges among them."""

    segment: Segment
    """The layer's segment."""
    forward: Tree
    """Its forward pass."""
    backward: Tree | None
    """Its backward pass; None where nothing trains."""
    again: tuple[int, ...]
    """Indices of the forward kernels that recomputation runs again."""
    repeat: int
    """Number of equal layers."""

    def stretch(self, way: str, host: Host, exchange: ExchangeSeconds) -> Stretch:
        """One layer's forward pass, backward pass, or recomputation (`again`)."""
        if way == "again":
            return _stretch(*self.first, host.forward_seconds, exchange, set(self.again))
        if way == "forward":
            return _stretch(*self.first, host.forward_seconds, exchange)
        return joined(_stretch(*p, host.backward_seconds, exchange) for p in self.second)

    @property
    def first(self) -> Pass:
        """Kernels and exchanges of the forward pass."""
        return self.forward.children, self.segment.forward.exchanges

    @property
    def second(self) -> Sequence[Pass]:
        """Kernels and exchanges of the backward pass, if there is one."""
        if self.backward is None:
            return []
        return [(self.backward.children, self.segment.backward.exchanges)]

    def exchanged(self, exchange: ExchangeSeconds) -> float:
        """Seconds that kernels wait for exchanges in both passes and recomputation."""
        seconds = _wait(*self.first, exchange)
        seconds += sum(_wait(*each, exchange) for each in self.second)
        return seconds + _wait(*self.first, exchange, set(self.again))

    def kernels(self) -> Iterable[tuple[Tree, int]]:
        """Every kernel of one layer and step, with its number of runs."""
        places = set(self.again)
        for i, kernel in enumerate(self.forward.children):
            yield kernel, 1 + (i in places)
        if self.backward is not None:
            for kernel in self.backward.children:
                yield kernel, 1


def _stretch(
    kernels: Kernels, exchanges: Sequence[Exchanged], launch: float, exchange: ExchangeSeconds,
    places: set[int] | None = None,
) -> Stretch:  # fmt: skip
    """Kernels of one layer with the exchanges between them; with `places`, only the kernels
    there."""
    parts: list[Stretch] = []
    queue = _in_line(exchanges, places)
    index, ring = _ring(kernels, exchanges, exchange)
    for i, kernel in enumerate(kernels):
        while queue and queue[0].before <= i:
            nearest = queue.pop(0)
            parts.append(Stretch.of(exchange(nearest, *_products(kernels, nearest)), launch))
        if places is None or i in places:
            parts.append(kernel.stretch(launch))
            if i == index and ring:
                parts.append(Stretch.of(ring, 0.0))
    parts += [Stretch.of(exchange(e, *_products(kernels, e)), launch) for e in queue]
    return joined(parts)


def _wait(
    kernels: Kernels, exchanges: Sequence[Exchanged], exchange: ExchangeSeconds,
    places: set[int] | None = None,
) -> float:  # fmt: skip
    """Seconds of exchanges between kernels; with `places`, only before the kernels there."""
    index, ring = _ring(kernels, exchanges, exchange)
    seconds = sum(exchange(e, *_products(kernels, e)) for e in _in_line(exchanges, places))
    return seconds + (ring if places is None or index in places else 0.0)


def _in_line(exchanges: Sequence[Exchanged], places: set[int] | None) -> list[Exchanged]:
    """Exchanges in line with kernels; of those at `places`, the ones whose result the next kernel
    takes there."""
    lines = [e for e in exchanges if not e.kind.startswith("ring")]
    return lines if places is None else [e for e in lines if e.before in places]


def _products(kernels: Kernels, exchange: Exchanged) -> tuple[float, float]:
    """Seconds of the product that takes the rows of an all-gather, or makes those of a
    reduce-scatter, and of one that needs none of them; 0 where there is none.

    Between a product's gradient of its input and what takes it is the gradient of its weights. The
    input that the latter gathers again is not needed by the former.
    """
    after, before = kernels[exchange.before :], kernels[: exchange.before][::-1]
    partners = {"all-gather": after, "reduce-scatter": before}.get(exchange.kind, ())
    product = _first(partners)
    last = next((kernel for kernel in before if kernel.kind == "matmul"), None)
    if exchange.name.endswith(AGAIN):
        return product, _first(after)
    sums = exchange.kind in ("all-reduce", "reduce-scatter")
    beside = sums and last is not None and last.name.endswith(".wgrad")
    return product, last.seconds if last is not None and beside else 0.0


def _first(kernels: Kernels) -> float:
    """Seconds of the first product; 0 where there is none."""
    return next((kernel.seconds for kernel in kernels if kernel.kind == "matmul"), 0.0)


def _ring(
    kernels: Kernels, exchanges: Sequence[Exchanged], exchange: ExchangeSeconds
) -> tuple[int, float]:
    """The kernel that overlaps a ring of keys and values (2310.01889, section 3), and the seconds
    by which the ring is longer.

    It is the attention kernel. Where attention is not one kernel nothing hides the ring: the result
    is the last kernel, and all of the ring's seconds.
    """
    seconds = sum(exchange(e, 0.0, 0.0) for e in exchanges if e.kind.startswith("ring"))
    for i, kernel in enumerate(kernels):
        if kernel.kind == "attention":
            return i, max(seconds - kernel.seconds, 0.0)
    return len(kernels) - 1, seconds


def layers(network: Tree, segments: Sequence[Segment], plan: Plan) -> list[LayerWork]:
    """The layers of a prediction, in order; layers that recompute are separate from the rest."""
    forward = {p.name: p for p in network.children if p.kind == "forward"}
    backward = {p.name: p for p in network.children if p.kind == "backward"}
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
