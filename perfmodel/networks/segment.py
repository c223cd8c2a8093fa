"""A segment: the operations of one kind of layer, its two passes as graphs, and what it saves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from perfmodel.graph.live import live_bytes
from perfmodel.networks.operations.exchange import Exchange
from perfmodel.networks.operations.linear import Linear
from perfmodel.networks.operations.maps import Map, Pass
from perfmodel.networks.operations.operation import Operation
from perfmodel.networks.recorder import Recorder
from perfmodel.networks.value import Value, Weight

AGAIN = ".input again"
"""End of the name of an exchange that gathers an input for the gradient of weights."""


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
    def active(self) -> tuple[Operation, ...]:
        """Operations with a backward pass."""
        return tuple(op for op in self.operations if op.setting.gradients != "none")

    @property
    def forward(self) -> Recorder:
        """The forward pass of one layer."""
        return self._forward[0]

    def recorded(self, operation: Operation) -> Recorder:
        """The forward kernels of one operation."""
        return self._forward[1][operation.name]

    @cached_property
    def _forward(self) -> tuple[Recorder, dict[str, Recorder]]:
        """The forward pass of one layer, whole and by operation."""
        tape, parts = Recorder(f"{self.name}, forward"), dict[str, Recorder]()
        for operation in self.operations:
            first = len(tape.nodes)
            operation.forward(tape)
            parts[operation.name] = tape.part(operation.name, first)
        return tape, parts

    @cached_property
    def backward(self) -> Recorder:
        """The backward pass of one layer: its operations from the last to the first.

        The gradients of a tensor that several operations read are summed. The gradient of a tensor
        that no operation of the layer reads comes from the next layer.
        """
        tape = Recorder(f"{self.name}, backward", forward=self._forward[1])
        if not self.active:
            return tape
        gathers: set[str] = set()  # inputs that were gathered again
        gradients: dict[str, list[Value]] = defaultdict(list)
        inputs = {x.name for operation in self.active for x in operation.inputs}
        for y in (y for operation in self.active for y in operation.outputs):
            if y.name not in inputs:
                gradients[y.name].append(replace(y, name=f"d({y.name})"))
        for operation in reversed(self.active):
            dys = [self._sum(tape, y, gradients.pop(y.name)) for y in operation.outputs]
            self._gather_again(tape, operation, gathers)
            dxs = operation.backward(tape, dys)
            for x, dx in zip(operation.inputs, dxs, strict=True):
                if operation.setting.gradients != "weights":
                    gradients[x.name].append(dx)
        for x in self.active[0].inputs if self.active[0].setting.gradients != "weights" else ():
            self._sum(tape, x, gradients[x.name])
        return tape

    def _sum(self, tape: Recorder, value: Value, parts: Sequence[Value]) -> Value:
        """The sum of several gradients: a pass for each after the first."""
        total = parts[0]
        for part in parts[1:]:
            name = f"sum {len(tape.nodes)} of d({value.name})"
            setting = self.operations[0].setting
            add = Map(name, setting, (total, part), (Pass("add", reads=2),))
            add.forward(tape)
            total = add.outputs[0]
        return total

    def _gather_again(self, tape: Recorder, operation: Operation, gathers: set[str]) -> None:
        """Gather sharded inputs of products again, for the gradients of their weights."""
        source = self._sources.get(operation.inputs[0].name) if operation.inputs else None
        if not operation.setting.trains:
            return
        if isinstance(operation, Linear) and source is not None and source.name not in gathers:
            gathers.add(source.name)
            size_bytes = source.whole_bytes
            name = operation.name + AGAIN
            tape.exchange(name, "all-gather", source.axis, size_bytes, source.x)

    @cached_property
    def _sources(self) -> dict[str, Exchange]:
        """Gathers by the tensor that they make."""
        return {
            op.outputs[0].name: op
            for op in self.operations
            if isinstance(op, Exchange) and op.way == "gather"
        }

    @cached_property
    def saved(self) -> tuple[Value, ...]:
        """Tensors of one layer that its backward pass reads, each once; gathered ones as their
        shards."""
        forward, backward = self.forward, self.backward
        names = forward.written | {x.name for op in self.active for x in op.inputs}
        names -= {value.name for op in self.active for value in op.statistics}
        names -= {weight.name for op in self.active for weight in op.weights}
        values: dict[str, Value] = {}
        for name, tensor in backward.tensors.items():
            if name in (names & backward.read) - backward.written:
                value = Value(name, tensor.shape[0], tensor.shape[1], tensor.dtype)
                if name in self._sources:
                    value = self._sources[name].x
                values[value.name] = value
        return tuple(values.values())

    @cached_property
    def saved_bytes(self) -> float:
        """Bytes of the saved tensors of one layer."""
        return sum(value.bytes for value in self.saved)

    @cached_property
    def statistics_bytes(self) -> float:
        """Bytes of the statistics of rows that norms and attention save, one or two numbers a
        row."""
        return sum(value.bytes for op in self.active for value in op.statistics)

    @cached_property
    def temporary_bytes(self) -> float:
        """Peak bytes of the backward pass of one layer, above what the forward pass kept."""
        if not self.backward.nodes:
            return 0.0
        graph = self.backward.graph
        base = sum(graph.tensors[name].bytes for name in {*graph.inputs, *graph.weights})
        return max(live_bytes(graph)["hbm"]) - base

    @cached_property
    def weights(self) -> tuple[Weight, ...]:
        """Parameters of one layer."""
        return tuple(
            weight if op.setting.gradients == "all" else _frozen(weight, op)
            for op in self.operations
            for weight in op.weights
        )


def _frozen(weight: Weight, operation: Operation) -> Weight:
    """A weight of an operation that does not make all gradients."""
    setting = operation.setting
    quantised = setting.stored is not None and weight.kind == "matrix" and not setting.trains
    bits = setting.stored.bits if setting.stored is not None and quantised else 0.0
    return replace(weight, gradients=setting.gradients, bits=bits)
