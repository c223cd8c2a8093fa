"""Plans for row-wise and element-wise operators."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from perfmodel.algorithms.rowwise import Rowwise
from perfmodel.arithmetic import Number, product
from perfmodel.schedules import rowwise
from perfmodel.schedules.schedule import Schedule
from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.classes import Chain, KernelClass
from perfmodel.timing.constants import Constants
from perfmodel.timing.kernel import Style
from perfmodel.timing.machine import Machine
from perfmodel.timing.plan import Part, Plan

# Dependent steps of reduction across a block that each row waits for: within warps, then across
# them, once for a norm; softmax takes maximum and sum.
_REDUCTIONS = {"softmax": 4, "layernorm": 2, "rmsnorm": 2, "quantise": 2}


# Elements that a thread takes in one load where its class does not say.
_LOAD = 4


def plan(
    problem: Rowwise,
    kernel: KernelClass,
    machine: Machine,
    constants: Constants,
    around: Circumstances,
) -> Plan:
    """One kernel; a row per warp while that holds it, else per block, streamed as the class does.

    A row costs a chain of dependent reductions: `row_price` each, whatever its length.
    """
    if kernel.rows is None and problem.op != "pointwise":
        problem = _flat(problem, kernel.chain)
    schedule, price = _schedule(problem, kernel)
    how = Style(
        compute="fp32",
        overlap=1.0,
        price=price * constants["row_price"] / constants["block_price"],
        warm=around.warm,
        activity=around.activity,
        credit_seconds=around.credit_seconds,
        vector_share=constants["vector_share"],
        access_ops=access_ops(problem, kernel),
        resident=np.inf if kernel.resident is None else kernel.resident,
    )
    # Tiles are arrays here, and an int beyond 64 bits goes with none.
    sizes = {axis: np.asarray(size, dtype=np.float64) for axis, size in problem.sizes().items()}
    part = Part(schedule, sizes, problem.elements(), how)
    further = kernel.chain.kernels - 1 if kernel.chain is not None else 0
    return Plan(schedule.name, (part,), {}, beside=further * constants["kernel_gap"])


def _flat(problem: Rowwise, chain: Chain | None) -> Rowwise:
    """The element-wise map that an operator is to a class without rows, or to a chain of them."""
    inputs = chain.streams if chain is not None else 1
    output = problem.elements()["output"].name
    return replace(problem, op="pointwise", inputs=inputs, outputs=1, output_dtype=output)


def access_ops(problem: Rowwise, kernel: KernelClass) -> Number:
    """Issue slots of loads and stores: each is an instruction and one for its address.

    2 / (elements a load) for every element that goes by, once per input, output and pass: a kernel
    that loads single elements spends more on them than on its arithmetic.
    """
    layout = kernel.rows
    load = layout.load if layout is not None else _LOAD
    if problem.op == "pointwise":
        accesses: Number = problem.inputs + problem.outputs
    else:
        held = np.asarray(problem.cols) <= (layout.held_columns if layout is not None else 0)
        accesses = np.where(held, 1, layout.passes if layout is not None else 1) + 1
    return 2.0 / load * product([problem.rows, problem.cols]) * accesses


def _schedule(problem: Rowwise, kernel: KernelClass) -> tuple[Schedule, float]:
    """The class's loop nest, and how many dependent reductions a row waits for."""
    layout = kernel.rows
    if layout is None:
        return rowwise.elementwise(problem), 0.0
    single = layout.passes == 1 and layout.held_columns == 0
    columns = np.asarray(problem.cols)
    held = columns <= layout.held_columns
    wanted = -(-columns // layout.elements_per_thread)
    threads = np.clip(wanted, layout.least_threads, layout.most_threads)
    tile = np.where(held, columns, np.minimum(threads * layout.load, columns))
    if problem.op == "pointwise":
        return rowwise.elementwise_rows(problem, tile, np.maximum(threads, 64)), 1.0
    by_warp = held & (columns <= 1024)
    schedule = rowwise.rows(
        problem,
        np.where(by_warp, 4, 1),
        tile,
        threads=np.where(by_warp, 128, np.maximum(threads, 64)),
        row_passes=np.where(held, 1, layout.passes),
        stages=layout.stages,
    )
    return schedule, 1.0 if single else _REDUCTIONS[problem.op]
