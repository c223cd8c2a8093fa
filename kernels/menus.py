"""What menus have in common: lanes of a warp, and the union of a kernel's menus."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import product
from typing import TypeVar

from perfmodel.errors import ProblemError

Config = TypeVar("Config")
Problem = TypeVar("Problem")

# Targets whose menus differ, and the units (those of an H100) that configs are listed for.
_TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")
_USUAL_UNITS = 132


def lanes(target: str) -> int:
    """Threads of a warp: 64 on AMD's CDNA."""
    return 64 if target.startswith("gfx") else 32


def every(
    menu_of: Callable[[Problem, str, int], tuple[Config, ...]], forms: Iterable[Problem]
) -> tuple[Config, ...]:
    """All configs of a kernel's menus, once each."""
    found: dict[Config, None] = {}
    for problem, target in product(forms, _TARGETS):
        with suppress(ProblemError):  # what the target cannot do at all has no menu
            found |= dict.fromkeys(menu_of(problem, target, _USUAL_UNITS))
    return tuple(found)
