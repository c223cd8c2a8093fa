"""Weight-only matmul: 16-bit activations, weights of 8 bits (w8a16) or 4 bits (w4a16).

w8a16 has a scale per output column. w4a16 has one per column and group of 128 along k; the groups
are an axis of their own here, so that the scales are declared and counted like any other tensor. A
packed byte holds weight i of its group in the low half and weight i + 64 in the high half, so that
both halves are multiplied by contiguous activations.

Weights are stored in column-major order (k contiguous), as libraries store the weights of a linear
layer, so that a thread's weights are contiguous.

Integers are converted to floats without a conversion instruction: their bits are put into the
mantissa of a power of two, which is then subtracted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
import triton
import triton.language as tl
from perfmodel_kernels.common import ceil_div
from perfmodel_kernels.launching import launch
from perfmodel_kernels.limits import check_offsets, check_positive_counts, check_powers
from perfmodel_kernels.matmul import COMBINE_TILE, COMBINE_WARPS
from perfmodel_kernels.matmul_code import combine
from perfmodel_kernels.menus import SKINNY_ROWS, buffers, every, slice_extent, tile_rows

from perfmodel.algorithms.algorithm import Algorithm, Step, Tensor, tensors
from perfmodel.algorithms.attention import check_positive
from perfmodel.elements import ElementType, element
from perfmodel.errors import ProblemError
from perfmodel.proof.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.schedule import Kernel, Loop, Schedule

GROUP = 128
_ZERO = 8  # the stored 4-bit weight that means 0


@dataclass(frozen=True)
class WeightOnly:
    """C[m,n] = A[m,k]·W[k,n] with weights of 4 or 8 bits; raises `ProblemError` for invalid
    sizes."""

    m: int
    """Rows of A."""
    n: int
    """Columns of W."""
    k: int
    """The axis that is summed over; for 4-bit weights a multiple of the group of 128."""
    bits: int = 4
    """Bits of a weight: 4 or 8."""
    dtype: str = "fp16"
    """Type of A and C."""

    def __post_init__(self) -> None:
        for name in ("m", "n", "k"):
            check_positive(name, getattr(self, name))
        if self.bits not in (4, 8):
            raise ProblemError(f"weights have 4 or 8 bits here, not {self.bits}")
        if self.bits == 4 and self.k % GROUP:
            raise ProblemError(f"k must be a multiple of the group of {GROUP}, but k is {self.k}")

    def sizes(self) -> dict[str, int]:
        """Extent of every axis; 8-bit weights are one group."""
        group = GROUP if self.bits == 4 else self.k
        return {"m": self.m, "n": self.n, "u": self.k // group, "k": group}

    def elements(self) -> Mapping[str, ElementType]:
        """Element type of every tensor role."""
        data = element(self.dtype)
        weights = element(f"int{self.bits}")
        return {
            "data": data,
            "output": data,
            "scale": data,
            "weights": weights,
            "accumulator": element("fp32"),
        }


@dataclass(frozen=True)
class WeightOnlyConfig:
    """Tile and split of one product."""

    bm: int = 16
    """Rows of the tile."""
    bn: int = 128
    """Columns of the tile."""
    bk: int = 128
    """Step of k; at most one group for 4-bit weights."""
    warps: int = 4
    """Warps of a block."""
    stages: int = 4
    """Buffers of the pipeline."""
    split_k: int | None = None
    """Extent of k that one block sums, in whole groups for 4-bit weights; None: all of k. A second
    kernel adds the slices."""


@triton.jit
def widened(bits, kind: tl.constexpr, ZERO: tl.constexpr):
    """Small unsigned integers less ZERO as floats: exact, without a conversion instruction.

    1024 + bits is an fp16, 2²³ + bits an fp32; 128 + bits is a bf16 for bits below 128.
    """
    if kind == tl.float16:
        x = (bits.to(tl.uint16) | 0x6400).to(tl.float16, bitcast=True) - (1024.0 + ZERO)
    elif kind == tl.bfloat16:
        x = (bits.to(tl.uint16) | 0x4300).to(tl.bfloat16, bitcast=True) - (128.0 + ZERO)
    else:
        x = (bits.to(tl.uint32) | 0x4B000000).to(tl.float32, bitcast=True) - (8388608.0 + ZERO)
    return x.to(kind)


@triton.jit
def matmul_w8a16(
    A, W, SCALE, C, m, n, k, split_k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """8-bit weights are widened tile by tile; the column's scale is applied once, at the end."""
    part, m0, n0 = place(m, n, BM, BN)
    down, across, deep = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    row_inside, column_inside = m0 + down < m, n0 + across < n
    a_start, w_start = A + m0.to(tl.int64) * k, W + n0.to(tl.int64) * k
    total = tl.full([BM, BN], 0.0, tl.float32)
    last = tl.minimum((part + 1) * split_k, k)
    for k0 in range(part * split_k, last, BK):
        a_inside, w_inside = row_inside[:, None], column_inside[None, :]
        if not EVEN:
            a_inside = a_inside & (k0 + deep < last)[None, :]
            w_inside = w_inside & (k0 + deep < last)[:, None]
        a = tl.load(a_start + k0 + (down[:, None] * k + deep[None, :]), mask=a_inside, other=0.0)
        w = tl.load(w_start + k0 + (deep[:, None] + across[None, :] * k), mask=w_inside, other=0)
        if a.dtype == tl.float16:
            b = widened(w.to(tl.uint8, bitcast=True) ^ 128, a.dtype, 128)
        else:
            b = w.to(a.dtype)
        total = tl.dot(a, b, total, input_precision="ieee")
    scale = tl.load(SCALE + n0 + across, mask=column_inside, other=0.0).to(tl.float32)
    leave(C, total * scale[None, :], part, m0, n0, m, n, BM, BN)


