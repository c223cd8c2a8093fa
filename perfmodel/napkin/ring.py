"""Links between devices as one more memory level: the block size that hides its own transfer.

Ring attention passes K and V round while each device works on the block it has. A step of c queries
and c keys computes 4dc² operations and sends 2cd elements of 2 bytes. Compute covers the transfer
when c ≥ F/B, the ridge point of the link (Liu et al. 2310.01889, section 3.2). A device holds six
blocks: its queries, the current keys and values, those in transfer, and its output.
"""

from __future__ import annotations

from perfmodel.algorithms.attention import Attention
from perfmodel.arithmetic import Number
from perfmodel.count import count
from perfmodel.schedules.tiled import tiled
from perfmodel.timing.roofline import ridge_point

BLOCKS_HELD = 6


def step_intensity(block: Number, head_dim: Number) -> Number:
    """Operations of a device per byte of K and V that it sends, counted for one ring step."""
    problem = Attention(1, 1, 1, block, block, head_dim, dtype="fp16")
    schedule = tiled(None, block, block)
    cost = count(schedule, problem.sizes(), problem.elements())
    bytes_ = sum(cost.kernels[0].hbm[name].total_bytes for name in ("K", "V"))
    return cost.matrix_flops / bytes_


def least_block(flops_per_s: Number, link_bytes_per_s: Number) -> Number:
    """Fewest tokens a block at which compute covers the transfer.

    The intensity of a step equals c, the block size, so c must reach the link's ridge point.
    """
    return ridge_point(flops_per_s, link_bytes_per_s) / step_intensity(1, 1)


def least_sequence(flops_per_s: Number, link_bytes_per_s: Number) -> Number:
    """Fewest tokens a device: six blocks."""
    return BLOCKS_HELD * least_block(flops_per_s, link_bytes_per_s)
