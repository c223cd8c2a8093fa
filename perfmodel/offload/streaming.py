"""Weights streamed from host memory each time a layer runs (ZeRO-Inference, Accelerate).

A pass takes at least W/v: bytes of weights over the link's rate. A batch of B hides that once its
own work takes as long: B ≥ (W/v)/(t/B), with t the seconds of work of the batch.
"""

from __future__ import annotations

from dataclasses import replace

from perfmodel.graph.tree import Tree
from perfmodel.hardware import Device
from perfmodel.networks.setting import step
from perfmodel.offload.layershape import Stored, of_network, predicted
from perfmodel.offload.links import host_bytes_per_s

_MOST = 2**16


def streamed(
    stored: Stored, device: Device, batch: int, context: int, *, away: float = 1.0
) -> Tree:
    """A decode step with a share `away` of the layers' weights in host memory and the cache on the
    device: the weights on the link beside the step with resident weights."""
    shape = of_network(stored)
    volume = away * shape.layers * shape.weight_bytes
    seconds = volume / host_bytes_per_s(device)
    lanes = (
        Tree.part("weights", "communication", seconds, resource="link"),
        predicted(stored, step(batch, context), device),
    )
    return replace(
        Tree.beside("step", "network", lanes),
        settings={"batch": batch, "context": context},
        device=device.slug,
    )


def hiding_batch(stored: Stored, device: Device, context: int, *, away: float = 1.0) -> int | None:
    """The smallest batch whose work takes as long as the link; None if 65,536 is too small.

    Work increases with the batch, so bisection finds it.
    """

    def hides(batch: int) -> bool:
        link, work = streamed(stored, device, batch, context, away=away).children
        return work.seconds >= link.seconds

    if not hides(_MOST):
        return None
    low, high = 0, _MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if hides(middle) else (middle, high)
    return high
