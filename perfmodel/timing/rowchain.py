"""Plans for row-wise operators that a framework computes as a chain of element-wise maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from perfmodel.algorithms.rowwise import Rowwise
from perfmodel.arithmetic import Number, product
from perfmodel.elements import element
from perfmodel.timing import rowwise
from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.libraries import RowFacts, kernel_facts
from perfmodel.timing.libraries.facts import Chain
from perfmodel.timing.plan import Part, Plan, time_plan
from perfmodel.timing.reuse import Reuse
from perfmodel.timing.setting import Setting

_OWN, _ROW, _MAP = "data", "row", "torch-pointwise"


def plan(problem: Rowwise, kernel: RowFacts, setting: Setting) -> Plan:
    """A chain of element-wise maps, each of which reads the output of the map before.

    A step reads its input in the order in which it was written, so the reuse distance is the bytes
    that the last step on whole tensors touched. Between two runs of the chain it is all bytes that
    the chain touches. Every kernel of a chain of several starts anew (`kernel_start`).

    Kernels that are no chain have the plan of `rowwise`.
    """
    if not steps(kernel.chain):
        return rowwise.plan(problem, kernel, setting)
    assert kernel.chain is not None
    start = setting.constants["kernel_start"] if len(kernel.chain.steps) > 1 else 0.0
    elements = np.asarray(product([problem.rows, problem.cols]), dtype=np.float64)
    types = [_types(problem, step) for step in kernel.chain.steps]
    step_bytes = [_bytes(read) + _bytes(written) for read, written in types]
    distances = [
        next(filter(None, step_bytes[i - 1 :: -1]), 0.0) * elements for i in range(1, len(types))
    ]
    total = elements * (_bytes(types[0][0]) + sum(_bytes(written) for _, written in types))
    parts = [
        replace(
            _map(problem, each, operations, elements, start, setting),
            reuse=_reuse(setting.run, total, distances[i - 1] if i else None),
        )
        for i, (each, (*_, operations)) in enumerate(zip(types, kernel.chain.steps, strict=True))
    ]
    # Where calls are made one by one, each kernel is a call.
    return Plan(parts[0].schedule.name, tuple(parts), {}, calls=len(parts))


def beside(setting: Setting, problem: Rowwise, name: str) -> np.ndarray:
    """Seconds of a row-wise kernel of class `name` that a library runs beside an operator's own
    kernel.

    Shape (n, 1), without the gap between them.
    """
    machine, constants = setting.machine, setting.constants
    row_plan = plan(problem, kernel_facts(name), setting)
    shape = np.broadcast_shapes((1, 1), np.shape(problem.rows), np.shape(problem.cols))
    seconds = time_plan(machine, constants, row_plan, shape).seconds
    return np.asarray(seconds)


def steps(chain: Chain | None) -> bool:
    """Whether the types that each kernel of a chain reads and writes are known."""
    return chain is not None and bool(chain.steps)


Types = tuple[str, ...]
"""Element types of whole tensors; empty for a number a row."""


def _types(problem: Rowwise, step: tuple[str, str, float]) -> tuple[Types, Types]:
    """Types of the whole tensors that a step reads and writes."""
    inputs, outputs = (
        tuple(problem.dtype if name == _OWN else name for name in side.split("+") if name != _ROW)
        for side in step[:2]
    )
    return inputs, outputs


def _bytes(types: Types) -> float:
    """Bytes an element of tensors of some types."""
    return sum(element(name).bytes for name in types)


def _map(
    problem: Rowwise,
    types: tuple[Types, Types],
    operations: float,
    elements: np.ndarray,
    start_seconds: float,
    setting: Setting,
) -> Part:
    """The kernel of a step: a copy, a sum or a fill, with the integer operations that the step adds
    an element. The blocks of a sum fold theirs by shuffles, in half of two reductions."""
    inputs, outputs = types
    if not inputs and not outputs:
        problem, elements, inputs = replace(problem, cols=1), np.asarray(problem.rows), ("fp32",)
    step = replace(
        problem,
        op="pointwise",
        variant="",
        direction="fwd",
        dtype=(*inputs, *outputs)[0],
        output_dtype=(*outputs, *inputs)[0],
        inputs=len(inputs),
        outputs=len(outputs),
    )
    (part,) = rowwise.plan(step, kernel_facts(_MAP), setting).parts
    code = part.style.code
    map_code = replace(code, integer_ops=code.integer_ops + elements * operations)
    folds = setting.constants["row_price"] if inputs and not outputs else 0.0
    block = replace(part.style.block, setup_seconds=start_seconds, chain_seconds=folds)
    return replace(part, style=replace(part.style, code=map_code, block=block))


def _reuse(run: Circumstances, total: Number, reach: Number | None) -> dict[str, Sequence[Reuse]]:
    """What a step finds in the caches: its input, left by the step before or by the run before, and
    the old lines of its output, left by the run before."""
    rerun = (Reuse(run.warm, total, run.repeats),)
    reuses: dict[str, Sequence[Reuse]] = {"Y": rerun} if run.warm and run.repeats else {}
    if reach is not None:
        return {**reuses, "X": (Reuse(1.0, reach, swept=True),)}
    return {**reuses, "X": rerun} if run.warm else reuses
