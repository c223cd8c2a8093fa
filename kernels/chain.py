"""Bias + GeLU + residual, as one fused kernel and as the three kernels it replaces.

Y = gelu(X + bias) + R over rows n and columns c. The fused kernel reads two tensors and writes one.
Unfused, every step writes its result to memory and the next step reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from perfmodel_kernels.common import ceil_div
from perfmodel_kernels.launching import launch
from perfmodel_kernels.limits import check_elements, check_powers
from perfmodel_kernels.menus import every, lanes

from perfmodel.algorithms.algorithm import Algorithm, Step, Tensor, tensors
from perfmodel.algorithms.attention import check_positive
from perfmodel.elements import ElementType, element
from perfmodel.proof.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.schedule import Kernel, Loop, Schedule


@dataclass(frozen=True)
class Chain:
    """Bias, GeLU and residual over rows × cols; raises `ProblemError` for sizes below 1."""

    rows: int
    """Rows."""
    cols: int
    """Elements of a row."""
    dtype: str = "bf16"
    """Type of the data."""

    def __post_init__(self) -> None:
        check_positive("rows", self.rows)
        check_positive("cols", self.cols)

    def sizes(self) -> dict[str, int]:
        """Extent of every axis."""
        return {"n": self.rows, "c": self.cols}

    def elements(self) -> Mapping[str, ElementType]:
        """Element type of every tensor role."""
        return dict.fromkeys(("data", "output", "weights"), element(self.dtype))


@dataclass(frozen=True)
class ChainConfig:
    """Tile of a block."""

    rows: int = 4
    """Rows of the tile."""
    cols: int = 256
    """Columns of the tile."""
    warps: int = 4
    """Warps of a block."""


def _menu(problem: Chain, target: str, units: int) -> tuple[ChainConfig, ...]:
    """Tiles of 8, 16 and 32 elements a thread; a warp's accesses are along a row."""
    short = 8 * lanes(target)  # columns of one access of a warp, 16 bytes a thread in 16 bits
    return (
        ChainConfig(8, short, 4),
        ChainConfig(4, short, 4),
        ChainConfig(4, 2 * short, 4),
        ChainConfig(8, 2 * short, 8),
        ChainConfig(16, short, 4),
    )


