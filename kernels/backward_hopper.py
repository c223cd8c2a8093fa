"""Gradients of keys and values with specialised warps for loads and for products (Gluon, Hopper).

One warp copies queries and dO tile by tile to shared memory (TMA). Two groups of four warps hold
64 keys each and the fp32 sums of their dK and dV. Scores stand transposed, keys by queries, so that
P and dS go into the products for dV and dK from registers as they are. The product for dP runs
beside the exponentials; the groups wait for nobody but the loader, so one's exponentials run beside
the other's products.

Barriers are those of the forward kernel (attention_hopper.py): step n uses buffer n % STAGES in its
use number n // STAGES. Rows that a copy fills up with zeros add nothing, and keys beyond the last
are not stored, so only the causal mask is computed, on the tiles that it cuts; they come first.
"""

from __future__ import annotations

from perfmodel_kernels.attention_hopper import make_barriers
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
def load_gradient_tiles(Q, K, V, DO, held, queries, outputs, kv_head, group, x0, first, tiles):
    """The loader's warp: every group's keys and values, then queries and dO of each head."""
    k_tiles, v_tiles, kv_ready = held
    q_tiles, q_ready, q_free = queries
    do_tiles, do_ready, do_free = outputs
    GROUPS: gl.constexpr = k_tiles.type.shape[0]
    KEYS: gl.constexpr = k_tiles.type.shape[1]
    STAGES: gl.constexpr = q_tiles.type.shape[0]
    BR: gl.constexpr = q_tiles.type.shape[1]
    for which in gl.static_range(GROUPS):
        ready = kv_ready.index(which)
        mbarrier.expect(ready, K.block_type.nbytes + V.block_type.nbytes)
        at = [kv_head, x0 + which * KEYS, 0]
        tma.async_copy_global_to_shared(K, at, ready, k_tiles.index(which))
        tma.async_copy_global_to_shared(V, at, ready, v_tiles.index(which))
    for n in range(group * tiles):
        at = [kv_head * group + n // tiles, (first + n % tiles) * BR, 0]
        stage = n % STAGES
        before = (n // STAGES & 1) ^ 1
        ready = q_ready.index(stage)
        mbarrier.wait(q_free.index(stage), before)
        mbarrier.expect(ready, Q.block_type.nbytes)
        tma.async_copy_global_to_shared(Q, at, ready, q_tiles.index(stage))
        ready = do_ready.index(stage)
        mbarrier.wait(do_free.index(stage), before)
        mbarrier.expect(ready, DO.block_type.nbytes)
        tma.async_copy_global_to_shared(DO, at, ready, do_tiles.index(stage))


@gluon.jit
def add_gradients(
    n, head, q0, k_tile, v_tile, queries, outputs, NORM, DELTA, dk, dv, key, seq_q, scale,
    MASKED: gl.constexpr,
):  # fmt: skip
    """√d · dK and dV of a group's keys with the part of one tile of queries."""
    q_tiles, q_ready, q_free = queries
    do_tiles, do_ready, do_free = outputs
    STAGES: gl.constexpr = q_tiles.type.shape[0]
    BR: gl.constexpr = q_tiles.type.shape[1]
    KEYS: gl.constexpr = k_tile.type.shape[0]
    SUMS_K: gl.constexpr = dk.type.layout
    SUMS_V: gl.constexpr = dv.type.layout
    SCORES: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BR, 16])
    stage = n % STAGES
    phase = n // STAGES & 1
    row = q0 + gl.arange(0, BR, layout=gl.SliceLayout(0, SCORES))
    at = head.to(gl.int64) * seq_q + row
    norm = gl.load(NORM + at, mask=row < seq_q, other=0.0)
    q_tile = q_tiles.index(stage)
    do_tile = do_tiles.index(stage)
    mbarrier.wait(q_ready.index(stage), phase)
    s = warpgroup_mma(
        k_tile, q_tile.permute((1, 0)), gl.zeros([KEYS, BR], gl.float32, SCORES),
        use_acc=False, is_async=True,
    )  # fmt: skip
    mbarrier.wait(do_ready.index(stage), phase)
    dp = warpgroup_mma(
        v_tile, do_tile.permute((1, 0)), gl.zeros([KEYS, BR], gl.float32, SCORES),
        use_acc=False, is_async=True,
    )  # fmt: skip
    s = warpgroup_mma_wait(1, deps=(s,))
    s = s * scale - norm[None, :]
    if MASKED:
        s = gl.where(key[:, None] <= row[None, :], s, float("-inf"))
    p = gl.exp2(s)
    delta = gl.load(DELTA + at, mask=row < seq_q, other=0.0)  # where N needs no registers any more
    dp = warpgroup_mma_wait(0, deps=(dp,))
    ds = p * (dp - delta[None, :])
    weights = gl.convert_layout(p.to(q_tile.dtype), gl.DotOperandLayout(0, SUMS_V, 2))
    dv = warpgroup_mma(weights, do_tile, dv, is_async=True)
    ds = gl.convert_layout(ds.to(q_tile.dtype), gl.DotOperandLayout(0, SUMS_K, 2))
    dk = warpgroup_mma(ds, q_tile, dk, is_async=True)
    dv, weights = warpgroup_mma_wait(1, deps=(dv, weights))
    mbarrier.arrive(do_free.index(stage), count=1)
    dk, ds = warpgroup_mma_wait(0, deps=(dk, ds))
    mbarrier.arrive(q_free.index(stage), count=1)
    return dk, dv


