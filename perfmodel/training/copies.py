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

from dataclasses import dataclass, field, replace

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
    layers: dict[tuple[str, str, bool], Stretch] = field(default_factory=dict, compare=False)
    """Layers that were timed: segment, pass, whether of the last micro-batch."""

    @property
    def sharded(self) -> bool:
        """Whether weights lie in shards."""
        return self.plan.zero == 3 and self.plan.copies > 1

    @property
    def _gradient_width(self) -> float:
        """Bytes of a gradient on the link: those it is kept in; FSDP's go in the products' type."""
        return self.plan.data_bytes if self.sharded else self.precision.gradient_bytes

    def _weights(self, segment: Segment) -> int:
        return sum(w.elements for w in segment.weights if not w.shared)

    def gather_seconds(self, segment: Segment) -> float:
        """One layer's weights."""
        whole = self._weights(segment) * self.plan.data_bytes
        return self.links.take(weights(), whole, "data").seconds if self.sharded else 0.0

    def reduce_seconds(self, segment: Segment) -> float:
        """One layer's gradients."""
        if self.plan.copies == 1:
            return 0.0
        whole = self._weights(segment) * self._gradient_width
        op = gradients(sharded=self.plan.zero > 0)
        return self.links.take(op, whole, "data").seconds

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

    def forward(self, layer: Stretch, segment: Segment) -> Stretch:
        """A layer's forward pass, with the gather of the one after it beside it."""
        return self.beside(layer, self.gather_seconds(segment))

    def backward(self, layer: Stretch, segment: Segment, *, last: bool) -> Stretch:
        """A layer's backward pass: gathers and sums beside it, where there are some."""
        beside = self.gather_seconds(segment)
        if self.sharded or (last and self.overlaps):
            beside += self.reduce_seconds(segment)
        return self.beside(layer, beside)

    def exit_seconds(self, segments: list[tuple[Segment, int]]) -> float:
        """What follows the last backward pass: sums of gradients, weights back to their copies."""
        if self.plan.copies == 1:
            return 0.0
        count = sum(self._weights(one) * repeat for one, repeat in segments)
        if self.sharded:
            return self.reduce_seconds(segments[0][0])
        found = 0.0
        if self.overlaps:
            found += self.reduce_seconds(segments[0][0])
        else:
            op = gradients(sharded=self.plan.zero > 0)
            found += self.links.take(op, count * self._gradient_width, "data").seconds
        if self.plan.zero:
            found += self.links.take(weights(), count * self.plan.data_bytes, "data").seconds
        return found
