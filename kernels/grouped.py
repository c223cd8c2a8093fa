"""Products of groups of rows, a matrix a group: the experts of a mixture, tokens sorted by expert.

C[i] = A[i]·B[expert of row i]. A tile of C has rows of one expert only, so the last tile of each is
ragged. A block finds its expert from the rows of all of them, which it loads once: nobody has to
lay tiles out before, and experts without rows are never read. Tiles of an expert are launched one
column of tiles after the other, so that concurrent blocks share its weights in L2.

8-bit B is stored column by column, as in `matmul`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
import triton
import triton.language as tl
from perfmodel_kernels.common import ceil_div, power_of_two
from perfmodel_kernels.launching import launch
from perfmodel_kernels.limits import check_fp8, check_offsets, check_powers
from perfmodel_kernels.matmul_code import result_of
from perfmodel_kernels.matmul_menus import by_columns
from perfmodel_kernels.menus import SKINNY_ROWS, buffers, every, tile_rows

from perfmodel.algorithms.algorithm import Algorithm, Step, Tensor, tensors
from perfmodel.algorithms.grouped import GroupedMatmul, busiest_part, drawn_loads
from perfmodel.algorithms.matmul import matmul_format
from perfmodel.arithmetic import Number
from perfmodel.elements import ElementType, element
from perfmodel.proof.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.schedule import Kernel, Loop, Schedule


@dataclass(frozen=True)
class SortedRows(GroupedMatmul):
    """One draw of a grouped product's loads, whose rows of each group are known."""

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Rows of every group of the busiest rank, those without rows included."""
        if self.skew:
            every = drawn_loads(0, self.m, self.batch, self.chosen, self.skew)
            draw = busiest_part(every, self.ranks)
            return tuple(int(rows) for rows in draw)
        groups = ceil_div(self.batch, self.ranks)
        base, extra = divmod(self.m, self.batch)
        return tuple(base + (i < ceil_div(extra, self.ranks)) for i in range(groups))

    @cached_property
    def loads(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Occupied groups, the rows of each, and its share of the groups."""
        occupied = np.array([rows for rows in self.counts if rows], dtype=np.float64)
        share = np.full((1, len(occupied)), 1 / len(occupied))
        return np.array([len(occupied)]), occupied[None, :], share

    def sizes(self) -> dict[str, Number]:
        """Occupied groups b, their mean rows m, n and k, and all groups g."""
        return {**super().sizes(), "g": len(self.counts)}

    def elements(self) -> Mapping[str, ElementType]:
        """Element type of every tensor role."""
        return {**super().elements(), "index": element("bits32")}

    def flops(self) -> Number:
        """2·n·k for each row."""
        return 2 * sum(self.counts) * self.n * self.k


@dataclass(frozen=True)
class GroupedConfig:
    """Tile of a grouped product."""

    bm: int = 64
    """Rows of the tile."""
    bn: int = 128
    """Columns of the tile."""
    bk: int = 64
    """Step of k."""
    warps: int = 4
    """Warps of a block."""
    stages: int = 3
    """Buffers of the pipeline."""


