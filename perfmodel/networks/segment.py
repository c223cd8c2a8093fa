"""A segment: the operations of one kind of layer, its two passes as graphs, and what it saves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from perfmodel.graph import Graph
from perfmodel.networks.operations.exchange import Exchange
from perfmodel.networks.operations.linear import Linear
from perfmodel.networks.operations.maps import Map, Pass
from perfmodel.networks.operations.operation import Operation
from perfmodel.networks.recorder import Exchanged, Recorder
from perfmodel.networks.value import Value, Weight


@dataclass(frozen=True)
class PassGraph:
    """One pass over a segment."""

    recorder: Recorder
    """The recorded kernels and exchanges."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The class of each node."""
        return tuple(self.recorder.kinds)

    @property
    def exchanges(self) -> tuple[Exchanged, ...]:
        """Exchanges among devices."""
        return tuple(self.recorder.exchanges)

    @cached_property
    def graph(self) -> Graph:
        """The kernels and tensors, checked."""
        return self.recorder.graph()


@dataclass(frozen=True)
class Segment:
    """`repeat` equal layers, one after another."""

    name: str
    """embedding, block, head; numbered where there are several."""
    repeat: int
    """Number of layers."""
    operations: tuple[Operation, ...]
    """Operations of one layer, in order."""
    block: bool = False
    """Whether these are layers of the stack, which may recompute; otherwise embeddings or a
    head."""

    @cached_property
    def forward(self) -> PassGraph:
        """The forward pass of one layer."""
        to = Recorder(f"{self.name}, forward")
        for operation in self.operations:
            operation.forward(to)
        return PassGraph(to)

    @cached_property
    def backward(self) -> PassGraph:
        """The backward pass of one layer: its operations from the last to the first.

        The gradients of a tensor that several operations read are summed. The gradient of a tensor
        that no operation of the layer reads comes from the next layer.
        """
        to = Recorder(f"{self.name}, backward")
        whole: set[str] = set()  # inputs that were gathered again
        found: dict[str, list[Value]] = defaultdict(list)
        read = {x.name for operation in self.operations for x in operation.inputs}
        for y in (y for operation in self.operations for y in operation.outputs):
            if y.name not in read:
                found[y.name].append(replace(y, name=f"d({y.name})"))
        for operation in reversed(self.operations):
            behind = [self._sum(to, y, found.pop(y.name)) for y in operation.outputs]
            self._gather_again(to, operation, whole)
            made = operation.backward(to, behind)
            for x, dx in zip(operation.inputs, made, strict=True):
                found[x.name].append(dx)
        for x in self.operations[0].inputs:
            self._sum(to, x, found[x.name])
        return PassGraph(to)

    def _sum(self, to: Recorder, of: Value, parts: Sequence[Value]) -> Value:
        """The sum of several gradients: a pass for each after the first."""
        total = parts[0]
        for part in parts[1:]:
            name = f"sum {len(to.nodes)} of d({of.name})"
            setting = self.operations[0].setting
            add = Map(name, setting, (total, part), (Pass("add", reads=2),), ())
            add.forward(to)
            total = add.outputs[0]
        return total

    def _gather_again(self, to: Recorder, operation: Operation, whole: set[str]) -> None:
        """Gather sharded inputs of products again, for the gradients of their weights."""
        source = self._sources.get(operation.inputs[0].name) if operation.inputs else None
        if isinstance(operation, Linear) and source is not None and source.name not in whole:
            whole.add(source.name)
            moved = source.whole_bytes
            name = f"{operation.name}.input again"
            to.exchange(name, "all-gather", source.axis, moved, source.x)

    @cached_property
    def _sources(self) -> dict[str, Exchange]:
        """Gathers by the tensor that they make."""
        return {
            one.outputs[0].name: one
            for one in self.operations
            if isinstance(one, Exchange) and one.way == "gather"
        }

    @cached_property
    def saved(self) -> tuple[Value, ...]:
        """Tensors of one layer that its backward pass reads, each once; gathered ones as their
        shards."""
        found: dict[str, Value] = {}
        for operation in self.operations:
            for value in operation.saves:
                source = self._sources.get(value.name)
                kept = value if source is None else source.x
                found[kept.name] = kept
        return tuple(found.values())

    @cached_property
    def saved_bytes(self) -> float:
        """Bytes of the saved tensors of one layer."""
        return sum(value.bytes for value in self.saved)

    @cached_property
    def statistics_bytes(self) -> float:
        """Bytes of the statistics of rows that norms and attention save, one or two numbers a
        row."""
        return sum(value.bytes for one in self.operations for value in one.statistics)

    @cached_property
    def weights(self) -> tuple[Weight, ...]:
        """Parameters of one layer."""
        return tuple(weight for one in self.operations for weight in one.weights)
