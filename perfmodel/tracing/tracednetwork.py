"""A user's module as a network: its trace cut into layers, so that plans of training apply to it.

    perfmodel train my_module.py:Model -d h100-sxm --gpus 8 --zero 3 --stack compile

Modules of one list (layers.0, layers.1, ...) are layers; the list with the most members counts.
What runs before the first is the embedding, after the last the head, and between two belongs to the
one before. Layers of equal kernels are one segment. What a layer keeps are the tensors of the
forward pass that its backward kernels read.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

from perfmodel.algorithms import Attention
from perfmodel.errors import ProblemError
from perfmodel.graph import Graph, Node, Tensor
from perfmodel.graph.tree import KINDS
from perfmodel.networks.network import Block, Mlp, Network, SelfAttention
from perfmodel.networks.operations.operation import Gradients, Operation
from perfmodel.networks.recorder import Recorder
from perfmodel.networks.segment import Segment
from perfmodel.networks.setting import NARROW, Setting
from perfmodel.networks.value import Value, Weight
from perfmodel.tracing import module as modules
from perfmodel.tracing.trace import Trace, trace

INPUT = "int64[batch,seq]"
"""What a module is called with where nothing is said: token ids."""
_LISTED = re.compile(r"(.*?)(\d+)(?:\.|$)")
_LOSS = "loss"
_ENDS = ("embedding", "head")
_BACKWARD = " backward"  # at the end of an operator's name


@dataclass(frozen=True)
class TracedNetwork(Network):
    """A module of a user's file, `place`. Its blocks are those of its trace."""

    place: str = ""
    """FILE.py:NAME of the module."""
    inputs: tuple[str, ...] = (INPUT,)
    """What it is called with: name, type and shape, whose extents may be `batch` and `seq`."""

    @classmethod
    def at(cls, place: str) -> TracedNetwork:
        """The module at FILE.py:NAME."""
        placeholder = Block(SelfAttention(1, 1, 1), Mlp(0))
        return cls(place.rpartition(":")[2], 1, 1, (placeholder,), place=place)

    @property
    def layers(self) -> int:
        """Layers that the trace has."""
        return sum(s.repeat for s in self.own_segments(Setting(1, 1)) if s.block)

    def own_segments(self, setting: Setting) -> tuple[Segment, ...]:
        """The trace at a setting's sizes, cut into layers. Raises `ProblemError` for what a trace
        on one device does not show, and what `trace` raises."""
        self._check(setting)
        return tuple(_segments(self._traced(setting), setting))

    def own_flops(self, seq: int, convention: str) -> float:
        """Operations of one token's forward and backward pass by the conventions of
        `networks.flops`, counted from the forward pass of its trace."""
        matches = (run for run in _TRACES if run.network == self and run.seq == seq)
        run = next(matches, None) or _Run(self, 1, seq)
        items = [item for item in run.trace().operations if not item.aten.endswith(_BACKWARD)]
        tokens = run.batch * seq
        if convention in ("causal", "megatron"):
            count = "useful_flops" if convention == "causal" else "flops"
            return 3.0 * float(sum(getattr(item, count) for item in items)) / tokens
        if convention == "narayanan":
            parts = _parts([item.module for item in items])
            times = [3.0 if part in _ENDS else 4.0 for part in parts]
            return sum(n * item.flops for n, item in zip(times, items, strict=True)) / tokens
        scores = sum(item.flops for item in items if isinstance(item.problem, Attention))
        weights = [w for s in self.own_segments(Setting(1, 1)) for w in s.weights * s.repeat]
        counted = [w for w in weights if convention == "palm-all" or w.kind != "embedding"]
        return 6.0 * sum(w.elements for w in counted) + 3.0 * scores / tokens

    def _check(self, setting: Setting) -> None:
        shards, name = setting.shards, self.name
        if (shards.tensor, shards.context, shards.expert) != (1, 1, 1):
            raise ProblemError(
                f"{name} is traced as it runs on one device; give tensor, context and expert 1, "
                "and share it out by zero or pipeline"
            )
        if setting.tuning is not None:
            raise ProblemError(f"all weights of {name} train; drop lora, trains and frozen_layers")
        if setting.dtype in (*NARROW, "tf32"):
            raise ProblemError(f"{name} is traced in a type of tensors; give bf16, fp16 or fp32")
        if not setting.stack.library.startswith("torch"):
            raise ProblemError(f"{name} runs by PyTorch; give the stack eager or compile")

    def _traced(self, setting: Setting) -> Trace:
        """The trace at a setting's sizes; any at hand where it says none (one token)."""
        if setting.batch * setting.seq == 1:
            run = next((run for run in _TRACES if run.network == self), None) or _Run(self)
            return run.trace()
        fuse = "pointwise" if setting.stack.joins_maps else "none"
        loss = setting.training and setting.loss
        return _Run(
            self, setting.batch, setting.seq, setting.dtype, fuse, setting.training, loss
        ).trace()


