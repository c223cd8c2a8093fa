"""LayerNorm and RMSNorm, forward and backward.

The grid is over rows, and a row stays on chip. The weights' gradients are sums over rows: blocks
process slices of rows and write fp32 partial sums, which a last kernel adds. In the fused form a
block computes both its rows' gradients and these sums, so that X and dY are read once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import triton
from perfmodel_kernels.common import ceil_div, power_of_two
from perfmodel_kernels.limits import (
    check_elements,
    check_positive_counts,
    check_powers,
    check_rowwise,
)
from perfmodel_kernels.menus import WIDEST_HELD, every, lanes, row_blocks, row_warps
from perfmodel_kernels.norms_code import (
    fold,
    fused_backward,
    norm_backward,
    norm_forward,
    weight_gradient,
)

from perfmodel.algorithms import Rowwise
from perfmodel.elements import element
from perfmodel.errors import ProblemError
from perfmodel.proof.kernel import Argument, Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.rowwise import norm_gradients, rows
from perfmodel.schedules.schedule import Schedule

EPSILON = 1e-5
# For the separate kernel of the weights' gradients: bytes of a column that a step loads from each
# tensor (fp32 would spill with more), columns of a block, and its warps.
WEIGHT_STEP_BYTES = 32
WEIGHT_COLUMNS = 256
WEIGHT_WARPS = 4
# Slices and columns that the last kernel adds at once, and its warps.
FOLD_TILE = (64, 32)
FOLD_WARPS = 4
# Columns up to which a row's gradient and the sums of the weights' fit in registers together.
WIDEST_FUSED = {32: 8192, 64: 16384}  # by lanes of a warp
# Backward the longest row is in bytes, since loaded fp32 values need as many registers as the
# computed ones.
ROW_BYTES_BACKWARD = {32: 2**15, 64: 2**17}  # by lanes of a warp
# Warps of the largest block backward: with more, NVIDIA's threads have 64 registers, too few.
MOST_WARPS_BACKWARD = 16


@dataclass(frozen=True)
class NormConfig:
    """A block of rows."""

    rows: int = 1
    """Rows of a block."""
    warps: int = 4
    """Warps of a block."""


@dataclass(frozen=True)
class NormBackwardConfig:
    """A block of rows, and how the weights' gradients are summed."""

    rows: int = 1
    """Rows that a block holds at once."""
    warps: int = 4
    """Warps of a block."""
    slices: int = 264
    """Number of blocks that share the rows (for each 256 columns, unless `fused`)."""
    fused: bool = True
    """Whether a block computes its rows' gradients as well."""
    stages: int = 2
    """Stages of a fused block, which loads `stages` − 1 steps ahead."""


# ---- Forward -------------------------------------------------------------------------------------


def _forward_menu(problem: Rowwise, target: str, units: int) -> tuple[NormConfig, ...]:
    return tuple(NormConfig(*block) for block in row_blocks(problem.op, problem.cols, target))


def _forward_arrays(problem: Rowwise, config: NormConfig) -> tuple[Array, ...]:
    shape, dtype = (problem.rows, problem.cols), problem.dtype
    centred = problem.op == "layernorm"
    return (
        Array("X", shape, dtype),
        Array("gamma", shape[1:], dtype),
        *((Array("beta", shape[1:], dtype),) if centred else ()),
        Array("Y", shape, dtype, "output"),
        *((Array("mean", shape[:1], "fp32", "output"),) if centred else ()),
        Array("rstd", shape[:1], "fp32", "output"),
    )


def _tile(problem: Rowwise, config: NormConfig | NormBackwardConfig) -> dict[str, int | bool]:
    """The compile-time shape of a block that holds whole rows.

    Raises `ProblemError` for an invalid one.
    """
    held = power_of_two(problem.cols)
    check_powers(rows=config.rows, warps=config.warps)
    check_elements(config.rows, held, "take fewer rows a block")
    return {
        "TR": config.rows,
        "TC": held,
        "CENTRED": problem.op == "layernorm",
        "WHOLE": held == problem.cols,
    }


