"""Facts about an optimiser and about a recipe of mixed precision, with their sources."""

from __future__ import annotations

from collections.abc import Iterator

from perfmodel.timing.stated import Fact
from perfmodel.training import precision
from perfmodel.training.optimisers import STYLE, STYLES, Optimiser
from perfmodel.training.parameter import Parameter
from perfmodel.training.precision import Precision

SHAPES = (
    Parameter("4096 x 4096", (4096, 4096)),
    Parameter("4096 x 16384", (4096, 16384)),
    Parameter("embedding 32000 x 4096", (32000, 4096), "embedding"),
    Parameter("vector of 4096", (4096,), "vector"),
)
"""Tensors for which states are shown."""
RECIPE = "megatron"
"""The precision for which traffic is shown: fp32 gradients and master weights, a 16-bit copy."""
TOKENS = 2**20
"""Tokens of a step for which statistics over tokens are shown."""


def of_optimiser(optimiser: Optimiser) -> tuple[Fact, ...]:
    """Its settings; and its states, traffic and products by shape."""
    return (*_settings(optimiser), *_optimiser_facts(optimiser))


def _settings(optimiser: Optimiser) -> Iterator[Fact]:
    for name, setting in optimiser.settings.items():
        yield Fact(name, setting.value, "", setting.meaning, optimiser.name, setting.source)


def _optimiser_facts(optimiser: Optimiser) -> Iterator[Fact]:
    recipe, owner, source = precision.load(RECIPE), optimiser.name, optimiser.source

    def fact(name: str, value: float, unit: str, meaning: str) -> Fact:
        return Fact(name, round(value, 4), unit, meaning, owner, source)

    for shape in SHAPES:
        share = optimiser.state_bytes([shape], recipe) / shape.elements
        yield fact(f"states.{shape.name}", share, "B", "Bytes a parameter of its states.")
    matrix = SHAPES[0]
    for style in STYLES:
        traffic = optimiser.traffic_bytes([matrix], recipe, style=style, tokens=TOKENS)
        text = f"Bytes a parameter that a step moves, {matrix.name}."
        yield fact(f"traffic.{style}", traffic / matrix.elements, "B", text)
    work = optimiser.problems([matrix], recipe, tokens=TOKENS)
    flops = sum(each.flops for each in work)
    if flops:
        text = f"Operations a parameter of a step's products, {matrix.name}."
        yield fact("products", flops / matrix.elements, "FLOP", text)
    launches = float(sum(each.repeat * each.share_of_steps for each in work))
    yield fact("kernels", launches, "", f"Kernels a step, {matrix.name}, {STYLE}.")


def of_precision(recipe: Precision) -> tuple[Fact, ...]:
    """The types of a recipe, and their bytes a parameter."""
    owner, source = recipe.name, recipe.source
    copies = [f"{copy.dtype}, {copy.lives}" for copy in recipe.copies]
    facts = (
        ("weights", recipe.weights, "Type of the weights that forward and backward read."),
        ("gradients", recipe.gradients, "Type in which gradients are added up."),
        ("master", recipe.master, "Type of the weights that the optimiser updates."),
        ("states", recipe.states, "Type of the optimiser's moments."),
        ("copies", copies, "Further copies of the weights, and how long they live."),
    )
    return tuple(Fact(name, value, "", meaning, owner, source) for name, value, meaning in facts)
