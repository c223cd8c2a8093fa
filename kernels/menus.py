"""Functions that menus share: lanes of a warp, warps of a block, and the union of menus."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import product
from typing import TypeVar

from perfmodel_kernels.common import ceil_div

from perfmodel.errors import ProblemError

Config = TypeVar("Config")
Problem = TypeVar("Problem")

WITHOUT_FP8 = {
    "sm_80": "has no 8-bit floats",
    "gfx942": "computes with e4m3fnuz, and e4m3fn would be converted in software",
}
"""Targets without e4m3fn, and why."""
# Fewest steps of k in a slice: with fewer, the pipeline only fills and drains.
_FEWEST_STEPS = 4
# Targets whose menus differ, and the number of units (that of an H100) for which configs are
# listed.
_TARGETS = ("sm_80", "sm_90", "sm_100", "sm_120", "gfx942")
_USUAL_UNITS = 132


def lanes(target: str) -> int:
    """Threads of a warp: 64 on AMD's CDNA."""
    return 64 if target.startswith("gfx") else 32


def most_warps(target: str, elements: int) -> int:
    """Warps of the largest block that is worth trying for a tile of `elements` elements.

    It is 16, unless threads would then hold more than 32 elements. A block has at most 1024
    threads.
    """
    return 16 if elements <= 32 * 16 * lanes(target) else 1024 // lanes(target)


def slice_extent(k: int, step: int, slices: int, fewest: int = 1) -> int:
    """Extent of k of a block, in whole steps, with k cut into about `slices` slices.

    Slices have at least 4 steps, unless there would be fewer than `fewest` slices.
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
        with suppress(ProblemError):  # the target does not support the problem
            found |= dict.fromkeys(menu_of(problem, target, _USUAL_UNITS))
    return tuple(found)
