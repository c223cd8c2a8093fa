"""Tile pairs that a banded mask leaves to visit, summed exactly without enumerating them.

A causal or windowed mask couples the loops over queries and keys: the product of their trip counts
becomes a sum over the visited pairs. Query tile i has rows i·Br to min(Q, (i+1)·Br) − 1. Its
visible keys run from f_i (first key of its first row) up to e_i (one past the last key of its last
row). It visits the key tiles ⌊f_i/Bc⌋ … ⌈e_i/Bc⌉ − 1, with

    e_i = min(Q, (i+1)·Br) + shift + right        f_i = i·Br + shift − left + 1

both clipped to [0, X]. shift = X − Q, so the last row sees the last key. The set of visited pairs
does not depend on the loop order, so these sums serve every order.
"""

from __future__ import annotations

import numpy as np

from perfmodel.algorithms.algorithm import Band
from perfmodel.arithmetic import (
    Number,
    ceil_div,
    clamp,
    floor_div,
    floor_sum,
    is_symbolic,
    maximum,
    minimum,
    wide,
)
from perfmodel.errors import ProblemError
from perfmodel.frozen import dataclass


@dataclass(frozen=True)
class Visits:
    """Sums over the visited (query tile, key tile) pairs, for one head."""

    pairs: Number
    """Visited pairs."""
    queries: Number
    """Sum of the query extents of all pairs."""
    keys: Number
    """Sum of the key extents of all pairs."""
    area: Number
    """Sum of query extent × key extent of all pairs."""
    distinct_queries: Number
    """Query rows in tiles that see at least one key."""
    most_keys: Number
    """Largest key extent that one query tile visits."""
    distinct_keys: Number
    """Keys in tiles that at least one query sees."""
    most_queries: Number
    """Largest query extent that visits one key tile."""


def visit(band: Band | None, seq_q: Number, seq_kv: Number, br: Number, bc: Number) -> Visits:
    """Exact sums for `band` over tiles of br queries by bc keys.

    Ints and arrays use floor sums. Symbols get the closed form for nesting tiles (one a multiple of
    the other); other symbolic tiles raise `ProblemError`.
    """
    if band is None or not band.bounded:
        return _all_visits(seq_q, seq_kv, br, bc)
    if band.sparse:
        visits, s = _all_visits(seq_q, seq_kv, br, bc), band.share
        pairs, queries, keys = s * visits.pairs, s * visits.queries, s * visits.keys
        # Few tiles together may see fewer than all rows or keys.
        rows, cols = minimum(seq_q, queries), minimum(seq_kv, keys)
        return Visits(pairs, queries, keys, s * visits.area, rows, s * seq_kv, cols, rows)
    if is_symbolic(seq_q, seq_kv, br, bc):
        return _symbolic(band, seq_q, seq_kv, br, bc)
    return _exact(band, seq_q, seq_kv, br, bc)


def _all_visits(seq_q: Number, seq_kv: Number, br: Number, bc: Number) -> Visits:
    """All pairs of tiles."""
    tq, tk = ceil_div(seq_q, br), ceil_div(seq_kv, bc)
    return Visits(
        pairs=wide(tq) * tk,
        queries=wide(seq_q) * tk,
        keys=wide(seq_kv) * tq,
        area=wide(seq_q) * seq_kv,
        distinct_queries=seq_q,
        most_keys=seq_kv,
        distinct_keys=seq_kv,
        most_queries=seq_q,
    )


