"""Bytes of activations of a training step, derived from what each layer keeps.

layers that wait for their backward pass   Σ kept(layer) × micro-batches in flight
the layer in its backward pass             recomputed tensors, and its own temporaries
logits                                     the head's tensors × micro-batches before backward
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
    """Kept by the layers, for all micro-batches in flight."""
    working: float
    """Recomputed tensors and temporaries of one layer during its backward pass."""
    logits: float
    """Logits, what the loss saves of them, and their gradient."""
    host: float = 0.0
    """Kept in host memory."""

    @property
    def total(self) -> float:
        """The peak on the device: kept tensors, plus the larger of `working` and `logits`. The
        head's backward pass comes first, while every layer is kept; the temporaries of other layers
        come later."""
        return self.kept + max(self.working, self.logits)


def activations(
    parts: Sequence[tuple[Segment, int]],
    plan: Plan,
    in_flight: float = 1.0,
    losses_in_flight: float = 1.0,
) -> Activations:
    """Activations of the given layers on one device.

    Each segment comes with its number of layers there. `in_flight` micro-batches are kept at once,
    `losses_in_flight` of them have passed the head.
    """
    mode = rematerialise.mode(plan.recompute)
    rest = plan.recompute_layers
    kept = working = logits = host = 0.0
    for segment, count in parts:
        if segment.name == "head":
            logits = segment.saved_bytes + segment.statistics_bytes + _temporary(segment)
            continue
        reruns = count if rest is None else min(rest, count)
        reruns = reruns if segment.block else 0
        rest = rest if rest is None or not segment.block else rest - reruns
        full = rematerialise.kept_bytes(segment, "none")
        least = rematerialise.kept_bytes(segment, mode) if segment.block else full
        kept += reruns * least + (count - reruns) * full
        host += reruns * full if mode == "host" else 0.0
        if segment.block:
            working = max(working, full - least + _temporary(segment))
    return Activations(in_flight * kept, working, losses_in_flight * logits, in_flight * host)


def _temporary(segment: Segment) -> float:
    """Peak bytes of a layer's backward pass, above what the forward pass kept."""
    graph = segment.backward
    if not graph.recorder.nodes:
        return 0.0
    names = {*graph.graph.inputs, *graph.graph.weights}
    base = sum(graph.graph.tensors[name].bytes for name in names)
    return max(live_bytes(graph.graph)["hbm"]) - base
