"""The derivation of an algorithm's cost on one page: formulas, best tiles, bounds, then numbers.

Everything here is data; `perfmodel.render.explanation` formats it. Formulas are
in elements and come from the counting rule run on symbols. Numbers come from the same rule run on
ints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfmodel.algorithms.algorithm import Algorithm
from perfmodel.algorithms.declaration import Case
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.napkin import mapper
from perfmodel.napkin.bounds import Bound, compulsory, lower_bound
from perfmodel.napkin.fit import Layout, Target
from perfmodel.napkin.front import front
from perfmodel.napkin.fusion import Verdict, check, part, partitions
from perfmodel.napkin.loops import Line, lines
from perfmodel.napkin.nests import Nest, batch_axes, product_of, units
from perfmodel.napkin.optimum import Optimum, optimum
from perfmodel.napkin.symbols import Formulas, formulas
from perfmodel.napkin.symbols import value as number
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine

SCHEDULES = ("auto", "tiled", "standard", "tiled-1", "tiled-2", "tiled-3", "fused", "unfused")
# On-chip memory without a device: the 227 KiB of a Hopper block.
_CAPACITY_BYTES = 227 * 1024


@dataclass(frozen=True)
class Tiling:
    """Integer tiles on a device."""

    what: str
    """Criterion by which the tiling was chosen."""
    tiles: Mapping[str, int]
    """Tile of each axis."""
    elements: float
    """Elements moved at the L2 boundary."""
    bytes: float
    """Bytes moved at the L2 boundary."""
    factor: float
    """Elements moved over the lower bound."""
    shared_bytes: float
    """Bytes of shared memory of a block."""
    register_bytes: float
    """Bytes of registers of a block."""
    threads: int
    """Threads of a block."""
    stages: int
    """Buffers of a streamed tensor."""
    seconds: float
    """Predicted time."""


@dataclass(frozen=True)
class Numbers:
    """A kernel on a device."""

    memory_elements: float
    """M: elements that fit in shared memory and registers."""
    best_elements: float | None
    """H*: elements moved by the best tiles; None where there is no optimum."""
    best_tiles: Mapping[str, float]
    """The best tiles, not rounded."""
    bound_elements: float
    """The lower bound."""
    divisibility: Mapping[str, int]
    """Number of which each axis's tile must be a multiple."""
    saturated: tuple[str, ...]
    """Axes whose best tile by the formula exceeds their extent."""
    tilings: tuple[Tiling, ...]
    """Tilings of whole instructions and cache lines."""


@dataclass(frozen=True)
class KernelPage:
    """One kernel of an explanation."""

    nest: Nest
    """Its loop nest."""
    fused: Algorithm
    """The fused steps as an algorithm."""
    loops: tuple[Line, ...]
    """The nest as lines of text."""
    verdicts: Mapping[str, Verdict]
    """Whether each axis may be grouped or streamed, and why."""
    formulas: Formulas | None
    """Traffic and memory as formulas; None where a mask has no closed form."""
    optimum: Optimum | None
    """The best tiles as formulas; None where there are none."""
    bound: Bound
    """The lower bound of its traffic."""
    note: str
    """Why there are no formulas; else empty."""
    numbers: Numbers | None
    """The same as numbers on a device; None without a device."""


@dataclass(frozen=True)
class Explanation:
    """All kernels of one schedule of an algorithm."""

    case: Case
    """The algorithm at its sizes."""
    about: str
    """One sentence about it."""
    source: str
    """Reference of the algorithm."""
    schedule: str
    """The schedule that is explained."""
    extents: Mapping[str, Any]
    """Expression of each axis's extent in the parameters."""
    device: Device | None
    """The device of the numbers; None: formulas only."""
    kernels: tuple[KernelPage, ...]
    """Its kernels, in launch order."""


