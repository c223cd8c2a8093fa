"""A network cut into parts for a pipeline: the layers of each part, and their time.

A pipeline of p stages with v chunks cuts the network into p·v parts. The embedding belongs to the
first part, the head to the last; layers are distributed evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfmodel.networks.dispatch import Stretch, joined
from perfmodel.networks.hosts import Host
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
        return tuple((one.segment, one.repeat) for one in self.work)

    def forward(self, host: Host, copies: Copies) -> Stretch:
        """The forward pass of one micro-batch."""
        found = [_forward(one, host, copies).times(one.repeat) for one in self.work]
        return joined([*_entry(self, copies), *found])

    def backward(self, host: Host, copies: Copies, *, last: bool) -> Stretch:
        """The backward pass of one micro-batch, with recomputation; `last` for the last one of a
        step."""
        work = reversed(self.work)
        found = [_backward(one, host, copies, last=last).times(one.repeat) for one in work]
        return joined([*_entry(self, copies), *found])

    def weight_share(self) -> float:
        """Share of the backward pass that computes gradients of weights."""
        whole = own = 0.0
        for one in self.work:
            if one.backward is not None:
                for kernel in one.backward.kernels:
                    whole += one.repeat * kernel.seconds
                    own += one.repeat * kernel.seconds * kernel.name.endswith(".wgrad")
        return own / whole if whole else 0.0


def _forward(one: LayerWork, host: Host, copies: Copies) -> Stretch:
    """One layer's forward pass; segments of a network have equal layers."""
    key = (one.segment.name, "forward", False)
    if key not in copies.layers:
        layer = one.stretch("forward", host, copies.links.seconds)
        copies.layers[key] = copies.forward(layer, one.segment)
    return copies.layers[key]


def _backward(one: LayerWork, host: Host, copies: Copies, *, last: bool) -> Stretch:
    """One layer's backward pass, after its recomputation."""
    key = (one.segment.name, f"backward of {len(one.again)}", last)
    if key not in copies.layers:
        again = one.stretch("again", host, copies.links.seconds)
        layer = again.then(one.stretch("backward", host, copies.links.seconds))
        copies.layers[key] = copies.backward(layer, one.segment, last=last)
    return copies.layers[key]


def exposed_seconds(part: Part, host: Host, copies: Copies, accumulation: int) -> float:
    """Seconds that the exchanges of copies add to the layers that they overlap, in one step."""
    passes = 2 if copies.plan.training else 1
    found = passes * accumulation * copies.gather_seconds(part.work[0].segment)
    for one in part.work:
        plain = one.stretch("forward", host, copies.links.seconds).device_seconds
        again = one.stretch("again", host, copies.links.seconds).device_seconds
        back = one.stretch("backward", host, copies.links.seconds).device_seconds
        ahead = _forward(one, host, copies).device_seconds - plain
        behind = _backward(one, host, copies, last=False).device_seconds - again - back
        last = _backward(one, host, copies, last=True).device_seconds - again - back
        found += one.repeat * (accumulation * ahead + (accumulation - 1) * behind + last)
    return found


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
        each = (layers + less) // count
        if (layers + less) % count == 0 and each >= (less + 1) // 2:
            found = [each] * count
            found[-1] -= (less + 1) // 2
            found[0] -= less // 2
            return found
    return [layers // count + (i < layers % count) for i in range(count)]


def parts(work: Sequence[LayerWork], count: int) -> list[Part]:
    """The network in `count` parts."""
    before = [one for one in work if not one.segment.block]
    blocks = [one for one in work if one.segment.block]
    head = [one for one in before if one.segment.name == "head"]
    entry = [one for one in before if one.segment.name != "head"]
    if count == 1:
        return [Part(tuple(work))]
    layers = sum(one.repeat for one in blocks)
    sizes = _sizes(layers, count)
    found: list[Part] = []
    left = list(blocks)
    for i, size in enumerate(sizes):
        here: list[LayerWork] = list(entry) if i == 0 else []
        while size:
            one = left.pop(0)
            taken = min(size, one.repeat)
            here.append(replace(one, repeat=taken))
            if one.repeat > taken:
                left.insert(0, replace(one, repeat=one.repeat - taken))
            size -= taken
        found.append(Part((*here, *(head if i == count - 1 else ()))))
    return found