@dataclass(frozen=True)
class _Run:
    """What a module is traced with."""

    network: TracedNetwork
    batch: int = 1
    seq: int = 16
    dtype: str = "bf16"
    fuse: str = "none"
    training: bool = False
    loss: bool = False

    def trace(self) -> Trace:
        """The trace, with loss and backward pass in training."""
        if self not in _TRACES:
            place, sizes = self.network.place, {"batch": self.batch, "seq": self.seq}
            texts = [
                re.sub(r"\b(batch|seq)\b", lambda name: str(sizes[name[0]]), text)
                for text in self.network.inputs
            ]
            args, kwargs = modules.inputs(texts)
            module = modules.load(place, self.dtype)
            if self.loss:
                module = _with_loss(module, (self.batch, self.seq))
            name = self.network.name
            record = trace(module, args, kwargs, fuse=self.fuse, backward=self.training, name=name)
            _TRACES[self] = record
        return _TRACES[self]


_TRACES: dict[_Run, Trace] = {}
"""Traces of this process: exporting a module takes seconds."""


def _with_loss(module: Any, sizes: tuple[int, int]) -> Any:
    """The module with a cross-entropy over the last dimension of what it makes; one that makes a
    single number has its own loss."""
    import torch

    from perfmodel.tracing.exporting import tensors

    class Trained(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.module, self.loss = module, torch.nn.CrossEntropyLoss()
            self.register_buffer("label", torch.zeros(sizes, dtype=torch.int64, device="meta"))

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            result = next(tensors(self.module(*args, **kwargs)))
            if result.numel() == 1:
                return result
            labels = self.label.flatten()[: result.numel() // result.shape[-1]]
            return self.loss(result.flatten(0, -2), labels)

    return Trained()


@dataclass(frozen=True)
class TracedLayer(Operation):
    """All kernels of one layer of a trace, forward and backward."""

    graph: Graph
    """The whole trace."""
    kinds: tuple[str, ...]
    """Class of each kernel, forward ones first."""
    ahead: tuple[Node, ...]
    """Forward kernels."""
    back: tuple[Node, ...]
    """Backward kernels."""
    entries: tuple[str, ...]
    """Tensors that the layer before made for it."""
    results: tuple[str, ...]
    """Tensors that it makes for the layer behind."""
    kept: tuple[str, ...]
    """Tensors of the forward pass that its backward kernels read."""
    own: tuple[Weight, ...]
    """Parameters that it is the first to read."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """What the layer before made for it."""
        return tuple(map(self._value, self.entries))

    @property
    def outputs(self) -> tuple[Value, ...]:
        """What it makes for the layer behind."""
        return tuple(map(self._value, self.results))

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Its parameters."""
        return self.own

    @cached_property
    def statistics(self) -> tuple[Value, ...]:
        """What its backward kernels read and none of its forward kernels writes, nor the layer
        before: statistics of rows, tensors that all layers share."""
        writes = {name for node in self.ahead for edge in node.writes for name in edge.tensors}
        return tuple(
            self._value(name) for name in self.kept if name not in writes | {*self.entries}
        )

    def forward(self, to: Recorder) -> None:
        """Its forward kernels."""
        self._record(to, self.ahead, self.kinds)

    def backward(self, to: Recorder, gradients: Sequence[Value]) -> Gradients:
        """Its backward kernels, as they were traced."""
        self._record(to, self.back, self.kinds[len(self.ahead) :])
        return [replace(x, name=f"d.{x.name}") for x in self.inputs]

    def _record(self, tape: Recorder, nodes: Sequence[Node], kinds: Sequence[str]) -> None:
        for node, kind in zip(nodes, kinds, strict=False):
            for name in (name for edge in node.reads for name in edge.tensors):
                if name in self.graph.weights:
                    tape.weights[name] = None
            tape.run(
                node.name, kind, node.problem,
                {edge.operand: tuple(map(self._value, edge.tensors)) for edge in node.reads},
                {edge.operand: tuple(map(self._value, edge.tensors)) for edge in node.writes},
                implementation=node.implementation, repeat=node.repeat,
                part=[edge.operand for edge in node.edges if edge.part],
            )  # fmt: skip

    def _value(self, name: str) -> Value:
        return _value(self.graph.tensors[name])

    @cached_property
    def work(self) -> str:
        """Equal for layers of equal kernels, parameters and kept tensors."""
        problems = [
            f"{node.problem.operator} {node.problem.values()} {node.problem.algorithm()}"
            for node in (*self.ahead, *self.back)
        ]
        sizes = (
            sum(self._value(name).bytes for name in self.kept),
            [weight.shape for weight in self.own],
        )
        return f"{problems} {self.kinds} {sizes}"


def _value(tensor: Tensor) -> Value:
    *rows, cols = tensor.shape or (1,)
    return Value(tensor.name, math.prod(rows), cols, tensor.dtype)


def _segments(record: Trace, setting: Setting) -> Iterator[Segment]:
    """The layers of a trace in order, equal ones that follow each other as one segment."""
    layers = _layers(record, setting)
    blocks = [layer for layer in layers if layer.name not in _ENDS]
    runs = [list(run) for _, run in groupby(blocks, key=lambda layer: layer.work)]
    for layer in layers:
        if layer.name == "embedding":
            yield Segment("embedding", 1, (layer,))
    for i, run in enumerate(runs, 1):
        name = "block" if len(runs) == 1 else f"block {i}"
        yield Segment(name, len(run), (run[-1],), block=True)
    for layer in layers:
        if layer.name == "head":
            yield Segment("head", 1, (layer,))


def _layers(record: Trace, setting: Setting) -> list[TracedLayer]:
    graph, operations = record.graph, record.operations
    forward = [item for item in operations if not item.aten.endswith(_BACKWARD)]
    parts = _parts([item.module for item in forward])
    part_of = {item.name: part for item, part in zip(forward, parts, strict=True)}
    part = parts[-1]
    for item in operations[len(forward) :]:  # a sum of gradients belongs to what came before it
        part = part_of[item.name] = part_of.get(item.name.rpartition(".")[0], part)
    kinds = {item.name: _kind(item.module, item.kind) for item in operations}
    names = list(dict.fromkeys(parts))
    ahead, back = defaultdict[str, list[Node]](list), defaultdict[str, list[Node]](list)
    for i, node in enumerate(graph.nodes):
        (ahead if i < len(forward) else back)[part_of[node.name]].append(node)
    writers = {name: part_of[n.name] for n in graph.nodes for e in n.writes for name in e.tensors}
    backward = {
        name for nodes in back.values() for n in nodes for e in n.writes for name in e.tensors
    }
    assigned: set[str] = set()
    layers = []
    for i, part in enumerate(names):
        reads = _read(ahead[part])
        own = tuple(
            _weight(graph.tensors[name], ahead[part])
            for name in reads if name in record.trained and name not in assigned
        )  # fmt: skip
        kept = tuple(
            name for name in _read(back[part])
            if name not in {*backward, *graph.weights, *assigned} and not name.startswith("d.")
        )  # fmt: skip
        assigned |= {*kept, *(weight.name for weight in own)}
        after = _read(ahead[names[i + 1]]) if i + 1 < len(names) else ()
        nodes = (*ahead[part], *back[part])
        layers.append(
            TracedLayer(
                part, setting, graph, tuple(kinds[node.name] for node in nodes),
                tuple(ahead[part]), tuple(back[part]),
                tuple(name for name in reads if i and writers.get(name) == names[i - 1]),
                tuple(name for name in after if writers.get(name) == part), kept, own,
            )
        )  # fmt: skip
    return layers


def _parts(paths: Sequence[str]) -> list[str]:
    """The layer of each forward operation by the path of its module: embedding, a number, head."""
    places = [_LISTED.match(path) for path in paths]
    members = defaultdict[str, set[str]](set)
    for place in places:
        if place is not None:
            members[place[1]].add(place[2])
    if not members:
        return ["0"] * len(paths)
    chosen = max(members, key=lambda name: len(members[name]))
    numbers = [place[2] if place is not None and place[1] == chosen else None for place in places]
    last = max((i for i, number in enumerate(numbers) if number is not None), default=-1)
    parts, part = [], "embedding"
    for i, number in enumerate(numbers):
        part = number if number is not None else "head" if i > last else part
        parts.append(part)
    return parts


def _kind(module: str, kind: str) -> str:
    if module.rpartition(".")[2] == _LOSS:
        return "loss"
    return kind if kind in KINDS else "pointwise"


def _read(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Tensors that kernels read, each once."""
    return tuple(dict.fromkeys(x for node in nodes for edge in node.reads for x in edge.tensors))


def _weight(tensor: Tensor, nodes: Sequence[Node]) -> Weight:
    """A parameter, as optimisers distinguish them; a product's is listed by its inner extent."""
    operators = {
        node.operator for node in nodes for edge in node.reads if tensor.name in edge.tensors
    }
    if len(tensor.shape) < 2:
        return Weight(tensor.name, tensor.shape or (1,), "vector")
    if operators == {"embedding"}:
        return Weight(tensor.name, tensor.shape, "embedding")
    rows, *others = tensor.shape
    return Weight(tensor.name, (math.prod(others), rows))
