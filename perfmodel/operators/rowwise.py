"""Row-wise and element-wise operators: softmax, norms, maps, quantisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from perfmodel.algorithms import Problem, Rowwise
from perfmodel.algorithms.rowwise import MAPS, QUANTISED
from perfmodel.elements import ELEMENTS
from perfmodel.operators.library import Chosen, LibraryOperator
from perfmodel.operators.operator import Request
from perfmodel.operators.options import DIRECTION, DTYPE, Choice, size
from perfmodel.timing import rowchain
from perfmodel.timing.libraries import RowFacts, kernel_facts, resolve
from perfmodel.timing.machine import Machine
from perfmodel.timing.plan import Plan
from perfmodel.timing.runs import SCALAR_MAPS
from perfmodel.timing.setting import Setting

_ROWS = size("rows", default="4096", help="Rows: {size}.")
_COLS = size("cols", default="4096", help="Columns, along which it runs.")


class RowwiseOperator(LibraryOperator):
    """One operation over rows × cols."""

    needed = ("rows", "cols")
    fits_by = ("cols",)
    free_sizes = ("rows", "cols")

    def __init__(self, op: str, about: str, *options: Any) -> None:
        self.name, self.about = op, about
        self.fixed = {"op": op}
        self.options = (_ROWS, _COLS, *options)
        self.own_tile = () if op == "pointwise" else ("columns", "warps")

    def problem(self, **given: Any) -> Rowwise:
        """A `Rowwise`; what is not given has its default."""
        values = {name: value for name, value in given.items() if value is not None}
        return Rowwise(**{**self.fixed, **values})

    def measured(self, row: Mapping[str, Any], sizes: Mapping[str, np.ndarray]) -> list[Problem]:
        """One kernel for each direction."""
        names = [item.name for item in self.sizes]
        shape: dict[str, Any] = {name: sizes[name] for name in names}
        kind: dict[str, Any] = {"variant": row["variant"], "dtype": row["dtype"]}
        ways = ("fwd", "bwd") if row["direction"] == "fwdbwd" else (row["direction"],)
        return [self.problem(**shape, **kind, direction=way) for way in ways]

    def called_as(self, problem: Any) -> str:
        """The operator whose launch floor is taken: for gradients that of an element-wise map,
        since autograd launches them without nn.Module overhead.

        A map with a scalar operand is `scalar`.
        """
        if problem.direction == "bwd":
            return "pointwise"
        return "scalar" if problem.variant in SCALAR_MAPS else self.name

    def kernels(self, problem: Rowwise, request: Request, here: Machine) -> Chosen:
        """The requested class, or the usual one."""
        return resolve(
            problem.op, request.implementation, problem.dtype, here, variant=problem.variant
        )

    def plans(
        self,
        problem: Rowwise,
        schedule: str,
        kernel: RowFacts,
        setting: Setting,
    ) -> list[Plan]:
        """One kernel, or those of a chain; gradients of norms have a second one for the weights."""
        if problem.direction == "fwdbwd":
            passes = (replace(problem, direction=way) for way in ("fwd", "bwd"))
            return [plan for each in passes for plan in self.plans(each, schedule, kernel, setting)]
        if problem.direction == "bwd" and kernel.gradient_kernel is not None:
            kernel = kernel_facts(kernel.gradient_kernel)
        return [rowchain.plan(problem, kernel, setting)]


OPERATORS = (
    RowwiseOperator("softmax", "Softmax along each row.", DTYPE, DIRECTION),
    RowwiseOperator("layernorm", "Layer normalisation along each row.", DTYPE, DIRECTION),
    RowwiseOperator("rmsnorm", "Root-mean-square normalisation along each row.", DTYPE, DIRECTION),
    RowwiseOperator(
        "pointwise",
        "An element-wise map over rows x cols.",
        size("inputs", default="1", help="Tensors read."),
        size("outputs", default="1", help="Tensors written."),
        Choice(
            "variant",
            ("--variant",),
            None,
            f"Maps, with commas: {', '.join(MAPS)} [default: one operation an input].",
            metavar="NAME",
            known=MAPS,
            kind="variant of pointwise",
        ),
        DTYPE,
        Choice(
            "output_dtype",
            ("--output-dtype",),
            None,
            f"Types written, with commas: {', '.join(ELEMENTS)} [default: as --dtype].",
        ),
        DIRECTION,
    ),
    RowwiseOperator(
        "quantise",
        f"Quantisation of rows x cols, by default bf16 to {QUANTISED}.",
        DTYPE,
        Choice(
            "output_dtype",
            ("--output-dtype",),
            None,
            f"Types written, with commas: {', '.join(ELEMENTS)} [default: {QUANTISED}].",
        ),
    ),
)
