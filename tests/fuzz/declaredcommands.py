"""Operators declared in YAML, shipped or of one's own: predict, whatif, sweep, roofline."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from algorithmfiles import written
from commands import device, mishap, question, shown
from dice import TYPES, Dice
from inputs import Input
from spreading import spread

from perfmodel import operators
from perfmodel.algorithms import library
from perfmodel.operators.options import Flag, Size

_SLOW = ("conv", "mla-expanded", "linear-attention")  # up to seconds each
_KEPT = ("m", "n", "k", "i", "j", "l")


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """Declared operators, those that take long once and others often."""
    found = [name for name in library.names() if name not in operators.builtin.BUILT_IN]
    return tuple(name for name in found for _ in range(1 if name in _SLOW else 8))


def make(dice: Dice) -> Input:
    """A command that predicts a declared operator."""
    files: dict[str, bytes] = {}
    name = dice.choice(names())
    if own := dice.chance(0.35):
        name, files = "mine.yaml", {"mine.yaml": written(dice).encode("utf-8", "surrogatepass")}
    slow = name in _SLOW
    command = dice.choices(("predict", "whatif", "sweep", "roofline"), (20, 2, 3, 1))[0]
    command = "predict" if slow else command
    arguments = [command, name, "-d", device(dice)]
    axes = _KEPT if own else tuple(library.load(name).extents)
    tensors = ("A", "B", "C", "D") if own else tuple(library.load(name).algorithm.tensors)
    arguments += _sizes(dice, name, own, lists=not slow and command != "whatif")
    arguments += _how(dice)
    arguments += spread(dice, name, axes=axes, tensors=tensors, place=command != "roofline")
    if command == "sweep":
        arguments += question(dice)
    arguments += (
        ["-o", "roof.svg"] if command == "roofline" else shown(dice, files=command == "predict")
    )
    if dice.chance(0.06):
        arguments = mishap(dice, arguments)
    return Input("declared", tuple(arguments), files, terminal=dice.chance(0.1))


def _sizes(dice: Dice, name: str, own: bool, lists: bool) -> list[str]:
    """Options of the operator; each size of a list is a search, and each number of a what-if."""
    found: list[str] = []
    if own:
        options: list[Any] = ["--m", "--n", "--k"]
        return [word for flag in dice.some(options, 0.3) for word in (flag, dice.size(20))]
    for item in dice.some(operators.load(name).options, 0.3):
        if isinstance(item, Flag):
            found += [item.flags[-1]]
        elif isinstance(item, Size):
            several = lists and dice.chance(0.15)
            found += [item.flags[-1], dice.sizes() if several else dice.size(20)]
        else:
            found += [item.flags[-1], dice.choice((*TYPES, "bf16", "bf16,fp8"))]
    return found


def _how(dice: Dice) -> list[str]:
    """Schedule, kernel and harness, as far as a declared operator has them."""
    found: list[str] = []
    if dice.chance(0.3):
        found += ["--schedule", dice.choice(("auto", "unfused", "fused", "auto,unfused", "tiled"))]
    if dice.chance(0.08):
        found += ["--implementation", dice.choice(("cublas", "flash3", "fused-rows", "foo"))]
    if dice.chance(0.1):
        found += ["--harness", dice.choice(("cuda_graph", "profiler", "wall_clock", "foo"))]
    return found
