"""Forward attention with specialised warps for loads and for products (Gluon, Hopper).

One warp copies tiles of keys and values to shared memory (TMA). Two or three groups of four warps
each process 64 query rows. Scores are a product of tiles in shared memory (wgmma); the second
product takes probabilities from registers. While P·V of one key tile runs, its group computes the
softmax of the next tile. The groups take turns in issuing products, so that one group's softmax
overlaps with another's products (FlashAttention-3, section 3).

Key tiles are processed from last to first, so that those cut by the causal mask or the end of the
keys come first.

Access to a buffer is synchronised by barriers in shared memory (mbarrier), which all start in phase
0 with phase 1 complete. `ready` completes when a tile's bytes have arrived, `free` when every
group's product has read the tile. Buffer t % STAGES holds tile t in its use number t // STAGES:
readers wait for that phase of `ready`, and the loader for the preceding phase of `free`.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@gluon.jit
def load_tiles(Q, K, V, queries, keys, values, head, kv_head, first_row, tiles):
    """The loader's warp: every group's queries, then keys and values tile by tile."""
    q_tiles, q_ready = queries
    k_tiles, k_ready, k_free = keys
    v_tiles, v_ready, v_free = values
    GROUPS: gl.constexpr = q_tiles.type.shape[0]
    ROWS: gl.constexpr = q_tiles.type.shape[1]
    STAGES: gl.constexpr = k_tiles.type.shape[0]
    BC: gl.constexpr = k_tiles.type.shape[1]
    for which in gl.static_range(GROUPS):
        ready = q_ready.index(which)
        mbarrier.expect(ready, Q.block_type.nbytes)
        at = [head, first_row + which * ROWS, 0]
        tma.async_copy_global_to_shared(Q, at, ready, q_tiles.index(which))
    for t in range(tiles):
        at = [kv_head, (tiles - 1 - t) * BC, 0]
        stage = t % STAGES
        before = (t // STAGES & 1) ^ 1
        ready = k_ready.index(stage)
        mbarrier.wait(k_free.index(stage), before)
        mbarrier.expect(ready, K.block_type.nbytes)
        tma.async_copy_global_to_shared(K, at, ready, k_tiles.index(stage))
        ready = v_ready.index(stage)
        mbarrier.wait(v_free.index(stage), before)
        mbarrier.expect(ready, V.block_type.nbytes)
        tma.async_copy_global_to_shared(V, at, ready, v_tiles.index(stage))


@gluon.jit
def visible_scores(s, row, first, seq_kv, shift, CAUSAL: gl.constexpr):
    """Scores with −∞ where the query of `row` does not see the key (keys from `first` on)."""
    S: gl.constexpr = s.type.layout
    BC: gl.constexpr = s.type.shape[1]
    # A key is 8a + b, so that a row compares a constant with its own bound less b.
    split = gl.reshape(s, [s.type.shape[0], BC // 8, 8])
    T: gl.constexpr = split.type.layout
    a = 8 * gl.arange(0, BC // 8, layout=gl.SliceLayout(0, gl.SliceLayout(2, T)))
    b = gl.arange(0, 8, layout=gl.SliceLayout(0, gl.SliceLayout(1, T)))
    a = a[None, :][:, :, None]
    b = b[None, :][:, None, :]
    if CAUSAL:
        bound = gl.convert_layout(row + (shift - first), gl.SliceLayout(1, gl.SliceLayout(2, T)))
        split = gl.where(a <= bound[:, None][:, :, None] - b, split, float("-inf"))
    else:
        split = gl.where(a < seq_kv - first - b, split, float("-inf"))
    return gl.convert_layout(gl.reshape(split, s.type.shape), S)


@gluon.jit
def softmax(s, top, total, scale, MASKED: gl.constexpr):
    """Probabilities against the new maximum, that maximum, the new sum and what rescales the old.

    The maximum is kept times `scale`: a probability is one multiply-add and one exponential.
    """
    new = gl.maximum(top, gl.max(s, 1) * scale)
    base = new
    if MASKED:  # 0 for a row that has seen no key yet
        base = gl.where(new == float("-inf"), 0.0, new)
    p = gl.exp2(s * scale - base[:, None])
    rescale = gl.exp2(top - base)
    return p, new, total * rescale + gl.sum(p, 1), rescale


@gluon.jit
def attend(
    t, tiles, q_tile, keys, values, turns, sums, p, out, top, total, row, seq_kv, shift, scale,
    WHICH: gl.constexpr, CAUSAL: gl.constexpr, MASKED: gl.constexpr, TURNS: gl.constexpr,
):  # fmt: skip
    """Scores and softmax of tile t, beside them the second product of tile t − 1.

    `p` are the probabilities of tile t − 1 on the way in, of tile t on the way out.
    """
    k_tiles, k_ready, k_free = keys
    v_tiles, v_ready, v_free = values
    GROUPS: gl.constexpr = turns.type.shape[0]
    STAGES: gl.constexpr = k_tiles.type.shape[0]
    BC: gl.constexpr = k_tiles.type.shape[1]
    ROWS: gl.constexpr = q_tile.type.shape[0]
    SCORES: gl.constexpr = p.type.layout
    OUTPUT: gl.constexpr = out.type.layout
    stage = t % STAGES
    last = (t - 1) % STAGES
    mbarrier.wait(k_ready.index(stage), t // STAGES & 1)
    if TURNS:  # after the neighbour's turn t, the first group after the last one's turn t − 1
        mbarrier.wait(turns.index(WHICH), (t + (WHICH == 0)) & 1)
    s = warpgroup_mma(
        q_tile, k_tiles.index(stage).permute((1, 0)), gl.zeros([ROWS, BC], gl.float32, SCORES),
        use_acc=False, is_async=True,
    )  # fmt: skip
    mbarrier.wait(v_ready.index(last), (t - 1) // STAGES & 1)
    weights = gl.convert_layout(p.to(q_tile.dtype), gl.DotOperandLayout(0, OUTPUT, 2))
    out = warpgroup_mma(weights, v_tiles.index(last), out, is_async=True)
    if TURNS:
        mbarrier.arrive(turns.index((WHICH + 1) % GROUPS), count=1)
    s = warpgroup_mma_wait(1, deps=(s,))
    if MASKED:
        s = visible_scores(s, row, (tiles - 1 - t) * BC, seq_kv, shift, CAUSAL)
    p, top, total, rescale = softmax(s, top, total, scale, MASKED)
    # Nobody reads these sums. The assembler would move the softmax behind the wait below, where it
    # no longer runs beside the product; but it moves no store past the barrier in `arrive`.
    sums.index(WHICH).store(total)
    mbarrier.arrive(k_free.index(stage), count=1)
    out, p = warpgroup_mma_wait(0, deps=(out, p))
    mbarrier.arrive(v_free.index(last), count=1)
    out = out * gl.convert_layout(rescale, gl.SliceLayout(1, OUTPUT))[:, None]
    return p, out, top, total


@gluon.jit
def attend_all(shared, WHICH: gl.constexpr, CAUSAL: gl.constexpr, TURNS: gl.constexpr):
    """A group's warps: its 64 rows over all key tiles, then O and L = m + log ℓ."""
    OUT, L, queries, keys, values, turns, sums, head, sizes, scale = shared
    first_row, tiles, seq_q, seq_kv = sizes
    q_tiles, q_ready = queries
    k_tiles, k_ready, k_free = keys
    v_tiles, v_ready, _v_free = values
    GROUPS: gl.constexpr = q_tiles.type.shape[0]
    ROWS: gl.constexpr = q_tiles.type.shape[1]
    BD: gl.constexpr = q_tiles.type.shape[2]
    STAGES: gl.constexpr = k_tiles.type.shape[0]
    BC: gl.constexpr = k_tiles.type.shape[1]
    SCORES: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BC, 16])
    OUTPUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BD, 16])
    q_tile = q_tiles.index(WHICH)
    shift = seq_kv - seq_q
    mine = first_row + WHICH * ROWS
    row = mine + gl.arange(0, ROWS, layout=gl.SliceLayout(1, SCORES))
    seen = seq_kv  # one past the last key that the lowest row sees
    if CAUSAL:
        seen = gl.minimum(gl.maximum(mine + shift + 1, 0), seq_kv)
    # Tiles are numbered in the order of the visits: those before `whole` are cut, and the first
    # one is treated so in any case.
    whole = gl.maximum(tiles - seen // BC, 1)
    top = gl.full([ROWS], float("-inf"), gl.float32, gl.SliceLayout(1, SCORES))
    total = gl.full([ROWS], 0.0, gl.float32, gl.SliceLayout(1, SCORES))
    out = gl.zeros([ROWS, BD], gl.float32, OUTPUT)
    mbarrier.wait(q_ready.index(WHICH), 0)  # with no tile too: O leaves through the queries' buffer
    if tiles > 0:
        mbarrier.wait(k_ready.index(0), 0)
        if TURNS and WHICH > 0:
            mbarrier.wait(turns.index(WHICH), 0)
        s = warpgroup_mma(
            q_tile, k_tiles.index(0).permute((1, 0)), gl.zeros([ROWS, BC], gl.float32, SCORES),
            use_acc=False, is_async=True,
        )  # fmt: skip
        if TURNS:
            mbarrier.arrive(turns.index((WHICH + 1) % GROUPS), count=1)
        s = warpgroup_mma_wait(0, deps=(s,))
        mbarrier.arrive(k_free.index(0), count=1)
        s = visible_scores(s, row, (tiles - 1) * BC, seq_kv, shift, CAUSAL)
        p, top, total, _rescale = softmax(s, top, total, scale, True)
        for t in range(1, whole):
            p, out, top, total = attend(
                t, tiles, q_tile, keys, values, turns, sums, p, out, top, total, row,
                seq_kv, shift, scale, WHICH, CAUSAL, True, TURNS,
            )  # fmt: skip
        for t in range(whole, tiles):
            p, out, top, total = attend(
                t, tiles, q_tile, keys, values, turns, sums, p, out, top, total, row,
                seq_kv, shift, scale, WHICH, CAUSAL, False, TURNS,
            )  # fmt: skip
        last = (tiles - 1) % STAGES
        mbarrier.wait(v_ready.index(last), (tiles - 1) // STAGES & 1)
        weights = gl.convert_layout(p.to(q_tile.dtype), gl.DotOperandLayout(0, OUTPUT, 2))
        out = warpgroup_mma(weights, v_tiles.index(last), out, is_async=True)
        out = warpgroup_mma_wait(0, deps=(out,))
    blind = total == 0.0
    total = gl.where(blind, 1.0, total)
    log_sum = gl.where(blind, float("-inf"), (top + gl.log2(total)) * 0.6931471805599453)
    gl.store(L + (head.to(gl.int64) * seq_q + row), log_sum, mask=row < seq_q)
    out = out * gl.convert_layout(1.0 / total, gl.SliceLayout(1, OUTPUT))[:, None]
    q_tile.store(out.to(q_tile.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(OUT, [head, mine, 0], q_tile)
    tma.store_wait(0)


@gluon.jit
def make_barriers(COUNT: gl.constexpr, ARRIVALS: gl.constexpr):
    """COUNT barriers that complete a phase after so many arrivals."""
    found = gl.allocate_shared_memory(gl.int64, [COUNT, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(COUNT):
        mbarrier.init(found.index(i), count=ARRIVALS)
    return found


@gluon.jit
def attention_forward(
    Q, K, V, OUT, L, scale, group, seq_q, seq_kv,
    STAGES: gl.constexpr, GROUPS: gl.constexpr, CAUSAL: gl.constexpr, TURNS: gl.constexpr,
    REGISTERS: gl.constexpr, LOADER_REGISTERS: gl.constexpr,
):  # fmt: skip
    """One tile of 64 × GROUPS query rows; query tiles fastest, then heads, then batch."""
    ROWS: gl.constexpr = Q.block_type.shape[1]
    BD: gl.constexpr = Q.block_type.shape[2]
    BC: gl.constexpr = K.block_type.shape[1]
    BR: gl.constexpr = GROUPS * ROWS
    row_tiles = gl.cdiv(seq_q, BR)
    block = gl.program_id(0)
    i = block % row_tiles
    last = seq_kv
    if CAUSAL:
        i = row_tiles - 1 - i  # the last rows see most keys: the longest blocks start first
        last = gl.minimum((i + 1) * BR, seq_q) + seq_kv - seq_q
    tiles = gl.cdiv(gl.maximum(last, 0), BC)
    head = block // row_tiles
    kv_head = head // group
    first_row = i * BR
    PLAIN: gl.constexpr = gl.NVMMASharedLayout(Q.layout.swizzle_byte_width, 16, 2)
    q_tiles = gl.allocate_shared_memory(Q.dtype, [GROUPS, ROWS, BD], PLAIN)
    k_tiles = gl.allocate_shared_memory(K.dtype, [STAGES, BC, BD], PLAIN)
    v_tiles = gl.allocate_shared_memory(V.dtype, [STAGES, BC, BD], PLAIN)
    sums = gl.allocate_shared_memory(
        gl.float32, [GROUPS, ROWS], gl.SwizzledSharedLayout(1, 1, 1, [0])
    )
    queries = (q_tiles, make_barriers(GROUPS, 1))
    keys = (k_tiles, make_barriers(STAGES, 1), make_barriers(STAGES, GROUPS))
    values = (v_tiles, make_barriers(STAGES, 1), make_barriers(STAGES, GROUPS))
    turns = make_barriers(GROUPS, 1)
    fence_async_shared()  # copies see the barriers as they were made
    sizes = (first_row, tiles, seq_q, seq_kv)
    shared = (OUT, L, queries, keys, values, turns, sums, head, sizes, scale)
    loads = (Q, K, V, queries, keys, values, head, kv_head, first_row, tiles)
    if GROUPS == 2:
        gl.warp_specialize(
            [
                (attend_all, (shared, 0, CAUSAL, TURNS)),
                (attend_all, (shared, 1, CAUSAL, TURNS)),
                (load_tiles, loads),
            ],
            [4, 1],
            [REGISTERS, LOADER_REGISTERS],
        )
    else:
        gl.warp_specialize(
            [
                (attend_all, (shared, 0, CAUSAL, TURNS)),
                (attend_all, (shared, 1, CAUSAL, TURNS)),
                (attend_all, (shared, 2, CAUSAL, TURNS)),
                (load_tiles, loads),
            ],
            [4, 4, 1],
            [REGISTERS, REGISTERS, LOADER_REGISTERS],
        )
