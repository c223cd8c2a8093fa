"""Bytes that cross the links between devices, from the counting rule.

The blocks of a mesh loop are devices, so the rule at that boundary counts what all devices hold
together. With the mesh loops as the only loops,

    held(T) = size(T) × Π ranks of the mesh loops that do not index T

A tensor is stored once. The rest crosses the link: held(T) − size(T).

* An output that a mesh loop reduces leaves partial sums, and read(T) = write(T) − size(T): a
  reduce-scatter. If every device needs the sums, they go the same way back: an all-reduce.
* An input in shards over a mesh loop that does not index it is gathered: an all-gather. Where the
  kernel streams the sharded axis, the shards are passed round: a ring.
* A tensor in shards along one axis that is used along another one is redistributed: an all-to-all.
* Of an input with windows each device needs the edge of its neighbour's shard: a halo.
* A tensor that the loop indexes both where it is stored and where it is used moves nothing.

Over several mesh loops the innermost is reduced first (and gathered last), so that only shards
cross the outer links: held with the loops up to this one, less held without it. Each device sends
an equal share of that, since the bandwidth-optimal algorithms spread it evenly (Thakur,
Rabenseifner & Gropp 2005, sections 4.1 to 4.3; `perfmodel.timing.exchange` has the times).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from perfmodel.algorithms.algorithm import Step, Tensor
from perfmodel.arithmetic import Number, is_one, maximum, product
from perfmodel.count import rule
from perfmodel.count.cost import Elements, to_bytes
from perfmodel.errors import ProblemError
from perfmodel.schedules.schedule import Kernel, Loop, Schedule

Kind = Literal["all-reduce", "reduce-scatter", "all-gather", "ring", "all-to-all", "halo"]

Stored = Mapping[tuple[str, str], str | None]
"""(tensor, mesh axis) to the axis that its shards lie along in memory; None: whole on each device.

