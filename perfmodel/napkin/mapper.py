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
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from perfmodel.algorithms.declaration import Case
from perfmodel.columns import Column
from perfmodel.count import KernelCost
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.napkin.fit import LARGEST_TILE, Held, Layout, Target
from perfmodel.napkin.fusion import groups, part
from perfmodel.napkin.nests import Tiled, nests, sliced_axes
from perfmodel.schedules.schedule import Schedule
from perfmodel.timing.constants import Constants, default
from perfmodel.timing.kernel import KernelTime, time_kernel
from perfmodel.timing.machine import machine
from perfmodel.timing.memory import hbm_rate
from perfmodel.timing.plan import Part, Plan, time_plan
from perfmodel.units import binary

# Rounding must not lift a bound above the time that it bounds.
_ROUNDING = 1 - 1e-9


@dataclass(frozen=True)
class Mapped(Tiled):
    """The fastest kernel found for some steps."""

    layout: Layout
    """The nest's kernel at the problem's sizes."""
    seconds: Annotated[float, Column("time", key="time_us", scale=1e6)]
    """Predicted time."""
    nests: int
    """Number of loop nests that were tried."""
    candidates: int
    """Number of tilings that were counted."""
    fitting: int
    """Number of tilings that fit on chip."""
    timed: int
    """Number of tilings that the bound did not rule out."""

    @cached_property
    def _counted(self) -> tuple[Schedule, KernelCost]:
        return self.layout.count({axis: np.array([size]) for axis, size in self.tiles.items()})

    @cached_property
    def _time(self) -> KernelTime:
        target, elements = self.layout.target, self.layout.elements
        style = target.style(self.layout.fused)
        return time_kernel(target.machine, target.constants, *self._counted, elements, style)

    @property
    def terms(self) -> Mapping[str, float]:
        """Seconds of each resource."""
        return {name: _number(value) for name, value in self._time.terms.items()}

    @property
    def bytes(self) -> Mapping[str, float]:
        """Bytes that cross into each level; those of the L2 are what blocks request, as in the
        search's bound."""
        moved = {name: _number(value) for name, value in self._time.bytes.items()}
        return moved | {"l2": _number(self._counted[1].bytes_at("l2"))}

    @property
    def shared_bytes(self) -> Annotated[float, Column(place=2)]:
        """Bytes of shared memory of a block."""
        return _number(self._counted[1].shared_footprint_bytes)

    @property
    def register_bytes(self) -> Annotated[float, Column(place=2)]:
        """Bytes of registers of a block."""
        return _number(self._counted[1].register_footprint_bytes)

    @property
    def threads(self) -> Annotated[int, Column("threads", rank=3, place=2)]:
        """Threads of a block."""
        return int(_number(self._counted[1].nest.kernel.threads))

    @property
    def stages(self) -> Annotated[int, Column("buffers", rank=4, place=2)]:
        """Buffers that streamed tensors pass through."""
        return int(_number(self._counted[1].nest.kernel.stages))

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
    (mapping,) = searches([case], device, constants or default(), fusion, prune=prune)
    return mapping


def searches(
    cases: Sequence[Case], device: Device, constants: Constants, fusion: str, *, prune: bool = True
) -> list[Mapping_]:
    """The fastest schedule of each case of one declaration without a mask, as `search`: nests are
    counted and timed once for all cases, as arrays."""
    first = cases[0]
    target = Target(machine(device), constants, first.compute or first.dtype)
    lengths = _lengths(fusion, len(first.algorithm.steps))
    tables: list[dict[tuple[str, ...], Mapped | str]] = [{} for _ in cases]
    for steps in groups(first.algorithm):
        if len(steps) in lengths:
            best = kernels(cases, steps, target, prune=prune)
        else:
            best = [f"{' + '.join(steps)} was not searched"] * len(cases)
        for table, each in zip(tables, best, strict=True):
            table[steps] = each
    gap = float(target.machine.at_clock(constants["kernel_gap"]))
    return [
        _mapped(case, device, fusion, table, gap) for case, table in zip(cases, tables, strict=True)
    ]


