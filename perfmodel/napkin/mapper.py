"""The mapper: search over fusion × loop nests × tiles for the least time on a device.

Kernels run one after another, so each run of consecutive steps is searched separately, and the best
fusion is a shortest path over the steps.

Within a kernel the search is branch and bound. The counts give every candidate a lower bound of its
time: the largest of its matrix, L2 and memory seconds. Nests are tried in the order of that bound.
A candidate whose bound is not below the best time found is not timed. The search is exact: no
candidate that could win is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from perfmodel.algorithms.declaration import Case
from perfmodel.columns import Column
from perfmodel.count import KernelCost
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.napkin.fit import Held, Layout, Target
from perfmodel.napkin.fusion import groups, part
from perfmodel.napkin.nests import Tiled, nests, sliced_axes
from perfmodel.schedules.schedule import Schedule
from perfmodel.timing.constants import Constants, default
from perfmodel.timing.kernel import time_kernel
from perfmodel.timing.machine import machine
from perfmodel.timing.memory import hbm_rate
from perfmodel.timing.plan import Part, Plan, time_plan
from perfmodel.units import binary

# Rounding must not lift a bound above the time that it bounds.
_ROUNDING = 1 - 1e-9


@dataclass(frozen=True)
class Mapped(Tiled):
    """The fastest kernel found for some steps."""

    part: Part
    """The kernel with its tiles, ready to be timed in a plan."""
    seconds: Annotated[float, Column("time", key="time_us", scale=1e6)]
    """Predicted time."""
    terms: Mapping[str, float]
    """Seconds of each resource."""
    bytes: Mapping[str, float]
    """Bytes that cross into each level."""
    shared_bytes: Annotated[float, Column(place=2)]
    """Bytes of shared memory of a block."""
    register_bytes: Annotated[float, Column(place=2)]
    """Bytes of registers of a block."""
    threads: Annotated[int, Column("threads", rank=3, place=2)]
    """Threads of a block."""
    stages: Annotated[int, Column("buffers", rank=4, place=2)]
    """Buffers that streamed tensors pass through."""
    nests: int
    """Number of loop nests that were tried."""
    candidates: int
    """Number of tilings that were counted."""
    fitting: int
    """Number of tilings that fit on chip."""
    timed: int
    """Number of tilings that the bound did not rule out."""

    @property
    def limiter(self) -> Annotated[str, Column("limiter", place=1)]:
        """Name of the largest term."""
        return max(self.terms, key=lambda name: self.terms[name])

    @property
    def hbm_bytes(self) -> Annotated[float, Column("memory", rank=1, place=1)]:
        """Bytes that cross into the device's memory."""
        return self.bytes["hbm"]

    @property
    def l2_bytes(self) -> Annotated[float, Column("L2", rank=2, place=1)]:
        """Bytes that cross into the L2."""
        return self.bytes["l2"]


@dataclass(frozen=True)
class Fusion:
    """One way to split the steps into kernels."""

    kernels: tuple[tuple[str, ...], ...]
    """The steps of each kernel."""
    seconds: float
    """Time with the best kernel of each; infinite where one does not exist."""


@dataclass(frozen=True)
class Mapping_:
    """Result of a search."""

    case: Case
    """The algorithm at its sizes."""
    device: Device
    """The device."""
    kernels: tuple[Mapped, ...]
    """Kernels of the best fusion, in launch order."""
    seconds: float
    """Time of the best fusion."""
    fusions: tuple[Fusion, ...]
    """All fusions, from best to worst."""
    groups: Mapping[tuple[str, ...], Mapped | str]
    """The best kernel of every run of steps, or the reason why there is none."""


FUSIONS = ("auto", "fused", "unfused")
"""Fusions that are searched: all (`auto`), one kernel for all steps, one kernel for each step."""


def search(
    case: Case,
    device: Device,
    *,
    constants: Constants | None = None,
    fusion: str = "auto",
    prune: bool = True,
) -> Mapping_:
    """The fastest schedule of an algorithm on a device; `fusion` is one of `FUSIONS`.

    Raises `ProblemError`, with the binding constraint and the shortage, where a step fits in no
    tile. `prune=False` times every candidate, to show that pruning loses nothing.
    """
    target = Target(machine(device), constants or default(), case.compute or case.dtype)
    lengths = _lengths(fusion, len(case.algorithm.steps))
    table = {
        steps: kernel(case, steps, target, prune=prune)
        if len(steps) in lengths
        else f"{' + '.join(steps)} was not searched"
        for steps in groups(case.algorithm)
    }
    gap = float(target.machine.at_clock(target.constants["kernel_gap"]))
    ways = sorted(_fusions(case, table, gap), key=lambda fusion: fusion.seconds)
    if not ways or not np.isfinite(ways[0].seconds):
        names = tuple(step.name for step in case.algorithm.steps)
        results = [table[names]] if fusion == "fused" else [table[(name,)] for name in names]
        raise ProblemError(next(said for said in results if isinstance(said, str)))
    parts = tuple(table[steps] for steps in ways[0].kernels)
    kernels = tuple(k for k in parts if isinstance(k, Mapped))
    return Mapping_(case, device, kernels, ways[0].seconds, tuple(ways), table)


