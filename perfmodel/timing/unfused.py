"""Plans for unfused attention: the framework's operators one after another.

Each operator is timed as it would be alone: the batched products by the library's matmul class, the
softmax by the framework's softmax class. A framework also copies queries, keys and values so that
heads come before positions, and copies the result back (`reshape` of a transposed view).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from perfmodel.algorithms.attention import Attention, Direction, MaskPass
from perfmodel.algorithms.matmul import Matmul
from perfmodel.algorithms.rowwise import Rowwise
from perfmodel.arithmetic import product
from perfmodel.count import count
from perfmodel.schedules import standard
from perfmodel.schedules.schedule import Schedule
from perfmodel.timing import matmul, rowwise
from perfmodel.timing.libraries import kernel_facts, resolve
from perfmodel.timing.plan import Part, Plan
from perfmodel.timing.setting import Setting
from perfmodel.timing.style import Block, Code, Style

# Integer instructions an element of a map over tensors with different layouts, which PyTorch loads
# element by element (CUDALoops.cuh, OffsetCalculator). Each operand takes an access: load or store,
# 64-bit address, bound. Each dimension that does not merge with the next takes a division by
# multiplication, its remainder and the operands' strides. A broadcast mask is a third operand with
# two dimensions; swapping heads and positions leaves four.
_ACCESS, _DIVISION = 4.0, 6.0 + 2.0
_BROADCAST = 3 * _ACCESS + 2 * (_DIVISION + 3.0)
_PERMUTED = 2 * _ACCESS + 4 * (_DIVISION + 2.0)


class _Chain:
    """Operators on one problem in launch order; `schedule` counts the memory they hold at once."""

    def __init__(self, problem: Attention, setting: Setting, schedule: Schedule) -> None:
        self.problem, self.setting, self.schedule = problem, setting, schedule
        self.gap_seconds = setting.at_clock("kernel_gap")
        self.plans: list[Plan] = []
        self.sizes, self.elements = problem.sizes(), problem.elements()
        self.heads = rowwise.whole(product([self.sizes[axis] for axis in "bgr"]))
        self.library, _ = resolve("gemm", "torch", problem.dtype, setting.machine, batched=True)

    def add(self, plan: Plan, calls: int = 1) -> None:
        """Append an operator of `calls` framework calls, with the gap before it."""
        gap, memory = self.gap_seconds, plan.memory_bytes
        if not self.plans:
            gap = 0.0
            memory = count(self.schedule, self.sizes, self.elements).memory_bytes
        step = replace(plan, schedule=self.schedule.name, beside=plan.beside + gap)
        self.plans.append(replace(step, memory_bytes=memory, calls=calls))

    def multiply(self, m: str, n: str, k: str) -> None:
        """Append a batched product over all heads; m, n and k are names of axes."""
        rows, columns, depth = (self.sizes[axis] for axis in (m, n, k))
        problem = Matmul(rows, columns, depth, self.heads, self.problem.dtype)
        self.add(matmul.plan(problem, self.library, self.setting))

    def copies(self) -> None:
        """Append the transposing copies of queries, keys, values and result, or of their gradients.

        They are four kernels of a kind, timed as one with their gaps. Grouped keys and values are
        repeated for each head.
        """
        q, x, d, e = (np.asarray(self.sizes[axis], dtype=np.float64) for axis in "qxde")
        size = rowwise.whole(self.heads * (q * d + x * d + x * e + q * e))
        problem = Rowwise("pointwise", size, 1, self.problem.dtype, "copy")
        self.rows(problem, "torch-pointwise", calls=4)
        gaps = 3.0 * self.gap_seconds
        last, (part,) = self.plans[-1], self.plans[-1].parts
        code = replace(part.style.code, integer_ops=_PERMUTED * np.asarray(size, dtype=np.float64))
        copy = replace(part, style=replace(part.style, code=code))
        self.plans[-1] = replace(last, parts=(copy,), beside=last.beside + gaps)

    def softmax(self, direction: Direction) -> None:
        """Append the softmax over the keys of every row of scores, or its gradient."""
        rows = rowwise.whole(product([self.heads, self.sizes["q"]]))
        dtype = self.problem.dtype
        problem = Rowwise("softmax", rows, self.sizes["x"], dtype, direction=direction)
        self.rows(problem, "torch-softmax", calls=2 if direction == "bwd" else 1)

    def rows(self, problem: Rowwise, kernel: str, calls: int = 1) -> None:
        """Append a row-wise operator of a kernel class."""
        self.add(rowwise.plan(problem, kernel_facts(kernel), self.setting), calls)

    def passes(self, *names: str) -> None:
        """Append passes over the scores for masks and dropout, counted by the standard schedule.

        A mask is one tensor for all heads.
        """
        scores = product([self.heads, self.sizes["q"], self.sizes["x"]])
        elements = np.asarray(scores, dtype=np.float64)
        style = Style(
            compute="fp32",
            overlap=1.0,
            overlap_power=self.setting.constants["map_overlap_power"],
            streams=True,
            code=Code(vector_share=self.setting.constants["vector_share"]),
            block=Block(price=0.0),
            run=self.setting.run,
        )
        code = replace(style.code, integer_ops=_BROADCAST * elements)
        styles = {"mask": replace(style, code=code)}
        part = Part(self.schedule, self.sizes, self.elements, style, styles, only=names)
        self.add(Plan(self.schedule.name, (part,), {}))


def plans(problem: Attention, setting: Setting) -> list[Plan]:
    """The operators of the forward pass, the backward pass, or both."""
    operators: list[Plan] = []
    if problem.direction in ("fwd", "fwdbwd"):
        operators += _forward(problem, setting)
    if problem.direction in ("bwd", "fwdbwd"):
        operators += _backward(problem, setting)
    return operators


def _forward(problem: Attention, setting: Setting) -> list[Plan]:
    """S = Q·Kᵀ, masks, softmax, dropout, O = P·V: one kernel each."""
    masked = problem.mask() is not None or problem.padding_mask
    passes: MaskPass = "additive" if masked else "none"
    schedule = standard.standard(problem.mask(), mask_pass=passes, dropout=problem.dropout)
    chain = _Chain(problem, setting, schedule)
    chain.copies()
    chain.multiply("q", "x", "d")
    if masked:
        chain.passes("mask")
    chain.softmax("fwd")
    if problem.dropout:
        chain.passes("dropout")
    chain.multiply("q", "e", "x")
    return chain.plans


def _backward(problem: Attention, setting: Setting) -> list[Plan]:
    """dV = Pᵀ·dO, dP = dO·Vᵀ, dS from P and dP, dQ = dS·K, dK = dSᵀ·Q. Additive masks need no
    kernel."""
    schedule = standard.standard_backward(problem.mask(), dropout=problem.dropout)
    chain = _Chain(problem, setting, schedule)
    chain.copies()
    chain.multiply("x", "e", "q")
    chain.multiply("q", "x", "e")
    if problem.dropout:
        chain.passes("dP of dropout")
    chain.softmax("bwd")
    chain.multiply("q", "d", "x")
    chain.multiply("x", "d", "q")
    return chain.plans
