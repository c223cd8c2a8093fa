"""Data parallelism: which weights and gradients copies of a model exchange, and when.

    ZeRO 0      gradients summed once a step: all-reduce
    ZeRO 1, 2   gradients to the device that owns them, weights back: reduce-scatter, all-gather
    ZeRO 3      weights gathered for each layer's forward pass and again for its backward pass,
                gradients scattered after it, in every micro-batch (FSDP, 2304.11277, section 3);
                other times by `reshard` (`resharding`)

Under ZeRO 3 a layer's gather overlaps the layer before it. Some stacks reduce gradients during the
backward pass: layers of the last micro-batch then overlap the reductions of the layers behind them.
In other stacks all reductions follow the last layer. Overlapped communication slows the kernels
beside it (`overlap`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from perfmodel.errors import ProblemError
from perfmodel.graph.stretch import Stretch
from perfmodel.networks import rematerialise
from perfmodel.networks.hosts import Host
from perfmodel.networks.operations.exchange import gradients, weights
from perfmodel.networks.segment import Segment
from perfmodel.networks.stack import Stack
from perfmodel.networks.value import Weight
from perfmodel.training.fabric import Fabric
from perfmodel.training.overlap import FABRIC_UNITS, NETWORK_UNITS, Work, together_seconds
from perfmodel.training.plan import Plan
from perfmodel.training.resharding import group

Layers = Sequence[tuple[Segment, int]]
"""Layers of one device: each kind with its number of layers."""


@dataclass(frozen=True)
class Copies:
    """The exchanges among the copies of one plan."""

    plan: Plan
    """The plan."""
    links: Fabric
    """The links between the copies."""
    host: Host
    """Launch times."""
    host_bytes_per_s: float | None = None
    """One direction of the link to the host's memory; None where the device's spec has none."""
    layers: dict[tuple[str, str, bool], tuple[Stretch, float]] = field(
        default_factory=dict, compare=False
    )
    """Cache of timed layers, with the seconds that exchanges of copies add, by segment, pass, and
    whether the micro-batch is the first or last of a step."""

    @cached_property
    def _stack(self) -> Stack:
        return self.plan.setting.stack

    @property
    def sharded(self) -> bool:
        """Whether weights are stored in shards."""
        return self.plan.zero == 3

    @property
    def _scatters(self) -> bool:
        """Whether gradients are scattered in every micro-batch."""
        return self.sharded and not self.plan.keeps_whole

    @cached_property
    def _gradient_width(self) -> float:
        """Bytes of a gradient on the link: of the type it is kept in; of the products' type where
        every micro-batch scatters it."""
        return self.plan.data_bytes if self._scatters else self.plan.recipe.gradient_bytes

    def _seconds(
        self, op: str, layers: Layers, size_bytes: Callable[[Weight], float], reshard: str = "true"
    ) -> float:
        """Seconds of an exchange of the layers' weights or gradients, `size_bytes` of each weight,
        among the devices that gather them again where `reshard` says which.

        An expert's weights are exchanged among the devices that hold that expert, other weights
        among all devices with the layer.
        """
        axes = {"data": 0.0, "expert-data": 0.0}
        for segment, repeat in layers:
            for weight in segment.weights:
                if not weight.shared:
                    axis = "expert-data" if weight.expert else "data"
                    axes[axis] += repeat * size_bytes(weight)
        return sum(
            self.links.take(op, size, axis, group(reshard, self.links.ranks(axis)[0])).seconds
            for axis, size in axes.items()
        )

    def _gather(self, layers: Layers, *, updated: bool = False, reshard: str = "true") -> float:
        """The gather of weights; `updated`: of those that the step has changed."""

        def size_bytes(weight: Weight) -> float:
            return 0.0 if updated and not weight.trains else self.plan.gathered_bytes(weight)

        return self._seconds(weights(), layers, size_bytes, reshard)

    def _reduction(self, layers: Layers) -> float:
        op = gradients(sharded=self.plan.zero > 0)
        width = self._gradient_width
        return self._seconds(op, layers, lambda w: w.elements * width * w.trains)

    def gather_seconds(self, segment: Segment, way: str, *, edge: bool) -> float:
        """Gather of one layer's weights before its `forward` or `backward` pass, under ZeRO 3;
        `edge`: of the first or last micro-batch of a step."""
        if not self.sharded or (self.plan.keeps_whole and not (edge and way == "forward")):
            return 0.0
        reshard = "true" if way == "forward" else self.plan.resharding
        return self._gather([(segment, 1)], reshard=reshard)

    def reduce_seconds(self, segment: Segment) -> float:
        """Reduction of one layer's gradients."""
        return self._reduction([(segment, 1)])

    def beside(self, layer: Stretch, transfer_seconds: float) -> Stretch:
        """A layer with a transfer that overlaps it."""
        if transfer_seconds <= 0.0:
            return layer
        in_node = self.links.ranks("data")[1] > 1
        units = FABRIC_UNITS if in_node else NETWORK_UNITS
        computing = Work(layer.device_seconds, 1.0)
        seconds = float(together_seconds(computing, Work(transfer_seconds, units)))
        delay = seconds - layer.device_seconds
        return replace(
            layer,
            device_seconds=seconds,
            latest_seconds=layer.latest_seconds + delay,
        )

    def offload_seconds(self, segment: Segment) -> float:
        """Copy of a layer's kept activations to the host or back, where they are kept there."""
        kept = rematerialise.HOSTED.get(self.plan.recompute)
        if kept is None or not segment.block or not segment.active:
            return 0.0
        return self._to_host(rematerialise.kept_bytes(segment, kept))

    def _own_bytes(self, layers: Layers, width: float) -> float:
        """Bytes of the layers' trained weights in a type, of one device's share."""
        plan = self.plan
        return sum(
            repeat * weight.elements * width
            / ((plan.expert_copies if weight.expert else plan.copies) if plan.zero else 1)
            for segment, repeat in layers
            for weight in segment.weights
            if weight.trains and not weight.shared
        )  # fmt: skip

    def gradients_out_seconds(self, layers: Layers) -> float:
        """Gradients of layers that the host updates, to its memory. A sum of earlier micro-batches
        comes the other way at the same time (DeepSpeed, stage_1_and_2.py)."""
        if not self.plan.offloads:
            return 0.0
        return self._to_host(self._own_bytes(layers, self.plan.recipe.gradient_bytes))

    def weights_in_seconds(self, layers: Layers) -> float:
        """Updated weights of the layers, from the host's memory."""
        return self._to_host(self._own_bytes(layers, self.plan.recipe.weight_bytes))

    def page_seconds(self, paged_bytes: float) -> float:
        """States of a paged optimiser that come from the host and return in each update."""
        return 2.0 * self._to_host(paged_bytes) if paged_bytes else 0.0

    def _to_host(self, size_bytes: float) -> float:
        """Seconds of a copy to the host or back. Raises `ProblemError` without a link."""
        if self.host_bytes_per_s is None:
            raise ProblemError(
                "the plan keeps data on the host, and the device's spec has no link to one; take "
                "recompute selective or full, and no paged or offloaded optimiser"
            )
        return size_bytes / self.host_bytes_per_s

    def forward(self, layer: Stretch, segment: Segment, *, edge: bool) -> Stretch:
        """A layer's forward pass, overlapped by the gather of the next layer."""
        gathered = self.beside(layer, self.gather_seconds(segment, "forward", edge=edge))
        return _copy_overlap(gathered, self.offload_seconds(segment))

    def backward(self, layer: Stretch, segment: Segment, *, edge: bool) -> Stretch:
        """A layer's backward pass, overlapped by gathers and reductions if any."""
        gathers = (
            2 if self.plan.recompute in ("full", "full-host") and self._stack.gathers_again else 1
        )
        transfers = gathers * self.gather_seconds(segment, "backward", edge=edge)
        if self._scatters or (edge and self._stack.overlaps_gradients):
            transfers += self.reduce_seconds(segment)
        copy = self.offload_seconds(segment)
        if self.plan.gradients_leave or (edge and self._stack.overlaps_gradients):
            copy = max(copy, self.gradients_out_seconds([(segment, 1)]))
        return _copy_overlap(self.beside(layer, transfers), copy)

    def exit_seconds(self, layers: Layers) -> float:
        """Exchanges after the last backward pass: reductions of gradients, their way to the host
        where it updates the weights, gathers of updated weights."""
        first = layers[0][0]
        beside = self.plan.gradients_leave or self._stack.overlaps_gradients
        out = self.gradients_out_seconds([(first, 1)] if beside else layers)
        overlaps = self._scatters or self._stack.overlaps_gradients
        reduction = self.reduce_seconds(first) if overlaps else self._reduction(layers)
        updates = self.plan.zero and not self.sharded
        return reduction + out + (self._gather(layers, updated=True) if updates else 0.0)


def _copy_overlap(layer: Stretch, copy_seconds: float) -> Stretch:
    """A layer beside which a copy engine moves activations: the longer of the two, because the
    engine occupies no units."""
    wait = max(copy_seconds - layer.device_seconds, 0.0)
    return replace(
        layer,
        device_seconds=layer.device_seconds + wait,
        latest_seconds=layer.latest_seconds + wait,
    )