# Above this number of steps (backward passes of whole layers) a kernel has at most `_LONGEST`.
_ALL_LENGTHS, _LONGEST = 16, 6


def _lengths(fusion: str, steps: int) -> range:
    """Numbers of steps that a kernel may have."""
    longest = steps if steps <= _ALL_LENGTHS else _LONGEST
    return {"fused": range(steps, steps + 1), "unfused": range(1, 2)}.get(
        fusion, range(1, longest + 1)
    )


# Above this number of steps only the best fusions are compared, not all 2^(n-1).
_ALL_FUSIONS = 8


def _fusions(case: Case, table: Mapping[tuple[str, ...], Mapped | str], gap: float) -> list[Fusion]:
    """Every split of the steps into runs, or only the best for each start where there are too
    many."""
    names = [step.name for step in case.algorithm.steps]

    def seconds(steps: tuple[str, ...]) -> float:
        best = table[steps]
        return best.seconds if isinstance(best, Mapped) else np.inf

    ways: list[list[Fusion]] = [[Fusion((), 0.0)]]
    for end in range(1, len(names) + 1):
        splits = [
            Fusion((*before.kernels, steps), before.seconds + seconds(steps) + gap * bool(start))
            for start in range(end)
            for steps in [tuple(names[start:end])]
            for before in ways[start]
        ]
        splits.sort(key=lambda fusion: fusion.seconds)
        ways.append(splits if len(names) <= _ALL_FUSIONS else splits[:16])
    return ways[-1]


@dataclass(frozen=True)
class _Tiling:
    """Tiles that fit on chip, of all orders of a nest's streamed axes; else what is short."""

    tiles: dict[str, np.ndarray]
    legal: int
    contents: Held | None
    short: tuple[str, float, float] | None


@dataclass(frozen=True)
class _Candidates:
    """One nest with its tiles that fit on chip, counted."""

    layout: Layout
    tiling: _Tiling
    laid: Schedule
    cost: KernelCost

    @property
    def width(self) -> int:
        """Tiles that fit."""
        assert self.tiling.contents is not None
        return self.tiling.contents.stages.size

    def bound(self, target: Target) -> np.ndarray:
        """Lower bounds of the tiles' times in seconds."""
        return np.broadcast_to(bound_of(target, self.layout, self.cost), (self.width,))


@dataclass(frozen=True)
class _Pool:
    """All nests of some steps that have a tile that fits; else what is short by least."""

    candidates: tuple[_Candidates, ...]
    short: tuple[str, float, float] | None


def _pool(case: Case, steps: tuple[str, ...], target: Target) -> _Pool:
    """The nests of `steps` with their tiles counted, once for all devices of a shape."""
    key = steps, target.shape
    if key not in case.counted:
        case.counted[key] = _count(case, steps, target)
    pool: _Pool = case.counted[key]
    return pool


def _count(case: Case, steps: tuple[str, ...], target: Target) -> _Pool:
    fused = part(case.algorithm, steps)
    sizes = {axis: case.sizes[axis] for axis in fused.axes}
    pool: list[_Candidates] = []
    tilings: dict[tuple[tuple[str, ...], frozenset[str]], _Tiling] = {}
    least: tuple[str, float, float] | None = None
    for nest in nests(fused, sizes, sliced_axes(fused)):
        layout = Layout(fused, nest, target, sizes, case.elements)
        key = nest.grid, frozenset(nest.stream)
        tiling = tilings.get(key) or tilings.setdefault(key, _tiling(layout))
        if tiling.contents is None:
            short = tiling.short
            least = short if least is None or (short and short[1] < least[1]) else least
            continue
        plan, cost = layout.count(tiling.tiles, tiling.contents)
        pool.append(_Candidates(layout, tiling, plan, cost))
    return _Pool(tuple(pool), least)


def _tiling(layout: Layout) -> _Tiling:
    """The tiles of a nest that fit on chip, whatever the order of its streamed axes."""
    tiles = layout.tiles()
    if tiles is None:
        return _Tiling({}, 0, None, None)
    legal = max((len(values) for values in tiles.values()), default=1)
    contents = layout.contents(tiles)
    fits = np.broadcast_to(layout.fits(contents), (legal,))
    if not fits.any():
        return _Tiling({}, legal, None, layout.shortage(contents))
    return _Tiling(
        {axis: values[fits] for axis, values in tiles.items()}, legal, contents.at(fits), None
    )


