"""Plans for row-wise and element-wise operators."""

from __future__ import annotations

import numpy as np

from perfmodel.algorithms.rowwise import Rowwise
from perfmodel.schedules import rowwise
from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.classes import KernelClass
from perfmodel.timing.constants import Constants
from perfmodel.timing.kernel import Style
from perfmodel.timing.machine import Machine
from perfmodel.timing.plan import Part, Plan

# Dependent steps of reduction across a block that each row waits for: within warps, then across
# them, once for a norm; softmax takes maximum and sum.
_REDUCTIONS = {"softmax": 4, "layernorm": 2, "rmsnorm": 2, "quantise": 2}


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
    elements = problem.elements()
    if problem.op == "pointwise" or kernel.rows is None:
        schedule = rowwise.elementwise(problem)
        price = 0.0
    else:
        layout = kernel.rows
        columns = np.asarray(problem.cols)
        held = columns <= layout.held_columns
        threads = np.clip(-(-columns // layout.elements_per_thread), 32, layout.most_threads)
        by_warp = held & (columns <= 1024)
        schedule = rowwise.rows(
            problem,
            np.where(by_warp, 4, 1),
            np.where(held, columns, np.minimum(threads * layout.load, columns)),
            threads=np.where(by_warp, 128, np.maximum(threads, 64)),
            row_passes=np.where(held, 1, layout.passes),
        )
        price = _REDUCTIONS[problem.op] * constants["row_price"] / constants["block_price"]
    how = Style(
        compute="fp32",
        overlap=1.0,
        price=price,
        warm=around.warm,
        activity=around.activity,
        vector_share=constants["vector_share"],
    )
    # Tiles are arrays here, and an int beyond 64 bits goes with none.
    sizes = {axis: np.asarray(size, dtype=np.float64) for axis, size in problem.sizes().items()}
    part = Part(schedule, sizes, elements, how)
    return Plan(schedule.name, (part,), {})
