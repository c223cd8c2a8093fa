"""Products of 8-bit floats with scales of blocks of 128: activations 1 × 128, weights 128 × 128.

C = Σ_u (A_u·B_u)·sA_u·sB_u over the blocks u of k (DeepSeek-V3, 2412.19437, section 3.3). A step is
one block: its product is scaled in fp32 and added to the accumulator, so that sums on the matrix
unit are never longer than 128. Weights and the scales of activations are stored column by column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import triton
import triton.language as tl
from perfmodel_kernels.common import ceil_div
from perfmodel_kernels.launching import launch
from perfmodel_kernels.limits import check_fp8, check_offsets, check_positive_counts, check_powers
from perfmodel_kernels.matmul_code import place
from perfmodel_kernels.menus import SKINNY_ROWS, every, tile_rows

from perfmodel.algorithms.algorithm import Algorithm, Step, Tensor, tensors
from perfmodel.algorithms.sizes import check_positive
from perfmodel.elements import ElementType, element
from perfmodel.errors import ProblemError
from perfmodel.proof.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.schedule import Kernel, Loop, Schedule

BLOCK = 128


@dataclass(frozen=True)
class BlockScaled:
    """C[m,n] = A[m,k]·B[k,n] of scaled blocks; raises `ProblemError` for sizes of part blocks."""

    m: int
    """Rows of A."""
    n: int
    """Columns of B, a multiple of 128."""
    k: int
    """The axis that is summed over, a multiple of 128."""
    dtype: str = "fp8_block"
    """Type of A and B; the result has 16 bits."""

    def __post_init__(self) -> None:
        for name in ("m", "n", "k"):
            check_positive(name, getattr(self, name))
        for name, extent in (("n", self.n), ("k", self.k)):
            if extent % BLOCK:
                raise ProblemError(
                    f"{name} must be whole blocks of {BLOCK}, but {name} is {extent}"
                )

    def sizes(self) -> dict[str, int]:
        """Extent of every axis: blocks w of columns n, blocks u of k."""
        blocks = {"w": self.n // BLOCK, "n": BLOCK, "u": self.k // BLOCK, "k": BLOCK}
        return {"m": self.m, **blocks}

    def elements(self) -> Mapping[str, ElementType]:
        """Element type of every tensor role; scales are tensors of their own."""
        fp32 = element("fp32")
        return {"data": element("fp8"), "output": element("bf16"), "scale": fp32,
                "accumulator": fp32}  # fmt: skip


@dataclass(frozen=True)
class BlockScaledConfig:
    """Tile and launch order of one product; a step of k is a block."""

    bm: int = 64
    """Rows of the tile."""
    bn: int = 128
    """Columns of the tile, at most a block."""
    group_m: int = 8
    """Rows of tiles in a group of the launch order."""
    warps: int = 4
    """Warps of a block."""
    stages: int = 3
    """Buffers of the pipeline."""


@triton.jit
def matmul_block_scaled(
    A, SA, B, SB, C, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One tile of C, a block of k a step."""
    row_tiles = tl.cdiv(m, BM)
    _, _, row, column = place(tl.program_id(0), row_tiles, n // BN, 1, GROUP)
    m0, n0 = row * BM, column * BN
    down, across, deep = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BLOCK)
    inside = m0 + down < m
    a_start, b_start = A + m0.to(tl.int64) * k, B + n0.to(tl.int64) * k
    sb_start = SB + n0 // BLOCK
    total = tl.full([BM, BN], 0.0, tl.float32)
    for u in range(k // BLOCK):
        a_at = u * BLOCK + (down[:, None] * k + deep[None, :])
        a = tl.load(a_start + a_at, mask=inside[:, None], other=0.0)
        b = tl.load(b_start + u * BLOCK + (deep[:, None] + across[None, :] * k))
        rows = tl.load(SA + tl.cast(u, tl.int64) * m + m0 + down, mask=inside, other=0.0)
        columns = tl.load(sb_start + u * (n // BLOCK))
        total += tl.dot(a, b) * (rows * columns)[:, None]
    tl.store(
        C + m0.to(tl.int64) * n + n0 + (down[:, None] * n + across[None, :]),
        total.to(C.dtype.element_ty),
        mask=inside[:, None],
    )


def algorithm() -> Algorithm:
    """Contract within each block u of k; scale its sums and add them up: two operations each."""
    parts = tensors(
        Tensor("A", ("m", "u", "k")),
        Tensor("SA", ("m", "u"), "scale"),
        Tensor("B", ("u", "k", "w", "n")),
        Tensor("SB", ("u", "w"), "scale"),
        Tensor("D", ("m", "u", "w", "n"), "accumulator"),
        Tensor("C", ("m", "w", "n"), "output"),
    )
    steps = (
        Step("multiply", "contraction", ("A", "B"), ("D",), ("k",)),
        Step("promote", "reduction", ("D", "SA", "SB"), ("C",), ("u",), vector=2),
    )
    return Algorithm("block-scaled-matmul", ("m", "w", "n", "u", "k"), parts, steps, ("C",))


def _schedule(problem: BlockScaled, config: BlockScaledConfig) -> Schedule:
    kernel = Kernel(
        "block-scaled",
        ("multiply", "promote"),
        (
            Loop("m", config.group_m * config.bm, grid=True),
            Loop("w", 1, grid=True),
            Loop("n", config.bn, grid=True),
            Loop("m", config.bm, grid=True),
            Loop("u", 1),
        ),
        registers=frozenset({"D"}),
        operand_tile=(64, 64),
        stages=config.stages,
        threads=32 * config.warps,
    )
    return Schedule("block-scaled", algorithm(), (kernel,))


def _arrays(problem: BlockScaled, config: BlockScaledConfig) -> tuple[Array, ...]:
    m, n, k = problem.m, problem.n, problem.k
    return (
        Array("A", (m, k), "fp8"),
        Array("SA", (m, k // BLOCK), "fp32", by_columns=True),
        Array("B", (k, n), "fp8", by_columns=True),
        Array("SB", (k // BLOCK, n // BLOCK), "fp32"),
        Array("C", (m, n), "bf16", "output"),
    )


def _plan(problem: BlockScaled, config: BlockScaledConfig) -> tuple[Launch, ...]:
    bm, bn, m, n, k = config.bm, config.bn, problem.m, problem.n, problem.k
    check_powers(bm=bm, bn=bn)
    check_positive_counts(group_m=config.group_m)
    if bn > BLOCK:
        raise ProblemError(f"a tile has one block's {BLOCK} columns at most, not {bn}")
    check_offsets(bm, bn, max(bm, bn) * max(n, k))
    product = launch(
        "block-scaled", matmul_block_scaled, ceil_div(m, bm) * (n // bn), _arrays(problem, config),
        config.warps, config.stages,
        m=m, n=n, k=k, BM=bm, BN=bn, GROUP=config.group_m, BLOCK=BLOCK,
    )  # fmt: skip
    return (product,)


# (bm, bn, warps, stages); tiles of few rows have the product's height.
_FEW = ((16, 128, 4, 4), (16, 64, 4, 5))
_MANY = ((128, 128, 8, 3), (64, 128, 4, 3))


def _menu(problem: BlockScaled, target: str, units: int) -> tuple[BlockScaledConfig, ...]:
    """Tiles for few rows, or for many."""
    check_fp8(target, "another target")
    smaller = target in ("sm_89", "sm_120")  # 99 KiB of shared memory
    return tuple(
        BlockScaledConfig(tile_rows(bm, problem.m), bn, warps=warps, stages=stages - smaller)
        for bm, bn, warps, stages in (_FEW if problem.m <= SKINNY_ROWS else _MANY)
    )


def _reference(problem: BlockScaled, arrays: Tensors) -> Tensors:
    a, sa, b, sb = (arrays[name].double().cpu() for name in ("A", "SA", "B", "SB"))
    a = a * sa.repeat_interleave(BLOCK, dim=1)
    b = b * sb.repeat_interleave(BLOCK, dim=0).repeat_interleave(BLOCK, dim=1)
    return {"C": a @ b}


_FORMS = tuple(BlockScaled(m, 7168, 2048) for m in (16, 4096))

KERNELS = (
    BundledKernel(
        name="matmul-fp8-block",
        summary="matmul of 8-bit floats with scales of 128 × 128 weights and 1 × 128 activations",
        dtypes=("fp8_block",),
        configs=every(_menu, _FORMS),
        cases=(
            (BlockScaled(100, 256, 384), BlockScaledConfig(32, 64, 2)),
            (BlockScaled(1, 128, 128), BlockScaledConfig(16, 128)),
            (BlockScaled(65, 128, 512), BlockScaledConfig(64, 32)),
            (BlockScaled(40, 384, 256), BlockScaledConfig(16, 128, 1)),
            (BlockScaled(33, 256, 128), BlockScaledConfig(32, 128, 3)),
        ),
        arrays=_arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=_reference,
        menu_of=_menu,
        forms=_FORMS,
    ),
)
