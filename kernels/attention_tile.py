"""One tile of keys seen by a tile of queries: what the forward attention kernels repeat.

Scores stay raw. The running maximum `top` is kept times `scale` = log₂e / √d, so that a probability
is exp2(s · scale − top): one multiply-add and one exponential a score.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def load_rows(
    X, head, first, length,
    COLUMNS: tl.constexpr, COUNT: tl.constexpr, WIDE: tl.constexpr,
    WHOLE: tl.constexpr, DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """COUNT rows from `first` on of a head of `length` rows by COLUMNS: (COUNT, WIDE), 0 outside.

    `X` points at the first head (then `head` has 64 bits), or describes heads by rows by columns.
    WHOLE says that no row lies outside.
    """
    if DESCRIPTORS:
        tile = X.load([head.to(tl.int32), first, 0]).reshape(COUNT, WIDE)
    else:
        row = tl.arange(0, COUNT)
        column = tl.arange(0, WIDE)
        at = X + (head * length + first) * COLUMNS + (row[:, None] * COLUMNS + column[None, :])
        present = (column < COLUMNS)[None, :]
        if WHOLE:
            tile = tl.load(at, mask=present, other=0.0)
        else:
            tile = tl.load(at, mask=present & (row < length - first)[:, None], other=0.0)
    return tile


@triton.jit
def key_ranges(
    i, seq_q, seq_kv,
    ROWS: tl.constexpr, BC: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    """Keys that query tile `i` of ROWS rows reads, by what its rows see of them.

    Returns (first, whole, edge, last): from `first` to `last` some row sees a key, from `whole` to
    `edge` every row sees every key. All but `last` are multiples of BC, or equal to it. `first` and
    `last` are those of perfmodel/count/band.py.
    """
    low = i * ROWS + seq_kv - seq_q  # what the lowest row sees ends or begins here
    high = tl.minimum(seq_q, (i + 1) * ROWS) + seq_kv - seq_q
    first = 0
    whole = 0
    seen = seq_kv
    last = seq_kv
    if CAUSAL:
        seen = tl.minimum(tl.maximum(low + 1, 0), seq_kv)
        last = tl.minimum(tl.maximum(high, 0), seq_kv)
    elif WINDOW > 0:
        seen = tl.minimum(tl.maximum(low + WINDOW, 0), seq_kv)
        last = tl.minimum(tl.maximum(high + WINDOW - 1, 0), seq_kv)
    if WINDOW > 0:
        first = tl.minimum(tl.maximum(low - WINDOW + 1, 0) // BC * BC, last)
        whole = tl.minimum((tl.maximum(high - WINDOW, 0) + BC - 1) // BC * BC, last)
    edge = tl.maximum(seen // BC * BC, whole)
    return first, whole, edge, last


@triton.jit
def visible_keys(
    row, first, length, shift,
    COUNT: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    """Which of the COUNT keys from `first` on each query of `row` sees: (rows or 1, COUNT).

    A key is 8a + b, so that a row compares a constant with its own bound less b: fewer registers
    and instructions than with every key a number of its own.
    """
    a = 8 * tl.arange(0, COUNT // 8)[None, :, None]
    b = tl.arange(0, 8)[None, None, :]
    diagonal = row[:, None, None] + (shift - first) - b
    if CAUSAL:  # no row that there is sees a key beyond the last
        seen = a <= diagonal
    else:
        seen = a < length - first - b
        if WINDOW > 0:
            seen = seen & (a < diagonal + WINDOW)
    if WINDOW > 0:
        seen = seen & (a > diagonal - WINDOW)
    return tl.reshape(seen, (seen.shape[0], COUNT))


@triton.jit
def rounded(p, KIND: tl.constexpr, BY_BITS: tl.constexpr):
    """Probabilities as matrix operands of type KIND.

    BY_BITS rounds to bf16 by one addition to the bits (no NaN is among them, ties go up): for
    targets that have no instruction for it.
    """
    if BY_BITS and KIND.is_bf16():
        bits = (p.to(tl.int32, bitcast=True) + 0x8000) >> 16
        p = bits.to(tl.int16).to(tl.bfloat16, bitcast=True)
    return p.to(KIND)


@triton.jit
def attend(
    q, K, V, out, top, total, row, head, first, length, shift, scale,
    D: tl.constexpr, E: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr, BC: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MASKED: tl.constexpr,
    DESCRIPTORS: tl.constexpr, BY_BITS: tl.constexpr,
):  # fmt: skip
    """The softmax of BC more keys from `first` on: `out`, its maximum `top` and sum, updated.

    `out` is not divided by the sum yet. Without MASKED every row sees every key, and no mask is
    computed. Keys and values are converted to the type of `q`.
    """
    k = load_rows(K, head, first, length, D, BC, BD, not MASKED, DESCRIPTORS).to(q.dtype)
    s = tl.dot(q, tl.trans(k), input_precision="ieee")
    if MASKED:
        seen = visible_keys(row, first, length, shift, BC, CAUSAL, WINDOW)
        s = tl.where(seen, s, float("-inf"))
    new = tl.maximum(top, tl.max(s, 1) * scale)
    base = new
    if MASKED:  # 0 for a row that has seen no key yet
        base = tl.where(new == float("-inf"), 0.0, new)
    p = tl.exp2(s * scale - base[:, None])
    rescale = tl.exp2(top - base)
    total = total * rescale + tl.sum(p, 1)
    v = load_rows(V, head, first, length, E, BC, BE, not MASKED, DESCRIPTORS).to(q.dtype)
    p = rounded(p, q.dtype, BY_BITS)
    out = tl.dot(p, v, out * rescale[:, None], input_precision="ieee")
    return out, new, total


@triton.jit
def attend_all(
    q, K, V, row, head, first, whole, edge, last, length, shift, scale,
    D: tl.constexpr, E: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr, BC: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    DESCRIPTORS: tl.constexpr, SPECIALISE: tl.constexpr, BY_BITS: tl.constexpr,
):  # fmt: skip
    """The output (divided by its sum) and L = m + log ℓ over the keys from `first` to `last`.

    First the tiles from `whole` to `edge`, which every row sees whole, then those that a mask or
    the end of the keys cuts. Rows that see no key have 0 and −∞.
    """
    top = tl.full([q.shape[0]], float("-inf"), tl.float32)
    total = tl.full([q.shape[0]], 0.0, tl.float32)
    out = tl.full([q.shape[0], BE], 0.0, tl.float32)
    for x in tl.range(whole, edge, BC, warp_specialize=SPECIALISE):
        out, top, total = attend(
            q, K, V, out, top, total, row, head, x, length, shift, scale,
            D, E, BD, BE, BC, CAUSAL, WINDOW, False, DESCRIPTORS, BY_BITS,
        )  # fmt: skip
    # Those before `whole` and those from `edge` on, in one loop: the former moved up to the latter.
    for cut in tl.range(first + (edge - whole), last, BC, warp_specialize=SPECIALISE):
        x = cut
        if WINDOW > 0:
            x = tl.where(cut < edge, cut - (edge - whole), cut)
        out, top, total = attend(
            q, K, V, out, top, total, row, head, x, length, shift, scale,
            D, E, BD, BE, BC, CAUSAL, WINDOW, True, DESCRIPTORS, BY_BITS,
        )  # fmt: skip
    blind = total == 0.0
    total = tl.where(blind, 1.0, total)
    log_sum = tl.where(blind, float("-inf"), (top + tl.log2(total)) * 0.6931471805599453)
    return out * (1.0 / total)[:, None], log_sum
