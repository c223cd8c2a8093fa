"""What menus share: lanes of a warp, blocks of rows, rows of tiles, and the union of menus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

from perfmodel_kernels.common import ceil_div, power_of_two

from perfmodel.errors import ProblemError

Config = TypeVar("Config")
Problem = TypeVar("Problem")

SKINNY_ROWS = 32
"""Rows up to which a tile has the product's height."""
FEWEST_ROWS = 16
"""The smallest height of matrix instructions."""
WIDEST_HELD = 32768
"""Columns up to which a row fits in registers: 32 elements a thread of the largest block."""
# Columns up to which a block has several rows.
_SHORT = 2048
# Fewest steps of k in a slice: with fewer, the pipeline only fills and drains.
_FEWEST_STEPS = 4
# Targets whose menus differ, and the number of units (that of an H100) for which configs are
# listed.
_TARGETS = ("sm_80", "sm_90", "sm_100", "sm_120", "gfx942")
_USUAL_UNITS = 132


@dataclass(frozen=True)
class RowBlock:
    """A block of rows, each held whole."""

    rows: int = 1
    """Rows of a block."""
    warps: int = 4
    """Warps of a block."""


def lanes(target: str) -> int:
    """Threads of a warp: 64 on AMD's CDNA."""
    return 64 if target.startswith("gfx") else 32


def most_warps(target: str, elements: int) -> int:
    """Warps of the largest block that is worth trying for a tile of `elements` elements.

    It is 16, unless threads would then hold more than 32 elements. A block has at most 1024
    threads.
    """
    return 16 if elements <= 32 * 16 * lanes(target) else 1024 // lanes(target)


def tile_rows(bm: int, rows: int) -> int:
    """Rows of a table's tile of `bm` rows: those of the product where it is the smallest."""
    return max(FEWEST_ROWS, power_of_two(rows)) if bm == FEWEST_ROWS else bm


def buffers(target: str, stages: int) -> int:
    """Buffers of a pipeline; CDNA's loads are held in registers, so two stages are enough."""
    return 2 if target.startswith("gfx") else stages


def row_warps(elements: int, target: str, most: int, each: tuple[int, ...]) -> Iterator[int]:
    """Numbers of warps, up to `most`, for which a thread holds the given numbers of elements."""
    for held in each:
        yield min(most, max(1, elements // (held * lanes(target))))


def row_blocks(kernel: str, cols: int, target: str) -> tuple[tuple[int, int], ...]:
    """(rows, warps) of blocks that hold whole rows, best guess first.

    A thread has 16, 32 or 8 elements of a row. For short rows four rows a block are tried as well.
    Raises `ProblemError` for a row that would spill.
    """
    if cols > WIDEST_HELD:
        raise ProblemError(
            f"a row of {cols} columns spills; the widest that {kernel} holds has {WIDEST_HELD}"
        )
    held = power_of_two(cols)
    most = most_warps(target, held)
    found = [(1, warps) for warps in row_warps(held, target, most, (16, 32, 8))]
    if held <= _SHORT:
        found += [(4, warps) for warps in row_warps(4 * held, target, most, (16,))]
    return tuple(dict.fromkeys(found))


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
