"""A node of a graph: one operator at its sizes, with the tensors that it reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.algorithms.problem import arrays
from perfmodel.count import rule
from perfmodel.errors import ProblemError, UnknownName


@dataclass(frozen=True)
class Edge:
    """An operand of a node, and the tensors that it consists of."""

    operand: str
    """Name of the operand in the operator's algorithm: A, X, gamma."""
    tensors: tuple[str, ...]
    """Names of the tensors: one, or several adjacent ones, such as q, k and v of one product."""
    part: bool = False
    """Whether the operand is only a part of them: rows of an embedding, pages of a cache."""


@dataclass(frozen=True)
class Node:
    """An operator that runs `repeat` times, one after another; see `perfmodel.graph.Graph`."""

    name: str
    """Name in results."""
    problem: Problem
    """The problem: one, not an array."""
    reads: tuple[Edge, ...]
    """Every input of its algorithm that has elements; a fill reads none."""
    writes: tuple[Edge, ...]
    """Its outputs; an output that nothing needs may be left out and counts as scratch."""
    repeat: int = 1
    """Number of runs. Of a tensor that is `repeat` times as large as its operand each run uses its
    own share; of other tensors each run uses all."""
    schedule: str = "auto"
    """One of the operator's schedules."""
    implementation: str | None = None
    """A class of kernels, or a library's name for one; None: a good library's."""

    def __post_init__(self) -> None:
        if arrays(self.problem):
            raise ProblemError(f"node {self.name} has an array of problems; make a node of each")
        if isinstance(self.repeat, bool) or not isinstance(self.repeat, int) or self.repeat < 1:
            raise ProblemError(f"node {self.name} runs {self.repeat} times; repeat is 1 or more")
        for kind, edges, names in (
            ("input", self.reads, self._inputs),
            ("output", self.writes, self.problem.algorithm().outputs),
        ):
            operands = [edge.operand for edge in edges]
            for operand in operands:
                if operand not in names:
                    role = f"{kind} of {self.problem.operator}, for node {self.name},"
                    raise UnknownName(role, operand, names)
            if len(set(operands)) < len(operands):
                raise ProblemError(f"node {self.name} has two edges for one {kind}; list tensors")
        inputs = {edge.operand for edge in self.reads}
        gaps = {x for x in self._inputs if x not in inputs and self.operand_bytes(x)}
        if gaps:
            raise ProblemError(
                f"node {self.name} does not say what it reads as {', '.join(sorted(gaps))}; "
                f"{self.problem.operator} reads {', '.join(self._inputs)}"
            )

    @property
    def operator(self) -> str:
        """The operator's name."""
        return self.problem.operator

    @property
    def edges(self) -> Iterator[Edge]:
        """Its reads, then its writes."""
        yield from self.reads
        yield from self.writes

    @cached_property
    def _inputs(self) -> tuple[str, ...]:
        """Operands with memory of their own."""
        aliases = self.problem.aliased()
        return tuple(name for name in self.problem.algorithm().inputs if name not in aliases)

    def operand_bytes(self, operand: str) -> float:
        """Bytes of an operand of one run, by the sizes and types of its algorithm."""
        problem = self.problem
        tensor = problem.algorithm().tensors[operand]
        size = np.float64(rule.size(problem.sizes(), tensor))
        return float(size * problem.elements()[tensor.element].bytes)