def explain(
    case: Case,
    *,
    schedule: str = "tiled",
    device: Device | None = None,
    about: str = "",
    source: str = "",
    extents: Mapping[str, Any] | None = None,
    fuse: Sequence[Sequence[str]] | None = None,
    grid: Sequence[str] | None = None,
    stream: Sequence[str] | None = None,
) -> Explanation:
    """Derive the cost of a schedule: `tiled` fuses all steps, `standard` none, `auto` as the mapper
    does.

    `fuse` lists the steps of each kernel instead. `grid` and `stream` list the loops of a single
    kernel. Raises `ProblemError` with the reason why a nest is illegal, or the binding constraint.
    """
    target = Target(machine(device), default(), case.dtype) if device is not None else None
    nests = _nests(case, schedule, target, fuse, grid, stream)
    pages = tuple(_page(case, nest, target) for nest in nests)
    return Explanation(case, about, source, schedule, extents or case.sizes, device, pages)


def _nests(
    case: Case,
    schedule: str,
    target: Target | None,
    fuse: Sequence[Sequence[str]] | None,
    grid: Sequence[str] | None,
    stream: Sequence[str] | None,
) -> list[Nest]:
    if schedule not in SCHEDULES:
        raise ProblemError(f"no schedule named {schedule!r}; known: {', '.join(SCHEDULES)}")
    names = [step.name for step in case.algorithm.steps]
    if grid is not None or stream is not None:
        kernels = [tuple(fuse[0])] if fuse else [tuple(names)]
        return [_nest(case, kernels[0], grid or (), stream or ())]
    if fuse is None and schedule == "auto" and target is not None:
        return [item.nest for item in mapper.search(case, target.machine.device).kernels]
    if fuse is None and schedule == "tiled-1":
        return [_first_order(case, tuple(names))]
    cuts = [tuple(group) for group in fuse] if fuse else None
    if cuts is None:
        unfused = schedule in ("standard", "unfused")
        cuts = [(name,) for name in names] if unfused else [tuple(names)]
    if [name for group in cuts for name in group] != names:
        raise ProblemError(f"fuse names every step once, in order: {', '.join(names)}")
    return [_best(case, group, target) for group in cuts]


def _nest(case: Case, steps: Sequence[str], grid: Sequence[str], stream: Sequence[str]) -> Nest:
    """The requested nest; batch axes are always spread over blocks."""
    fused = part(case.algorithm, steps)
    check(fused, grid, stream)
    batch = [a for a in batch_axes(fused) if case.sizes[a] > 1 and a not in stream]
    rest = [axis for axis in grid if axis not in batch]
    return Nest(tuple(steps), (*batch, *rest), tuple(stream), frozenset(batch))


def _first_order(case: Case, steps: tuple[str, ...]) -> Nest:
    """FlashAttention-1's order: the normalised axis outside, the rows inside."""
    axis = next((step.along for step in case.algorithm.steps if step.along), None)
    mask = [step for step in case.algorithm.steps if step.kind == "contraction"]
    if axis is None or len(mask) < 2:
        raise ProblemError(f"tiled-1 is an order of attention; {case.algorithm.name} has none")
    first = case.algorithm.tensors[mask[0].inputs[0]].axes
    second = case.algorithm.tensors[mask[0].inputs[1]].axes
    rows = [a for a in first if a not in second and case.sizes[a] > 1]
    return _nest(case, steps, (), (axis, *rows[-1:]))


def _best(case: Case, steps: tuple[str, ...], target: Target | None) -> Nest:
    """The fastest nest of a kernel on the device, or the one with least traffic in 227 KiB."""
    if target is not None:
        kernel = mapper.kernel(case, steps, target)
        if isinstance(kernel, str):
            raise ProblemError(kernel)
        return kernel.nest
    fused = part(case.algorithm, steps)
    frontier = front(fused, case.sizes, case.elements, columns=2000)
    choice = frontier.least(_CAPACITY_BYTES)
    if choice is None:
        raise ProblemError(f"no tile of {' + '.join(steps)} fits in {_CAPACITY_BYTES // 1024} KiB")
    return choice.nest


def _page(case: Case, nest: Nest, target: Target | None) -> KernelPage:
    import sympy

    fused = part(case.algorithm, nest.steps)
    sizes = {axis: case.sizes[axis] for axis in fused.axes}
    note, algebra, best = "", None, None
    try:
        algebra = formulas(fused, nest, sizes)
        note = algebra.note
        best = closed_form(algebra)
    except ProblemError as error:
        note = str(error)
    symbols = {a: algebra.sizes[a] for a in fused.axes} if algebra else sizes
    bound = lower_bound(fused, symbols, sympy.Symbol("M", positive=True))
    numbers = None if target is None else _numbers(case, fused, nest, target, best)
    return KernelPage(
        nest,
        fused,
        tuple(lines(fused, nest, sizes)),
        partitions(fused),
        algebra,
        best,
        bound,
        note,
        numbers,
    )


