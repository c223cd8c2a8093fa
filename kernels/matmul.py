"""Tiled matmul: grouped launch order, split-K and a persistent form of the same tile loop.

C[b] = A[b]·B[b] in fp32 (int32 for integers), fp16, bf16, fp8 and int8. Blocks run down the rows of
a group of `group_m` tiles before they move to the next column, so that the blocks in flight share
operands in L2. Split-K leaves fp32 partial tiles that a second kernel adds up; the persistent form
launches as many blocks as the device holds and walks the tiles in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from perfmodel_kernels.common import ceil_div

from perfmodel.algorithms import Matmul
from perfmodel.algorithms.matmul import matmul_format
from perfmodel.evidence.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.matmul import tiled_matmul
from perfmodel.schedules.schedule import Schedule


@dataclass(frozen=True)
class MatmulConfig:
    """Tile, launch order and split of one matmul.

    `group_m` rows of tiles launch together (None: columns of tiles, one after the other);
    `split_k` is the extent of k that one block sums (None: all of it); `persistent` is the number
    of blocks that share all tiles (None: a block a tile). `descriptors` loads through tensor
    descriptors, `specialise` gives loads and arithmetic warps of their own: both need a target
    that has them.
    """

    bm: int = 128
    bn: int = 128
    bk: int = 64
    group_m: int | None = 8
    split_k: int | None = None
    persistent: int | None = None
    warps: int = 8
    stages: int = 3
    descriptors: bool = False
    specialise: bool = False


CONFIGS = (
    MatmulConfig(),
    MatmulConfig(128, 256, 64, warps=8, stages=3),
    MatmulConfig(256, 128, 64, warps=8, stages=3),
    MatmulConfig(128, 128, 32, warps=4, stages=4),
    MatmulConfig(64, 128, 64, warps=4, stages=4),
    MatmulConfig(64, 64, 64, warps=4, stages=4),
    MatmulConfig(128, 64, 64, warps=4, stages=4),
    MatmulConfig(64, 256, 32, warps=4, stages=4),
)
DESCRIPTOR_CONFIGS = (
    MatmulConfig(128, 256, 64, warps=8, stages=3, descriptors=True),
    MatmulConfig(128, 128, 64, warps=8, stages=4, descriptors=True, specialise=True),
)

# Group height that no problem reaches: one group holds all rows of tiles.
ALL_ROWS = 1 << 14
# How the accumulator becomes the result of an integer matmul.
INTEGER_SCALE = 1.0 / 1024


@triton.jit
def matmul(
    A, B, C, m, n, k, scale, tiles, split_k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    SPLIT: tl.constexpr, INTEGER: tl.constexpr, DESCRIPTORS: tl.constexpr,
    SPECIALISE: tl.constexpr,
):  # fmt: skip
    """Tiles program_id, program_id + programs, … of C; partial tiles where SPLIT."""
    row_tiles = (m + BM - 1) // BM
    column_tiles = (n + BN - 1) // BN
    slices = (k + split_k - 1) // split_k
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        inner = tile % (row_tiles * column_tiles)
        outer = tile // (row_tiles * column_tiles)
        part = outer % slices
        batch = (outer // slices).to(tl.int64)
        group = inner // (GROUP * column_tiles)
        height = tl.minimum(row_tiles - group * GROUP, GROUP)
        within = inner % (GROUP * column_tiles)
        m0 = (group * GROUP + within % height) * BM
        n0 = (within // height) * BN
        rows = m0 + tl.arange(0, BM)
        columns = n0 + tl.arange(0, BN)
        last = tl.minimum((part + 1) * split_k, k)
        a_base = A + batch * m * k
        b_base = B + batch * k * n
        if DESCRIPTORS:
            a_tiles = tl.make_tensor_descriptor(a_base, [m, last], [k, 1], [BM, BK])
            b_tiles = tl.make_tensor_descriptor(b_base, [last, n], [n, 1], [BK, BN])
        # int32 for integers, fp32 for everything else
        kind: tl.constexpr = tl.int32 if INTEGER else tl.float32
        total = tl.full([BM, BN], 0, kind)
        for k0 in tl.range(part * split_k, last, BK, warp_specialize=SPECIALISE):
            if DESCRIPTORS:
                a = a_tiles.load([m0, k0])
                b = b_tiles.load([k0, n0])
            else:
                depth = k0 + tl.arange(0, BK)
                a_at = rows.to(tl.int64)[:, None] * k + depth[None, :]
                b_at = depth.to(tl.int64)[:, None] * n + columns[None, :]
                a = tl.load(
                    a_base + a_at, mask=(rows < m)[:, None] & (depth < last)[None, :], other=0.0
                )
                b = tl.load(
                    b_base + b_at, mask=(depth < last)[:, None] & (columns < n)[None, :], other=0.0
                )
            total = tl.dot(a, b, total, input_precision="ieee", out_dtype=total.dtype)
        result = total.to(tl.float32)
        if not SPLIT:
            result = result * scale
            if C.dtype.element_ty == tl.int8:
                result = tl.minimum(tl.maximum(result, -128.0), 127.0)
        c_at = rows.to(tl.int64)[:, None] * n + columns[None, :]
        tl.store(
            C + (batch * slices + part) * m * n + c_at,
            result.to(C.dtype.element_ty),
            mask=(rows < m)[:, None] & (columns < n)[None, :],
        )


@triton.jit
def combine(
    PARTS, C, m, n, slices, scale, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    """Adds the partial tiles of all slices."""
    row_tiles = (m + BM - 1) // BM
    column_tiles = (n + BN - 1) // BN
    tile = tl.program_id(0)
    batch = (tile // (row_tiles * column_tiles)).to(tl.int64)
    inner = tile % (row_tiles * column_tiles)
    rows = (inner // column_tiles) * BM + tl.arange(0, BM)
    columns = (inner % column_tiles) * BN + tl.arange(0, BN)
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    at = rows.to(tl.int64)[:, None] * n + columns[None, :]
    total = tl.full([BM, BN], 0.0, tl.float32)
    for part in range(slices):
        total += tl.load(PARTS + (batch * slices + part) * m * n + at, mask=inside, other=0.0)
    total = total * scale
    if C.dtype.element_ty == tl.int8:
        total = tl.minimum(tl.maximum(total, -128.0), 127.0)
    tl.store(C + batch * m * n + at, total.to(C.dtype.element_ty), mask=inside)


def _slices(problem: Matmul, config: MatmulConfig) -> int:
    return ceil_div(problem.k, config.split_k or problem.k)


def _arrays(problem: Matmul, config: MatmulConfig) -> tuple[Array, ...]:
    kinds = matmul_format(problem.dtype)
    m, n, k, b = problem.m, problem.n, problem.k, problem.batch
    slices = _slices(problem, config)
    parts = (Array("parts", (b, slices, m, n), "fp32", "scratch", "C"),) if slices > 1 else ()
    return (
        Array("A", (b, m, k), kinds.activations),
        Array("B", (b, k, n), kinds.weights),
        *parts,
        Array("C", (b, m, n), kinds.output, "output"),
    )


def _scale(problem: Matmul) -> float:
    return INTEGER_SCALE if matmul_format(problem.dtype).compute == "int8" else 1.0


def _plan(problem: Matmul, config: MatmulConfig) -> tuple[Launch, ...]:
    m, n, k = problem.m, problem.n, problem.k
    slices = _slices(problem, config)
    row_tiles, column_tiles = ceil_div(m, config.bm), ceil_div(n, config.bn)
    tiles = problem.batch * slices * row_tiles * column_tiles
    product = Launch(
        "matmul",
        matmul,
        (min(tiles, config.persistent or tiles),),
        {
            "A": "A",
            "B": "B",
            "C": "parts" if slices > 1 else "C",
            "m": m,
            "n": n,
            "k": k,
            "scale": _scale(problem),
            "tiles": tiles,
            "split_k": min(config.split_k or k, k),
        },
        {
            "BM": config.bm,
            "BN": config.bn,
            "BK": config.bk,
            "GROUP": config.group_m or ALL_ROWS,
            "SPLIT": slices > 1,
            "INTEGER": matmul_format(problem.dtype).compute == "int8",
            "DESCRIPTORS": config.descriptors,
            "SPECIALISE": config.specialise,
        },
        num_warps=config.warps,
        num_stages=config.stages,
    )
    if slices == 1:
        return (product,)
    arguments = {
        "PARTS": "parts", "C": "C", "m": m, "n": n, "slices": slices, "scale": _scale(problem),
    }  # fmt: skip
    tile = {"BM": config.bm, "BN": config.bn}
    grid = (problem.batch * row_tiles * column_tiles,)
    return (product, Launch("combine", combine, grid, arguments, tile, num_warps=config.warps))


def _schedule(problem: Matmul, config: MatmulConfig) -> Schedule:
    return tiled_matmul(
        config.bm,
        config.bn,
        config.bk,
        group_m=config.group_m,
        split_k=config.split_k,
        stages=config.stages,
        threads=32 * config.warps,
    )


def _reference(problem: Matmul, tensors: Tensors) -> Tensors:
    result = tensors["A"].double().cpu() @ tensors["B"].double().cpu() * _scale(problem)
    if matmul_format(problem.dtype).output == "int8":
        return {"C": torch.trunc(result.clamp(-128, 127))}
    return {"C": result}


def _cases(*rows: tuple[tuple[int, int, int, int], str, MatmulConfig]) -> tuple:
    return tuple((Matmul(m, n, k, b, dtype), config) for (m, n, k, b), dtype, config in rows)


_SMALL = MatmulConfig(32, 64, 32, group_m=2)
_GROUPED = _cases(
    ((300, 200, 130, 1), "fp32", MatmulConfig(128, 64, 32)),
    ((300, 200, 130, 1), "fp16", MatmulConfig(64, 128, 64, group_m=None)),
    ((65, 129, 97, 3), "fp16", _SMALL),
    ((1, 500, 77, 1), "fp32", MatmulConfig(16, 64, 32, group_m=4)),
    ((256, 128, 64, 2), "fp16", MatmulConfig(64, 64, 32, group_m=3)),
    ((100, 90, 130, 1), "fp8", _SMALL),
    ((100, 90, 130, 1), "w8a8_int8", _SMALL),
    ((64, 70, 40, 2), "int8", _SMALL),
    ((128, 128, 96, 1), "fp16", MatmulConfig(64, 64, 32, group_m=2, descriptors=True)),
)
_SPLIT = _cases(
    ((96, 80, 512, 1), "fp32", MatmulConfig(32, 32, 32, split_k=128)),
    ((65, 70, 500, 2), "fp16", MatmulConfig(32, 64, 32, split_k=192)),
    ((17, 33, 130, 1), "fp16", MatmulConfig(16, 16, 16, group_m=None, split_k=40)),
    ((64, 64, 100, 1), "fp32", MatmulConfig(32, 32, 32, split_k=128)),
    ((50, 60, 300, 1), "w8a8_int8", MatmulConfig(32, 32, 32, split_k=100)),
)
_PERSISTENT = _cases(
    ((300, 200, 130, 1), "fp32", MatmulConfig(64, 64, 32, persistent=4)),
    ((65, 129, 97, 3), "fp16", MatmulConfig(32, 64, 32, group_m=2, persistent=5)),
    ((128, 128, 64, 1), "fp16", MatmulConfig(32, 32, 32, persistent=100)),
    ((33, 250, 70, 1), "fp16", MatmulConfig(16, 32, 64, group_m=None, persistent=3)),
    ((90, 91, 92, 2), "fp32", MatmulConfig(64, 32, 32, split_k=48, persistent=7)),
)


def _kernel(name: str, summary: str, configs: tuple, cases: tuple) -> BundledKernel:
    return BundledKernel(
        name=name,
        summary=summary,
        dtypes=("fp32", "fp16", "bf16", "fp8", "int8", "w8a8_int8"),
        configs=configs,
        cases=cases,
        arrays=_arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=_reference,
    )


KERNELS = (
    _kernel("matmul", "tiled matmul in grouped launch order", CONFIGS, _GROUPED),
    _kernel(
        "matmul-split-k",
        "matmul with k over the grid and a reduction kernel",
        tuple(
            MatmulConfig(bm, bn, 64, split_k=split, warps=4, stages=4)
            for bm, bn in ((16, 128), (64, 64), (128, 128))
            for split in (512, 1024, 2048)
        ),
        _SPLIT,
    ),
    _kernel(
        "matmul-persistent",
        "matmul whose blocks walk the tiles",
        (
            *(MatmulConfig(c.bm, c.bn, c.bk, persistent=132, warps=c.warps) for c in CONFIGS[:4]),
            *(
                MatmulConfig(
                    c.bm, c.bn, c.bk, persistent=132, warps=c.warps, stages=c.stages,
                    descriptors=True, specialise=c.specialise,
                )
                for c in DESCRIPTOR_CONFIGS
            ),
        ),
        _PERSISTENT,
    ),
)  # fmt: skip
