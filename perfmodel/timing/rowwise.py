"""Plans for row-wise and element-wise operators."""

from __future__ import annotations

import numpy as np

from perfmodel.algorithms.rowwise import Rowwise
from perfmodel.schedules import rowwise
from perfmodel.timing.constants import Constants
from perfmodel.timing.kernel import Style
from perfmodel.timing.machine import Machine
from perfmodel.timing.plan import Part, Plan

# Rows up to this long are held by one warp, four to a block (PyTorch's persistent softmax, norms).
_WARP_ROW = 1024
# Bytes of a row that a block keeps on chip; longer rows are streamed twice.
_ROW_BYTES = 48 * 1024


def plan(problem: Rowwise, machine: Machine, constants: Constants, warm: float) -> Plan:
    """One kernel; a row per warp when short, per block when long, streamed when very long."""
    elements = problem.elements()
    if problem.op == "pointwise":
        schedule = rowwise.elementwise(problem)
        price = 0.0
    else:
        short = np.asarray(problem.cols) <= _WARP_ROW
        per_block = np.where(short, 4, 1)
        limit = int(_ROW_BYTES / elements["data"].bytes)
        schedule = rowwise.rows(problem, per_block, np.minimum(problem.cols, limit))
        price = constants["row_price"] / constants["block_price"]
    how = Style(
        compute="fp32",
        overlap=1.0,
        price=price,
        warm=warm,
        vector_share=constants["vector_share"],
    )
    part = Part(schedule, problem.sizes(), elements, how)
    return Plan(schedule.name, (part,), {})