def closed_form(found: Formulas) -> Optimum | None:
    """The optimum of a kernel's formulas; with streams of single elements where only that has
    one."""
    best = optimum(found.smooth_transfer, found.smooth_memory, found.tiles)
    if best is not None:
        return best
    thin = {found.tiles[axis]: 1 for axis in found.nest.stream}
    rest = {axis: tile for axis, tile in found.tiles.items() if tile not in thin}
    return optimum(found.smooth_transfer.subs(thin), found.smooth_memory.subs(thin), rest)


def _numbers(
    case: Case, fused: Algorithm, nest: Nest, target: Target, best: Optimum | None
) -> Numbers:
    sizes = {axis: case.sizes[axis] for axis in fused.axes}
    width = case.elements["data"].bytes
    memory = target.chip_bytes / width
    value, tiles = None, dict[str, float]()
    if best is not None:
        values: dict[str, Any] = {**sizes, "M": memory}
        if fused.mask is not None:
            values["σ"] = fused.mask.share
        value = number(best.transfer, **values)
        tiles = {axis: number(formula, **values) for axis, formula in best.tiles.items()}
    excess = tuple(a for a, t in tiles.items() if t > product_of([sizes[x] for x in a.split("·")]))
    if excess:
        value = float(compulsory(fused, sizes))
    bound = float(lower_bound(fused, sizes, memory).value)
    layout = Layout(fused, nest, target, sizes, case.elements)
    granules = {axis: layout.granule(axis) for axis in nest.tiled}
    return Numbers(memory, value, tiles, bound, granules, excess, _tilings(layout, target, bound))


def _tilings(layout: Layout, target: Target, bound: float) -> tuple[Tiling, ...]:
    """The legal tiling with least traffic, and the fastest one."""
    tiles = layout.tiles()
    if tiles is None:
        return ()
    contents = layout.contents(tiles)
    plan, cost = layout.count(tiles, contents)
    width = max((len(values) for values in tiles.values()), default=1)
    fits = np.broadcast_to(layout.fits(contents), (width,))
    if not fits.any():
        limit, need, room = layout.shortage(contents)
        raise ProblemError(
            f"no tile of {' + '.join(layout.nest.steps)} fits: {limit} binds; the least tile needs "
            f"{need:.0f} bytes of {room:.0f}, {need - room:.0f} too many"
        )
    (seconds,) = mapper.seconds_of(target, layout, plan, cost, (1, width))
    traffic = np.broadcast_to(np.asarray(cost.bytes_at("l2"), dtype=np.float64), (width,))
    # Among tiles of equal traffic the fastest is taken.
    least = int(np.lexsort((seconds, np.where(fits, traffic, np.inf)))[0])
    fastest = int(np.argmin(np.where(fits, seconds, np.inf)))
    picks = [("least traffic", least), ("fastest", fastest)]
    if least == fastest:
        picks = [("least traffic and fastest", least)]
    return tuple(_tiling(label, layout, tiles, i, bound, float(seconds[i])) for label, i in picks)


def _tiling(
    label: str,
    layout: Layout,
    tiles: Mapping[str, np.ndarray],
    i: int,
    bound: float,
    seconds: float,
) -> Tiling:
    sizes = {axis: int(values[i]) for axis, values in tiles.items()}
    _, cost = layout.count(sizes)
    unit = layout.counted(sizes, units(layout.fused))
    elements = float(unit.bytes_at("l2"))
    return Tiling(
        what=label,
        tiles=sizes,
        elements=elements,
        bytes=float(np.asarray(cost.bytes_at("l2"))),
        factor=elements / bound,
        shared_bytes=float(np.asarray(cost.shared_footprint_bytes)),
        register_bytes=float(np.asarray(cost.register_footprint_bytes)),
        threads=int(np.asarray(cost.nest.kernel.threads)),
        stages=int(np.asarray(cost.nest.kernel.stages)),
        seconds=seconds,
    )
