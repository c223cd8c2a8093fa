"""An independent implementation of the counting rule: runs a kernel's loops tile by tile.

It is slow and simple on purpose, with plain ints only; `walk` shares no code with
`perfmodel.count`. Every block starts with nothing on chip. A tile is fetched in the body of the
innermost loop that indexes its tensor (before the sequential loops where only grid loops do), and
one tile a tensor is kept: with `keep` a tile asked for twice running stays, without it every entry
of the body fetches.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import prod

from perfmodel.count import Traffic, count
from perfmodel.schedules.schedule import Kernel, Schedule

Span = tuple[int, int]


@dataclass
class Walk:
    """Elements read and written, by tensor; `last` is how many of those written are final."""

    reads: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    last: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    bodies: int = 0
    blocks: int = 0


def sees(mask, sizes: dict[str, int], rows: Span, keys: Span) -> bool:
    """Whether any (row, key) of a tile pair is visible, row by row."""
    shift = sizes[mask.key] - sizes[mask.query]
    for i in range(*rows):
        low = 0 if mask.left is None else i + shift - mask.left + 1
        high = sizes[mask.key] - 1 if mask.right is None else i + shift + mask.right
        if max(low, keys[0]) <= min(high, keys[1] - 1):
            return True
    return False


class _Walker:
    def __init__(self, schedule: Schedule, kernel: Kernel, sizes: dict[str, int], keep: bool):
        self.schedule, self.kernel, self.sizes, self.keep = schedule, kernel, sizes, keep
        self.walk, self.algorithm = Walk(), schedule.algorithm
        self.held: dict[str, tuple[Span, ...]] = {}
        self.seen: dict[str, set[tuple[Span, ...]]] = {}
        self.steps = [self.algorithm.step(name) for name in kernel.steps]
        axes = {a for step in self.steps for a in self.algorithm.step_axes(step)}
        mask = self.algorithm.mask
        on = kernel.masked and mask is not None and {mask.query, mask.key} <= axes
        self.mask = mask if on else None
        self.grid = sum(loop.grid for loop in kernel.nest)

    def sums_over(self, name: str) -> set[str]:
        """Axes of the step that makes a tensor which the tensor lacks."""
        maker = next(step for step in self.steps if name in step.outputs)
        return {*self.algorithm.step_axes(maker)} - {*self.algorithm.tensors[name].axes}

    def parted(self, name: str) -> bool:
        """Whether several blocks make one element together."""
        grid = (x for x in self.kernel.nest if x.grid and x.tile < self.sizes[x.axis])
        spread = {loop.axis for loop in grid}
        return bool(spread & self.sums_over(name))

    def tile(self, name: str, at: dict[str, Span]) -> tuple[Span, ...]:
        axes = self.algorithm.tensors[name].axes
        return tuple(at.get(axis, (0, self.sizes[axis])) for axis in axes)

    def level(self, name: str) -> int:
        """How many loops are open where a tensor is fetched."""
        axes = self.algorithm.tensors[name].axes
        own = [i + 1 for i, loop in enumerate(self.kernel.nest) if loop.axis in axes]
        return max([self.grid, *own])

    def run(self, depth: int, at: dict[str, Span]) -> None:
        if self.mask and {self.mask.query, self.mask.key} <= at.keys():
            rows, keys = at[self.mask.query], at[self.mask.key]
            if not sees(self.mask, self.sizes, rows, keys):
                return
        if depth == self.grid:
            self.held = {}
            self.walk.blocks += 1
        for name in self.schedule.reads(self.kernel):
            if depth == self.level(name):
                self.fetch(name, self.tile(name, at))
        for name in self.schedule.writes(self.kernel):
            if depth == self.level(name):
                self.store(name, self.tile(name, at))
        if depth == len(self.kernel.nest):
            self.walk.bodies += 1
            for step in self.steps:
                spans = [at.get(a, (0, self.sizes[a])) for a in self.algorithm.step_axes(step)]
                self.walk.points[step.name] += prod(b - a for a, b in spans)
            return
        loop = self.kernel.nest[depth]
        start, stop = at.get(loop.axis, (0, self.sizes[loop.axis]))
        for low in range(start, stop, loop.tile):
            self.run(depth + 1, {**at, loop.axis: (low, min(low + loop.tile, stop))})

    def fetch(self, name: str, tile: tuple[Span, ...]) -> None:
        before = self.seen.setdefault(name, set())
        again = tile in before if name in self.kernel.first_pass else False
        if not again and not (self.keep and self.held.get(name) == tile):
            self.walk.reads[name] += prod(b - a for a, b in tile)
        self.held[name] = tile
        before.add(tile)

    def store(self, name: str, tile: tuple[Span, ...]) -> None:
        """An output tile is taken up here and put back when the loop has moved on."""
        if self.keep and self.held.get(name) == tile:
            return
        elements = prod(b - a for a, b in tile)
        before = self.seen.setdefault(name, set())
        around = {x.axis for x in self.kernel.nest[: self.level(name)] if not x.grid}
        summed = around & self.sums_over(name) and not self.parted(name)
        if summed and (tile in before or name in self.kernel.zeroed):
            self.walk.reads[name] += elements
        self.walk.writes[name] += elements
        if tile not in before:
            self.walk.last[name] += elements
        self.held[name] = tile
        before.add(tile)

    def finish(self) -> Walk:
        """Rows of a result that a mask hides from every key are written once all the same."""
        for name in self.schedule.writes(self.kernel):
            if not self.parted(name) and name not in self.kernel.atomic:
                whole = prod(self.sizes[a] for a in self.algorithm.tensors[name].axes)
                self.walk.writes[name] += whole - self.walk.last[name]
                self.walk.last[name] = whole
        return self.walk


def walk(schedule: Schedule, kernel: Kernel, sizes: dict[str, int], *, keep: bool = True) -> Walk:
    """Everything that one kernel moves, found by doing it; `keep` as in the module's docstring."""
    walker = _Walker(schedule, kernel, sizes, keep)
    walker.run(0, {})
    result = walker.finish()
    for name, passes in _second_passes(schedule, kernel, sizes).items():
        result.reads[name] *= passes
    return result