def _mapped(
    case: Case,
    device: Device,
    fusion: str,
    table: Mapping[tuple[str, ...], Mapped | str],
    gap: float,
) -> Mapping_:
    """The best fusion of the best kernels of some steps."""
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
    fits: np.ndarray
    """Whether each fits, shape (problems, tiles): some fit for some of the problems alone."""
    contents: Held | None
    short: tuple[str, float, float] | None


@dataclass(frozen=True)
class _Candidates:
    """One nest with its tiles that fit on chip, counted."""

    layout: Layout
    tiling: _Tiling
    laid: Schedule
    cost: KernelCost

    def bound(self, target: Target) -> np.ndarray:
        """Lower bounds of the tiles' times in seconds, shape (problems, tiles)."""
        bounds = np.broadcast_to(bound_of(target, self.layout, self.cost), self.tiling.fits.shape)
        return np.where(self.tiling.fits, bounds, np.inf)

    def seconds(self, target: Target) -> np.ndarray:
        """Their times."""
        return seconds_of(target, self.layout, self.laid, self.cost, self.tiling.fits.shape)


@dataclass(frozen=True)
class _Pool:
    """All nests of some steps that have a tile that fits; else what is short by least."""

    candidates: tuple[_Candidates, ...]
    short: tuple[str, float, float] | None


def _pool(cases: Sequence[Case], steps: tuple[str, ...], target: Target) -> _Pool:
    """The nests of `steps` with their tiles counted; of one case once for all devices of a
    shape."""
    if len(cases) > 1:
        return _count(cases, steps, target)
    key, counted = (steps, target.shape), cases[0].counted
    if key not in counted:
        counted[key] = _count(cases, steps, target)
    pool: _Pool = counted[key]
    return pool


def _count(cases: Sequence[Case], steps: tuple[str, ...], target: Target) -> _Pool:
    fused = part(cases[0].algorithm, steps)
    sizes = {axis: column([case.sizes[axis] for case in cases]) for axis in fused.axes}
    least = {axis: cases[0].sizes[axis] for axis in fused.axes}
    pool: list[_Candidates] = []
    tilings: dict[tuple[tuple[str, ...], frozenset[str]], _Tiling] = {}
    short: tuple[str, float, float] | None = None
    for nest in nests(fused, least, sliced_axes(fused)):
        layout = Layout(fused, nest, target, sizes, cases[0].elements)
        key = nest.grid, frozenset(nest.stream)
        tiling = tilings.get(key) or tilings.setdefault(key, _tiling(layout, len(cases)))
        if tiling.contents is None:
            lack = tiling.short
            short = lack if short is None or (lack and lack[1] < short[1]) else short
            continue
        plan, cost = layout.count(tiling.tiles, tiling.contents)
        pool.append(_Candidates(layout, tiling, plan, cost))
    return _Pool(tuple(pool), short)


def column(sizes: Sequence[int]) -> int | np.ndarray:
    """The size of one problem, or those of several as a column, shape (problems, 1)."""
    return sizes[0] if len(sizes) == 1 else np.array(sizes, dtype=np.int64)[:, None]


def _tiling(layout: Layout, problems: int) -> _Tiling:
    """The tiles of a nest that fit on chip, whatever the order of its streamed axes."""
    tiles = layout.tiles()
    if tiles is None:
        return _Tiling({}, 0, np.zeros((problems, 0), dtype=bool), None, None)
    legal = max((len(values) for values in tiles.values()), default=1)
    contents = layout.contents(tiles)
    fits = np.broadcast_to(layout.fits(contents), (problems, legal))
    some = fits.any(axis=0)
    if not some.any():
        return _Tiling({}, legal, fits, None, layout.shortage(contents))
    kept = {axis: values[some] for axis, values in tiles.items()}
    return _Tiling(kept, legal, fits[:, some], contents.at(fits), None)


