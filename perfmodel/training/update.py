"""The update of a weight: what is kept of a tensor, and the stages of what is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TICK = "'"
"""M' is what M becomes, in the same memory."""
WEIGHTS, GRADIENTS, COPY = "W", "G", "copy"


@dataclass(frozen=True)
class Types:
    """Types of what an update reads and writes."""

    weights: str
    """Of the weights that are updated: master weights, where there are some."""
    gradients: str
    """Of the gradients."""
    states: str
    """Of the states that have no type of their own."""
    copy: str | None = None
    """Of the copy that the next forward pass reads; None where it reads the weights."""


@dataclass(frozen=True)
class State:
    """What an optimiser keeps of a tensor from step to step."""

    name: str
    """What its steps call it."""
    elements: str
    """How many elements it has, an expression of the tensor's sizes."""
    type: str | None
    """Its type; None where the precision decides."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A part of an update: steps, or a matrix product."""

    name: str
    """Of a product; steps have names of their own."""
    steps: Mapping[str, Mapping[str, Any]]
    """By name, in the language of declared algorithms; none of a product."""
    axes: Mapping[str, str] | None = None
    """Extents of the axes of one tensor; None where the steps run over all tensors at once."""
    along: Mapping[str, str] = field(default_factory=dict)
    """The one axis of tensors that have not all."""
    gemm: tuple[str, ...] = ()
    """Rows, columns and depth of a product."""
    dtype: str = ""
    """The format of a product's operands."""
    sides: tuple[str, ...] = ()
    """Values of x, each of which it runs for."""
    repeat: str = "1"
    """How often it runs for a tensor."""
    every: str = "1"
    """The steps of training of which it runs in one."""
    fused: bool = False
    """Whether the library runs its steps in as few kernels as may be, whatever the style."""

    @property
    def expressions(self) -> tuple[str, ...]:
        """All expressions of sizes in it."""
        axes = (self.axes or {}).values()
        return (*axes, *self.gemm, *self.sides, self.repeat, self.every)

    @property
    def weights_to(self) -> str | None:
        """The name of the updated weights; None where it makes none."""
        made = [name for step in self.steps.values() for name in listed(step["to"])]
        return max((name for name in made if place(name) == WEIGHTS), key=len, default=None)


@dataclass(frozen=True, eq=False)
class Rule:
    """An update of some tensors."""

    states: tuple[State, ...]
    """What is kept."""
    work: tuple[Stage, ...]
    """What is computed, in order."""
    kinds: tuple[str, ...]
    """Kinds of parameters that it takes."""
    fewest: str = "1"
    """Elements of the smallest tensor that it takes."""
    cut: str | None = None
    """Rows and columns of the blocks that tensors are cut into; None where they stay whole."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Types of temporaries that are not of the weights' type."""

    @property
    def expressions(self) -> tuple[str, ...]:
        """All expressions of sizes in it."""
        own = (*(state.elements for state in self.states), self.fewest, self.cut or "1")
        return (*own, *(text for stage in self.work for text in stage.expressions))

    def type_of(self, name: str, types: Types) -> str:
        """The type of a tensor of its steps, which is that of the place it lies in."""
        held = {state.name: state.type or types.states for state in self.states}
        made = {stage.name: stage.dtype for stage in self.work if stage.gemm}
        sums = {
            place(result): "fp32"
            for stage in self.work
            for step in stage.steps.values()
            if "reduction" in step
            for result in listed(step["to"])
        }
        known = {**sums, **made, **held, **self.types, GRADIENTS: types.gradients}
        if types.copy is not None:
            known[COPY] = types.copy
        return known.get(place(name), types.weights)


def place(name: str) -> str:
    """Where a tensor lies: M of M' and of M''."""
    return name.rstrip(TICK)


def listed(names: Any) -> tuple[str, ...]:
    """A name or several, as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)
