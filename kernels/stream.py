"""Element-wise kernels: copy, scale, add and triad, which measure bandwidth (McCalpin's STREAM),
and the gated activation silu(X0) · X1 between two products."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from perfmodel_kernels.common import ceil_div
from perfmodel_kernels.launching import launch
from perfmodel_kernels.limits import check_elements, check_powers, check_rowwise
from perfmodel_kernels.menus import every, lanes

from perfmodel.algorithms import Rowwise
from perfmodel.elements import element
from perfmodel.errors import ProblemError
from perfmodel.proof.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.rowwise import elementwise
from perfmodel.schedules.schedule import Schedule

# Bytes of the widest access of a thread, and how many of them it makes: (accesses, warps), best
# guess first. Each thread has four accesses in flight, so that with 2048 threads a unit has 128 KiB
# in flight; a bandwidth of 4.8 TB/s at a latency of 1 µs needs 36 KiB (Little's law: bandwidth ×
# latency / units).
ACCESS_BYTES = 16
ACCESSES = ((4, 4), (8, 4), (4, 8), (2, 8))


@dataclass(frozen=True)
class StreamConfig:
    """A block of elements."""

    tile: int = 1024
    """Elements of a block."""
    warps: int = 4
    """Warps of a block."""


@triton.jit
def stream(X, Y, factor, n, TILE: tl.constexpr, ADD: tl.constexpr, SCALE: tl.constexpr):
    """Y = X[0], factor · X[0], X[0] + X[1] or X[0] + factor · X[1]; X holds its inputs stacked."""
    first = tl.program_id(0).to(tl.int64) * TILE
    at = first + tl.arange(0, TILE)
    if first + TILE <= n:  # no mask, so that accesses are wide whatever n is
        y = tl.load(X + at)
        other = tl.load(X + n + at) if ADD else y
        tl.store(Y + at, combined(y, other, factor, ADD, SCALE))
    else:
        y = tl.load(X + at, mask=at < n, other=0.0)
        other = tl.load(X + n + at, mask=at < n, other=0.0) if ADD else y
        tl.store(Y + at, combined(y, other, factor, ADD, SCALE), mask=at < n)


@triton.jit
def combined(y, other, factor, ADD: tl.constexpr, SCALE: tl.constexpr):
    """y, factor · y, y + other or y + factor · other."""
    if ADD:
        if SCALE:
            other = (factor * other).to(y.dtype)
        y = y + other
    elif SCALE:
        y = (factor * y).to(y.dtype)
    return y


@triton.jit
def silu_mul(X, Y, n, TILE: tl.constexpr):
    """Y = silu(X[0]) · X[1]; X holds the gate and the other half stacked."""
    first = tl.program_id(0).to(tl.int64) * TILE
    at = first + tl.arange(0, TILE)
    if first + TILE <= n:
        tl.store(Y + at, gated(tl.load(X + at), tl.load(X + n + at)))
    else:
        gate = tl.load(X + at, mask=at < n, other=0.0)
        up = tl.load(X + n + at, mask=at < n, other=0.0)
        tl.store(Y + at, gated(gate, up), mask=at < n)


@triton.jit
def gated(gate, up):
    """silu(gate) · up in fp32."""
    wide = gate.to(tl.float32)
    return (wide * tl.sigmoid(wide) * up.to(tl.float32)).to(gate.dtype)


def _menu(problem: Rowwise, target: str, units: int) -> tuple[StreamConfig, ...]:
    wide = int(ACCESS_BYTES // element(problem.dtype).bytes)
    return tuple(StreamConfig(n * wide * lanes(target) * warps, warps) for n, warps in ACCESSES)


FACTOR = 0.75
# name → (adds a second input, scales); a gate is a function of its own
_FORMS = {
    "copy": (False, False),
    "scale": (False, True),
    "add": (True, False),
    "triad": (True, True),
}
_SUMMARIES = {
    "copy": "Y = X",
    "scale": "Y = a X",
    "add": "Y = X0 + X1",
    "triad": "Y = X0 + a X1",
    "silu_mul": "Y = silu(X0) X1, the activation of SwiGLU",
}


def _arrays(problem: Rowwise, config: StreamConfig) -> tuple[Array, ...]:
    n = problem.rows * problem.cols
    return (
        Array("X", (problem.inputs, n), problem.dtype),
        Array("Y", (n,), problem.dtype, "output"),
    )


def _schedule(problem: Rowwise, config: StreamConfig) -> Schedule:
    return elementwise(problem, config.tile, 32 * config.warps)


def _inputs(name: str) -> int:
    """Tensors that a form reads."""
    return 1 if name in ("copy", "scale") else 2


def _check(name: str, problem: Rowwise, config: StreamConfig) -> None:
    """Raise `ProblemError` for a map or a tile that the kernel does not support."""
    check_rowwise(name, problem, "pointwise")
    inputs = _inputs(name)
    if (problem.inputs, problem.outputs) != (inputs, 1):
        raise ProblemError(
            f"{name} makes 1 tensor of {inputs}, not {problem.outputs} of {problem.inputs}"
        )
    if problem.variant != name and (problem.variant or name == "silu_mul"):
        raise ProblemError(f"{name} does not compute {problem.variant or 'a map without a name'}")
    check_powers(tile=config.tile)
    check_elements(1, config.tile, "take a shorter tile")


def _kernel(name: str) -> BundledKernel:
    def plan(problem: Rowwise, config: StreamConfig) -> tuple[Launch, ...]:
        _check(name, problem, config)
        n = problem.rows * problem.cols
        function, form = silu_mul, {}
        if name in _FORMS:
            function, (add, scale) = stream, _FORMS[name]
            form = {"factor": FACTOR, "ADD": add, "SCALE": scale}
        arrays, blocks = _arrays(problem, config), ceil_div(n, config.tile)
        form |= {"n": n, "TILE": config.tile}
        return (launch("pointwise", function, blocks, arrays, config.warps, **form),)

    def reference(problem: Rowwise, tensors: Tensors) -> Tensors:
        x = tensors["X"].double().cpu()
        if name == "silu_mul":
            return {"Y": torch.nn.functional.silu(x[0]) * x[1]}
        add, scale = _FORMS[name]
        last = FACTOR * x[-1] if scale else x[-1]
        return {"Y": x[0] + last if add else last}

    inputs, variant = _inputs(name), name if name == "silu_mul" else ""
    shapes = ((1, 4096), (1, 1), (7, 1001), (33, 517), (128, 256), (1, 100_003))
    cases = tuple(
        (Rowwise("pointwise", rows, cols, dtype, variant, inputs), StreamConfig(tile))
        for (rows, cols), tile, dtype in zip(
            shapes,
            (1024, 1024, 2048, 1024, 4096, 8192),
            ("fp32", "fp16", "fp16", "fp32", "bf16", "fp16"),
            strict=True,
        )
        if dtype != "bf16" or name == "copy"
    )
    forms = tuple(
        Rowwise("pointwise", rows, 1024, dtype, variant, inputs)
        for rows, dtype in ((2**20, "bf16"), (2**19, "fp32"))
    )
    return BundledKernel(
        name=name,
        summary=_SUMMARIES[name],
        dtypes=("fp32", "fp16", "bf16"),
        configs=every(_menu, forms),
        cases=cases,
        arrays=_arrays,
        plan=plan,
        schedule=_schedule,
        reference_of=reference,
        menu_of=_menu,
        forms=forms,
    )


KERNELS = tuple(_kernel(name) for name in _SUMMARIES)
