"""The fitting policy with the most tokens a second.

FlexGen solves a linear programme for each batch (section 4.3). Here all shares on a grid are
evaluated as arrays, for each part and number of blocks. That also handles decoding as a maximum
over overlapping transfers, which is not linear.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.graph.live import alive
from perfmodel.offload.layershape import LayerShape, Request
from perfmodel.offload.layertimes import Rates, block_seconds
from perfmodel.offload.policy import Policy
from perfmodel.offload.policymemory import LEVELS, MOMENTS, spans
from perfmodel.units import binary

PARTS = (1, 2, 4, 8, 16, 32, 48, 64, 128)
"""Sequences that the device processes at a time."""
BLOCKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Parts of a block."""
_STEP, _STEP_WITH_DISK = 0.05, 0.1


def fits(
    shape: LayerShape, request: Request, policy: Policy, rooms: Mapping[str, float]
) -> np.ndarray:
    """Whether each policy fits the bytes of each memory, by `LEVELS`."""
    live = alive(spans(shape, request, policy), len(MOMENTS))
    within = (np.maximum(*live[level]) <= rooms.get(level, 0.0) for level in LEVELS)
    return np.asarray(np.logical_and.reduce([*within]))


def best(
    shape: LayerShape,
    request: Request,
    rates: Rates,
    rooms: Mapping[str, float],
    parts: Sequence[int] = PARTS,
    blocks: Sequence[int] = BLOCKS,
) -> Policy:
    """The policy on the grid that fits with the most tokens a second. Raises `ProblemError` where
    none does."""
    top, most = None, 0.0
    for policies in _grid(parts, blocks, with_disk=rooms.get("disk", 0.0) > 0.0):
        fitting = fits(shape, request, policies, rooms)
        if fitting.any():
            tokens = policies.batch * request.generated
            rate = tokens / block_seconds(shape, request, policies, rates)
            rate = np.where(fitting, rate, -1.0)
            i = int(np.argmax(rate))
            if top is None or rate[i] > most:
                top, most = _policy_at(policies, i), float(rate[i])
    if top is None:
        raise ProblemError(_refusal(shape, request, rooms))
    return top


def _grid(parts: Sequence[int], blocks: Sequence[int], *, with_disk: bool) -> Iterator[Policy]:
    """All policies for each part and number of blocks, as arrays; activations are never on disk."""
    weights = _simplex(with_disk)
    i, j = np.meshgrid(np.arange(len(weights)), np.arange(len(weights)), indexing="ij")
    w, c = weights[np.ravel(i)], weights[np.ravel(j)]
    w, c = np.concatenate([w, w]), np.concatenate([c, c])
    x = np.repeat([1.0, 0.0], len(w) // 2)
    shares = (tuple(w.T), tuple(c.T), (x, 1.0 - x, np.zeros_like(x)))
    for part in parts:
        for count in blocks:
            yield Policy(part, count, *shares)


def _simplex(with_disk: bool) -> np.ndarray:
    """Shares on device, host and disk on a grid, one row each."""
    step = _STEP_WITH_DISK if with_disk else _STEP
    ticks = np.round(np.arange(0.0, 1.0 + step / 2, step), 6)
    if not with_disk:
        return np.stack([ticks, 1.0 - ticks, np.zeros_like(ticks)], axis=1)
    device, host = (a.ravel() for a in np.meshgrid(ticks, ticks, indexing="ij"))
    mask = device + host <= 1.0 + 1e-9
    device, host = device[mask], host[mask]
    return np.stack([device, host, np.maximum(1.0 - device - host, 0.0)], axis=1)


def _policy_at(policies: Policy, i: int) -> Policy:
    """The i-th policy of arrays of policies."""
    weights, cache, activations = (
        (float(np.asarray(d)[i]), float(np.asarray(h)[i]), float(np.asarray(s)[i]))
        for d, h, s in (policies.weights, policies.cache, policies.activations)
    )
    return Policy(policies.part, policies.blocks, weights, cache, activations)


def _refusal(shape: LayerShape, request: Request, rooms: Mapping[str, float]) -> str:
    need = shape.layers * (shape.weight_bytes + shape.cache_bytes * request.tokens)
    supply = binary(sum(rooms.values()))
    return (
        f"no policy fits: weights and one sequence's cache take {binary(need)}, device, host and "
        f"disk offer {supply}, and two layers have to be on the device at once; give more host "
        "memory, a disk, or shorter requests"
    )
