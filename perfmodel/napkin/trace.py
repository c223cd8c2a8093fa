"""What a search considered and why its answer won, as sentences and as table rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from perfmodel.algorithms.declaration import Case
from perfmodel.errors import ProblemError
from perfmodel.napkin.front import Choice, Fronts, fronts
from perfmodel.napkin.mapper import Fusion, Mapped, Mapping_
from perfmodel.units import binary, si
from perfmodel.units import seconds as duration

_SHOWN = 8  # fusions listed


def sentences(found: Mapping_, *, full: bool = False) -> Iterator[str]:
    """Why the schedule won; with `full` also the search of every kernel."""
    if full:
        for steps, way in found.groups.items():
            yield f"{' + '.join(steps)}: {_search_text(way)}"
        for fusion in found.fusions[:_SHOWN]:
            yield f"{_split_text(fusion)}: {_time(fusion.seconds)}"
    best = found.fusions[0]
    pool = [item for item in found.groups.values() if isinstance(item, Mapped)]
    yield (
        f"considered {len(found.fusions)} fusions of {len(found.groups)} kernels, "
        f"{sum(k.nests for k in pool)} loop nests, {sum(k.candidates for k in pool)} tilings; "
        f"{sum(k.timed for k in pool)} timed, the rest ruled out by a bound or by size"
    )
    yield f"fastest: {_split_text(best)}, {_time(best.seconds)}"
    yield from _comparisons(found, best)


def _search_text(best: Mapped | str) -> str:
    if isinstance(best, str):
        return best
    return (
        f"{best.nests} nests, {best.candidates} tilings, {best.fitting} fit, {best.timed} timed; "
        f"best blocks over {best.blocks}, stream {best.stream}: {_time(best.seconds)}, "
        f"{best.limiter}"
    )


def _comparisons(plan: Mapping_, best: Fusion) -> Iterator[str]:
    """The winner compared with fusing everything and with fusing nothing."""
    names = tuple(step.name for step in plan.case.algorithm.steps)
    if len(names) == 1:
        return
    singles = tuple((name,) for name in names)
    others = {"fusing everything": (names,), "fusing nothing": singles}
    for label, split in others.items():
        if split == best.kernels:
            continue
        gap = next((k for k in split if isinstance(plan.groups[k], str)), None)
        if gap is not None:
            yield f"{label}: impossible, {plan.groups[gap]}"
            continue
        kernels = [k for k in (plan.groups[c] for c in split) if isinstance(k, Mapped)]
        seconds = sum(kernel.seconds for kernel in kernels)
        ratios = {
            level: sum(k.bytes[level] for k in kernels) / sum(k.bytes[level] for k in plan.kernels)
            for level in ("hbm", "l2")
        }
        yield (
            f"{label}: {seconds / best.seconds:.3g}× the time, "
            f"{ratios['hbm']:.3g}× the bytes of memory, {ratios['l2']:.3g}× the L2 bytes; "
            "its slowest kernel is bound by "
            f"{max(kernels, key=lambda k: k.seconds).limiter}"
        )


def _split_text(fusion: Fusion) -> str:
    return " | ".join(" + ".join(steps) for steps in fusion.kernels)


def _time(seconds: float) -> str:
    return duration(seconds) if np.isfinite(seconds) else "impossible"


@dataclass(frozen=True)
class Least:
    """The schedule with least traffic at one capacity."""

    case: Case
    """The algorithm at its sizes."""
    capacity_bytes: float
    """The capacity."""
    choices: tuple[Choice, ...]
    """Its kernels, in launch order."""
    moved_bytes: float
    """Bytes that they move."""
    ratio: float
    """Fused over unfused traffic; infinite where fusing everything does not fit, zero where fusing
    nothing does not."""
    weighed: int
    """Number of tilings that were counted."""


def least_bytes(case: Case, capacity_bytes: float, found: Fronts | None = None) -> Least:
    """Least traffic at a capacity; raises `ProblemError` where nothing fits."""
    if not capacity_bytes > 0:
        raise ProblemError(f"a capacity is positive, not {capacity_bytes:g} bytes")
    table = found or fronts(case.algorithm, case.sizes, case.elements)
    choices = table.fusion(capacity_bytes)
    names = tuple(step.name for step in case.algorithm.steps)
    capacity = np.array([capacity_bytes])
    fused = float(table.moved((names,), capacity)[0])
    cuts = _unfused_cuts(case)
    unfused = float(table.moved(cuts, capacity)[0])
    ratio = fused / unfused if np.isfinite(unfused) else 0.0
    count = sum(item.considered for item in table.by_steps.values())
    total = sum(choice.moved_bytes for choice in choices)
    return Least(case, capacity_bytes, choices, total, ratio, count)


def _unfused_cuts(case: Case) -> list[tuple[str, ...]]:
    """One kernel a contraction, with the maps that follow it: how frameworks run it unfused."""
    cuts: list[tuple[str, ...]] = []
    for step in case.algorithm.steps:
        follows = step.kind == "map" and cuts and step.inputs[0] in _outputs(case, cuts[-1])
        cuts = [*cuts[:-1], (*cuts[-1], step.name)] if follows else [*cuts, (step.name,)]
    return cuts


def _outputs(case: Case, steps: Sequence[str]) -> set[str]:
    return {name for s in steps for name in case.algorithm.step(s).outputs}


def least_sentences(least: Least) -> Iterator[str]:
    """The least traffic, and whether fusing everything pays at this capacity."""
    yield (
        f"weighed {least.weighed} tilings; at {binary(least.capacity_bytes)} the least is "
        f"{si(least.moved_bytes, 'B')}"
    )
    if len(least.case.algorithm.steps) == 1:
        return
    if not np.isfinite(least.ratio):
        yield "fusing everything does not fit at this capacity"
    elif least.ratio == 0:
        yield "only fused kernels fit at this capacity"
    else:
        verdict = "pays" if least.ratio < 1 else "does not pay"
        yield (
            f"fusing everything {verdict}: it moves {least.ratio:.3g}× what one kernel a "
            "contraction moves"
        )
