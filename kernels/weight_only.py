"""Weight-only matmul: 16-bit activations, weights of 8 bits (w8a16) or 4 bits (w4a16).

w8a16 has a scale per output column. w4a16 has one per column and group of 128 along k; the groups
are an axis of their own here, so that the scales are declared and counted like any other tensor.
A packed byte holds weight i of its group in the low half and weight i + 64 in the high half, so
both halves meet contiguous activations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from perfmodel_kernels.common import ceil_div

from perfmodel.algorithms.algorithm import Algorithm, Step, Tensor, tensors
from perfmodel.algorithms.attention import check_positive
from perfmodel.elements import ElementType, element
from perfmodel.errors import ProblemError
from perfmodel.evidence.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.schedule import Kernel, Loop, Schedule

GROUP = 128
_ZERO = 8  # the stored 4-bit weight that means 0


@dataclass(frozen=True)
class WeightOnly:
    """C[m,n] = A[m,k]·W[k,n] with W in `bits` bits; raises `ProblemError` for what cannot be.

    4-bit weights need k to be a multiple of the group of 128.
    """

    m: int
    n: int
    k: int
    bits: int = 4
    dtype: str = "fp16"

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
    """Tile of C and of k (at most one group for 4-bit weights), launch order, warps and stages."""

    bm: int = 16
    bn: int = 128
    bk: int = 128
    warps: int = 4
    stages: int = 4


CONFIGS = tuple(
    WeightOnlyConfig(bm, bn, bk, warps)
    for bm, bn, bk, warps in (
        (16, 64, 128, 4),
        (16, 128, 128, 4),
        (32, 128, 128, 4),
        (64, 128, 64, 4),
        (128, 128, 64, 8),
        (64, 64, 64, 4),
    )
)


@triton.jit
def matmul_w8a16(
    A, W, SCALE, C, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """8-bit weights are widened tile by tile; the column's scale is applied once, at the end."""
    row_tiles = (m + BM - 1) // BM
    block = tl.program_id(0)
    rows = (block % row_tiles) * BM + tl.arange(0, BM)
    columns = (block // row_tiles) * BN + tl.arange(0, BN)
    total = tl.full([BM, BN], 0.0, tl.float32)
    for k0 in range(0, k, BK):
        depth = k0 + tl.arange(0, BK)
        a = tl.load(
            A + rows.to(tl.int64)[:, None] * k + depth[None, :],
            mask=(rows < m)[:, None] & (depth < k)[None, :],
            other=0.0,
        )
        w = tl.load(
            W + depth.to(tl.int64)[:, None] * n + columns[None, :],
            mask=(depth < k)[:, None] & (columns < n)[None, :],
            other=0,
        )
        total = tl.dot(a, w.to(a.dtype), total, input_precision="ieee")
    scale = tl.load(SCALE + columns, mask=columns < n, other=0.0).to(tl.float32)
    tl.store(
        C + rows.to(tl.int64)[:, None] * n + columns[None, :],
        (total * scale[None, :]).to(C.dtype.element_ty),
        mask=(rows < m)[:, None] & (columns < n)[None, :],
    )


@triton.jit
def matmul_w4a16(
    A, W, SCALE, C, m, n, k, GROUP: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Group by group: load the scales once, then BK weights a step, as two halves of BK / 2."""
    row_tiles = (m + BM - 1) // BM
    block = tl.program_id(0)
    rows = (block % row_tiles) * BM + tl.arange(0, BM)
    columns = (block // row_tiles) * BN + tl.arange(0, BN)
    half = tl.arange(0, BK // 2)
    a_rows = A + rows.to(tl.int64)[:, None] * k
    total = tl.full([BM, BN], 0.0, tl.float32)
    for u in range(k // GROUP):
        scale = tl.load(SCALE + u * n + columns, mask=columns < n, other=0.0)
        for k0 in range(0, GROUP // 2, BK // 2):
            depth = u * GROUP + k0 + half
            low_a = tl.load(a_rows + depth[None, :], mask=(rows < m)[:, None], other=0.0)
            high_a = tl.load(
                a_rows + depth[None, :] + GROUP // 2, mask=(rows < m)[:, None], other=0.0
            )
            packed = tl.load(
                W + (u * (GROUP // 2) + k0 + half).to(tl.int64)[:, None] * n + columns[None, :],
                mask=(columns < n)[None, :],
                other=0,
            )
            low = ((packed & 15).to(tl.float32) - 8.0) * scale[None, :]
            high = ((packed >> 4).to(tl.float32) - 8.0) * scale[None, :]
            total = tl.dot(low_a, low.to(low_a.dtype), total, input_precision="ieee")
            total = tl.dot(high_a, high.to(high_a.dtype), total, input_precision="ieee")
    tl.store(
        C + rows.to(tl.int64)[:, None] * n + columns[None, :],
        total.to(C.dtype.element_ty),
        mask=(rows < m)[:, None] & (columns < n)[None, :],
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


def _schedule(problem: WeightOnly, config: WeightOnlyConfig) -> Schedule:
    grid = (Loop("n", config.bn, grid=True), Loop("m", config.bm, grid=True))
    kernel = Kernel(
        "weight-only",
        ("widen", "multiply"),
        (*grid, Loop("u", 1), Loop("k", config.bk)),
        operand_tile=(64, 64),
        stages=config.stages,
        threads=32 * config.warps,
    )
    return Schedule("tiled", algorithm(problem.bits), (kernel,))


def _arrays(problem: WeightOnly, config: WeightOnlyConfig) -> tuple[Array, ...]:
    four = problem.bits == 4
    scales = (problem.k // GROUP, problem.n) if four else (problem.n,)
    stored = (problem.k // 2, problem.n) if four else (problem.k, problem.n)
    return (
        Array("A", (problem.m, problem.k), problem.dtype),
        Array("W", stored, "uint8" if four else "int8"),
        Array("scale", scales, problem.dtype),
        Array("C", (problem.m, problem.n), problem.dtype, "output"),
    )


def _plan(problem: WeightOnly, config: WeightOnlyConfig) -> tuple[Launch, ...]:
    four = problem.bits == 4
    arguments = {
        "A": "A", "W": "W", "SCALE": "scale", "C": "C",
        "m": problem.m, "n": problem.n, "k": problem.k,
    }  # fmt: skip
    tile = {"BM": config.bm, "BN": config.bn, "BK": min(config.bk, GROUP) if four else config.bk}
    launch = Launch(
        "weight-only",
        matmul_w4a16 if four else matmul_w8a16,
        (ceil_div(problem.m, config.bm) * ceil_div(problem.n, config.bn),),
        arguments,
        {**tile, **({"GROUP": GROUP} if four else {})},
        num_warps=config.warps,
        num_stages=config.stages,
    )
    return (launch,)


def unpack(packed: torch.Tensor) -> torch.Tensor:
    """4-bit weights of [k / 2, n] packed bytes as integers −8 … 7 of [k, n]."""
    halves = packed.reshape(-1, GROUP // 2, packed.shape[1]).to(torch.int16)
    both = torch.cat((halves & 15, halves >> 4), dim=1) - _ZERO
    return both.reshape(-1, packed.shape[1])


def _derive(problem: WeightOnly, tensors: Tensors) -> None:
    """Positive scales of the size that keeps the products near 1."""
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
    return BundledKernel(
        name=f"matmul-w{bits}a16",
        summary=f"matmul with {bits}-bit weights and 16-bit activations",
        dtypes=("fp16", "bf16", "fp32"),
        configs=CONFIGS,
        cases=tuple(
            (WeightOnly(m, n, k, bits, dtype), WeightOnlyConfig(*tile))
            for (m, n), k, tile, dtype in zip(shapes, deep, tiles, dtypes, strict=True)
        ),
        arrays=_arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=_reference,
        derive=_derive,
    )


KERNELS = (_kernel(8), _kernel(4))
