"""The matmul kernels' code: a tile by pointers, a tile by tensor descriptors, and the loops over
tiles.

`matmul.py` launches them. All sizes are in elements.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def place(tile, row_tiles, column_tiles, slices, GROUP: tl.constexpr):
    """(batch, slice of k, row of tiles, column of tiles) of a tile number."""
    inner = tile % (row_tiles * column_tiles)
    outer = tile // (row_tiles * column_tiles)
    group = inner // (GROUP * column_tiles)
    height = tl.minimum(row_tiles - group * GROUP, GROUP)
    within = inner % (GROUP * column_tiles)
    return outer // slices, outer % slices, group * GROUP + within % height, within // height


@triton.jit
def result_of(total, kind: tl.constexpr, SCALE: tl.constexpr):
    """The accumulator in the result's type: scaled, clamped where it is int8."""
    result = total.to(tl.float32)
    if SCALE != 1.0:
        result = result * SCALE
    if kind == tl.int8:
        result = tl.minimum(tl.maximum(result, -128.0), 127.0)
    return result.to(kind)


@triton.jit
def pointer_tile(
    A, B, C, m, n, k, split_k, tile,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    SPLIT: tl.constexpr, INTEGER: tl.constexpr, SCALE: tl.constexpr, EVEN: tl.constexpr,
    BY_COLUMNS: tl.constexpr,
):  # fmt: skip
    """One tile of C, or of one slice's part of it. Offsets within a tile are 32 bits wide."""
    row_tiles, column_tiles = tl.cdiv(m, BM), tl.cdiv(n, BN)
    slices = tl.cdiv(k, split_k) if SPLIT else 1
    batch, part, row, column = place(tile, row_tiles, column_tiles, slices, GROUP)
    batch = batch.to(tl.int64)
    m0, n0 = row * BM, column * BN
    down, across, deep = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    row_inside, column_inside = m0 + down < m, n0 + across < n
    a_at = down[:, None] * k + deep[None, :]
    if BY_COLUMNS:
        b_at = deep[:, None] + across[None, :] * k
        b_step = 1
        b_start = B + (batch * n + n0) * k
    else:
        b_at = deep[:, None] * n + across[None, :]
        b_step = tl.cast(n, tl.int64)
        b_start = B + batch * k * n + n0
    a_start = A + (batch * m + m0) * k
    first = part * split_k if SPLIT else 0
    last = tl.minimum(first + split_k, k) if SPLIT else k
    total = tl.full([BM, BN], 0, tl.int32 if INTEGER else tl.float32)
    for k0 in range(first, last, BK):
        a_here = a_start + k0
        b_here = b_start + k0 * b_step
        if EVEN:
            a = tl.load(a_here + a_at, mask=row_inside[:, None], other=0.0)
            b = tl.load(b_here + b_at, mask=column_inside[None, :], other=0.0)
        else:
            inside = k0 + deep < last
            a = tl.load(a_here + a_at, mask=row_inside[:, None] & inside[None, :], other=0.0)
            b = tl.load(b_here + b_at, mask=inside[:, None] & column_inside[None, :], other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee", out_dtype=total.dtype)
    c_start = C + ((batch * slices + part) * m + m0) * n + n0
    tl.store(
        c_start + (down[:, None] * n + across[None, :]),
        result_of(total, C.dtype.element_ty, SCALE),
        mask=row_inside[:, None] & column_inside[None, :],
    )


@triton.jit
def matmul(
    A, B, C, m, n, k, split_k, tiles,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    SPLIT: tl.constexpr, INTEGER: tl.constexpr, SCALE: tl.constexpr, EVEN: tl.constexpr,
    BY_COLUMNS: tl.constexpr, PERSISTENT: tl.constexpr, FLATTEN: tl.constexpr,
):  # fmt: skip
    """Tile program_id, or with PERSISTENT tiles program_id, program_id + programs, …"""
    if PERSISTENT:
        for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=FLATTEN):
            pointer_tile(
                A, B, C, m, n, k, split_k, tile,
                BM, BN, BK, GROUP, SPLIT, INTEGER, SCALE, EVEN, BY_COLUMNS,
            )  # fmt: skip
    else:
        pointer_tile(
            A, B, C, m, n, k, split_k, tl.program_id(0),
            BM, BN, BK, GROUP, SPLIT, INTEGER, SCALE, EVEN, BY_COLUMNS,
        )  # fmt: skip


