"""An edge of a graph: the tensors that are one operand of a node."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edge:
    """An operand of a node, and the tensors that it consists of."""

    operand: str
    """The name that the operator's algorithm has for it: A, X, gamma."""
    tensors: tuple[str, ...]
    """Names of the tensors: one, or several that lie side by side, as q, k and v of one product."""
    part: bool = False
    """Whether it is only a part of them: the rows of an embedding, the pages of a cache."""
