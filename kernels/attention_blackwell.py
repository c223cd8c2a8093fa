"""Forward attention with specialised warps for every kind of work (Gluon, Blackwell).

A block has two tiles of 128 query rows in flight, as in FlashAttention-4: while the matrix unit
works on one tile, the exponentials of the other are computed. Its warps are

    two groups of four   the softmax of one query tile each; one thread holds a whole row
    a group of four      rescales O where a row's maximum has grown, and writes O at the end
    one warp             issues all products (tcgen05), which accumulate in tensor memory
    one warp             copies tiles of queries, keys and values to shared memory (TMA)

Tensor memory holds O of both query tiles and the scores of AHEAD key tiles for each. Probabilities
overwrite their scores. Products of a block run in the order of issue, so that the next scores in
the same place are written only after the product with these probabilities has read them.

With AHEAD = 1 the softmax of a query tile waits for two products after each key tile; with AHEAD =
2 its next scores are already available.

A row keeps the maximum that its probabilities refer to until one of them would exceed 2^SLACK;
until then its part of O needs no rescaling. Sums and O refer to the same maximum, so the result is
the same.

Key tiles are processed from first to last: those that the causal mask cuts come at the end, and the
upper query tile finishes before the lower one.

Access to buffers is synchronised by barriers in shared memory (mbarrier), which all start in phase
0 with phase 1 complete. Keys and values share a ring of buffers: K of tile t is item 2t, V is item
2t + 1. Item n is in buffer n % STAGES, in its use number n // STAGES. The products wait for that
phase of `ready`, and the loads for the preceding phase of `free`.

Scores and probabilities have AHEAD places for each query tile: key tile t is in place t % AHEAD, in
its use number t // AHEAD.

For each place, `scored` completes when Q·Kᵀ is done, `grown` when the rescaling factors are known,
and `weighted` when probabilities are stored and O is rescaled (two arrivals). `added` completes
phase t when P·V of key tile t is done, and `summed` its only phase when a query tile's sums are
known.
"""

from __future__ import annotations

from perfmodel_kernels.attention_hopper import make_barriers
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    fence_async_shared,
    get_tmem_reg_layout,
    mbarrier,
    tcgen05_commit,
    tcgen05_mma,
)
from triton.experimental.gluon.language.nvidia.hopper import tma