@triton.jit
def halves(x, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The left and the right half of a matrix."""
    return tl.split(x.reshape(ROWS, 2, COLUMNS // 2).permute(0, 2, 1))


@triton.jit
def fetch(X, at, row, column, ROWS: tl.constexpr, COLUMNS: tl.constexpr, HERE: tl.constexpr):
    """A tile of matrix `at` of a descriptor's; one made HERE has but one matrix."""
    return X.load([row, column]) if HERE else X.load([at, row, column]).reshape(ROWS, COLUMNS)


@triton.jit
def leave(
    C, total, at, m0, n0,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, SCALE: tl.constexpr, HERE: tl.constexpr,
):  # fmt: skip
    """Store a slice of a tile through C's descriptor."""
    result = result_of(total, C.dtype, SCALE)
    if HERE:
        C.store([m0, n0], result)
    else:
        C.store([at, m0, n0], result.reshape(1, ROWS, COLUMNS))


@triton.jit
def descriptor_tile(
    A, B, C, m, n, k, split_k, tile,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    SPLIT: tl.constexpr, INTEGER: tl.constexpr, SCALE: tl.constexpr, BY_COLUMNS: tl.constexpr,
    SUBTILES: tl.constexpr, SPECIALISE: tl.constexpr, HERE: tl.constexpr,
):  # fmt: skip
    """One tile of C, or of one slice's part of it, by tensor descriptors."""
    row_tiles, column_tiles = tl.cdiv(m, BM), tl.cdiv(n, BN)
    slices = tl.cdiv(k, split_k) if SPLIT else 1
    batch, part, row, column = place(tile, row_tiles, column_tiles, slices, GROUP)
    m0, n0 = row * BM, column * BN
    first = part * split_k if SPLIT else 0
    last = tl.minimum(first + split_k, k) if SPLIT else k
    total = tl.full([BM, BN], 0, tl.int32 if INTEGER else tl.float32)
    for k0 in tl.range(first, last, BK, warp_specialize=SPECIALISE):
        a = fetch(A, batch, m0, k0, BM, BK, HERE)
        if BY_COLUMNS:
            b = fetch(B, batch, n0, k0, BN, BK, HERE).T
        else:
            b = fetch(B, batch, k0, n0, BK, BN, HERE)
        total = tl.dot(a, b, total, input_precision="ieee", out_dtype=total.dtype)
    at = batch * slices + part
    if SUBTILES == 1:
        leave(C, total, at, m0, n0, BM, BN, SCALE, HERE)
    else:
        left, right = halves(total, BM, BN)
        if SUBTILES == 2:
            leave(C, left, at, m0, n0, BM, BN // 2, SCALE, HERE)
            leave(C, right, at, m0, n0 + BN // 2, BM, BN // 2, SCALE, HERE)
        else:
            one, two = halves(left, BM, BN // 2)
            three, four = halves(right, BM, BN // 2)
            leave(C, one, at, m0, n0, BM, BN // 4, SCALE, HERE)
            leave(C, two, at, m0, n0 + BN // 4, BM, BN // 4, SCALE, HERE)
            leave(C, three, at, m0, n0 + BN // 2, BM, BN // 4, SCALE, HERE)
            leave(C, four, at, m0, n0 + 3 * (BN // 4), BM, BN // 4, SCALE, HERE)


@triton.jit
def matmul_descriptors(
    A, B, C, m, n, k, split_k, tiles,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    SPLIT: tl.constexpr, INTEGER: tl.constexpr, SCALE: tl.constexpr, BY_COLUMNS: tl.constexpr,
    SUBTILES: tl.constexpr, SPECIALISE: tl.constexpr, HERE: tl.constexpr,
    PERSISTENT: tl.constexpr, FLATTEN: tl.constexpr,
):  # fmt: skip
    """As `matmul`, by tensor descriptors: those of the host, or made HERE from pointers."""
    if HERE:
        A = tl.make_tensor_descriptor(A, [m, k], [k, 1], [BM, BK])
        if BY_COLUMNS:
            B = tl.make_tensor_descriptor(B, [n, k], [k, 1], [BN, BK])
        else:
            B = tl.make_tensor_descriptor(B, [k, n], [n, 1], [BK, BN])
        C = tl.make_tensor_descriptor(C, [m, n], [n, 1], [BM, BN // SUBTILES])
    if PERSISTENT:
        for tile in tl.range(
            tl.program_id(0), tiles, tl.num_programs(0),
            flatten=FLATTEN, warp_specialize=SPECIALISE,
            # A tile of 256 × 256 fills Blackwell's tensor memory by itself.
            disallow_acc_multi_buffer=BM * BN > 128 * 256,
        ):  # fmt: skip
            descriptor_tile(
                A, B, C, m, n, k, split_k, tile, BM, BN, BK, GROUP,
                SPLIT, INTEGER, SCALE, BY_COLUMNS, SUBTILES, False, HERE,
            )  # fmt: skip
    else:
        descriptor_tile(
            A, B, C, m, n, k, split_k, tl.program_id(0), BM, BN, BK, GROUP,
            SPLIT, INTEGER, SCALE, BY_COLUMNS, SUBTILES, SPECIALISE, HERE,
        )  # fmt: skip


@triton.jit
def combine(
    PARTS, C, m, n, slices, TR: tl.constexpr, TC: tl.constexpr, SCALE: tl.constexpr
):  # fmt: skip
    """Adds the partial tiles of all slices, four slices' loads at a time."""
    row_tiles, column_tiles = tl.cdiv(m, TR), tl.cdiv(n, TC)
    tile = tl.program_id(0)
    batch = (tile // (row_tiles * column_tiles)).to(tl.int64)
    inner = tile % (row_tiles * column_tiles)
    rows = (inner // column_tiles) * TR + tl.arange(0, TR)
    columns = (inner % column_tiles) * TC + tl.arange(0, TC)
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    at = rows.to(tl.int64)[:, None] * n + columns[None, :]
    total = tl.full([TR, TC], 0.0, tl.float32)
    for part in tl.range(0, slices, loop_unroll_factor=4):
        total += tl.load(PARTS + (batch * slices + part) * m * n + at, mask=inside, other=0.0)
    tl.store(C + batch * m * n + at, result_of(total, C.dtype.element_ty, SCALE), mask=inside)
