"""A graph: operators in launch order, joined by tensors; checked when it is made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.graph.edge import Edge
from perfmodel.graph.node import Node
from perfmodel.graph.tensor import OWN, Tensor
from perfmodel.units import binary

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Graph:
    """Nodes in launch order, and the tensors that they read and write.

    Raises `ProblemError` and `UnknownName`, in one line: for a tensor that is unknown, unused,
    written twice, read before it is written or read after another one was written over it, and for
    an operand whose size differs from its tensors'.
    """

    name: str
    """Name in results."""
    nodes: tuple[Node, ...]
    """Nodes in launch order."""
    tensors: Mapping[str, Tensor]
    """Every tensor by name."""
    inputs: tuple[str, ...] = ()
    """Tensors that exist before the first node: activations, caches, tokens."""
    weights: tuple[str, ...] = ()
    """Parameters; they exist before the first node and are kept."""
    outputs: tuple[str, ...] = ()
    """Tensors that are kept after the last node."""
    sizes: Mapping[str, Any] = field(default_factory=dict)
    """The sizes that the graph was made from."""

    def __post_init__(self) -> None:
        if not self.nodes:
            raise ProblemError(f"graph {self.name} has no nodes; add one")
        _once(self.name, "node", [node.name for node in self.nodes])
        for name, tensor in self.tensors.items():
            if name != tensor.name:
                raise ProblemError(f"graph {self.name} has tensor {tensor.name} under {name}")
        given = (*self.inputs, *self.weights)
        _once(self.name, "input or weight", given)
        for name in (*given, *self.outputs):
            self._known(name, f"graph {self.name}")
        self._check_order(given)
        for node in self.nodes:
            for edge in node.edges:
                self._check_size(node, edge)

    def _known(self, name: str, where: str) -> Tensor:
        if name not in self.tensors:
            raise UnknownName(f"tensor of {where}", name, self.tensors)
        return self.tensors[name]

    def _check_order(self, given: Iterable[str]) -> None:
        """Every tensor that is read exists; none is written twice or never used."""
        there: dict[str, str] = dict.fromkeys(given, "")
        gone: dict[str, str] = {}
        used: set[str] = set(self.outputs)
        for node in self.nodes:
            for name in (name for edge in node.reads for name in edge.tensors):
                self._known(name, f"node {node.name}")
                if name not in there:
                    raise ProblemError(
                        f"node {node.name} reads {name} before anything writes it; write it in a "
                        "node before, or list it under inputs or weights"
                    )
                if name in gone:
                    raise ProblemError(
                        f"node {node.name} reads {name} after {gone[name]} was written over it"
                    )
                used.add(name)
            for name in (name for edge in node.writes for name in edge.tensors):
                tensor = self._known(name, f"node {node.name}")
                if name in there:
                    by = there[name] or "the inputs or weights"
                    raise ProblemError(f"node {node.name} writes {name}, which {by} made before")
                if tensor.place != OWN:
                    raise ProblemError(
                        f"node {node.name} writes {name}, which lies in {tensor.place}; kernels "
                        f"write to the device's own memory ({OWN})"
                    )
                there[name] = f"node {node.name}"
                if tensor.over:
                    self._check_over(node, tensor, there, gone)
                    used.add(tensor.over)
        for name in self.tensors:
            if name not in there or (name in given and name not in used):
                raise ProblemError(
                    f"graph {self.name} does nothing with the tensor {name}; drop it"
                )

    def _check_over(
        self, node: Node, tensor: Tensor, there: Mapping[str, str], gone: dict[str, str]
    ) -> None:
        """An update overwrites a tensor that exists, has at least its size and was not
        overwritten."""
        old = self._known(tensor.over, f"node {node.name}")
        if old.name not in there or old.name in gone:
            raise ProblemError(f"{tensor.name} is written over {old.name}, which is not there")
        if tensor.bytes > old.bytes or tensor.place != old.place:
            raise ProblemError(
                f"{tensor.name} ({binary(tensor.bytes)}, {tensor.place}) is written over "
                f"{old.name} ({binary(old.bytes)}, {old.place}), which does not hold it"
            )
        gone[old.name] = tensor.name

    def _check_size(self, node: Node, edge: Edge) -> None:
        """An operand has the bytes of its tensors, or of one run's share of them."""
        found = sum(self.tensors[name].bytes for name in edge.tensors)
        wanted = node.operand_bytes(edge.operand)
        places = {self.tensors[name].place for name in edge.tensors}
        if len(places) > 1:
            raise ProblemError(
                f"{edge.operand} of node {node.name} lies in {' and in '.join(sorted(places))}; "
                "an operand lies in one level"
            )
        fits = [math.isclose(found, many * wanted, rel_tol=_ROUNDING) for many in (1, node.repeat)]
        if any(fits) or (edge.part and found >= wanted):
            return
        raise ProblemError(
            f"{edge.operand} of node {node.name} has {wanted:,.0f} bytes, and "
            f"{' and '.join(edge.tensors) or 'nothing'} {found:,.0f}; correct a shape, "
            "a type or a size"
        )

    def storage(self, name: str) -> str:
        """The tensor that owns the memory of `name`: itself, or the tensor that it overwrites."""
        while self.tensors[name].over:
            name = self.tensors[name].over
        return name

    @cached_property
    def launches(self) -> int:
        """Runs of all nodes."""
        return sum(node.repeat for node in self.nodes)


def _once(graph: str, kind: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ProblemError(f"graph {graph} has two of the {kind} {name}; give each a name")
        seen.add(name)