@triton.jit
def grouped_matmul(
    A, B, COUNTS, C, n, k, groups,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUPS: tl.constexpr,
    BY_COLUMNS: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """One tile of C: of the group whose blocks enclose this one, row tiles fastest."""
    block = tl.program_id(0)
    column_tiles = tl.cdiv(n, BN)
    number = tl.arange(0, GROUPS)
    counts = tl.load(COUNTS + number, mask=number < groups, other=0)
    blocks = tl.cdiv(counts, BM) * column_tiles
    before = tl.cumsum(blocks, 0) <= block
    group = tl.sum(before.to(tl.int32), 0)
    rows = tl.sum(tl.where(number == group, counts, 0), 0)
    first = tl.sum(tl.where(before, counts, 0), 0)
    tile = block - tl.sum(tl.where(before, blocks, 0), 0)
    row_tiles = tl.cdiv(rows, BM)
    m0, n0 = tile % row_tiles * BM, tile // row_tiles * BN
    down, across, deep = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    row_inside, column_inside = m0 + down < rows, n0 + across < n
    a_start = A + (first + m0).to(tl.int64) * k
    a_at = down[:, None] * k + deep[None, :]
    b_start = B + group.to(tl.int64) * n * k
    if BY_COLUMNS:
        b_start += n0.to(tl.int64) * k
        b_at = deep[:, None] + across[None, :] * k
        b_step = 1
    else:
        b_start += n0
        b_at = deep[:, None] * n + across[None, :]
        b_step = tl.cast(n, tl.int64)
    total = tl.full([BM, BN], 0.0, tl.float32)
    for k0 in range(0, k, BK):
        a_inside, b_inside = row_inside[:, None], column_inside[None, :]
        if not EVEN:
            a_inside = a_inside & (k0 + deep < k)[None, :]
            b_inside = b_inside & (k0 + deep < k)[:, None]
        a = tl.load(a_start + k0 + a_at, mask=a_inside, other=0.0)
        b = tl.load(b_start + k0 * b_step + b_at, mask=b_inside, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    tl.store(
        C + (first + m0).to(tl.int64) * n + n0 + (down[:, None] * n + across[None, :]),
        result_of(total, C.dtype.element_ty, 1.0),
        mask=row_inside[:, None] & column_inside[None, :],
    )


def algorithm() -> Algorithm:
    """Find the group among all, then contract over k."""
    parts = tensors(
        Tensor("counts", ("g",), "index", constant=True),
        Tensor("A", ("b", "m", "k")),
        Tensor("B", ("b", "k", "n"), "weights"),
        Tensor("group", ("b",), "index"),
        Tensor("C", ("b", "m", "n"), "output"),
    )
    steps = (
        Step("find", "map", ("counts",), ("group",), vector=6),
        Step("multiply", "contraction", ("A", "B"), ("C",), ("k",)),
    )
    return Algorithm("grouped-matmul", ("b", "m", "n", "k", "g"), parts, steps, ("C",))


def _schedule(problem: SortedRows, config: GroupedConfig) -> Schedule:
    (tiles,) = problem.row_tiles(np.array([config.bm]))[0]
    kernel = Kernel(
        "grouped",
        ("find", "multiply"),
        (
            Loop("b", 1, grid=True),
            Loop("n", config.bn, grid=True),
            Loop("m", config.bm, grid=True, trips=tiles),
            Loop("k", config.bk),
        ),
        operand_tile=(64, 64),
        stages=config.stages,
        threads=32 * config.warps,
    )
    return Schedule("grouped", algorithm(), (kernel,))


def _arrays(problem: SortedRows, config: GroupedConfig) -> tuple[Array, ...]:
    kinds = matmul_format(problem.dtype)
    rows, groups = sum(problem.counts), len(problem.counts)
    return (
        Array("A", (rows, problem.k), kinds.activations),
        Array("B", (groups, problem.k, problem.n), kinds.weights, by_columns=by_columns(problem)),
        Array("counts", (groups,), "int32", fill="derived"),
        Array("C", (rows, problem.n), kinds.output, "output"),
    )


def _plan(problem: SortedRows, config: GroupedConfig) -> tuple[Launch, ...]:
    bm, bn, bk, n, k = config.bm, config.bn, config.bk, problem.n, problem.k
    check_powers(bm=bm, bn=bn, bk=bk)
    check_offsets(bm, bn, bm * k, bn * k, bk * n, bm * n)
    tiles, groups = sum(ceil_div(rows, bm) for rows in problem.counts), len(problem.counts)
    product = launch(
        "grouped", grouped_matmul, tiles * ceil_div(n, bn), _arrays(problem, config),
        config.warps, config.stages, n=n, k=k, groups=groups, BM=bm, BN=bn, BK=bk,
        GROUPS=power_of_two(groups), BY_COLUMNS=by_columns(problem), EVEN=k % bk == 0,
    )  # fmt: skip
    return (product,)


# (bm, bn, bk, warps, stages) by the rows of a group: tiles of few rows have the group's height.
_FEW = ((16, 128, 128, 4, 3), (16, 64, 128, 4, 3))
_MANY = ((128, 128, 64, 8, 3), (64, 128, 64, 4, 3))
# fp32 is multiplied on the vector unit, by smaller tiles.
_VECTOR = ((64, 64, 16, 8, 2), (32, 64, 16, 4, 2))


def _menu(problem: SortedRows, target: str, units: int) -> tuple[GroupedConfig, ...]:
    """Tiles for groups of few rows, or of many."""
    compute = matmul_format(problem.dtype).compute
    if compute == "fp8":
        check_fp8(target, "a 16-bit type")
    mean = float(problem.sizes()["m"])
    table = _VECTOR if compute == "fp32" else _FEW if mean <= SKINNY_ROWS else _MANY
    wider = 2 if compute == "fp8" else 1
    configs = (
        GroupedConfig(tile_rows(bm, int(mean)), bn, bk * wider, warps, buffers(target, stages))
        for bm, bn, bk, warps, stages in table
    )
    return tuple(dict.fromkeys(configs))


def _derive(problem: SortedRows, tensors: Tensors) -> None:
    """The rows of every group."""
    tensors["counts"].copy_(torch.tensor(problem.counts, dtype=torch.int32))


def _reference(problem: SortedRows, tensors: Tensors) -> Tensors:
    a, b = tensors["A"].double().cpu(), tensors["B"].double().cpu()
    groups = zip(a.split(list(problem.counts)), b, strict=True)
    return {"C": torch.cat([rows @ weights for rows, weights in groups])}


_FORMS = (
    *(SortedRows(m, 4096, 2048, 128, dtype=dtype, chosen=8, skew=1.2)
      for m in (2048, 65536) for dtype in ("bf16", "fp8")),
    SortedRows(65536, 4096, 2048, 128, dtype="fp32", chosen=8, skew=1.2),
)  # fmt: skip

_KERNEL = BundledKernel(
    name="matmul-grouped",
    summary="products of sorted tokens with their expert's weights",
    dtypes=("fp32", "fp16", "bf16", "fp8"),
    configs=every(_menu, _FORMS),
    cases=(
        (SortedRows(150, 100, 70, 7, "fp16", chosen=2, skew=1.2), GroupedConfig(16, 64, 32)),
        (SortedRows(150, 100, 70, 7, "fp32", chosen=2, skew=1.2), GroupedConfig(32, 32, 32)),
        (SortedRows(5, 72, 64, 12, "fp16"), GroupedConfig(16, 64, 32)),
        (SortedRows(100, 128, 96, 16, "fp16", ranks=4), GroupedConfig(16, 32, 32)),
        (SortedRows(90, 33, 130, 3, "fp8", skew=0.5), GroupedConfig(32, 64, 64)),
        (SortedRows(64, 64, 64, 1, "fp32"), GroupedConfig(64, 64, 32)),
    ),
    arrays=_arrays,
    plan=_plan,
    schedule=_schedule,
    reference_of=_reference,
    derive=_derive,
    menu_of=_menu,
    forms=_FORMS,
)

KERNELS = (_KERNEL,)
