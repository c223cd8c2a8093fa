"""Kernels that a framework runs around the operator, inside the timed region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Problem, Rowwise
from perfmodel.arithmetic import Number, product
from perfmodel.count import compulsory_bytes
from perfmodel.errors import ProblemError
from perfmodel.timing import rowchain, rowwise
from perfmodel.timing.libraries import GemmFacts, KernelFacts, MatrixFacts
from perfmodel.timing.memory import hbm_rate
from perfmodel.timing.setting import Setting

INCLUDES = ("kv_write", "rope", "quantise_activations")


def included_seconds(
    setting: Setting, problem: Problem, kernel: KernelFacts, includes: Sequence[str]
) -> Number:
    """Device time of the other kernels in the timed region, in the shape of the problem's arrays.

    Names that do not apply to the problem cost nothing. Raises `ProblemError` for a name that is
    not in `INCLUDES`.
    """
    total: Number = 0.0
    for name in includes:
        if name not in INCLUDES:
            raise ProblemError(f"cannot include {name!r}; it is one of {', '.join(INCLUDES)}")
        if name == "kv_write" and isinstance(problem, Attention):
            separate = "rope" not in includes
            total = total + _kv_write(setting, problem, kernel, separate=separate)
        elif name == "rope" and isinstance(problem, Attention):
            total = total + _rope(setting, problem)
        elif name == "quantise_activations" and isinstance(problem, Matmul):
            total = total + _quantise(setting, problem, kernel)
    return total


def _kv_write(
    setting: Setting,
    problem: Attention,
    kernel: KernelFacts,
    *,
    separate: bool,
) -> Number:
    """Write new keys and values to their pages of the cache, one thread block a token.

    Where the cache is narrower than the queries and the kernel multiplies it directly, one more
    kernel converts the queries. Where queries are rotated on the way, this kernel does that (not
    `separate`).
    """
    sizes, elements = problem.sizes(), problem.elements()
    if kernel.caller.hands_wide and elements["data"].bits <= 8:
        problem = replace(problem, dtype="bf16")
        elements = problem.elements()
    tokens = product([sizes["b"], sizes["q"]])
    write = Rowwise(
        "pointwise",
        rowwise.whole(tokens),
        rowwise.whole(product([sizes["g"], sizes["d"]])),
        dtype=problem.dtype,
        inputs=2,
        outputs=2,
        output_dtype=elements["kv"].name,
    )
    caller, gap = kernel.caller, setting.at_clock("kernel_gap")
    seconds = gap + rowchain.beside(setting, write, "cache-write")
    leads = caller.writes_ahead and setting.machine.architecture.copies == "tensor"
    uneven = caller.fewer_values is not None and sizes["d"] == caller.fewer_values[0]
    seconds = seconds + np.where(uneven, caller.uneven_writes - 1.0, -float(leads)) * gap
    native = isinstance(kernel, MatrixFacts) and kernel.instruction == "native"
    if elements["kv"].bits >= elements["data"].bits:
        return seconds
    if kernel.caller.narrowing:
        columns = product([2 * sizes["g"], sizes["d"]])
        conversion = _map_seconds(setting, problem, columns, elements["kv"].name)
        seconds = seconds + kernel.caller.narrowing * gap + conversion
    if native:
        heads = product([sizes["g"], sizes["r"], sizes["d"]])
        conversion = _map_seconds(setting, problem, heads, elements["kv"].name)
        kernels = kernel.caller.query_narrowing if separate else 0
        # A kernel that first finds the largest magnitude reads the queries twice.
        reread = np.maximum(kernels - 1, 0) and 2.0 / 3.0
        seconds = seconds + kernels * gap + conversion * (1.0 + reread)
    return seconds


def _rope(setting: Setting, problem: Attention) -> Number:
    """Read and write queries and keys once more, rotated.

    Cosines and sines stay in the L2: the heads of a token share a row of them.
    """
    sizes = problem.sizes()
    heads = product([sizes["g"], 1 + sizes["r"], sizes["d"]])
    return _map_seconds(setting, problem, heads, problem.elements()["data"].name)


def _map_seconds(setting: Setting, problem: Attention, columns: Number, dtype: str) -> Number:
    """Memory seconds of a map over `columns` elements of each new token."""
    machine, constants = setting.machine, setting.constants
    tokens = product([problem.sizes()["b"], problem.sizes()["q"]])
    rows = Rowwise(
        "pointwise",
        rowwise.whole(tokens),
        rowwise.whole(columns),
        dtype=problem.elements()["data"].name,
        output_dtype=dtype,
    )
    return compulsory_bytes(rows) / hbm_rate(machine, constants)


def _quantise(setting: Setting, problem: Matmul, kernel: KernelFacts) -> Number:
    """A separate kernel that converts 16-bit activations to the type of the product."""
    name = kernel.quantiser if isinstance(kernel, GemmFacts) else GemmFacts.quantiser
    rows = Rowwise(
        "quantise",
        rowwise.whole(product([problem.batch, problem.m])),
        problem.k,
        output_dtype=problem.elements()["data"].name,
    )
    return setting.further_seconds + rowchain.beside(setting, rows, name)