def kernel(
    case: Case, steps: tuple[str, ...], target: Target, *, prune: bool = True
) -> Mapped | str:
    """The fastest kernel of the given steps, or one line on why none fits."""
    (best,) = kernels([case], steps, target, prune=prune)
    return best


def kernels(
    cases: Sequence[Case], steps: tuple[str, ...], target: Target, *, prune: bool = True
) -> list[Mapped | str]:
    """The fastest kernel of each case; those with the same legal tiles are searched together."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for i, case in enumerate(cases):
        key = tuple(min(size, LARGEST_TILE + 1) for size in case.sizes.values())
        alike.setdefault(key, []).append(i)
    best: dict[int, Mapped | str] = {}
    for places in alike.values():
        some = [cases[i] for i in places]
        pool = _pool(some, steps, target)
        if pool.candidates:
            best |= zip(places, _branch(some, pool.candidates, target, prune=prune), strict=True)
        else:
            best |= dict.fromkeys(places, _misfit(steps, pool.short))
    return [best[i] for i in range(len(cases))]


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


def _branch(
    cases: Sequence[Case], pool: Sequence[_Candidates], target: Target, *, prune: bool
) -> list[Mapped | str]:
    """Time the candidates, nests with the lowest bound first, until no bound can win."""
    problems = np.arange(len(cases))
    bounds = [candidates.bound(target) for candidates in pool]
    least = np.array([each.min(axis=1) for each in bounds])
    # The place of each nest in each problem's own order: of equal times the first wins.
    places = least.argsort(axis=0, kind="stable").argsort(axis=0)
    best, nest = np.full(len(cases), np.inf), least.argmin(axis=0)
    tile = np.array([np.isfinite(bounds[n][i]).argmax() for i, n in enumerate(nest)])
    tally = np.zeros(len(cases), dtype=np.int64)
    for index in sorted(range(len(pool)), key=lambda nest: float(least[nest].min())):
        picks = bounds[index] < (best[:, None] if prune else np.inf)
        if not picks.any():
            continue
        tally += picks.sum(axis=1)
        seconds = np.where(picks, pool[index].seconds(target), np.inf)
        choice = seconds.argmin(axis=1)
        seconds = seconds[problems, choice]
        earlier = np.isfinite(seconds) & (places[index] < places[nest, problems])
        better = (seconds < best) | ((seconds == best) & earlier)
        best, nest, tile = (
            np.where(better, new, old)
            for new, old in ((seconds, best), (index, nest), (choice, tile))
        )
    legal = sum(candidates.tiling.legal for candidates in pool)
    fitting = np.sum([np.isfinite(each).sum(axis=1) for each in bounds], axis=0)
    results: list[Mapped | str] = []
    for i, case in enumerate(cases):
        chosen = pool[nest[i]]
        layout = chosen.layout
        if not fitting[i]:
            results.append(kernel(case, layout.nest.steps, target))
            continue
        sizes = {axis: case.sizes[axis] for axis in layout.fused.axes}
        results.append(
            Mapped(
                nest=layout.nest,
                tiles={axis: int(each[tile[i]]) for axis, each in chosen.tiling.tiles.items()},
                layout=replace(layout, sizes=sizes),
                seconds=float(best[i]),
                nests=len(pool),
                candidates=legal,
                fitting=int(fitting[i]),
                timed=int(tally[i]),
            )
        )
    return results


def seconds_of(
    target: Target, layout: Layout, laid: Schedule, cost: KernelCost, shape: tuple[int, int]
) -> np.ndarray:
    """Seconds of a layout's kernel for all its problems and tiles, adding up partial sums
    included."""
    style = target.style(layout.fused)
    if len(laid.kernels) > 1:
        plan = Plan(laid.name, (Part(laid, layout.sizes, layout.elements, style),), {})
        return time_plan(target.machine, target.constants, plan, shape).seconds
    time = time_kernel(target.machine, target.constants, laid, cost, layout.elements, style)
    return np.broadcast_to(time.seconds, shape)


def _number(value: object) -> float:
    return float(np.asarray(value, dtype=np.float64).reshape(-1)[0])
