"""Bytes of activations that a step holds, read off what each layer keeps.

layers that wait for their backward pass   Σ kept(layer) × micro-batches in flight
the layer whose backward pass runs         what it computed again, and its own temporaries
logits                                     the head's tensors × micro-batches whose loss waits
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfmodel.graph.live import live_bytes
from perfmodel.networks import rematerialise
from perfmodel.networks.segment import Segment
from perfmodel.training.plan import Plan


@dataclass(frozen=True)
class Activations:
    """Bytes on one device."""

    kept: float
    """What the layers keep, of all micro-batches in flight."""
    working: float
    """What one layer computed again and holds beside it while its backward pass runs."""
    logits: float
    """Logits, what the loss keeps of them, and their gradient."""
    host: float = 0.0
    """What lies on the host meanwhile."""

    @property
    def total(self) -> float:
        """The most that is there at once: the head's backward pass comes first, when every layer
        is kept; a layer's own temporaries come after."""
        return self.kept + max(self.working, self.logits)


def activations(
    parts: Sequence[tuple[Segment, int]],
    plan: Plan,
    in_flight: float = 1.0,
    losses_in_flight: float = 1.0,
) -> Activations:
    """What the given layers of one device hold, each segment with its number of layers there;
    `in_flight` micro-batches wait at once, `losses_in_flight` of them behind the head."""
    mode = rematerialise.mode(plan.recompute)
    left = plan.recompute_layers
    kept = working = logits = host = 0.0
    for segment, count in parts:
        if segment.name == "head":
            logits = segment.saved_bytes + segment.statistics_bytes + _temporary(segment)
            continue
        some = count if left is None else min(left, count)
        some = some if segment.block else 0
        left = left if left is None or not segment.block else left - some
        whole = rematerialise.kept_bytes(segment, "none")
        less = rematerialise.kept_bytes(segment, mode) if segment.block else whole
        kept += some * less + (count - some) * whole
        host += some * whole if mode == "host" else 0.0
        if segment.block:
            working = max(working, whole - less + _temporary(segment))
    return Activations(in_flight * kept, working, losses_in_flight * logits, in_flight * host)


def _temporary(segment: Segment) -> float:
    """The most that a layer's backward pass holds beyond what the forward pass kept."""
    graph = segment.backward
    if not graph.recorder.nodes:
        return 0.0
    given = {*graph.graph.inputs, *graph.graph.weights}
    held = sum(graph.graph.tensors[name].bytes for name in given)
    return max(live_bytes(graph.graph)["hbm"]) - held
