"""Copies of a model (data parallelism): what they exchange of weights and gradients, and when.

    ZeRO 0      gradients summed once a step: all-reduce
    ZeRO 1, 2   gradients to the device that owns them, weights back: reduce-scatter, all-gather
    ZeRO 3      weights gathered for each layer's forward pass and again for its backward pass,
                gradients scattered after it, in every micro-batch (FSDP, 2304.11277, section 3)

Under ZeRO 3 a layer's gather runs beside the layer before it. Where the stack sums gradients while
the backward pass goes on, the last micro-batch's layers hide the sums of the layers behind them;
elsewhere all gradients follow the last one. What runs beside computing slows it (`overlap`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from perfmodel.errors import ProblemError
from perfmodel.networks.dispatch import Stretch
from perfmodel.networks.placement import gradients, weights
from perfmodel.networks.segment import Segment
from perfmodel.training.fabric import Fabric
from perfmodel.training.overlap import Work, together_seconds
from perfmodel.training.plan import Plan
from perfmodel.training.precision import Precision

# Share of the units that a collective's kernels hold (Calculon, Isaev et al., SC 2023, section 3:
# 15 % for NVLink, 2 % for InfiniBand).
FABRIC_UNITS = 0.15
NETWORK_UNITS = 0.02

Layers = Sequence[tuple[Segment, int]]
"""Layers of one device: each kind with its number."""


@dataclass(frozen=True)
class Copies:
    """The exchanges of one plan's copies."""

    plan: Plan
    """Which plan."""
    links: Fabric
    """What lies between them."""
    precision: Precision
    """Types of weights and gradients."""
    overlaps: bool
    """Whether the stack sums gradients beside the backward pass."""
    host_bytes_per_s: float | None = None
    """One direction of the link to the host's memory; None where the device's spec has none."""
    layers: dict[tuple[str, str, bool], Stretch] = field(default_factory=dict, compare=False)
    """Layers that were timed: segment, pass, whether of the last micro-batch."""

    @property
    def sharded(self) -> bool:
        """Whether weights lie in shards."""
        return self.plan.zero == 3

    @property
    def _gradient_width(self) -> float:
        """Bytes of a gradient on the link: those it is kept in; FSDP's go in the products' type."""
        return self.plan.data_bytes if self.sharded else self.precision.gradient_bytes

    def _seconds(self, op: str, layers: Layers, width: float) -> float:
        """An exchange of weights or gradients of layers, `width` bytes each: an expert's among the
        devices that have it, all others' among those that have the layer."""
        held = {"data": 0, "expert-data": 0}
        for segment, repeat in layers:
            for weight in segment.weights:
                if not weight.shared:
                    axis = "expert-data" if weight.expert else "data"
                    held[axis] += repeat * weight.elements
        return sum(self.links.take(op, count * width, axis).seconds for axis, count in held.items())

    def _gathered(self, layers: Layers) -> float:
        return self._seconds(weights(), layers, self.plan.data_bytes)

    def _reduced(self, layers: Layers) -> float:
        op = gradients(sharded=self.plan.zero > 0)
        return self._seconds(op, layers, self._gradient_width)

    def gather_seconds(self, segment: Segment) -> float:
        """One layer's weights, where they lie in shards."""
        return self._gathered([(segment, 1)]) if self.sharded else 0.0

    def reduce_seconds(self, segment: Segment) -> float:
        """One layer's gradients."""
        return self._reduced([(segment, 1)])

    def beside(self, layer: Stretch, transfer_seconds: float) -> Stretch:
        """A layer's work with a transfer that runs while it does."""
        if transfer_seconds <= 0.0:
            return layer
        near = self.links.ranks("data")[1] > 1
        held = FABRIC_UNITS if near else NETWORK_UNITS
        computing = Work(layer.device_seconds, 1.0)
        both = float(together_seconds(computing, Work(transfer_seconds, held)))
        more = both - layer.device_seconds
        return replace(
            layer,
            device_seconds=both,
            latest_seconds=layer.latest_seconds + more,
        )

    def offload_seconds(self, segment: Segment) -> float:
        """What a layer keeps, to the host or back, where it is kept there.

        Raises `ProblemError` where the device has no link to a host.
        """
        if self.plan.recompute != "host" or not segment.block:
            return 0.0
        if self.host_bytes_per_s is None:
            raise ProblemError(
                "recompute host keeps activations on the host, and the device's spec has no link "
                "to one; take selective or full"
            )
        return (segment.saved_bytes + segment.statistics_bytes) / self.host_bytes_per_s

    def forward(self, layer: Stretch, segment: Segment) -> Stretch:
        """A layer's forward pass, with the gather of the one after it beside it."""
        gathered = self.beside(layer, self.gather_seconds(segment))
        return _beside_copy(gathered, self.offload_seconds(segment))

    def backward(self, layer: Stretch, segment: Segment, *, last: bool) -> Stretch:
        """A layer's backward pass: gathers and sums beside it, where there are some."""
        beside = self.gather_seconds(segment)
        if self.sharded or (last and self.overlaps):
            beside += self.reduce_seconds(segment)
        return _beside_copy(self.beside(layer, beside), self.offload_seconds(segment))

    def exit_seconds(self, layers: Layers) -> float:
        """What follows the last backward pass: sums of gradients, weights back to their copies."""
        first = layers[0][0]
        if self.sharded:
            return self.reduce_seconds(first)
        found = self.reduce_seconds(first) if self.overlaps else self._reduced(layers)
        return found + (self._gathered(layers) if self.plan.zero else 0.0)


def _beside_copy(layer: Stretch, copy_seconds: float) -> Stretch:
    """A layer beside which a copy engine moves what it keeps: the longer of the two, since the
    engine holds no units."""
    more = max(copy_seconds - layer.device_seconds, 0.0)
    return replace(
        layer,
        device_seconds=layer.device_seconds + more,
        latest_seconds=layer.latest_seconds + more,
    )