def _exact(band: Band, seq_q: Number, seq_kv: Number, br: Number, bc: Number) -> Visits:
    """Split the query tiles where the clipping saturates; use a floor sum for the linear part."""
    tq, tk = ceil_div(seq_q, br), ceil_div(seq_kv, bc)
    shift = seq_kv - seq_q
    zero = 0 * (tq + tk)
    if band.right is None:
        upper, end_tiles, none_below = wide(tq) * tk, tq, zero
    else:
        offset = shift + band.right
        # Tiles before the last end at row (i+1)·Br: the first `none_below` see nothing, those from
        # `full` on see every key.
        none_below = maximum(floor_div(-offset, br), 0)
        full = maximum(ceil_div(seq_kv - offset, br) - 1, none_below)
        start = (none_below + 1) * br + offset + bc - 1
        ramp = floor_sum(full - none_below, bc, br, start)
        upper = ramp + wide(tq - full) * tk
        # Tiles whose last key tile is the ragged one: e_i > (tk − 1)·Bc.
        end_tiles = tq - maximum(floor_div((tk - 1) * bc - offset, br), 0)
    if band.left is None:
        start, lower, last_low, gap = zero, zero, zero, zero
    else:
        start = shift - band.left + 1
        skip = clamp(floor_div(-start, br) + 1, 0, tq)
        lower = floor_sum(tq - skip, bc, br, skip * br + start)
        last_low = floor_div(clamp((tq - 1) * br + start, 0, seq_kv), bc)
        # The key ranges of successive tiles leave no gap, so only keys before the first range are
        # unseen.
        gap = floor_div(clamp(none_below * br + start, 0, seq_kv), bc) * bc
    pairs = upper - lower
    ragged_keys = tk * bc - seq_kv
    keys = wide(pairs) * bc - wide(end_tiles) * ragged_keys
    last_pairs = tk - last_low
    last_keys = last_pairs * bc - ragged_keys
    ragged_rows = tq * br - seq_q
    blind_rows = none_below * br
    bound = (pairs - (tq - none_below - 1)) * bc
    return Visits(
        pairs=wide(pairs),
        queries=wide(pairs) * br - wide(ragged_rows) * last_pairs,
        keys=wide(keys),
        area=wide(keys) * br - wide(ragged_rows) * last_keys,
        distinct_queries=seq_q - blind_rows,
        most_keys=_most_keys(band, seq_kv, br, bc, last_keys, start, bound),
        distinct_keys=seq_kv - gap,
        most_queries=_most_queries(band, seq_q - blind_rows, br, bc, shift),
    )


def _most_keys(band: Band, seq_kv: Number, br: Number, bc: Number, last_keys: Number,
               start: Number, bound: Number) -> Number:  # fmt: skip
    """Bound on the key extent of the busiest query tile; exact without a left edge.

    Interior tiles see Br + left + right − 1 keys from i·Br + `start` on. `bound` is the extent that
    remains where every other tile visits one key tile.
    """
    if band.right is None:
        return minimum(seq_kv, bound)
    if band.left is None:
        return last_keys
    most = _straddle(br + band.left + band.right - 1, start, br, bc)
    return minimum(minimum(seq_kv, most), bound)


def _most_queries(band: Band, rows: Number, br: Number, bc: Number, shift: Number) -> Number:
    """Bound on the query extent of the busiest key tile; `rows` rows see any key.

    Without a left edge every such row sees the first keys. With one, only rows whose window reaches
    the tile do.
    """
    if band.left is None or band.right is None:
        return rows
    reach = bc + band.left + band.right - 1
    return minimum(rows, _straddle(reach, -shift - band.right, bc, br))


def _straddle(reach: Number, start: Number, step: Number, tile: Number) -> Number:
    """Largest extent of the tiles that an interval of length `reach` overlaps.

    The intervals start at i·`step` + `start`. Their offsets within a tile differ by multiples of
    gcd(step, tile).
    """
    divisor = np.gcd(np.asarray(step, dtype=np.int64), np.asarray(tile, dtype=np.int64))
    latest = tile - divisor + start % divisor
    return (floor_div(latest + reach - 1, tile) + 1) * tile


def _symbolic(band: Band, seq_q: Number, seq_kv: Number, br: Number, bc: Number) -> Visits:
    """Closed form of a causal mask for equal lengths and nesting tiles that divide them.

    Br = ρ·Bc: tile i visits (i+1)·ρ key tiles, so Σ = ρ·Tr(Tr+1)/2.
    Bc = ρ·Br: ρ successive tiles visit the same number, so Σ = ρ·Tc(Tc+1)/2.
    """
    import sympy

    square = band.left is None and band.right == 0 and sympy.simplify(seq_q - seq_kv) == 0
    tq, tk = sympy.simplify(sympy.S(seq_q) / br), sympy.simplify(sympy.S(seq_kv) / bc)
    ratio = sympy.simplify(sympy.S(br) / bc)
    if not (square and tq.is_integer and tk.is_integer):
        raise ProblemError(
            "a symbolic mask needs a causal square problem whose tiles divide it; use numbers"
        )
    if ratio.is_integer:
        pairs = ratio * tq * (tq + 1) / 2
    elif (1 / ratio).is_integer:
        pairs = tk * (tk + 1) / ratio / 2
    else:
        raise ProblemError("symbolic causal counts need nesting tiles: one a multiple of the other")
    return Visits(pairs, pairs * br, pairs * bc, pairs * br * bc, seq_q, seq_kv, seq_kv, seq_q)
