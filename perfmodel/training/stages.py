"""A network cut into parts for a pipeline: the layers of each part, and their time.

A pipeline of p stages with v chunks cuts the network into p·v parts. The embedding belongs to the
first part, the head to the last; layers are distributed evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfmodel.networks.segment import Segment
from perfmodel.networks.stretch import Stretch, joined
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

    def forward(self, copies: Copies) -> Stretch:
        """The forward pass of one micro-batch."""
        passes = [_forward(w, copies).times(w.repeat) for w in self.work]
        return joined([*_entry(self, copies), *passes])

    def backward(self, copies: Copies, *, last: bool) -> Stretch:
        """The backward pass of one micro-batch, with recomputation; `last` for the last one of a
        step."""
        work = reversed(self.work)
        passes = [_backward(w, copies, last=last).times(w.repeat) for w in work]
        return joined([*_entry(self, copies), *passes])

    def weight_share(self) -> float:
        """Share of the backward pass that computes gradients of weights."""
        total = wgrad = 0.0
        for layer in self.work:
            if layer.backward is not None:
                for kernel in layer.backward.kernels:
                    total += layer.repeat * kernel.seconds
                    wgrad += layer.repeat * kernel.seconds * kernel.name.endswith(".wgrad")
        return wgrad / total if total else 0.0


def _forward(work: LayerWork, copies: Copies) -> Stretch:
    """One layer's forward pass; segments of a network have equal layers."""
    key = (work.segment.name, "forward", False)
    if key not in copies.layers:
        layer = work.stretch("forward", copies.host, copies.links.seconds)
        copies.layers[key] = copies.forward(layer, work.segment)
    return copies.layers[key]


def _backward(work: LayerWork, copies: Copies, *, last: bool) -> Stretch:
    """One layer's backward pass, after its recomputation."""
    key = (work.segment.name, f"backward of {len(work.again)}", last)
    if key not in copies.layers:
        rerun = work.stretch("again", copies.host, copies.links.seconds)
        layer = rerun.then(work.stretch("backward", copies.host, copies.links.seconds))
        copies.layers[key] = copies.backward(layer, work.segment, last=last)
    return copies.layers[key]


def exposed_seconds(part: Part, copies: Copies) -> float:
    """Seconds that the exchanges of copies add to the layers that they overlap, in one step."""
    accumulation = copies.plan.accumulation
    passes = 2 if copies.plan.training else 1
    seconds = passes * accumulation * copies.gather_seconds(part.work[0].segment)
    for work in part.work:
        forward = work.stretch("forward", copies.host, copies.links.seconds).device_seconds
        rerun = work.stretch("again", copies.host, copies.links.seconds).device_seconds
        backward = work.stretch("backward", copies.host, copies.links.seconds).device_seconds
        f_wait = _forward(work, copies).device_seconds - forward
        b_wait = _backward(work, copies, last=False).device_seconds - rerun - backward
        last_wait = _backward(work, copies, last=True).device_seconds - rerun - backward
        seconds += work.repeat * (accumulation * f_wait + (accumulation - 1) * b_wait + last_wait)
    return seconds


def _entry(part: Part, copies: Copies) -> list[Stretch]:
    """Exposed work at the beginning of a pass: a gather."""
    seconds = copies.gather_seconds(part.work[0].segment)
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