@triton.jit
def matmul_w4a16(
    A, W, SCALE, C, m, n, k, split_k, GROUP: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Group by group: load the scales once, then BK weights a step, as two halves of BK / 2."""
    part, m0, n0 = place(m, n, BM, BN)
    down, across, half = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK // 2)
    row_inside, column_inside = (m0 + down < m)[:, None], (n0 + across < n)
    a_start = A + m0.to(tl.int64) * k
    w_start = W + n0.to(tl.int64) * (k // 2)
    a_at = down[:, None] * k + half[None, :]
    w_at = half[:, None] + across[None, :] * (k // 2)
    total = tl.full([BM, BN], 0.0, tl.float32)
    first = part * (split_k // GROUP)
    for u in range(first, tl.minimum(first + split_k // GROUP, k // GROUP)):
        scale = tl.load(SCALE + u * n + n0 + across, mask=column_inside, other=0.0)[None, :]
        for k0 in range(0, GROUP // 2, BK // 2):
            a_here = a_start + (u * GROUP + k0) + a_at
            low_a = tl.load(a_here, mask=row_inside, other=0.0)
            high_a = tl.load(a_here + GROUP // 2, mask=row_inside, other=0.0)
            w_here = w_start + (u * (GROUP // 2) + k0) + w_at
            packed = tl.load(w_here, mask=column_inside[None, :], other=0)
            low = widened(packed & 15, low_a.dtype, 8) * scale
            high = widened(packed >> 4, low_a.dtype, 8) * scale
            total = tl.dot(low_a, low, total, input_precision="ieee")
            total = tl.dot(high_a, high, total, input_precision="ieee")
    leave(C, total, part, m0, n0, m, n, BM, BN)


@triton.jit
def place(m, n, BM: tl.constexpr, BN: tl.constexpr):
    """(slice of k, first row, first column) of a block: rows first, then columns."""
    row_tiles, column_tiles = tl.cdiv(m, BM), tl.cdiv(n, BN)
    block = tl.program_id(0)
    column = block // row_tiles % column_tiles
    return block // (row_tiles * column_tiles), block % row_tiles * BM, column * BN


@triton.jit
def leave(C, result, part, m0, n0, m, n, BM: tl.constexpr, BN: tl.constexpr):
    """Store a tile of C, or of one slice's part of it."""
    down, across = tl.arange(0, BM), tl.arange(0, BN)
    start = C + (part.to(tl.int64) * m + m0) * n + n0
    tl.store(
        start + (down[:, None] * n + across[None, :]),
        result.to(C.dtype.element_ty),
        mask=(m0 + down < m)[:, None] & (n0 + across < n)[None, :],
    )


def algorithm(bits: int) -> Algorithm:
    """Widen the weights, then contract over the groups u and the weights k of a group."""
    by = ("u", "n") if bits == 4 else ("n",)
    parts = tensors(
        Tensor("A", ("m", "u", "k")),
        Tensor("W", ("u", "k", "n"), "weights"),
        Tensor("scale", by, "scale"),
        Tensor("B", ("u", "k", "n")),
        Tensor("C", ("m", "n"), "output"),
    )
    steps = (
        Step("widen", "map", ("W", "scale"), ("B",), vector=3),
        Step("multiply", "contraction", ("A", "B"), ("C",), ("u", "k")),
    )
    return Algorithm(f"matmul-w{bits}a16", ("m", "n", "u", "k"), parts, steps, ("C",))


# (bm, bn, bk, warps, stages) by the number of rows; tiles for few rows have the product's height.
_SKINNY = ((16, 128, 128, 4, 4), (16, 64, 128, 4, 5), (16, 64, 128, 4, 3), (16, 128, 64, 4, 5))
_LARGE = ((128, 128, 64, 8, 4), (64, 128, 64, 4, 4), (128, 64, 64, 8, 4), (64, 64, 64, 4, 4))
# On sm_120 int8 spills with 64 columns and 128 of k, for which a thread has 80 registers.
_SKINNY_GEFORCE = ((16, 128, 128, 4, 4), (16, 128, 64, 4, 5), (16, 64, 64, 4, 5))


def _menu(problem: WeightOnly, target: str, units: int) -> tuple[WeightOnlyConfig, ...]:
    """Tiles for few rows, with k in slices for two blocks a unit, or for many."""
    skinny = _SKINNY_GEFORCE if target == "sm_120" else _SKINNY
    table = skinny if problem.m <= SKINNY_ROWS else _LARGE
    found = []
    for bm, bn, bk, warps, stages in table:
        rows = tile_rows(bm, problem.m)
        config = WeightOnlyConfig(rows, bn, bk, warps, buffers(target, stages))
        found.append(_sliced(config, problem, 2 * units) if bm == 16 else config)
    return tuple(dict.fromkeys(found))


def _sliced(config: WeightOnlyConfig, problem: WeightOnly, blocks: int) -> WeightOnlyConfig:
    """`config` with k split so that there are about `blocks` blocks."""
    tiles = ceil_div(problem.m, config.bm) * ceil_div(problem.n, config.bn)
    unit = GROUP if problem.bits == 4 else config.bk
    split = slice_extent(problem.k, unit, ceil_div(blocks, tiles))
    return config if split >= problem.k else replace(config, split_k=split)


def _split(problem: WeightOnly, config: WeightOnlyConfig) -> int:
    """The extent of k that one block sums; raises `ProblemError` if it is not whole groups or
    steps."""
    check_powers(bm=config.bm, bn=config.bn, bk=config.bk)
    check_positive_counts(split_k=config.split_k)
    split = min(config.split_k or problem.k, problem.k)
    unit = GROUP if problem.bits == 4 else config.bk
    if split < problem.k and split % unit:
        what = f"groups of {GROUP}" if problem.bits == 4 else f"steps of bk={config.bk}"
        raise ProblemError(f"a slice is whole {what}, but split_k is {split}")
    return split


def _step(problem: WeightOnly, config: WeightOnlyConfig) -> int:
    """The extent of k of one step."""
    return min(config.bk, GROUP) if problem.bits == 4 else config.bk


def _schedule(problem: WeightOnly, config: WeightOnlyConfig) -> Schedule:
    split = _split(problem, config)
    slices = ceil_div(problem.k, split)
    if slices == 1:
        cut = ()
    elif problem.bits == 4:
        cut = (Loop("u", split // GROUP, grid=True),)
    else:
        cut = (Loop("k", split, grid=True),)
    grid = (*cut, Loop("n", config.bn, grid=True), Loop("m", config.bm, grid=True))
    kernel = Kernel(
        "weight-only",
        ("widen", "multiply"),
        (*grid, Loop("u", 1), Loop("k", _step(problem, config))),
        spill={"C": "accumulator"},
        operand_tile=(64, 64),
        stages=config.stages,
        threads=32 * config.warps,
    )
    if slices == 1:
        return Schedule("tiled", algorithm(problem.bits), (kernel,))
    rows, columns = COMBINE_TILE
    nest = (Loop("m", rows, grid=True), Loop("n", columns, grid=True))
    return Schedule(
        "split-k", algorithm(problem.bits), (kernel, Kernel("combine", (), nest, combines=("C",)))
    )


def _arrays(problem: WeightOnly, config: WeightOnlyConfig) -> tuple[Array, ...]:
    four = problem.bits == 4
    m, n, k = problem.m, problem.n, problem.k
    scales = (k // GROUP, n) if four else (n,)
    slices = ceil_div(k, _split(problem, config))
    parts = (Array("parts", (slices, m, n), "fp32", "scratch", "C"),) if slices > 1 else ()
    return (
        Array("A", (m, k), problem.dtype),
        Array("W", (k // 2 if four else k, n), "uint8" if four else "int8", by_columns=True),
        Array("scale", scales, problem.dtype),
        *parts,
        Array("C", (m, n), problem.dtype, "output"),
    )


def _plan(problem: WeightOnly, config: WeightOnlyConfig) -> tuple[Launch, ...]:
    four = problem.bits == 4
    m, n, k, split = problem.m, problem.n, problem.k, _split(problem, config)
    slices = ceil_div(k, split)
    bm, bn = config.bm, config.bn
    check_offsets(bm, bn, bm * k, bn * k, bm * n)
    arrays = _arrays(problem, config)
    form = {"GROUP": GROUP} if four else {"EVEN": k % config.bk == 0}
    product = launch(
        "weight-only", matmul_w4a16 if four else matmul_w8a16,
        slices * ceil_div(m, bm) * ceil_div(n, bn), arrays, config.warps, config.stages,
        C="parts" if slices > 1 else "C", m=m, n=n, k=k, split_k=split,
        BM=bm, BN=bn, BK=_step(problem, config), **form,
    )  # fmt: skip
    if slices == 1:
        return (product,)
    rows, columns = COMBINE_TILE
    combination = launch(
        "combine", combine, ceil_div(m, rows) * ceil_div(n, columns), arrays, COMBINE_WARPS,
        m=m, n=n, slices=slices, TR=rows, TC=columns, SCALE=1.0,
    )  # fmt: skip
    return (product, combination)


def unpack(packed: torch.Tensor) -> torch.Tensor:
    """4-bit weights of [k / 2, n] packed bytes as integers −8 … 7 of [k, n]."""
    halves = packed.reshape(-1, GROUP // 2, packed.shape[1]).to(torch.int16)
    both = torch.cat((halves & 15, halves >> 4), dim=1) - _ZERO
    return both.reshape(-1, packed.shape[1])


def _derive(problem: WeightOnly, tensors: Tensors) -> None:
    """Fill the scales with positive values that keep results near 1."""
    scale = tensors["scale"]
    scale.copy_((scale.abs() + 0.5) / (8 if problem.bits == 4 else 128))


def _reference(problem: WeightOnly, tensors: Tensors) -> Tensors:
    a, scale = tensors["A"].double().cpu(), tensors["scale"].double().cpu()
    packed = tensors["W"].cpu()
    if problem.bits == 8:
        return {"C": a @ (packed.double() * scale)}
    return {"C": a @ (unpack(packed).double() * scale.repeat_interleave(GROUP, dim=0))}


def _kernel(bits: int) -> BundledKernel:
    deep = (256, 128, 384, 128, 512) if bits == 4 else (256, 130, 77, 500, 33)
    shapes = ((16, 128), (1, 200), (33, 65), (100, 70), (17, 333))
    tiles = ((16, 64, 128), (16, 64, 64), (16, 32, 128), (32, 64, 32), (16, 128, 64))
    dtypes = ("fp16", "fp32", "fp16", "fp32", "fp16")
    rows = [
        (WeightOnly(m, n, k, bits, dtype), WeightOnlyConfig(*tile))
        for (m, n), k, tile, dtype in zip(shapes, deep, tiles, dtypes, strict=True)
    ]
    sliced = [
        (WeightOnly(m, n, 640, bits, dtype), WeightOnlyConfig(16, 64, 64, split_k=split))
        for m, n, dtype, split in ((16, 200, "fp16", 256), (20, 70, "fp32", 384))
    ]
    forms = tuple(
        WeightOnly(m, 4096, 4096, bits, dtype)
        for m, dtype in ((16, "fp16"), (16, "bf16"), (4096, "fp16"), (4096, "bf16"))
    )
    return BundledKernel(
        name=f"matmul-w{bits}a16",
        summary=f"matmul with {bits}-bit weights and 16-bit activations",
        dtypes=("fp16", "bf16", "fp32"),
        configs=every(_menu, forms),
        cases=(*rows, *sliced),
        arrays=_arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=_reference,
        derive=_derive,
        menu_of=_menu,
        forms=forms,
    )


KERNELS = (_kernel(8), _kernel(4))
