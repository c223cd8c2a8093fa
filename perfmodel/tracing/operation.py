"""One ATen operator in our terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfmodel.algorithms import Attention, Problem
from perfmodel.tracing.operand import Operand

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
    gradients: Mapping[str, Problem] = field(default_factory=dict)
    """What makes the gradients of its operands A and B, where it is no plain product."""
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
