"""A forward and a backward pass that a stage runs as one (DualPipe, 2412.19437, section 3.2.1).

The exchanges with experts of each pass run beside the kernels of the other. They occupy units of
the device, 20 with DeepSeek-V3's kernels (section 3.2.2), which the kernels beside them lack:

    pair = max(F, BW, together(t₁, t₂))          together: `perfmodel.training.overlap`

t₁: seconds of both passes without exchanges with experts, t₂: of these exchanges. No exchange is
hidden by its own pass, so that a pair is never shorter than either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from perfmodel.graph.stretch import Stretch
from perfmodel.networks.dispatching import occupied_share
from perfmodel.training.copies import Copies
from perfmodel.training.overlap import FABRIC_UNITS, NETWORK_UNITS, Work, together_seconds
from perfmodel.training.pipeline import Schedule
from perfmodel.training.stages import Part


def pair_seconds(order: Schedule, cut: Sequence[Part], copies: Copies) -> np.ndarray | None:
    """Seconds of each chunk's forward pass joined with the backward pass of the stage's other
    chunk, shape (stages, chunks); None where a schedule joins none, or no expert is exchanged."""
    if order.opens.all() or copies.plan.expert == 1:
        return None
    bare = replace(copies, links=replace(copies.links, without="expert"), layers={})
    passes, computing = (_passes(order, cut, each) for each in (copies, bare))
    both, kernels = (forward + backward[:, ::-1] for forward, backward in (passes, computing))
    seconds = together_seconds(
        Work(kernels, 1.0), Work(np.maximum(both - kernels, 0.0), _units(copies))
    )
    return np.asarray(np.maximum(seconds, np.maximum(passes[0], passes[1][:, ::-1])))


def _passes(order: Schedule, cut: Sequence[Part], copies: Copies) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of the forward and of the backward pass, each of shape (stages, chunks)."""

    def placed(passes: Sequence[Stretch]) -> np.ndarray:
        return order.by_place(np.array([each.steady_seconds for each in passes]))

    return (
        placed([part.forward(copies) for part in cut]),
        placed([part.backward(copies) for part in cut]),
    )


def _units(copies: Copies) -> float:
    """Share of the units that exchanges with experts occupy."""
    links = copies.links
    share = occupied_share(copies.plan.setting.stack, links.system) if links.system else None
    if share is not None:
        return share
    return FABRIC_UNITS if links.ranks("expert")[1] > 1 else NETWORK_UNITS
