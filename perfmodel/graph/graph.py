"""A graph: operators in launch order, joined by tensors; checked when it is made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.graph.node import Edge, Node
from perfmodel.graph.tensor import OWN, Tensor
from perfmodel.units import binary

if TYPE_CHECKING:
    from perfmodel.graph.tree import Tree
    from perfmodel.hardware import Device

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
        _check_unique(self.name, "node", [node.name for node in self.nodes])
        for name, tensor in self.tensors.items():
            if name != tensor.name:
                raise ProblemError(f"graph {self.name} has tensor {tensor.name} under {name}")
        sources = (*self.inputs, *self.weights)
        _check_unique(self.name, "input or weight", sources)
        for name in (*sources, *self.outputs):
            self._tensor(name, f"graph {self.name}")
        self._check_order(sources)
        for node in self.nodes:
            for edge in node.edges:
                self._check_size(node, edge)

    def predicted(self, machine: Device, **options: Any) -> Tree:
        """Its time on a device; `options` as for `predict_graph`."""
        from perfmodel.graph.graphtime import predict_graph

        return predict_graph(self, machine, **options)

    def _tensor(self, name: str, owner: str) -> Tensor:
        if name not in self.tensors:
            raise UnknownName(f"tensor of {owner}", name, self.tensors)
        return self.tensors[name]

    def _check_order(self, sources: Iterable[str]) -> None:
        """Every tensor that is read exists; none is written twice or never used."""
        makers: dict[str, str] = dict.fromkeys(sources, "")
        updates: dict[str, str] = {}
        uses: set[str] = set(self.outputs)
        for node in self.nodes:
            for name in (name for edge in node.reads for name in edge.tensors):
                self._tensor(name, f"node {node.name}")
                if name not in makers:
                    raise ProblemError(
                        f"node {node.name} reads {name} before anything writes it; write it in a "
                        "node before, or list it under inputs or weights"
                    )
                if name in updates:
                    raise ProblemError(
                        f"node {node.name} reads {name} after {updates[name]} was written over it"
                    )
                uses.add(name)
            for name in (name for edge in node.writes for name in edge.tensors):
                tensor = self._tensor(name, f"node {node.name}")
                if name in makers:
                    maker = makers[name] or "the inputs or weights"
                    raise ProblemError(f"node {node.name} writes {name}, which {maker} made before")
                if tensor.place != OWN:
                    raise ProblemError(
                        f"node {node.name} writes {name}, which lies in {tensor.place}; kernels "
                        f"write to the device's own memory ({OWN})"
                    )
                makers[name] = f"node {node.name}"
                if tensor.over:
                    self._check_over(node, tensor, makers, updates)
                    uses.add(tensor.over)
        for name in self.tensors:
            if name not in makers or (name in sources and name not in uses):
                raise ProblemError(
                    f"graph {self.name} does nothing with the tensor {name}; drop it"
                )

    def _check_over(
        self, node: Node, tensor: Tensor, makers: Mapping[str, str], updates: dict[str, str]
    ) -> None:
        """An update overwrites a tensor that exists, has at least its size and was not
        overwritten."""
        target = self._tensor(tensor.over, f"node {node.name}")
        if target.name not in makers or target.name in updates:
            raise ProblemError(f"{tensor.name} is written over {target.name}, which is not there")
        if tensor.bytes > target.bytes or tensor.place != target.place:
            raise ProblemError(
                f"{tensor.name} ({binary(tensor.bytes)}, {tensor.place}) is written over "
                f"{target.name} ({binary(target.bytes)}, {target.place}), which does not hold it"
            )
        updates[target.name] = tensor.name

    def _check_size(self, node: Node, edge: Edge) -> None:
        """An operand has the bytes of its tensors, or of one run's share of them."""
        size = sum(self.tensors[name].bytes for name in edge.tensors)
        need = node.operand_bytes(edge.operand)
        places = {self.tensors[name].place for name in edge.tensors}
        if len(places) > 1:
            raise ProblemError(
                f"{edge.operand} of node {node.name} lies in {' and in '.join(sorted(places))}; "
                "an operand lies in one level"
            )
        fits = [math.isclose(size, many * need, rel_tol=_ROUNDING) for many in (1, node.repeat)]
        if any(fits) or (edge.part and size >= need):
            return
        raise ProblemError(
            f"{edge.operand} of node {node.name} has {need:,.0f} bytes, and "
            f"{' and '.join(edge.tensors) or 'nothing'} {size:,.0f}; correct a shape, "
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


def _check_unique(graph: str, kind: str, names: Iterable[str]) -> None:
    unique: set[str] = set()
    for name in names:
        if name in unique:
            raise ProblemError(f"graph {graph} has two of the {kind} {name}; give each a name")
        unique.add(name)
