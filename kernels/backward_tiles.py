"""Functions of the attention backward kernels for one query or key tile.

Scores enter as S · scale − N with scale = log₂e / √d and N = L · log₂e, so that a probability takes
one multiply-add and one exponential. The factor 1 / √d of dS is applied later, to the gradients.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def rows_of(
    X, head, first, length,
    COLUMNS: tl.constexpr, COUNT: tl.constexpr, WIDE: tl.constexpr,
    WHOLE: tl.constexpr, DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """COUNT rows from `first` on of a head of `length` rows by COLUMNS: (COUNT, WIDE), 0 outside.

    `X` points at the first head, or describes heads by rows by columns. WHOLE: no row is outside.
    """
    if DESCRIPTORS:
        tile = X.load([head, first, 0]).reshape(COUNT, WIDE)
    else:
        row = tl.arange(0, COUNT)
        column = tl.arange(0, WIDE)
        base = X + (head.to(tl.int64) * length + first) * COLUMNS
        at = row[:, None] * COLUMNS + column[None, :]
        present = (column < COLUMNS)[None, :]
        if WHOLE:
            tile = tl.load(base + at, mask=present, other=0.0)
        else:
            tile = tl.load(base + at, mask=present & (row < length - first)[:, None], other=0.0)
    return tile


@triton.jit
def statistics_of(X, head, first, length, COUNT: tl.constexpr, WHOLE: tl.constexpr):
    """COUNT values from `first` on of a head with `length` of them; 0 outside."""
    row = tl.arange(0, COUNT)
    base = X + (head.to(tl.int64) * length + first)
    if WHOLE:
        found = tl.load(base + row)
    else:
        found = tl.load(base + row, mask=row < length - first, other=0.0)
    return found


@triton.jit
def store_rows(
    X, tile, head, first, length,
    COLUMNS: tl.constexpr, COUNT: tl.constexpr, WIDE: tl.constexpr,
    WHOLE: tl.constexpr, ADD: tl.constexpr,
):  # fmt: skip
    """Store (or ADD atomically) what of a tile lies within a head of `length` rows by COLUMNS.

    WHOLE: no row is outside.
    """
    row = tl.arange(0, COUNT)
    column = tl.arange(0, WIDE)
    base = X + (head.to(tl.int64) * length + first) * COLUMNS
    at = row[:, None] * COLUMNS + column[None, :]
    present = (column < COLUMNS)[None, :]
    if not WHOLE:
        present = present & (row < length - first)[:, None]
    if ADD:
        tl.atomic_add(base + at, tile, mask=present, sem="relaxed")
    else:
        tl.store(base + at, tile.to(X.dtype.element_ty), mask=present)


@triton.jit
def query_ranges(
    x0, seq_q, seq_kv,
    BR: tl.constexpr, BC: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    """Query rows that keys x0 to x0 + BC − 1 are seen by: (first, whole, edge, last).

    From `first` to `last` some key is seen, from `whole` to `edge` all are: multiples of BR, or
    equal to `last`. The inverse of `key_ranges`; see perfmodel/count/band.py.
    """
    low = x0 - (seq_kv - seq_q)  # the row whose diagonal is at x0
    first = 0
    whole = 0
    last = seq_q
    edge = seq_q // BR * BR
    if CAUSAL:
        first = tl.maximum(low, 0) // BR * BR
        whole = (tl.maximum(low + BC - 1, 0) + BR - 1) // BR * BR
    elif WINDOW > 0:
        first = tl.maximum(low - WINDOW + 1, 0) // BR * BR
        whole = (tl.maximum(low + BC - WINDOW, 0) + BR - 1) // BR * BR
    if WINDOW > 0:
        last = tl.minimum(tl.maximum(low + BC + WINDOW - 1, 0), seq_q)
        edge = tl.minimum(tl.maximum(low + WINDOW, 0), seq_q) // BR * BR
    whole = tl.minimum(whole, last)
    edge = tl.where(x0 + BC > seq_kv, whole, tl.maximum(edge, whole))
    return first, whole, edge, last


@triton.jit
def key_ranges(
    q0, seq_q, seq_kv,
    BR: tl.constexpr, BC: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    """Keys that rows q0 to q0 + BR − 1 see: (first, whole, edge, last), as `query_ranges` does."""
    low = q0 + seq_kv - seq_q  # the keys at which the lowest and the highest row stand
    high = tl.minimum(q0 + BR, seq_q) + seq_kv - seq_q
    first = 0
    whole = 0
    last = seq_kv
    seen = seq_kv
    if CAUSAL:
        last = tl.minimum(tl.maximum(high, 0), seq_kv)
        seen = tl.minimum(tl.maximum(low + 1, 0), seq_kv)
    elif WINDOW > 0:
        last = tl.minimum(tl.maximum(high + WINDOW - 1, 0), seq_kv)
        seen = tl.minimum(tl.maximum(low + WINDOW, 0), seq_kv)
    if WINDOW > 0:
        first = tl.minimum(tl.maximum(low - WINDOW + 1, 0) // BC * BC, last)
        whole = tl.minimum((tl.maximum(high - WINDOW, 0) + BC - 1) // BC * BC, last)
    edge = tl.maximum(seen // BC * BC, whole)
    return first, whole, edge, last


@triton.jit
def seen_by_rows(
    x0, q0, seq_q, seq_kv,
    BR: tl.constexpr, BC: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    """Which of BR queries sees each of BC keys, keys down: (BC, BR), or (BC, 1) without a mask.

    A query is 8a + b: a key then compares the constant 8a with a bound of its own less b, which
    takes fewer registers than a number for every query.
    """
    x = x0 + tl.arange(0, BC)[:, None, None]
    a = 8 * tl.arange(0, BR // 8)[None, :, None]
    b = tl.arange(0, 8)[None, None, :]
    diagonal = x - (seq_kv - seq_q) - q0 - b
    if CAUSAL:  # no row that there is sees a key beyond the last
        seen = a >= diagonal
    else:
        seen = x < seq_kv
        if WINDOW > 0:
            seen = seen & (a > diagonal - WINDOW)
    if WINDOW > 0:
        seen = seen & (a < diagonal + WINDOW)
    return tl.reshape(seen, (BC, seen.shape[1] * seen.shape[2]))


@triton.jit
def seen_of_keys(
    q0, x0, seq_q, seq_kv,
    BR: tl.constexpr, BC: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    """Which of BC keys each of BR queries sees, queries down: (BR, BC), or (1, BC)."""
    row = q0 + tl.arange(0, BR)[:, None, None]
    a = 8 * tl.arange(0, BC // 8)[None, :, None]
    b = tl.arange(0, 8)[None, None, :]
    diagonal = row + (seq_kv - seq_q) - x0 - b
    if CAUSAL:
        seen = a <= diagonal
    else:
        seen = a < seq_kv - x0 - b
        if WINDOW > 0:
            seen = seen & (a < diagonal + WINDOW)
    if WINDOW > 0:
        seen = seen & (a > diagonal - WINDOW)
    return tl.reshape(seen, (seen.shape[0], BC))


@triton.jit
def rounded(x, KIND: tl.constexpr, BY_BITS: tl.constexpr):
    """A matrix operand of type KIND. BY_BITS rounds to bf16 by one addition to the bits (ties go
    away from 0), for targets without an instruction that rounds.
    """
    if BY_BITS and tl.bfloat16 == KIND:
        bits = (x.to(tl.int32, bitcast=True) + 0x8000) >> 16
        found = bits.to(tl.int16).to(tl.bfloat16, bitcast=True)
    else:
        found = x.to(KIND)
    return found


@triton.jit
def key_gradients(
    dk, dv, k, v, Q, DO, NORM, DELTA, DQ, head, q0, x0, seq_q, seq_kv, scale,
    D: tl.constexpr, E: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
    BR: tl.constexpr, BC: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    MASKED: tl.constexpr, DESCRIPTORS: tl.constexpr, SUM_QUERIES: tl.constexpr,
    TURNED: tl.constexpr, BY_BITS: tl.constexpr,
):  # fmt: skip
    """√d · dK and dV of BC keys, the part of BR queries from q0 on added.

    Scores stand transposed, keys by queries: what the products with dO and Q take comes out of
    registers as it is. SUM_QUERIES adds √d · dQ to memory; TURNED computes it as Kᵀ·dS, transposed.
    Without MASKED every row is there and sees every key, and no mask is computed.
    """
    q0 = tl.multiple_of(q0, BR)
    q = rows_of(Q, head, q0, seq_q, D, BR, BD, not MASKED, DESCRIPTORS)
    do = rows_of(DO, head, q0, seq_q, E, BR, BE, not MASKED, DESCRIPTORS)
    norm = statistics_of(NORM, head, q0, seq_q, BR, not MASKED)
    delta = statistics_of(DELTA, head, q0, seq_q, BR, not MASKED)
    s = tl.dot(k, tl.trans(q), input_precision="ieee") * scale - norm[None, :]
    if MASKED:  # rows beyond the last have Q = dO = 0 and need no mask
        seen = seen_by_rows(x0, q0, seq_q, seq_kv, BR, BC, CAUSAL, WINDOW)
        s = tl.where(seen, s, float("-inf"))
    p = tl.exp2(s)
    dv = tl.dot(rounded(p, do.dtype, BY_BITS), do, dv, input_precision="ieee")
    dp = tl.dot(v, tl.trans(do), input_precision="ieee")
    ds = rounded(p * (dp - delta[None, :]), q.dtype, BY_BITS)
    if SUM_QUERIES:
        # Before dK, whose product may then run on while these sums leave.
        if TURNED:
            dq = tl.trans(tl.dot(tl.trans(k), ds, input_precision="ieee"))
        else:
            dq = tl.dot(tl.trans(ds), k, input_precision="ieee")
        if DESCRIPTORS:
            DQ.atomic_add([head, q0, 0], dq.reshape(1, BR, BD))
        else:
            store_rows(DQ, dq, head, q0, seq_q, D, BR, BD, not MASKED, True)
    dk = tl.dot(ds, q, dk, input_precision="ieee")
    return dk, dv


@triton.jit
def query_gradient(
    dq, q, do, norm, delta, K, V, head, q0, x0, seq_q, seq_kv, scale,
    D: tl.constexpr, E: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
    BR: tl.constexpr, BC: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    MASKED: tl.constexpr, DESCRIPTORS: tl.constexpr, BY_BITS: tl.constexpr,
):  # fmt: skip
    """√d · dQ of BR queries with the part of BC keys from x0 on; MASKED as in `key_gradients`."""
    x0 = tl.multiple_of(x0, BC)
    k = rows_of(K, head, x0, seq_kv, D, BC, BD, not MASKED, DESCRIPTORS)
    v = rows_of(V, head, x0, seq_kv, E, BC, BE, not MASKED, DESCRIPTORS)
    s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale - norm[:, None]
    dp = tl.dot(do, tl.trans(v), input_precision="ieee")
    if MASKED:
        seen = seen_of_keys(q0, x0, seq_q, seq_kv, BR, BC, CAUSAL, WINDOW)
        s = tl.where(seen, s, float("-inf"))
    ds = rounded(tl.exp2(s) * (dp - delta[:, None]), k.dtype, BY_BITS)
    return tl.dot(ds, k, dq, input_precision="ieee")
