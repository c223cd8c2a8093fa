"""Kernels in launch order, as nodes of a graph, with the tensors between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from perfmodel.algorithms import Problem
from perfmodel.graph import Edge, Graph, Node, Tensor
from perfmodel.networks.value import Value, Weight

KINDS = (
    "matmul",
    "attention",
    "norm",
    "softmax",
    "pointwise",
    "embedding",
    "loss",
    "optimiser",
    "communication",
    "bubble",
    "host",
)
"""Classes that time is split by, in the order of reports."""


@dataclass(frozen=True)
class Exchanged:
    """One exchange of a pass."""

    name: str
    """Unique within its segment."""
    kind: str
    """all-reduce, reduce-scatter, all-gather, all-to-all; ring, ring-gradient: keys and values,
    and in the backward pass their gradients with them, from device to device."""
    axis: str
    """The mesh axis: tensor, context, expert."""
    tensor_bytes: float
    """Bytes of the whole tensor."""
    before: int
    """Kernels of the pass that come before it."""
    repeats: int = 1
    """Rows that stem from one token, of rows that go to experts."""


Operands = Mapping[str, Value | tuple[Value, ...]]
"""Tensors by the operand that they are; several lie side by side."""


@dataclass
class Recorder:
    """One pass over one segment."""

    name: str
    """What its graph is called."""
    nodes: list[Node] = field(default_factory=list)
    """Kernels in launch order."""
    kinds: list[str] = field(default_factory=list)
    """The class of each, one of `KINDS`."""
    exchanges: list[Exchanged] = field(default_factory=list)
    """What devices exchange between them."""
    tensors: dict[str, Tensor] = field(default_factory=dict)
    """Every tensor that a kernel reads or writes, by name."""
    given: dict[str, None] = field(default_factory=dict)
    """Those that are there before it: activations, gradients, what was saved; in order."""
    weights: dict[str, None] = field(default_factory=dict)
    """Parameters among them; in order."""
    written: set[str] = field(default_factory=set)
    """Those that a kernel writes."""
    read: set[str] = field(default_factory=set)
    """Those that a kernel or an exchange reads."""
    sent: set[str] = field(default_factory=set)
    """Those that an exchange takes from a kernel to other devices."""

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
    ) -> None:
        """A kernel, `repeat` times; operands in `part` are read or written in part only."""
        parts = tuple(part)
        for value in _values(reads):
            if value.name not in self.written and value.name not in self.weights:
                self.given[value.name] = None
            self._keep(value)
            self.read.add(value.name)
        for value in _values(writes):
            self._keep(value)
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

    def exchange(
        self,
        name: str,
        kind: str,
        axis: str,
        tensor_bytes: float,
        x: Value,
        *,
        repeats: int = 1,
    ) -> None:
        """An exchange of x between kernels: what it makes is there as inputs are."""
        self.exchanges.append(Exchanged(name, kind, axis, tensor_bytes, len(self.nodes), repeats))
        if x.name in self.written:
            self.read.add(x.name)
            self.sent.add(x.name)

    def weight(self, weight: Weight, dtype: str) -> Value:
        """A parameter as kernels read it; all of its `count` side by side."""
        rows = weight.count * weight.shape[0]
        cols = weight.elements // rows
        if weight.name not in self.written:  # by a cast
            self.weights[weight.name] = None
        return Value(weight.name, rows, cols, dtype)

    def graph(self) -> Graph:
        """What was recorded, checked; raises what `Graph` raises."""
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

    def _keep(self, value: Value) -> None:
        if value.name not in self.tensors:
            self.tensors[value.name] = value.tensor()


def _values(operands: Operands) -> Iterable[Value]:
    for found in operands.values():
        yield from (found if isinstance(found, tuple) else (found,))


def _edges(operands: Operands, parts: tuple[str, ...]) -> tuple[Edge, ...]:
    return tuple(
        Edge(
            operand,
            tuple(v.name for v in (found if isinstance(found, tuple) else (found,))),
            operand in parts,
        )
        for operand, found in operands.items()
    )
