"""An edge of a graph: the tensors that are one operand of a node."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edge:
    """An operand of a node, and the tensors that it consists of."""

    operand: str
    """Name of the operand in the operator's algorithm: A, X, gamma."""
    tensors: tuple[str, ...]
    """Names of the tensors: one, or several adjacent ones, such as q, k and v of one product."""
    part: bool = False
    """Whether the operand is only a part of them: rows of an embedding, pages of a cache."""
