"""One ATen operator in our terms, and a tensor as it sees it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from perfmodel.algorithms import Attention, Problem
from perfmodel.algorithms.problem import BackwardKernel
from perfmodel.elements import TORCH

TYPES = {
    **TORCH,
    **dict.fromkeys(("bool", "uint8"), "int8"),
    **dict.fromkeys(("int16", "uint16"), "fp16"),
    **dict.fromkeys(("int32", "uint32"), "fp32"),
    **dict.fromkeys(("int64", "uint64", "complex64"), "fp64"),
}
"""Types of torch as ours. Of what is no float the width alone counts: nothing multiplies it."""


@dataclass(frozen=True)
class Operand:
    """A tensor in memory, seen as a view of it."""

    tensor: str
    """The tensor of the graph that it lies in."""
    shape: tuple[int, ...]
    """Extents of the view."""
    dtype: str
    """Element type."""
    spread: tuple[int, ...] = ()
    """Dimensions along which every index is the same element."""
    floating: bool = True
    """Whether it has a gradient."""

    @property
    def elements(self) -> int:
        """Elements that the view names, each as often as it names it."""
        return math.prod(self.shape)

    @property
    def distinct(self) -> int:
        """Elements that it names once."""
        extents = (n for i, n in enumerate(self.shape) if i not in self.spread)
        return math.prod(extents)

    def gradient(self) -> Operand:
        """The gradient of its tensor, of the same shape."""
        return replace(self, tensor=f"d.{self.tensor}")


def operand(tensor: str, value: Any) -> Operand:
    """What a meta tensor says of a view."""
    shape = tuple(int(n) for n in value.shape)
    strides = tuple(int(n) for n in value.stride())
    spread = tuple(i for i, n in enumerate(shape) if n > 1 and strides[i] == 0)
    name = str(value.dtype).removeprefix("torch.")
    floating = value.dtype.is_floating_point
    return Operand(tensor, shape, TYPES.get(name, "fp32"), spread, floating)


KINDS = ("matmul", "attention", "norm", "softmax", "pointwise", "embedding", "other")
"""Classes that time is split by, in the order of reports."""

Operands = Mapping[str, tuple[Operand, ...]]
"""Operand of a problem's algorithm to the tensors that it is."""


@dataclass(frozen=True)
class Operation:
    """What a kernel of its own would do.

    A map or a reduction has no problem until `lowering` makes one, so that several may become one.
    """

    name: str
    """Unique in the trace; that of torch's node."""
    aten: str
    """The ATen operator: aten.linear."""
    module: str
    """Path of the module that it runs in: layers.0.mlp.up."""
    kind: str
    """One of `KINDS`."""
    reads: tuple[Operand, ...]
    """What it reads."""
    writes: tuple[Operand, ...]
    """What it writes."""
    problem: Problem | None = None
    """What is computed, where that is no map or reduction."""
    operands: Operands = field(default_factory=dict)
    """Operands of the problem to tensors, read and written."""
    vector_ops: float = 1.0
    """Vector operations an element of a map's domain."""
    special_ops: float = 0.0
    """Special functions an element of a map's domain."""
    domain: tuple[int, ...] = ()
    """Extents that a map or reduction runs over."""
    reduced: tuple[int, ...] = ()
    """Dimensions of the domain that a reduction sums away."""
    estimated: bool = False
    """Whether it is counted by its bytes alone."""
    flops: float = 0.0
    """Of a contraction, all its runs together: two for each multiply-add, whatever a mask hides."""
    repeat: int = 1
    """How often it runs."""
    gradients: tuple[BackwardKernel, ...] = ()
    """What makes the gradients of its operands, where its problem does not say it."""
    masked: bool = False
    """Whether it is attention with a mask tensor, whose contents are not known."""

    @property
    def useful_flops(self) -> float:
        """The FLOPs that a causal mask leaves (`Attention.flops`)."""
        problem = self.problem
        return float(problem.flops()) if isinstance(problem, Attention) else self.flops

    @property
    def fusable(self) -> bool:
        """Whether it is a map or a reduction that may share a kernel with others."""
        return self.problem is None and not self.estimated and self.repeat == 1
