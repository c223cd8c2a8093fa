"""Stream kernels: copy, scale, add and triad, the bandwidth yardsticks (McCalpin's STREAM)."""

from __future__ import annotations

from dataclasses import dataclass

import triton
import triton.language as tl

from perfmodel.algorithms import Rowwise
from perfmodel.evidence.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.rowwise import elementwise
from perfmodel.schedules.schedule import Schedule


@dataclass(frozen=True)
class StreamConfig:
    """Elements and warps of a block."""

    tile: int = 1024
    warps: int = 4


CONFIGS = tuple(StreamConfig(tile, warps) for tile in (1024, 2048, 4096, 8192) for warps in (4, 8))


@triton.jit
def stream(X, Y, factor, n, TILE: tl.constexpr, ADD: tl.constexpr, SCALE: tl.constexpr):
    """Y = X[0], factor · X[0], X[0] + X[1] or X[0] + factor · X[1]; X holds its inputs stacked."""
    at = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    inside = at < n
    y = tl.load(X + at, mask=inside, other=0.0)
    if ADD:
        other = tl.load(X + n + at, mask=inside, other=0.0)
        if SCALE:
            other = (factor * other).to(y.dtype)
        y = y + other
    elif SCALE:
        y = (factor * y).to(y.dtype)
    tl.store(Y + at, y, mask=inside)


FACTOR = 0.75
# name → (adds a second input, scales)
_FORMS = {
    "copy": (False, False),
    "scale": (False, True),
    "add": (True, False),
    "triad": (True, True),
}


def _arrays(problem: Rowwise, config: StreamConfig) -> tuple[Array, ...]:
    n = problem.rows * problem.cols
    return (
        Array("X", (problem.inputs, n), problem.dtype),
        Array("Y", (n,), problem.dtype, "output"),
    )


def _schedule(problem: Rowwise, config: StreamConfig) -> Schedule:
    return elementwise(problem, config.tile, 32 * config.warps)


def _kernel(name: str) -> BundledKernel:
    add, scale = _FORMS[name]

    def plan(problem: Rowwise, config: StreamConfig) -> tuple[Launch, ...]:
        n = problem.rows * problem.cols
        launch = Launch(
            "pointwise",
            stream,
            (triton.cdiv(n, config.tile),),
            {"X": "X", "Y": "Y", "factor": FACTOR, "n": n},
            {"TILE": config.tile, "ADD": add, "SCALE": scale},
            num_warps=config.warps,
        )
        return (launch,)

    def reference(problem: Rowwise, tensors: Tensors) -> Tensors:
        x = tensors["X"].double().cpu()
        last = FACTOR * x[-1] if scale else x[-1]
        return {"Y": x[0] + last if add else last}

    inputs = 2 if add else 1
    shapes = ((1, 4096), (1, 1), (7, 1001), (33, 517), (128, 256), (1, 100_003))
    cases = tuple(
        (Rowwise("pointwise", rows, cols, dtype, inputs=inputs), StreamConfig(tile))
        for (rows, cols), tile, dtype in zip(
            shapes,
            (1024, 1024, 2048, 1024, 4096, 8192),
            ("fp32", "fp16", "fp16", "fp32", "bf16", "fp16"),
            strict=True,
        )
        if dtype != "bf16" or name == "copy"
    )
    return BundledKernel(
        name=name,
        summary={
            "copy": "Y = X",
            "scale": "Y = a X",
            "add": "Y = X0 + X1",
            "triad": "Y = X0 + a X1",
        }[name],
        dtypes=("fp32", "fp16", "bf16"),
        configs=CONFIGS,
        cases=cases,
        arrays=_arrays,
        plan=plan,
        schedule=_schedule,
        reference_of=reference,
    )


KERNELS = tuple(_kernel(name) for name in _FORMS)
