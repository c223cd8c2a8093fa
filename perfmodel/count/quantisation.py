"""Tile and wave quantisation: useful work over launched work.

Both follow from ⌈·⌉ alone. A tile at the edge computes on padding: of ⌈m/bm⌉·bm rows only m count
(NVIDIA, Matrix Multiplication Background User's Guide, section "Tile Quantization"). Tiles run
`slots` at a time, so the last wave may be partly empty: t tiles take as long as ⌈t/slots⌉·slots
(same guide, "Wave Quantization"; Stream-K, section 3.1: 9 tiles on 4 units run at 75 %).
"""

from __future__ import annotations

from perfmodel.arithmetic import Number, ceil_div


def tile_efficiency(extent: Number, tile: Number) -> Number:
    """Share of useful work in ⌈extent/tile⌉ whole tiles along one axis, at most 1.

    Axes multiply: a matmul's is tile_efficiency(m, bm) · tile_efficiency(n, bn).
    """
    return extent / (ceil_div(extent, tile) * tile)


def wave_efficiency(tiles: Number, slots: Number) -> Number:
    """Share of the slots of all whole waves that a launch of `tiles` blocks fills.

    `slots` is the number of thread blocks that run at once: units × resident blocks per unit.
    """
    return tile_efficiency(tiles, slots)