def _second_passes(schedule: Schedule, kernel: Kernel, sizes: dict[str, int]) -> dict[str, int]:
    """Inputs of a normalisation that a block must stream twice: its row comes in several tiles."""
    twice: dict[str, int] = {}
    for step in (schedule.algorithm.step(name) for name in kernel.steps):
        if step.kind != "normalisation":
            continue
        pieces = [x for x in kernel.nest if x.axis == step.along and not x.grid]
        out = [n for n in step.outputs if n in schedule.writes(kernel)]
        kept = any(step.along in schedule.algorithm.tensors[n].axes for n in out)
        if kept and pieces and pieces[0].tile < sizes[step.along]:
            statistics = [n for n in step.inputs if n not in step.late]
            twice |= {n: 2 for n in statistics if step.along in schedule.algorithm.tensors[n].axes}
    return twice


def same(schedule: Schedule, sizes: dict[str, int], elements, *, keep: bool = True) -> None:
    """Hold `count` against the walk: bytes of every tensor, operations and tile iterations."""
    cost = count(schedule, sizes, elements)
    for kernel, counted in zip(schedule.kernels, cost.kernels, strict=True):
        if kernel.combines:
            continue
        walked = walk(schedule, kernel, sizes, keep=keep)
        expected = {n: _traffic(schedule, kernel, walked, sizes, elements, n) for n in counted.l2}
        assert {n: _table(t) for n, t in counted.l2.items()} == expected
        contractions = [n for n in kernel.steps if schedule.algorithm.step(n).kind == "contraction"]
        assert counted.matrix_flops == 2 * sum(walked.points[name] for name in contractions)
        assert counted.passes == walked.bodies
        if counted.nest.mask is None:
            assert counted.blocks == walked.blocks


def _table(traffic: Traffic) -> tuple[float, float, float]:
    return traffic.read_bytes, traffic.write_bytes, traffic.atomic_bytes


def _traffic(schedule: Schedule, kernel: Kernel, walked: Walk, sizes, elements, name: str):
    """(read, written, atomic) bytes of one tensor from the elements walked."""
    role = schedule.algorithm.tensors[name].element
    final, spilt = elements[role].bits, elements[kernel.spill.get(name, role)].bits
    reads, writes, last = walked.reads[name], walked.writes[name], walked.last[name]
    if name in schedule.reads(kernel):
        return reads * final / 8, 0, 0
    spread = [x for x in kernel.nest if x.grid and x.axis in _lost(schedule, name)]
    if name in kernel.atomic and spread:
        return 0, 0, writes * spilt / 8
    if any(loop.tile < sizes[loop.axis] for loop in spread):
        return 0, writes * spilt / 8, 0
    return reads * spilt / 8, ((writes - last) * spilt + last * final) / 8, 0


def _lost(schedule: Schedule, name: str) -> set[str]:
    maker = next(step for step in schedule.algorithm.steps if name in step.outputs)
    return {*schedule.algorithm.step_axes(maker)} - {*schedule.algorithm.tensors[name].axes}