@triton.jit
def chain(
    X, BIAS, R, Y, rows, cols,
    TR: tl.constexpr, TC: tl.constexpr,
    WITH_BIAS: tl.constexpr, WITH_GELU: tl.constexpr, WITH_RESIDUAL: tl.constexpr,
):  # fmt: skip
    """One tile of gelu(X + bias) + R, or of any one of its steps."""
    column_tiles = (cols + TC - 1) // TC
    tile = tl.program_id(0)
    n = (tile // column_tiles) * TR + tl.arange(0, TR)
    c = (tile % column_tiles) * TC + tl.arange(0, TC)
    inside = (n < rows)[:, None] & (c < cols)[None, :]
    at = n.to(tl.int64)[:, None] * cols + c[None, :]
    y = tl.load(X + at, mask=inside, other=0.0).to(tl.float32)
    if WITH_BIAS:
        y += tl.load(BIAS + c, mask=c < cols, other=0.0).to(tl.float32)[None, :]
    if WITH_GELU:
        # gelu(y) = y·σ(2·√(2/π)·(y + 0.044715 y³)), the tanh form
        inner = 1.5957691216057308 * (y + 0.044715 * y * y * y)
        y = y * tl.sigmoid(inner)
    if WITH_RESIDUAL:
        y += tl.load(R + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(Y + at, y.to(Y.dtype.element_ty), mask=inside)


_STEPS = ("bias", "gelu", "residual")


def algorithm() -> Algorithm:
    """Three maps, whose intermediate results a fused kernel keeps on chip."""
    grid = ("n", "c")
    parts = tensors(
        Tensor("X", grid),
        Tensor("B", ("c",), "weights"),
        Tensor("R", grid),
        Tensor("H", grid),
        Tensor("G", grid),
        Tensor("Y", grid, "output"),
    )
    steps = (
        Step("bias", "map", ("X", "B"), ("H",), vector=1),
        Step("gelu", "map", ("H",), ("G",), vector=8, special=1),
        Step("residual", "map", ("G", "R"), ("Y",), vector=1),
    )
    return Algorithm("bias-gelu-residual", grid, parts, steps, ("Y",))


def schedule(groups: tuple[tuple[str, ...], ...], config: ChainConfig) -> Schedule:
    """Each group of steps is one kernel over tiles of rows × columns."""
    nest = (Loop("n", config.rows, grid=True), Loop("c", config.cols, grid=True))
    kernels = tuple(
        Kernel("+".join(group), group, nest, threads=32 * config.warps) for group in groups
    )
    return Schedule("fused" if len(groups) == 1 else "unfused", algorithm(), kernels)


_FORMS = (Chain(8192, 4096), Chain(8192, 4096, "fp32"), Chain(8192, 5120))
# step → (what it reads, what it writes)
_FLOW = {"bias": ("X", "H"), "gelu": ("H", "G"), "residual": ("G", "Y")}


def _reference(problem: Chain, tensors: Tensors) -> Tensors:
    x, bias, residual = (tensors[name].double().cpu() for name in ("X", "B", "R"))
    return {"Y": torch.nn.functional.gelu(x + bias, approximate="tanh") + residual}


def _kernel(name: str, summary: str, groups: tuple[tuple[str, ...], ...]) -> BundledKernel:
    def arrays(problem: Chain, config: ChainConfig) -> tuple[Array, ...]:
        shape = (problem.rows, problem.cols)
        between = () if len(groups) == 1 else ("H", "G")
        return (
            Array("X", shape, problem.dtype),
            Array("B", (problem.cols,), problem.dtype),
            Array("R", shape, problem.dtype),
            *(Array(name, shape, problem.dtype, "scratch") for name in between),
            Array("Y", shape, problem.dtype, "output"),
        )

    def plan(problem: Chain, config: ChainConfig) -> tuple[Launch, ...]:
        check_powers(rows=config.rows, cols=config.cols)
        check_elements(config.rows, config.cols, "take a smaller one")
        blocks = ceil_div(problem.rows, config.rows) * ceil_div(problem.cols, config.cols)
        tile = {"TR": config.rows, "TC": config.cols}
        size = {"rows": problem.rows, "cols": problem.cols}
        launches = []
        for group in groups:
            form = {f"WITH_{step.upper()}": step in group for step in _STEPS}
            ends = {"X": _FLOW[group[0]][0], "BIAS": "B", "Y": _FLOW[group[-1]][1]}
            launches.append(
                launch(
                    "+".join(group), chain, blocks, arrays(problem, config), config.warps,
                    **ends, **size, **tile, **form,
                )
            )  # fmt: skip
        return tuple(launches)

    return BundledKernel(
        name=name,
        summary=summary,
        dtypes=("fp32", "fp16", "bf16"),
        configs=every(_menu, _FORMS),
        cases=tuple(
            (Chain(rows, cols, dtype), config)
            for rows, cols, dtype, config in (
                (64, 512, "fp32", ChainConfig()),
                (33, 257, "fp16", ChainConfig()),
                (1, 5, "fp32", ChainConfig(8, 512)),
                (130, 1000, "fp16", ChainConfig(16, 256)),
                (7, 2049, "fp16", ChainConfig(4, 512)),
            )
        ),
        arrays=arrays,
        plan=plan,
        schedule=lambda problem, config: schedule(groups, config),
        reference_of=_reference,
        menu_of=_menu,
        forms=_FORMS,
    )


KERNELS = (
    _kernel("chain-fused", "bias + GeLU + residual in one kernel", (_STEPS,)),
    _kernel(
        "chain-unfused", "bias, GeLU and residual as three kernels", tuple((s,) for s in _STEPS)
    ),
)
