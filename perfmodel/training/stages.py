"""A network cut into parts for a pipeline: the layers of each part, and their time.

A pipeline of p stages with v chunks cuts the network into p·v parts. The embedding belongs to the
first part, the head to the last; layers are distributed evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfmodel.graph.stretch import Stretch, joined
from perfmodel.networks.segment import Segment
from perfmodel.training.copies import Copies
from perfmodel.training.layers import LayerWork


@dataclass(frozen=True)
class Part:
    """Consecutive layers on one stage."""

    work: tuple[LayerWork, ...]
    """Layers in order; `repeat` is the number of each kind in this part."""

    @property
    def segments(self) -> tuple[tuple[Segment, int], ...]:
        """Segments with their numbers of layers."""
        return tuple((w.segment, w.repeat) for w in self.work)

    def forward(self, copies: Copies, *, edge: bool = False) -> Stretch:
        """The forward pass of one micro-batch; `edge` for the first one of a step."""
        passes = [_layer(w, copies, "forward", edge=edge)[0].times(w.repeat) for w in self.work]
        return joined([*_entry(self, copies, "forward", edge=edge), *passes])

    def backward(self, copies: Copies, *, edge: bool = False) -> Stretch:
        """The backward pass of one micro-batch, with recomputation; `edge` for the last one of a
        step."""
        passes = [
            _layer(w, copies, "backward", edge=edge)[0].times(w.repeat) for w in reversed(self.work)
        ]
        return joined([*_entry(self, copies, "backward", edge=edge), *passes])

    def weight_share(self) -> float:
        """Share of the backward pass that computes gradients of weights."""
        total = wgrad = 0.0
        for layer in self.work:
            if layer.backward is not None:
                for kernel in layer.backward.children:
                    total += layer.repeat * kernel.seconds
                    wgrad += layer.repeat * kernel.seconds * kernel.name.endswith(".wgrad")
        return wgrad / total if total else 0.0


def _layer(work: LayerWork, copies: Copies, way: str, *, edge: bool) -> tuple[Stretch, float]:
    """One layer's forward pass, or its backward pass after its recomputation, and the seconds that
    exchanges of copies add to it. Segments of a network have equal layers."""
    key = (work.segment.name, f"{way} of {len(work.again)}", edge)
    if key not in copies.layers:
        ways = ("again", "backward") if way == "backward" else (way,)
        bare = [work.stretch(each, copies.host, copies.links.seconds) for each in ways]
        layer, segment = joined(bare), work.segment
        overlapped = copies.forward if way == "forward" else copies.backward
        layer = overlapped(layer, segment, edge=edge)
        wait = layer.device_seconds
        for each in bare:
            wait -= each.device_seconds
        copies.layers[key] = layer, wait
    return copies.layers[key]


def exposed_seconds(part: Part, copies: Copies) -> float:
    """Seconds that the exchanges of copies add to the layers that they overlap, in one step."""
    accumulation = copies.plan.accumulation
    seconds = 0.0
    for way in ("forward", "backward") if copies.plan.training else ("forward",):
        for edge, passes in ((False, accumulation - 1), (True, 1)):
            seconds += passes * copies.gather_seconds(part.work[0].segment, way, edge=edge)
            seconds += passes * sum(
                work.repeat * _layer(work, copies, way, edge=edge)[1] for work in part.work
            )
    return seconds


def _entry(part: Part, copies: Copies, way: str, *, edge: bool) -> list[Stretch]:
    """Exposed work at the beginning of a pass: a gather."""
    seconds = copies.gather_seconds(part.work[0].segment, way, edge=edge)
    return [Stretch.of(seconds, 0.0)] if seconds else []


def _sizes(layers: int, count: int) -> list[int]:
    """Layers of each part.

    Layers are even, or one or two fewer in the part with the head, and in the part with the
    embedding (Llama 3, 2407.21783, section 3.3.2).
    """
    for less in range(4):
        size = (layers + less) // count
        if (layers + less) % count == 0 and size >= (less + 1) // 2:
            sizes = [size] * count
            sizes[-1] -= (less + 1) // 2
            sizes[0] -= less // 2
            return sizes
    return [layers // count + (i < layers % count) for i in range(count)]


def parts(work: Sequence[LayerWork], count: int) -> list[Part]:
    """The network in `count` parts."""
    ends = [layer for layer in work if not layer.segment.block]
    blocks = [layer for layer in work if layer.segment.block]
    head = [layer for layer in ends if layer.segment.name == "head"]
    entry = [layer for layer in ends if layer.segment.name != "head"]
    if count == 1:
        return [Part(tuple(work))]
    layers = sum(layer.repeat for layer in blocks)
    sizes = _sizes(layers, count)
    stages: list[Part] = []
    queue = list(blocks)
    for i, size in enumerate(sizes):
        group: list[LayerWork] = list(entry) if i == 0 else []
        while size:
            layer = queue.pop(0)
            repeat = min(size, layer.repeat)
            group.append(replace(layer, repeat=repeat))
            if layer.repeat > repeat:
                queue.insert(0, replace(layer, repeat=layer.repeat - repeat))
            size -= repeat
        stages.append(Part((*group, *(head if i == count - 1 else ()))))
    return stages