def kernel(
    case: Case, steps: tuple[str, ...], target: Target, *, prune: bool = True
) -> Mapped | str:
    """The fastest kernel of the given steps, or one line on why none fits."""
    pool = _pool(case, steps, target)
    if not pool.candidates:
        return _misfit(steps, pool.short)
    return _branch(pool.candidates, target, prune=prune)


def _misfit(steps: tuple[str, ...], shortage: tuple[str, float, float] | None) -> str:
    name = " + ".join(steps)
    if shortage is None:
        return f"{name}: no legal loop nest has tiles of whole instructions and lines"
    limit, need, room = shortage
    return (
        f"no tile of {name} fits: the {limit} binds; the least tile needs {binary(need)} of "
        f"{binary(room)}, {binary(need - room)} too much"
    )


def bound_of(target: Target, layout: Layout, cost: KernelCost) -> np.ndarray:
    """Lower bound in seconds of every candidate: peak matrix rate, L2 rate, each tensor once from
    memory."""
    style = target.style(layout.fused)
    chip = target.machine
    matrix = chip.matrix_per_unit(style.compute) * chip.units * style.matrix_share
    l2 = chip.l2_bytes_per_s * target.constants["l2_share"] * style.multicast
    floor = np.asarray(cost.matrix_flops, dtype=np.float64) / matrix
    floor = np.maximum(floor, np.asarray(cost.bytes_at("l2"), dtype=np.float64) / l2)
    rate = hbm_rate(chip, target.constants) * style.stream_share
    stream = np.asarray(cost.bytes_at("hbm"), dtype=np.float64) / rate
    return np.asarray(np.maximum(floor, stream) * _ROUNDING)


def _branch(pool: Sequence[_Candidates], target: Target, *, prune: bool) -> Mapped:
    """Time the candidates, nests with the lowest bound first, until no bound can win."""
    bounds = [candidates.bound(target) for candidates in pool]
    best: tuple[float, _Candidates, int] | None = None
    tally = 0
    for index in sorted(range(len(pool)), key=lambda nest: float(bounds[nest].min())):
        candidates, limit = pool[index], best[0] if best is not None and prune else np.inf
        picks = np.flatnonzero(bounds[index] < limit)
        if not len(picks):
            continue
        tally += len(picks)
        seconds = seconds_of(
            target, candidates.layout, candidates.laid, candidates.cost, candidates.width
        )[picks]
        i = int(np.argmin(seconds))
        if best is None or seconds[i] < best[0]:
            best = (float(seconds[i]), candidates, int(picks[i]))
    assert best is not None
    legal, fitting = (sum(n) for n in zip(*((c.tiling.legal, c.width) for c in pool), strict=True))
    return _mapping(target, best[1], best[2], (len(pool), legal, fitting, tally))


def seconds_of(
    target: Target, layout: Layout, laid: Schedule, cost: KernelCost, width: int
) -> np.ndarray:
    """Seconds of a layout's kernel for all its tiles, adding up partial sums included."""
    style = target.style(layout.fused)
    if len(laid.kernels) > 1:
        plan = Plan(laid.name, (Part(laid, layout.sizes, layout.elements, style),), {})
        return np.asarray(time_plan(target.machine, target.constants, plan, (1, width)).seconds[0])
    time = time_kernel(target.machine, target.constants, laid, cost, layout.elements, style)
    return np.broadcast_to(time.seconds, (width,))


def _mapping(
    target: Target, candidates: _Candidates, index: int, tally: tuple[int, int, int, int]
) -> Mapped:
    """One candidate, counted and timed again for all its figures."""
    layout = candidates.layout
    tiles = {axis: each[index : index + 1] for axis, each in candidates.tiling.tiles.items()}
    plan, cost = layout.count(tiles)
    style = target.style(layout.fused)
    time = time_kernel(target.machine, target.constants, plan, cost, layout.elements, style)

    def number(value: object) -> float:
        return float(np.asarray(value, dtype=np.float64).reshape(-1)[0])

    return Mapped(
        part=Part(plan, layout.sizes, layout.elements, style),
        nest=layout.nest,
        tiles={axis: int(values[0]) for axis, values in tiles.items()},
        seconds=number(seconds_of(target, layout, plan, cost, 1)),
        terms={name: number(value) for name, value in time.terms.items()},
        # L2 bytes are those that blocks request, as in the search's bound.
        bytes={name: number(moved) for name, moved in time.bytes.items()}
        | {"l2": number(cost.bytes_at("l2"))},
        shared_bytes=number(cost.shared_footprint_bytes),
        register_bytes=number(cost.register_footprint_bytes),
        threads=int(number(cost.nest.kernel.threads)),
        stages=int(number(cost.nest.kernel.stages)),
        nests=tally[0],
        candidates=tally[1],
        fitting=tally[2],
        timed=tally[3],
    )
