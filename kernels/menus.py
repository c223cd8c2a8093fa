"""What menus have in common: lanes of a warp, warps of a block, and the union of menus."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import product
from typing import TypeVar

from perfmodel_kernels.common import ceil_div

from perfmodel.errors import ProblemError

Config = TypeVar("Config")
Problem = TypeVar("Problem")

# Steps of k that a slice has at least: fewer only fill and drain the pipeline.
_FEWEST_STEPS = 4
# Targets whose menus differ, and the units (those of an H100) that configs are listed for.
_TARGETS = ("sm_80", "sm_90", "sm_100", "sm_120", "gfx942")
_USUAL_UNITS = 132


def lanes(target: str) -> int:
    """Threads of a warp: 64 on AMD's CDNA."""
    return 64 if target.startswith("gfx") else 32


def most_warps(target: str, elements: int) -> int:
    """Warps of the largest block that is worth trying for a tile of so many elements.

    16, unless threads would then hold more than 32 elements; 1024 threads is the most there are.
    """
    return 16 if elements <= 32 * 16 * lanes(target) else 1024 // lanes(target)


def slice_extent(k: int, step: int, slices: int, fewest: int = 1) -> int:
    """Extent of k, in whole steps, that a block sums where k is cut into about `slices`.

    Slices have 4 steps at least, unless there would be less than `fewest` of them.
    """
    most = k // (_FEWEST_STEPS * step)
    cut = max(fewest, min(slices, most))
    return ceil_div(ceil_div(k, cut), step) * step


def every(
    menu_of: Callable[[Problem, str, int], tuple[Config, ...]], forms: Iterable[Problem]
) -> tuple[Config, ...]:
    """All configs of a kernel's menus, once each."""
    found: dict[Config, None] = {}
    for problem, target in product(forms, _TARGETS):
        with suppress(ProblemError):  # what the target cannot do at all has no menu
            found |= dict.fromkeys(menu_of(problem, target, _USUAL_UNITS))
    return tuple(found)