For pairs that are missing, an input is stored as its kernel uses it, an output as its kernel leaves
it after summing.
"""

_AS_LEFT: Stored = {}

# A normaliser has at most two numbers a row: maximum and sum, or mean and variance.
_STATISTICS = 2


@dataclass(frozen=True)
class Exchange:
    """One tensor that crosses one mesh axis.

    Bytes that each device sends, for a tensor of n bytes and p ranks: (p − 1)/p · n in a
    reduce-scatter, an all-gather and a ring; twice that in an all-reduce; (p − 1)/p of its own n/p
    in an all-to-all; one edge of its shard in a halo.
    """

    kind: Kind
    """Kind of collective."""
    tensor: str
    """Name of the tensor; "softmax statistics" for the maximum and sum of rows that are split."""
    kernel: str
    """The kernel that needs the tensor or produces it."""
    mesh: str
    """The mesh axis that it crosses."""
    ranks: Number
    """Devices that exchange with each other."""
    tensor_bytes: Number
    """Bytes of the whole tensor that these devices share."""
    sent_bytes: Number
    """Bytes that each device sends; it receives as many."""
    within: bool = False
    """Whether the same kernel needs the result to continue, which cuts the kernel in two."""

    @property
    def steps(self) -> Number:
        """Number of messages that each device sends, one after another."""
        if self.kind == "halo":
            return 1
        return (self.ranks - 1) * (2 if self.kind == "all-reduce" else 1)


def exchanges(
    schedule: Schedule, sizes: rule.Sizes, elements: Elements, stored: Stored = _AS_LEFT
) -> tuple[Exchange, ...]:
    """All exchanges of a schedule with mesh loops, in the order of its kernels; none over a single
    rank.

    Sizes are those of the whole problem (ints, arrays or symbols). Raises `ProblemError` where one
    mesh axis has two numbers of ranks, or a tensor is sharded along an axis that it does not have.
    """
    for (name, _), axis in stored.items():
        if axis is not None and axis not in schedule.algorithm.tensors[name].axes:
            raise ProblemError(f"{name} has no axis {axis} that its shards could lie along")
    counted = _Counted(schedule, sizes, elements, stored, _mesh(schedule))
    found = []
    for kernel in schedule.kernels:
        if kernel.steps:
            found += [*counted.arriving(kernel), *counted.leaving(kernel)]
    return tuple(x for x in found if not is_one(x.ranks) and not np.all(x.sent_bytes == 0))


def _mesh(schedule: Schedule) -> tuple[Loop, ...]:
    """A loop for each mesh axis, outermost first."""
    found: dict[str, Loop] = {}
    for loop in (loop for kernel in schedule.kernels for loop in kernel.mesh):
        if np.any(found.setdefault(str(loop.mesh), loop).ranks != loop.ranks):
            raise ProblemError(f"mesh axis {loop.mesh} has two numbers of ranks; give it one")
    return tuple(found.values())


@dataclass
class _Counted:
    """A schedule with its sizes, and where the outputs of its kernels so far are stored."""

    schedule: Schedule
    sizes: rule.Sizes
    elements: Elements
    stored: Stored
    mesh: tuple[Loop, ...]
    left: dict[tuple[str, str], str | None] = field(default_factory=dict)

    def arriving(self, kernel: Kernel) -> Iterator[Exchange]:
        """Exchanges that a kernel's inputs need."""
        devices = self._devices(kernel)
        streamed = {loop.axis for loop in kernel.nest if not loop.grid}
        for name in self.schedule.reads(kernel):
            tensor = self.schedule.algorithm.tensors[name]
            lies = {loop.mesh: self._lies(tensor, loop) for loop in devices}
            gathered = [x.mesh for x in devices if lies[x.mesh] and x.axis not in tensor.axes]
            for loop in devices:
                if loop.mesh in gathered:
                    kind: Kind = "ring" if lies[loop.mesh] in streamed else "all-gather"
                    yield self._spread(kind, kernel, tensor, devices, loop, gathered)
                elif lies[loop.mesh] not in (None, loop.axis):
                    yield self._dealt(kernel, tensor, devices, loop)
                if any(loop.axis == window[0] for window in tensor.windows):
                    yield self._halo(kernel, tensor, devices, loop)

    def leaving(self, kernel: Kernel) -> Iterator[Exchange]:
        """Exchanges that a kernel's outputs need."""
        devices = self._devices(kernel)
        for step in (self.schedule.algorithm.step(name) for name in kernel.steps):
            split = [loop.mesh for loop in devices if loop.axis == step.along]
            for loop in reversed(devices):
                if loop.mesh in split:
                    yield self._normaliser(kernel, step, devices, loop, split)
            for name in step.outputs:
                lost = set(rule.reduces(self.schedule, kernel, name)) - {step.along}
                tensor = self.schedule.algorithm.tensors[name]
                yield from self._made(kernel, tensor, devices, lost)

    def _made(
        self, kernel: Kernel, tensor: Tensor, devices: tuple[Loop, ...], lost: set[str]
    ) -> Iterator[Exchange]:
        """Exchanges of an output that is summed over devices, or stored elsewhere than it was
        made."""
        later = [self.schedule.algorithm.step(name) for name in kernel.steps]
        within = any(tensor.name in step.inputs for step in later)
        summed = [loop.mesh for loop in devices if loop.axis in lost]
        for loop in reversed(devices):
            made = loop.axis if loop.axis in tensor.axes else None
            key = (tensor.name, str(loop.mesh))
            lies = self.left[key] = self.stored.get(key, made)
            if loop.mesh in summed:
                kind: Kind = "all-reduce" if lies is None else "reduce-scatter"
                yield self._spread(kind, kernel, tensor, devices, loop, summed, within)
            elif made is not None and lies is None:
                # For a kernel that reads the whole tensor, the loop's axis does not index it.
                whole = replace(loop, axis="")
                others = tuple(whole if item is loop else item for item in devices)
                yield self._spread("all-gather", kernel, tensor, others, whole, [loop.mesh])
            elif made is not None and lies != made:
                yield self._dealt(kernel, tensor, devices, loop)

    def _spread(
        self,
        kind: Kind,
        kernel: Kernel,
        tensor: Tensor,
        devices: tuple[Loop, ...],
        loop: Loop,
        apart: Sequence[str | None],
        within: bool = False,
    ) -> Exchange:
        """An exchange over one of the mesh axes `apart`; each of their devices holds a copy of the
        tensor."""
        inner = apart[apart.index(loop.mesh) + 1 :]
        loops = [item for item in devices if item.mesh not in inner]
        before = self._held(tensor, loops)
        after = self._held(tensor, [item for item in loops if item is not loop])
        crossing = (before - after) * (2 if kind == "all-reduce" else 1)
        whole = after * loop.ranks
        return self._exchange(kind, kernel, tensor, devices, loop, whole, crossing, within)

    def _dealt(
        self, kernel: Kernel, tensor: Tensor, devices: tuple[Loop, ...], loop: Loop
    ) -> Exchange:
        """Shards along one axis that become shards along another one: of p² pieces p stay in
        place."""
        held = self._held(tensor, [item for item in devices if item is not loop])
        crossing, whole = _exact(held * (loop.ranks - 1), loop.ranks), held * loop.ranks
        return self._exchange("all-to-all", kernel, tensor, devices, loop, whole, crossing)

    def _halo(
        self, kernel: Kernel, tensor: Tensor, devices: tuple[Loop, ...], loop: Loop
    ) -> Exchange:
        """Edges of shards that windows fetch twice, at each of p − 1 borders."""
        others = tuple(item for item in devices if item.axis != loop.axis)
        whole = self._held(tensor, others)
        edges = maximum(self._held(tensor, others, along=loop) - whole, 0)
        borders = maximum(loop.ranks - 1, 1)
        each, bytes_ = _exact(edges * loop.ranks, borders), whole * loop.ranks
        return self._exchange("halo", kernel, tensor, (*others, loop), loop, bytes_, each)

    def _normaliser(
        self,
        kernel: Kernel,
        step: Step,
        devices: tuple[Loop, ...],
        loop: Loop,
        split: Sequence[str | None],
    ) -> Exchange:
        """Exchange of a row's statistics, which need the whole row: two fp32 numbers a row."""
        tensors = self.schedule.algorithm.tensors
        rows = tuple(a for a in self.schedule.algorithm.step_axes(step) if a != step.along)
        row = Tensor(f"{step.name} statistics", rows, "accumulator")
        kept = [name for name in step.outputs if step.along in tensors[name].axes]
        cut = any(name in self.schedule.writes(kernel) for name in kept)
        one = self._spread("all-reduce", kernel, row, devices, loop, split, cut)
        whole, sent = (_STATISTICS * n for n in (one.tensor_bytes, one.sent_bytes))
        return replace(one, tensor_bytes=whole, sent_bytes=sent)

    def _exchange(
        self,
        kind: Kind,
        kernel: Kernel,
        tensor: Tensor,
        devices: tuple[Loop, ...],
        loop: Loop,
        whole: Number,
        crossing: Number,
        within: bool = False,
    ) -> Exchange:
        """An exchange in which each device sends an equal share of the bytes `crossing` over all of
        them."""
        count = product(item.ranks for item in devices)
        whole, each = _exact(whole, count), _exact(crossing, count)
        mesh = str(loop.mesh)
        return Exchange(kind, tensor.name, kernel.name, mesh, loop.ranks, whole, each, within)

    def _held(self, tensor: Tensor, loops: Iterable[Loop], along: Loop | None = None) -> Number:
        """Bytes of a tensor that all devices hold together: the counting rule with devices as
        blocks.

        Several mesh loops over one axis count as separate loops; `along` is one that indexes
        windows.
        """
        again = [
            replace(item, axis=f"devices of {item.mesh}")
            for item in loops
            if item.axis not in tensor.axes
        ]
        own = () if along is None else (along,)
        nest = rule.Nest(Kernel("devices", (), (*own, *again)), self.sizes, None, None)
        return to_bytes(rule.moved(nest, tensor), self.elements[tensor.element])

    def _devices(self, kernel: Kernel) -> tuple[Loop, ...]:
        """The loop of each mesh axis; where the kernel has none, all devices of the axis do the
        same work."""
        own = {loop.mesh: loop for loop in kernel.mesh}
        return tuple(own.get(loop.mesh, replace(loop, axis="")) for loop in self.mesh)

    def _lies(self, tensor: Tensor, loop: Loop) -> str | None:
        """The axis that an input's shards lie along: as an earlier kernel left it, as stated, or as
        it is used."""
        key = (tensor.name, str(loop.mesh))
        used = loop.axis if loop.axis in tensor.axes else None
        return self.left[key] if key in self.left else self.stored.get(key, used)


def _exact(total: Number, by: Number) -> Number:
    """A quotient: an integer where it is one."""
    if isinstance(total, int) and isinstance(by, int):
        exact = Fraction(total, by)
        return int(exact) if exact.denominator == 1 else float(exact)
    return total / by
