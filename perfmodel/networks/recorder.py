"""Kernels in launch order, as nodes of a graph, with the tensors between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from perfmodel.algorithms import Problem
from perfmodel.graph import Edge, Graph, Node, Tensor
from perfmodel.networks.router import Router
from perfmodel.networks.value import Value, Weight


@dataclass(frozen=True)
class Exchanged:
    """One exchange of a pass."""

    name: str
    """Unique within its segment."""
    kind: str
    """all-reduce, reduce-scatter, all-gather, all-to-all, ring, or ring-gradient. A ring passes
    keys and values from device to device; ring-gradient passes their gradients too."""
    axis: str
    """The mesh axis: tensor, context, expert."""
    tensor_bytes: float
    """Bytes of the whole tensor."""
    x: Value
    """What a device sends of it."""
    before: int
    """Number of the pass's kernels before it."""
    router: Router | None = None
    """The router, for rows that go to experts."""
    out: bool = False
    """Whether rows go out to their experts; they may be quantised before."""


Operands = Mapping[str, Value | tuple[Value, ...]]
"""Tensors by operand name; an operand may be several tensors side by side."""


@dataclass
class Recorder:
    """One pass over one segment."""

    name: str
    """Name of its graph."""
    nodes: list[Node] = field(default_factory=list)
    """Kernels in launch order."""
    kinds: list[str] = field(default_factory=list)
    """Class of each kernel, one of `perfmodel.graph.tree.KINDS`."""
    rules: list[str] = field(default_factory=list)
    """What the gradient of each kernel is known by beside its problem: the name of a map, `nk` for
    a product with B stored by rows of n; else empty."""
    exchanges: list[Exchanged] = field(default_factory=list)
    """Exchanges among devices, between the kernels."""
    tensors: dict[str, Tensor] = field(default_factory=dict)
    """Every tensor that a kernel reads or writes, by name."""
    given: dict[str, None] = field(default_factory=dict)
    """Inputs of the pass, in order: activations, gradients, saved tensors."""
    weights: dict[str, None] = field(default_factory=dict)
    """Parameters among the inputs, in order."""
    written: set[str] = field(default_factory=set)
    """Tensors that a kernel writes."""
    read: set[str] = field(default_factory=set)
    """Tensors that a kernel or an exchange reads."""
    sent: set[str] = field(default_factory=set)
    """Tensors that a kernel writes and an exchange sends to other devices."""
    forward: Mapping[str, Recorder] = field(default_factory=dict)
    """Of a backward pass: the forward kernels of each operation."""

    def run(
        self,
        name: str,
        kind: str,
        problem: Problem,
        reads: Operands,
        writes: Operands,
        *,
        implementation: str | None = None,
        part: Iterable[str] = (),
        repeat: int = 1,
        rule: str = "",
    ) -> None:
        """Record a kernel, launched `repeat` times. Operands named in `part` are read or written in
        part."""
        parts = tuple(part)
        for value in _values(reads):
            if value.name not in self.written and value.name not in self.weights:
                self.given[value.name] = None
            self._add_tensor(value)
            self.read.add(value.name)
        for value in _values(writes):
            self._add_tensor(value)
            self.written.add(value.name)
        self.nodes.append(
            Node(
                name,
                problem,
                reads=_edges(reads, parts),
                writes=_edges(writes, parts),
                repeat=repeat,
                implementation=implementation,
            )
        )
        self.kinds.append(kind)
        self.rules.append(rule)

    def exchange(
        self,
        name: str,
        kind: str,
        axis: str,
        tensor_bytes: float,
        x: Value,
        *,
        router: Router | None = None,
        out: bool = False,
    ) -> None:
        """Record an exchange of x between kernels; its output counts as an input of the pass."""
        index = len(self.nodes)
        self.exchanges.append(Exchanged(name, kind, axis, tensor_bytes, x, index, router, out))
        if x.name in self.written:
            self.read.add(x.name)
            self.sent.add(x.name)

    def weight(self, weight: Weight, dtype: str) -> Value:
        """A parameter as kernels read it, all `count` of it side by side."""
        rows = weight.count * weight.shape[0]
        cols = weight.elements // rows
        if weight.name not in self.written:  # written by a cast
            self.weights[weight.name] = None
        return Value(weight.name, rows, cols, dtype)

    def part(self, name: str, first: int) -> Recorder:
        """Its kernels from the first on, with all of its tensors."""
        lists = self.nodes[first:], self.kinds[first:], self.rules[first:]
        names = {name for node in lists[0] for edge in node.writes for name in edge.tensors}
        return Recorder(name, *lists, tensors=self.tensors, written=names)

    @cached_property
    def graph(self) -> Graph:
        """The recorded graph, checked, once all is recorded. Raises what `Graph` raises."""
        outputs = {name for name in self.written if name not in self.read} | self.sent
        weights = tuple(name for name in self.weights if name in self.tensors)
        return Graph(
            self.name,
            tuple(self.nodes),
            dict(self.tensors),
            inputs=tuple(self.given),
            weights=weights,
            outputs=tuple(sorted(outputs & self.tensors.keys())),
        )

    def _add_tensor(self, value: Value) -> None:
        if value.name not in self.tensors:
            self.tensors[value.name] = value.tensor()


def _values(operands: Operands) -> Iterable[Value]:
    for operand in operands.values():
        yield from (operand if isinstance(operand, tuple) else (operand,))


def _edges(operands: Operands, parts: tuple[str, ...]) -> tuple[Edge, ...]:
    return tuple(
        Edge(
            operand,
            tuple(v.name for v in (group if isinstance(group, tuple) else (group,))),
            operand in parts,
        )
        for operand, group in operands.items()
    )