@gluon.jit
def gather_gradients(shared, WHICH: gl.constexpr, CAUSAL: gl.constexpr):
    """A group's warps: its 64 keys over all tiles of queries of its heads, then dK and dV."""
    DK, DV, NORM, DELTA, held, queries, outputs, kv_head, sizes, scale, root = shared
    group, x0, first, tiles, seq_q, seq_kv = sizes
    k_tiles, v_tiles, kv_ready = held
    KEYS: gl.constexpr = k_tiles.type.shape[1]
    BD: gl.constexpr = k_tiles.type.shape[2]
    BE: gl.constexpr = v_tiles.type.shape[2]
    BR: gl.constexpr = queries[0].type.shape[1]
    SCORES: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BR, 16])
    SUMS_K: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BD, 16])
    SUMS_V: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BE, 16])
    k_tile = k_tiles.index(WHICH)
    v_tile = v_tiles.index(WHICH)
    mine = x0 + WHICH * KEYS
    # The row at which each key stands: it and those below see the key.
    key = mine - (seq_kv - seq_q) + gl.arange(0, KEYS, layout=gl.SliceLayout(1, SCORES))
    cut = 0  # tiles whose rows do not all see all keys
    if CAUSAL:
        whole = gl.maximum(mine + KEYS - 1 - (seq_kv - seq_q), 0)
        cut = gl.minimum(gl.cdiv(whole, BR) - first, tiles)
    dk = gl.zeros([KEYS, BD], gl.float32, SUMS_K)
    dv = gl.zeros([KEYS, BE], gl.float32, SUMS_V)
    mbarrier.wait(kv_ready.index(WHICH), 0)
    for r in range(group):
        head = kv_head * group + r
        for i in range(cut):
            dk, dv = add_gradients(
                r * tiles + i, head, (first + i) * BR, k_tile, v_tile, queries, outputs, NORM,
                DELTA, dk, dv, key, seq_q, scale, True,
            )  # fmt: skip
        for i in range(cut, tiles):
            dk, dv = add_gradients(
                r * tiles + i, head, (first + i) * BR, k_tile, v_tile, queries, outputs, NORM,
                DELTA, dk, dv, key, seq_q, scale, False,
            )  # fmt: skip
    k_tile.store((dk * root).to(k_tile.dtype))
    v_tile.store(dv.to(v_tile.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(DK, [kv_head, mine, 0], k_tile)
    tma.async_copy_shared_to_global(DV, [kv_head, mine, 0], v_tile)
    tma.store_wait(0)


@gluon.jit
def hopper_key_gradients(
    Q, K, V, DO, NORM, DELTA, DK, DV, scale, root, group, seq_q, seq_kv,
    STAGES: gl.constexpr, CAUSAL: gl.constexpr, REGISTERS: gl.constexpr,
    LOADER_REGISTERS: gl.constexpr,
):  # fmt: skip
    """dK and dV of 128 keys over all heads of their group; key tiles fastest."""
    GROUPS: gl.constexpr = 2
    BR: gl.constexpr = Q.block_type.shape[1]
    KEYS: gl.constexpr = K.block_type.shape[1]
    BD: gl.constexpr = Q.block_type.shape[2]
    BE: gl.constexpr = DO.block_type.shape[2]
    key_tiles = gl.cdiv(seq_kv, GROUPS * KEYS)
    block = gl.program_id(0)
    x0 = block % key_tiles * (GROUPS * KEYS)
    kv_head = block // key_tiles
    first = 0
    if CAUSAL:
        first = gl.maximum(x0 - (seq_kv - seq_q), 0) // BR
    tiles = gl.cdiv(seq_q, BR) - first
    WIDTH: gl.constexpr = Q.layout.swizzle_byte_width
    PLAIN: gl.constexpr = gl.NVMMASharedLayout(WIDTH, 16, 2)
    k_tiles = gl.allocate_shared_memory(K.dtype, [GROUPS, KEYS, BD], PLAIN)
    v_tiles = gl.allocate_shared_memory(V.dtype, [GROUPS, KEYS, BE], PLAIN)
    q_tiles = gl.allocate_shared_memory(Q.dtype, [STAGES, BR, BD], PLAIN)
    do_tiles = gl.allocate_shared_memory(DO.dtype, [STAGES, BR, BE], PLAIN)
    held = (k_tiles, v_tiles, make_barriers(GROUPS, 1))
    queries = (q_tiles, make_barriers(STAGES, 1), make_barriers(STAGES, GROUPS))
    outputs = (do_tiles, make_barriers(STAGES, 1), make_barriers(STAGES, GROUPS))
    fence_async_shared()  # copies see the barriers as they were made
    sizes = (group, x0, first, tiles, seq_q, seq_kv)
    shared = (DK, DV, NORM, DELTA, held, queries, outputs, kv_head, sizes, scale, root)
    loads = (Q, K, V, DO, held, queries, outputs, kv_head, group, x0, first, tiles)
    gl.warp_specialize(
        [
            (gather_gradients, (shared, 0, CAUSAL)),
            (gather_gradients, (shared, 1, CAUSAL)),
            (load_gradient_tiles, loads),
        ],
        [4, 1],
        [REGISTERS, LOADER_REGISTERS],
    )