@gluon.jit
def fill(described, at, n, ring):
    """Copy a tile to the ring as its nth item, once the buffer is free."""
    tiles, ready, free = ring
    STAGES: gl.constexpr = tiles.type.shape[0]
    stage = n % STAGES
    mbarrier.wait(free.index(stage), (n // STAGES & 1) ^ 1)
    mbarrier.expect(ready.index(stage), described.block_type.nbytes)
    tma.async_copy_global_to_shared(described, at, ready.index(stage), tiles.index(stage))


@gluon.jit
def load_tiles(Q, K, V, queries, ring, head, kv_head, first_row, tiles):
    """The loader's warp: both query tiles, then keys and values tile by tile."""
    q_tiles, q_ready = queries
    ROWS: gl.constexpr = q_tiles.type.shape[1]
    BC: gl.constexpr = K.block_type.shape[1]
    for which in gl.static_range(2):
        ready = q_ready.index(which)
        mbarrier.expect(ready, Q.block_type.nbytes)
        at = [head, first_row + which * ROWS, 0]
        tma.async_copy_global_to_shared(Q, at, ready, q_tiles.index(which))
    for t in range(tiles):
        fill(K, [kv_head, t * BC, 0], 2 * t, ring)
        fill(V, [kv_head, t * BC, 0], 2 * t + 1, ring)


@gluon.jit
def probabilities(scores, DTYPE: gl.constexpr):
    """The part of the scores' tensor memory that their probabilities are written to."""
    ROWS: gl.constexpr = scores.type.shape[0]
    BC: gl.constexpr = scores.type.shape[1]
    LAYOUT: gl.constexpr = TensorMemoryLayout((ROWS, BC), col_stride=1)
    return scores._reinterpret(DTYPE, [ROWS, 2 * BC], LAYOUT).slice(0, BC)


@gluon.jit
def tile_of(ring, n):
    """The nth item of the ring, once it has arrived."""
    tiles, ready, _free = ring
    STAGES: gl.constexpr = tiles.type.shape[0]
    mbarrier.wait(ready.index(n % STAGES), n // STAGES & 1)
    return tiles.index(n % STAGES)


@gluon.jit
def start_scores(WHICH: gl.constexpr, t, ring, q_tiles, scores, scored):
    """S = Q·Kᵀ of a query tile and key tile t."""
    AHEAD: gl.constexpr = scores.type.shape[0] // 2
    place = WHICH * AHEAD + t % AHEAD
    k_tile = tile_of(ring, 2 * t)
    tcgen05_mma(q_tiles.index(WHICH), k_tile.permute((1, 0)), scores.index(place), use_acc=False)
    tcgen05_commit(scored.index(place))


@gluon.jit
def start_values(WHICH: gl.constexpr, t, ring, scores, outs, weighted, added):
    """O += P·V of a query tile and key tile t, once P is stored and O is rescaled."""
    AHEAD: gl.constexpr = scores.type.shape[0] // 2
    place = WHICH * AHEAD + t % AHEAD
    v_tile = tile_of(ring, 2 * t + 1)
    mbarrier.wait(weighted.index(place), t // AHEAD & 1)
    p = probabilities(scores.index(place), v_tile.dtype)
    tcgen05_mma(p, v_tile, outs.index(WHICH), use_acc=t > 0)
    tcgen05_commit(added.index(WHICH))


@gluon.jit
def multiply(queries, ring, scores, outs, scored, weighted, added, upper_tiles, tiles):
    """The products' warp: each query tile's P·V of key tile t, then its Q·Kᵀ of tile t + AHEAD."""
    q_tiles, q_ready = queries
    _tiles, _ready, free = ring
    STAGES: gl.constexpr = free.type.shape[0]
    AHEAD: gl.constexpr = scores.type.shape[0] // 2
    mbarrier.wait(q_ready.index(0), 0)
    mbarrier.wait(q_ready.index(1), 0)
    for t in range(gl.minimum(AHEAD, tiles)):
        if t < upper_tiles:
            start_scores(0, t, ring, q_tiles, scores, scored)
        start_scores(1, t, ring, q_tiles, scores, scored)
        tcgen05_commit(free.index(2 * t % STAGES))
    for t in range(tiles):
        if t < upper_tiles:
            start_values(0, t, ring, scores, outs, weighted, added)
        if t + AHEAD < upper_tiles:
            start_scores(0, t + AHEAD, ring, q_tiles, scores, scored)
        start_values(1, t, ring, scores, outs, weighted, added)
        tcgen05_commit(free.index((2 * t + 1) % STAGES))
        if t + AHEAD < tiles:
            start_scores(1, t + AHEAD, ring, q_tiles, scores, scored)
            tcgen05_commit(free.index(2 * (t + AHEAD) % STAGES))


@gluon.jit
def quarters(x):
    """Columns as four runs, which a thread reduces side by side."""
    return gl.reshape(x, [x.type.shape[0], 4, x.type.shape[1] // 4])


@gluon.jit
def visible_scores(s, row, first, seq_kv, shift, CAUSAL: gl.constexpr):
    """Scores with −∞ where the query of `row` does not see the key (keys from `first` on)."""
    key = gl.arange(0, s.type.shape[1], layout=gl.SliceLayout(0, s.type.layout))[None, :]
    if CAUSAL:
        s = gl.where(key <= (row + (shift - first))[:, None], s, float("-inf"))
    else:
        s = gl.where(key < seq_kv - first, s, float("-inf"))
    return s


@gluon.jit
def attend(
    t, scores, sums, bars, top, total, row, seq_kv, shift, scale, WHICH: gl.constexpr,
    CAUSAL: gl.constexpr, MASKED: gl.constexpr, SLACK: gl.constexpr, DTYPE: gl.constexpr,
):  # fmt: skip
    """Probabilities of key tile t in place of its scores; the new base of the rows and their sum.

    The base is kept times `scale`: a probability is one multiply-add and one exponential.
    """
    scored, grown, weighted = bars
    factors, bases, _totals = sums
    AHEAD: gl.constexpr = scores.type.shape[0] // 2
    BC: gl.constexpr = scores.type.shape[2]
    PER_ROW: gl.constexpr = top.type.layout
    place = WHICH * AHEAD + t % AHEAD
    mbarrier.wait(scored.index(place), t // AHEAD & 1)
    s = scores.index(place).load(PER_ROW.parent)
    if MASKED:
        s = visible_scores(s, row, t * BC, seq_kv, shift, CAUSAL)
    new = gl.convert_layout(gl.max(gl.max(quarters(s), 2), 1), PER_ROW) * scale
    new = gl.where(new > top + SLACK, new, top)
    base = new
    if MASKED:  # 0 for a row that has seen no key yet
        base = gl.where(new == float("-inf"), 0.0, new)
    factor = gl.exp2(top - base)
    factors.index(place).store(factor)
    bases.index(WHICH).store(base)
    mbarrier.arrive(grown.index(place), count=1)
    # The assembler would take all exponentials before this arrival, and O would be rescaled late;
    # but it moves no load to before the barrier in `arrive`.
    base = bases.index(WHICH).load(PER_ROW)
    p = gl.exp2(s * scale - base[:, None])
    stored = probabilities(scores.index(place), DTYPE)
    LAYOUT: gl.constexpr = get_tmem_reg_layout(DTYPE, stored.type.shape, stored.type.layout, 4)
    stored.store(gl.convert_layout(p.to(DTYPE), LAYOUT))
    mbarrier.arrive(weighted.index(place), count=1)
    total = total * factor + gl.convert_layout(gl.sum(gl.sum(quarters(p), 2), 1), PER_ROW)
    return new, total


@gluon.jit
def attend_all(
    shared, tiles, WHICH: gl.constexpr, CAUSAL: gl.constexpr, SLACK: gl.constexpr,
    DTYPE: gl.constexpr,
):  # fmt: skip
    """A softmax group: its 128 rows over their key tiles, then L = m + log ℓ."""
    L, scores, sums, bars, summed, head, sizes, scale = shared
    first_row, seq_q, seq_kv = sizes
    _factors, _bases, totals = sums
    ROWS: gl.constexpr = scores.type.shape[1]
    BC: gl.constexpr = scores.type.shape[2]
    SCORES: gl.constexpr = get_tmem_reg_layout(
        gl.float32, [ROWS, BC], TensorMemoryLayout((ROWS, BC), col_stride=1), 4
    )
    mine = first_row + WHICH * ROWS
    row = mine + gl.arange(0, ROWS, layout=gl.SliceLayout(1, SCORES))
    shift = seq_kv - seq_q
    seen = seq_kv  # one past the last key that the highest row sees
    if CAUSAL:
        seen = gl.minimum(gl.maximum(mine + shift + 1, 0), seq_kv)
    whole = gl.minimum(seen // BC, tiles)
    top = gl.full([ROWS], float("-inf"), gl.float32, gl.SliceLayout(1, SCORES))
    total = gl.full([ROWS], 0.0, gl.float32, gl.SliceLayout(1, SCORES))
    for t in range(whole):
        top, total = attend(
            t, scores, sums, bars, top, total, row, seq_kv, shift, scale,
            WHICH, CAUSAL, False, SLACK, DTYPE,
        )  # fmt: skip
    for t in range(whole, tiles):
        top, total = attend(
            t, scores, sums, bars, top, total, row, seq_kv, shift, scale,
            WHICH, CAUSAL, True, SLACK, DTYPE,
        )  # fmt: skip
    totals.index(WHICH).store(total)
    mbarrier.arrive(summed.index(WHICH), count=1)
    blind = total == 0.0
    log_sum = (top + gl.log2(gl.where(blind, 1.0, total))) * 0.6931471805599453
    log_sum = gl.where(blind, float("-inf"), log_sum)
    gl.store(L + (head.to(gl.int64) * seq_q + row), log_sum, mask=row < seq_q)


@gluon.jit
def rescale(WHICH: gl.constexpr, t, outs, factors, grown, weighted, added, PART: gl.constexpr):
    """O times its factors where any is below 1, between the products of key tiles t − 1 and t."""
    AHEAD: gl.constexpr = factors.type.shape[0] // 2
    BD: gl.constexpr = outs.type.shape[2]
    ROWS: gl.constexpr = outs.type.shape[1]
    LAYOUT: gl.constexpr = get_tmem_reg_layout(
        gl.float32, [ROWS, PART], TensorMemoryLayout((ROWS, PART), col_stride=1), 4
    )
    place = WHICH * AHEAD + t % AHEAD
    mbarrier.wait(grown.index(place), t // AHEAD & 1)
    if t > 0:
        mbarrier.wait(added.index(WHICH), (t - 1) & 1)
        # Each warp looks at all factors, so that none has to ask the others.
        if gl.min(factors.index(place).load(gl.BlockedLayout([4], [32], [4], [0])), 0) < 1.0:
            factor = factors.index(place).load(gl.SliceLayout(1, LAYOUT))
            for part in gl.static_range(BD // PART):
                columns = outs.index(WHICH).slice(part * PART, PART)
                columns.store(columns.load(LAYOUT) * factor[:, None])
    mbarrier.arrive(weighted.index(place), count=1)


@gluon.jit
def finish(WHICH: gl.constexpr, OUT, at, tiles, q_tiles, outs, totals, summed, added):
    """O over the rows' sums, out through the buffer of the queries, which nobody reads any more."""
    BD: gl.constexpr = outs.type.shape[2]
    PART: gl.constexpr = 64  # columns that a swizzle of 128 bytes spans
    ROWS: gl.constexpr = outs.type.shape[1]
    LAYOUT: gl.constexpr = get_tmem_reg_layout(
        gl.float32, [ROWS, PART], TensorMemoryLayout((ROWS, PART), col_stride=1), 4
    )
    mbarrier.wait(summed.index(WHICH), 0)
    total = totals.index(WHICH).load(gl.SliceLayout(1, LAYOUT))
    if tiles > 0:
        mbarrier.wait(added.index(WHICH), (tiles - 1) & 1)
    blind = total == 0.0  # with no tile at all, O was never written
    inverse = 1.0 / gl.where(blind, 1.0, total)
    q_tile = q_tiles.index(WHICH)
    for part in gl.static_range(BD // PART):
        columns = outs.index(WHICH).slice(part * PART, PART).load(LAYOUT) * inverse[:, None]
        columns = gl.where(blind[:, None], 0.0, columns)
        q_tile.slice(part * PART, PART, dim=1).store(columns.to(q_tile.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(OUT, at, q_tile)


@gluon.jit
def correct(
    OUT, queries, outs, sums, bars, summed, added, head, first_row, upper_tiles, tiles,
    PART: gl.constexpr,
):  # fmt: skip
    """The group that keeps O relative to the rows' bases, and writes it out."""
    q_tiles, q_ready = queries
    factors, _bases, totals = sums
    _scored, grown, weighted = bars
    ROWS: gl.constexpr = outs.type.shape[1]
    for t in range(tiles):
        if t < upper_tiles:
            rescale(0, t, outs, factors, grown, weighted, added, PART)
        rescale(1, t, outs, factors, grown, weighted, added, PART)
    for which in gl.static_range(2):  # with no tile too, queries arrive before O leaves
        mbarrier.wait(q_ready.index(which), 0)
    finish(0, OUT, [head, first_row, 0], upper_tiles, q_tiles, outs, totals, summed, added)
    finish(1, OUT, [head, first_row + ROWS, 0], tiles, q_tiles, outs, totals, summed, added)
    tma.store_wait(0)


@gluon.jit
def key_tiles(last_row, seq_q, seq_kv, BC: gl.constexpr, CAUSAL: gl.constexpr):
    """Key tiles that the rows before `last_row` see."""
    last = seq_kv
    if CAUSAL:
        last = gl.maximum(gl.minimum(last_row, seq_q) + seq_kv - seq_q, 0)
    return gl.cdiv(last, BC)


@gluon.jit
def make_vectors(COUNT: gl.constexpr, ROWS: gl.constexpr):
    """COUNT vectors of a number for each row, in shared memory."""
    LAYOUT: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    return gl.allocate_shared_memory(gl.float32, [COUNT, ROWS], LAYOUT)


@gluon.jit
def make_matrices(COUNT: gl.constexpr, ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    """COUNT matrices in tensor memory."""
    LAYOUT: gl.constexpr = TensorMemoryLayout((ROWS, COLUMNS), col_stride=1)
    return allocate_tensor_memory(gl.float32, [COUNT, ROWS, COLUMNS], LAYOUT)


@gluon.jit
def attention_forward(
    Q, K, V, OUT, L, scale, group, seq_q, seq_kv,
    STAGES: gl.constexpr, AHEAD: gl.constexpr, CAUSAL: gl.constexpr, SLACK: gl.constexpr,
    PART: gl.constexpr,
    SOFTMAX_REGISTERS: gl.constexpr, CORRECTION_REGISTERS: gl.constexpr,
    OTHER_REGISTERS: gl.constexpr,
):  # fmt: skip
    """Two tiles of 128 query rows; query tiles fastest, then heads, then batch."""
    ROWS: gl.constexpr = Q.block_type.shape[1]
    BD: gl.constexpr = Q.block_type.shape[2]
    BC: gl.constexpr = K.block_type.shape[1]
    DTYPE: gl.constexpr = Q.dtype
    row_tiles = gl.cdiv(seq_q, 2 * ROWS)
    block = gl.program_id(0)
    i = block % row_tiles
    if CAUSAL:
        i = row_tiles - 1 - i  # the last rows see most keys: the longest blocks start first
    first_row = i * 2 * ROWS
    upper_tiles = key_tiles(first_row + ROWS, seq_q, seq_kv, BC, CAUSAL)
    tiles = key_tiles(first_row + 2 * ROWS, seq_q, seq_kv, BC, CAUSAL)
    head = block // row_tiles
    PLAIN: gl.constexpr = gl.NVMMASharedLayout(Q.layout.swizzle_byte_width, 16, 2)
    q_tiles = gl.allocate_shared_memory(Q.dtype, [2, ROWS, BD], PLAIN)
    kv_tiles = gl.allocate_shared_memory(K.dtype, [STAGES, BC, BD], PLAIN)
    queries = (q_tiles, make_barriers(2, 1))
    ring = (kv_tiles, make_barriers(STAGES, 1), make_barriers(STAGES, 1))
    sums = (make_vectors(2 * AHEAD, ROWS), make_vectors(2, ROWS), make_vectors(2, ROWS))
    scores, outs = make_matrices(2 * AHEAD, ROWS, BC), make_matrices(2, ROWS, BD)
    scored, grown = make_barriers(2 * AHEAD, 1), make_barriers(2 * AHEAD, 1)
    weighted = make_barriers(2 * AHEAD, 2)
    summed, added = make_barriers(2, 1), make_barriers(2, 1)
    fence_async_shared()  # copies see the barriers as they were made
    bars = (scored, grown, weighted)
    sizes = (first_row, seq_q, seq_kv)
    shared = (L, scores, sums, bars, summed, head, sizes, scale)
    gl.warp_specialize(
        [
            (attend_all, (shared, upper_tiles, 0, CAUSAL, SLACK, DTYPE)),
            (attend_all, (shared, tiles, 1, CAUSAL, SLACK, DTYPE)),
            (correct, (OUT, queries, outs, sums, bars, summed, added, head, first_row,
                       upper_tiles, tiles, PART)),
            (multiply, (queries, ring, scores, outs, scored, weighted, added, upper_tiles, tiles)),
            (load_tiles, (Q, K, V, queries, ring, head, head // group, first_row, tiles)),
        ],
        [4, 4, 1, 1],
        [SOFTMAX_REGISTERS, CORRECTION_REGISTERS, OTHER_REGISTERS, OTHER_REGISTERS],
    )  # fmt: skip