def _forward_plan(problem: Rowwise, config: NormConfig) -> tuple[Launch, ...]:
    centred = problem.op == "layernorm"
    arguments = {
        "X": "X",
        "GAMMA": "gamma",
        "BETA": "beta" if centred else "gamma",
        "Y": "Y",
        "MEAN": "mean" if centred else "rstd",
        "RSTD": "rstd",
        "rows": problem.rows,
        "cols": problem.cols,
        "epsilon": EPSILON,
    }
    grid = (triton.cdiv(problem.rows, config.rows),)
    tile = _tile(problem, config)
    return (Launch(problem.op, norm_forward, grid, arguments, tile, num_warps=config.warps),)


def _forward_schedule(problem: Rowwise, config: NormConfig) -> Schedule:
    return rows(problem, config.rows, None, 32 * config.warps)


def _statistics(problem: Rowwise, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean (0 for RMSNorm) and reciprocal deviation of the rows of a float64 matrix."""
    mean = x.mean(1) if problem.op == "layernorm" else torch.zeros(len(x), dtype=x.dtype)
    return mean, 1 / torch.sqrt(((x - mean[:, None]) ** 2).mean(1) + EPSILON)


def _forward_reference(problem: Rowwise, tensors: Tensors) -> Tensors:
    x, gamma = tensors["X"].double().cpu(), tensors["gamma"].double().cpu()
    mean, rstd = _statistics(problem, x)
    y = (x - mean[:, None]) * rstd[:, None] * gamma
    if problem.op == "rmsnorm":
        return {"Y": y, "rstd": rstd}
    return {"Y": y + tensors["beta"].double().cpu(), "mean": mean, "rstd": rstd}


# ---- Backward ------------------------------------------------------------------------------------


def _backward_menu(problem: Rowwise, target: str, units: int) -> tuple[NormBackwardConfig, ...]:
    """Fused configs if a row and its sums fit in registers, with 16 or 8 elements a thread; else
    separate."""
    widest = ROW_BYTES_BACKWARD[lanes(target)] // int(element(problem.dtype).bytes)
    if problem.cols > min(widest, WIDEST_HELD):
        raise ProblemError(
            f"a row of {problem.cols} columns spills; the widest that {problem.op} "
            f"{problem.direction} holds on this target has {min(widest, WIDEST_HELD)}"
        )
    held, most = power_of_two(problem.cols), MOST_WARPS_BACKWARD
    found = []
    if held <= WIDEST_FUSED[lanes(target)]:
        pipelined = _stages(held, target)
        wide, narrow = row_warps(held, target, most, (16, 8))
        resident = max(1, 16 * 32 // (wide * lanes(target)))
        found += [NormBackwardConfig(1, wide, units * resident, stages=s) for s in pipelined]
        found += [NormBackwardConfig(1, wide, units * max(1, resident // 2), stages=pipelined[0])]
        found += [NormBackwardConfig(1, narrow, units * max(1, resident // 2), stages=pipelined[0])]
    column_tiles = ceil_div(problem.cols, WEIGHT_COLUMNS)
    for warps in row_warps(held, target, most, (16, 32)):
        for waves in (4, 2):
            slices = ceil_div(waves * units, column_tiles)
            found.append(NormBackwardConfig(1, warps, slices, fused=False))
    return tuple(dict.fromkeys(found))[:6]


def _stages(held: int, target: str) -> tuple[int, ...]:
    """Stages worth trying. CDNA's loads are held in registers, and the widest row leaves none for
    them."""
    if lanes(target) == 32:
        return 3, 2
    return (1, 2) if held < WIDEST_FUSED[64] else (1,)


def _weight_step(problem: Rowwise) -> int:
    """Rows of a step in the separate kernel of the weights' gradients."""
    return WEIGHT_STEP_BYTES // int(element(problem.dtype).bytes)


def _span(problem: Rowwise, config: NormBackwardConfig) -> int:
    """Rows of a slice, in whole steps."""
    check_positive_counts(slices=config.slices, stages=config.stages)
    check_powers(rows=config.rows)
    step = config.rows if config.fused else _weight_step(problem)
    return ceil_div(ceil_div(problem.rows, config.slices), step) * step


def slices_of(problem: Rowwise, config: NormBackwardConfig) -> int:
    """Slices of rows that the weights' gradients are summed in."""
    return ceil_div(problem.rows, _span(problem, config))


def _backward_schedule(problem: Rowwise, config: NormBackwardConfig) -> Schedule:
    return norm_gradients(
        problem,
        config.rows,
        32 * config.warps,
        span=_span(problem, config),
        fused=config.fused,
        weight_tile=(_weight_step(problem), WEIGHT_COLUMNS),
        fold_tile=FOLD_TILE[1],
    )


def _backward_arrays(problem: Rowwise, config: NormBackwardConfig) -> tuple[Array, ...]:
    shape, dtype = (problem.rows, problem.cols), problem.dtype
    weights = ("gamma", "beta") if problem.op == "layernorm" else ("gamma",)
    slices = slices_of(problem, config)
    parts = (slices, problem.cols)
    return (
        Array("X", shape, dtype),
        Array("dY", shape, dtype),
        Array("gamma", shape[1:], dtype),
        *((Array("mean", shape[:1], "fp32", fill="derived"),) if len(weights) > 1 else ()),
        Array("rstd", shape[:1], "fp32", fill="derived"),
        Array("dX", shape, dtype, "output"),
        *(
            Array(f"{name}_parts", parts, "fp32", "scratch", f"d{name}")
            for name in weights
            if slices > 1
        ),
        *(Array(f"d{name}", shape[1:], dtype, "output") for name in weights),
    )


def _derive(problem: Rowwise, tensors: Tensors) -> None:
    mean, rstd = _statistics(problem, tensors["X"].double().cpu())
    tensors["rstd"].copy_(rstd)
    if "mean" in tensors:
        tensors["mean"].copy_(mean)


def _backward_plan(problem: Rowwise, config: NormBackwardConfig) -> tuple[Launch, ...]:
    centred = problem.op == "layernorm"
    slices = slices_of(problem, config)
    suffix = "d{}" if slices == 1 else "{}_parts"
    sums = {
        "DGAMMA": suffix.format("gamma"),
        "DBETA": suffix.format("beta" if centred else "gamma"),
    }
    names = {"X": "X", "DY": "dY", "MEAN": "mean" if centred else "rstd", "RSTD": "rstd"}
    size = {"rows": problem.rows, "cols": problem.cols}
    if config.fused:
        launches = [_fused(problem, config, {**names, **sums, **size})]
    else:
        launches = list(_apart(problem, config, {**names, **size}, sums))
    if slices > 1:
        launches.append(_folding(problem, slices, sums))
    return tuple(launches)


def _fused(problem: Rowwise, config: NormBackwardConfig, arguments: dict[str, Argument]) -> Launch:
    return Launch(
        "+".join(step.name for step in problem.algorithm().steps),
        fused_backward,
        (slices_of(problem, config),),
        {**arguments, "GAMMA": "gamma", "DX": "dX", "span": _span(problem, config)},
        {**_tile(problem, config), "STAGES": config.stages},
        num_warps=config.warps,
    )


def _apart(
    problem: Rowwise,
    config: NormBackwardConfig,
    arguments: dict[str, Argument],
    sums: dict[str, Argument],
) -> Iterator[Launch]:
    yield Launch(
        problem.algorithm().steps[0].name,
        norm_backward,
        (ceil_div(problem.rows, config.rows),),
        {**arguments, "GAMMA": "gamma", "DX": "dX"},
        _tile(problem, config),
        num_warps=config.warps,
    )
    yield Launch(
        problem.algorithm().steps[1].name,
        weight_gradient,
        (slices_of(problem, config) * ceil_div(problem.cols, WEIGHT_COLUMNS),),
        {**arguments, **sums, "span": _span(problem, config)},
        {"TR": _weight_step(problem), "TC": WEIGHT_COLUMNS, "CENTRED": problem.op == "layernorm"},
        num_warps=WEIGHT_WARPS,
    )


def _folding(problem: Rowwise, slices: int, sums: dict[str, Argument]) -> Launch:
    centred = problem.op == "layernorm"
    together, columns = FOLD_TILE
    return Launch(
        "fold",
        fold,
        (ceil_div(problem.cols, columns),),
        {
            "GAMMA_PARTS": sums["DGAMMA"],
            "BETA_PARTS": sums["DBETA"],
            "DGAMMA": "dgamma",
            "DBETA": "dbeta" if centred else "dgamma",
            "cols": problem.cols,
            "parts": slices,
        },
        {"TS": together, "TC": columns, "CENTRED": centred},
        num_warps=FOLD_WARPS,
    )


def _backward_reference(problem: Rowwise, tensors: Tensors) -> Tensors:
    x, dy, gamma = (tensors[name].double().cpu() for name in ("X", "dY", "gamma"))
    mean, rstd = _statistics(problem, x)
    normal = (x - mean[:, None]) * rstd[:, None]
    g = dy * gamma
    dx = g - normal * (g * normal).mean(1, keepdim=True)
    if problem.op == "rmsnorm":
        return {"dX": dx * rstd[:, None], "dgamma": (dy * normal).sum(0)}
    dx = (dx - g.mean(1, keepdim=True)) * rstd[:, None]
    return {"dX": dx, "dgamma": (dy * normal).sum(0), "dbeta": dy.sum(0)}


_SHAPES = (
    (64, 512, "fp32", 1), (33, 257, "fp16", 2), (130, 96, "fp16", 4), (1, 1000, "fp32", 1),
    (71, 130, "fp32", 1),
)  # fmt: skip
_BACKWARD = (
    NormBackwardConfig(1, slices=5),
    NormBackwardConfig(2, slices=3),
    NormBackwardConfig(4, slices=4, fused=False),
    NormBackwardConfig(1, slices=132),
    NormBackwardConfig(1, slices=1, fused=False),
)


def _kernel(op: str, backward: bool) -> BundledKernel:
    direction = "bwd" if backward else "fwd"
    problems = [Rowwise(op, n, c, dtype, direction=direction) for n, c, dtype, _ in _SHAPES]
    configs = _BACKWARD if backward else [NormConfig(n) for *_, n in _SHAPES]
    menu_of = _backward_menu if backward else _forward_menu
    name = f"{op}-backward" if backward else op

    def plan(problem: Rowwise, config: NormConfig | NormBackwardConfig) -> tuple[Launch, ...]:
        check_rowwise(name, problem, op, direction)
        return (_backward_plan if backward else _forward_plan)(problem, config)

    forms = tuple(
        Rowwise(op, 16384, cols, dtype, direction=direction)
        for cols, dtype in (
            (1024, "bf16"), (4096, "bf16"), (8192, "bf16"), (16384, "bf16"),
            (5120, "bf16"), (4096, "fp32"),
        )
    )  # fmt: skip
    return BundledKernel(
        name=name,
        summary=f"{op} {'backward, with the weights gradients' if backward else 'forward'}",
        dtypes=("fp32", "fp16", "bf16"),
        configs=every(menu_of, forms),
        cases=tuple(zip(problems, configs, strict=True)),
        arrays=_backward_arrays if backward else _forward_arrays,
        plan=plan,
        schedule=_backward_schedule if backward else _forward_schedule,
        reference_of=_backward_reference if backward else _forward_reference,
        derive=_derive if backward else None,
        menu_of=menu_of,
        forms=forms,
    )


KERNELS = tuple(_kernel(op, back) for op in ("layernorm", "rmsnorm") for back in (False, True))
