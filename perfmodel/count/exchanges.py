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
from dataclasses import field, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from perfmodel.algorithms.algorithm import Step, Tensor
from perfmodel.arithmetic import Number, is_one, maximum, product
from perfmodel.count import rule
from perfmodel.count.cost import Elements, to_bytes
from perfmodel.errors import ProblemError
from perfmodel.frozen import dataclass
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
    counter = _Counter(schedule, sizes, elements, stored, _mesh(schedule))
    transfers = []
    for kernel in schedule.kernels:
        if kernel.steps:
            transfers += [*counter.arriving(kernel), *counter.leaving(kernel)]
    return tuple(x for x in transfers if not is_one(x.ranks) and not np.all(x.sent_bytes == 0))


def _mesh(schedule: Schedule) -> tuple[Loop, ...]:
    """A loop for each mesh axis, outermost first."""
    loops: dict[str, Loop] = {}
    for loop in (loop for kernel in schedule.kernels for loop in kernel.mesh):
        if np.any(loops.setdefault(str(loop.mesh), loop).ranks != loop.ranks):
            raise ProblemError(f"mesh axis {loop.mesh} has two numbers of ranks; give it one")
    return tuple(loops.values())


@dataclass
class _Counter:
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
        stream_axes = {loop.axis for loop in kernel.nest if not loop.grid}
        for name in self.schedule.reads(kernel):
            tensor = self.schedule.algorithm.tensors[name]
            places = {loop.mesh: self._place(tensor, loop) for loop in devices}
            gathers = [x.mesh for x in devices if places[x.mesh] and x.axis not in tensor.axes]
            for loop in devices:
                if loop.mesh in gathers:
                    kind: Kind = "ring" if places[loop.mesh] in stream_axes else "all-gather"
                    yield self._spread(kind, kernel, tensor, devices, loop, gathers)
                elif places[loop.mesh] not in (None, loop.axis):
                    yield self._redistribution(kernel, tensor, devices, loop)
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
                sums = set(rule.reduces(self.schedule, kernel, name)) - {step.along}
                tensor = self.schedule.algorithm.tensors[name]
                yield from self._output_exchanges(kernel, tensor, devices, sums)

    def _output_exchanges(
        self, kernel: Kernel, tensor: Tensor, devices: tuple[Loop, ...], sums: set[str]
    ) -> Iterator[Exchange]:
        """Exchanges of an output that is summed over devices, or stored elsewhere than it was
        made."""
        steps = [self.schedule.algorithm.step(name) for name in kernel.steps]
        in_kernel = any(tensor.name in step.inputs for step in steps)
        sum_axes = [loop.mesh for loop in devices if loop.axis in sums]
        for loop in reversed(devices):
            axis = loop.axis if loop.axis in tensor.axes else None
            key = (tensor.name, str(loop.mesh))
            place = self.left[key] = self.stored.get(key, axis)
            if loop.mesh in sum_axes:
                kind: Kind = "all-reduce" if place is None else "reduce-scatter"
                yield self._spread(kind, kernel, tensor, devices, loop, sum_axes, in_kernel)
            elif axis is not None and place is None:
                # For a kernel that reads the whole tensor, the loop's axis does not index it.
                full = replace(loop, axis="")
                others = tuple(full if item is loop else item for item in devices)
                yield self._spread("all-gather", kernel, tensor, others, full, [loop.mesh])
            elif axis is not None and place != axis:
                yield self._redistribution(kernel, tensor, devices, loop)

    def _spread(
        self,
        kind: Kind,
        kernel: Kernel,
        tensor: Tensor,
        devices: tuple[Loop, ...],
        loop: Loop,
        axes: Sequence[str | None],
        in_kernel: bool = False,
    ) -> Exchange:
        """An exchange over one of the mesh axes `axes`; each of their devices holds a copy of the
        tensor."""
        inner = axes[axes.index(loop.mesh) + 1 :]
        loops = [item for item in devices if item.mesh not in inner]
        before = self._bytes(tensor, loops)
        after = self._bytes(tensor, [item for item in loops if item is not loop])
        crossing = (before - after) * (2 if kind == "all-reduce" else 1)
        total = after * loop.ranks
        return self._exchange(kind, kernel, tensor, devices, loop, total, crossing, in_kernel)

    def _redistribution(
        self, kernel: Kernel, tensor: Tensor, devices: tuple[Loop, ...], loop: Loop
    ) -> Exchange:
        """Shards along one axis that become shards along another one: of p² pieces p stay in
        place."""
        bytes_ = self._bytes(tensor, [item for item in devices if item is not loop])
        crossing, total = _exact(bytes_ * (loop.ranks - 1), loop.ranks), bytes_ * loop.ranks
        return self._exchange("all-to-all", kernel, tensor, devices, loop, total, crossing)

    def _halo(
        self, kernel: Kernel, tensor: Tensor, devices: tuple[Loop, ...], loop: Loop
    ) -> Exchange:
        """Edges of shards that windows fetch twice, at each of p − 1 borders."""
        others = tuple(item for item in devices if item.axis != loop.axis)
        body = self._bytes(tensor, others)
        edges = maximum(self._bytes(tensor, others, window=loop) - body, 0)
        borders = maximum(loop.ranks - 1, 1)
        share, bytes_ = _exact(edges * loop.ranks, borders), body * loop.ranks
        return self._exchange("halo", kernel, tensor, (*others, loop), loop, bytes_, share)

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
        outputs = [name for name in step.outputs if step.along in tensors[name].axes]
        in_kernel = any(name in self.schedule.writes(kernel) for name in outputs)
        exchange = self._spread("all-reduce", kernel, row, devices, loop, split, in_kernel)
        total, share = (_STATISTICS * n for n in (exchange.tensor_bytes, exchange.sent_bytes))
        return replace(exchange, tensor_bytes=total, sent_bytes=share)

    def _exchange(
        self,
        kind: Kind,
        kernel: Kernel,
        tensor: Tensor,
        devices: tuple[Loop, ...],
        loop: Loop,
        total: Number,
        crossing: Number,
        in_kernel: bool = False,
    ) -> Exchange:
        """An exchange in which each device sends an equal share of the bytes `crossing` over all of
        them."""
        count = product(item.ranks for item in devices)
        total, share = _exact(total, count), _exact(crossing, count)
        mesh = str(loop.mesh)
        return Exchange(kind, tensor.name, kernel.name, mesh, loop.ranks, total, share, in_kernel)

    def _bytes(self, tensor: Tensor, loops: Iterable[Loop], window: Loop | None = None) -> Number:
        """Bytes of a tensor that all devices hold together: the counting rule with devices as
        blocks.

        Several mesh loops over one axis count as separate loops; `window` is one that indexes
        windows.
        """
        copies = [
            replace(item, axis=f"devices of {item.mesh}")
            for item in loops
            if item.axis not in tensor.axes
        ]
        taps = () if window is None else (window,)
        nest = rule.Nest(Kernel("devices", (), (*taps, *copies)), self.sizes, None, None)
        return to_bytes(rule.moved(nest, tensor), self.elements[tensor.element])

    def _devices(self, kernel: Kernel) -> tuple[Loop, ...]:
        """The loop of each mesh axis; where the kernel has none, all devices of the axis do the
        same work."""
        loops = {loop.mesh: loop for loop in kernel.mesh}
        return tuple(loops.get(loop.mesh, replace(loop, axis="")) for loop in self.mesh)

    def _place(self, tensor: Tensor, loop: Loop) -> str | None:
        """The axis that an input's shards lie along: as an earlier kernel left it, as stated, or as
        it is used."""
        key = (tensor.name, str(loop.mesh))
        axis = loop.axis if loop.axis in tensor.axes else None
        return self.left[key] if key in self.left else self.stored.get(key, axis)


def _exact(total: Number, parts: Number) -> Number:
    """A quotient: an integer where it is one."""
    if isinstance(total, int) and isinstance(parts, int):
        exact = Fraction(total, parts)
        return int(exact) if exact.denominator == 1 else float(exact)
    return total / parts
