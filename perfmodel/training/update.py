"""The declaration of a weight update: states of a tensor, stages of computation, and the style in
which an implementation launches them over a list of tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from perfmodel.arithmetic import ceil_div
from perfmodel.errors import ProblemError
from perfmodel.training.parameter import KINDS, Kind

Expression = Any
"""A size: a number, or an expression of other sizes (`perfmodel.algorithms.expressions`)."""
TICK = "'"
"""M' is the new value of M, in the same memory."""
WEIGHTS, GRADIENTS, COPY = "W", "G", "copy"


@dataclass(frozen=True)
class Types:
    """Types that an update reads and writes."""

    weights: str
    """Type of the updated weights: of the master weights, if any."""
    gradients: str
    """Type of the gradients."""
    states: str
    """Type of the states that have no type of their own."""
    copy: str | None = None
    """Type of the copy that the next forward pass reads; None where it reads the weights."""


@dataclass(frozen=True)
class State:
    """A state that an optimiser keeps of a tensor from step to step."""

    elements: Expression = "p"
    """Number of elements, an expression of the tensor's sizes."""
    type: str | None = None
    """Its type; None where the precision decides."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A part of an update: steps, or a matrix product."""

    name: str = ""
    """Name of a product; empty for steps, which have names of their own."""
    steps: Mapping[str, Any] = field(default_factory=dict)
    """Steps by name, in the language of declared algorithms; empty for a product."""
    axes: Mapping[str, Expression] | None = None
    """Extents of the axes of one tensor; None where the steps run over all tensors at once."""
    along: Mapping[str, str] = field(default_factory=dict)
    """The one axis of tensors that do not have all of them."""
    gemm: tuple[Expression, ...] = ()
    """Rows, columns and depth of a product."""
    type: str = ""
    """The format of a product's operands."""
    sides: tuple[Expression, ...] = ()
    """Values of the size x; the stage runs once for each."""
    repeat: Expression = 1
    """Runs for one tensor."""
    every: Expression = 1
    """Number of training steps between its runs."""
    passes: Literal["style", "fewest"] = "style"
    """`fewest` where the library runs its steps in the fewest kernels, whatever the style."""
    source: str = ""
    """Source, where it is not the optimiser's."""

    def __post_init__(self) -> None:
        if bool(self.steps) == bool(self.gemm):
            raise ProblemError("a stage has either steps or gemm, not both")

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All size expressions in it."""
        axes = (self.axes or {}).values()
        return (*axes, *self.gemm, *self.sides, self.repeat, self.every)

    @property
    def weights_to(self) -> str | None:
        """The name of the updated weights; None where it makes none."""
        names = [name for step in self.steps.values() for name in listed(step["to"])]
        return max((name for name in names if place(name) == WEIGHTS), key=len, default=None)


@dataclass(frozen=True, eq=False)
class Rule:
    """An update of some tensors."""

    work: tuple[Stage, ...] = ()
    """Stages, in order."""
    like: str = ""
    """Optimiser whose rules hold for these kinds; empty: this rule is not another one's."""
    states: Mapping[str, State] = field(default_factory=dict)
    """States by their names in the steps."""
    kinds: tuple[Kind, ...] = KINDS
    """Kinds of parameters that it applies to."""
    fewest: Expression = 1
    """Elements of the smallest tensor that it applies to."""
    cut: Expression | None = None
    """Rows and columns of the blocks that tensors are cut into; None: tensors stay whole."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Types of temporaries that differ from the weights' type."""

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All size expressions in it."""
        sizes = (*(state.elements for state in self.states.values()), self.fewest, self.cut or 1)
        return (*sizes, *(text for stage in self.work for text in stage.expressions))

    def type_of(self, name: str, types: Types) -> str:
        """The type of a tensor of its steps: the type of the memory that it is stored in."""
        states = {name: state.type or types.states for name, state in self.states.items()}
        products = {stage.name: stage.type for stage in self.work if stage.gemm}
        sums = {
            place(result): "fp32"
            for stage in self.work
            for step in stage.steps.values()
            if "reduction" in step
            for result in listed(step["to"])
        }
        by_place = {**sums, **products, **states, **self.types, GRADIENTS: types.gradients}
        if types.copy is not None:
            by_place[COPY] = types.copy
        return by_place.get(place(name), types.weights)


def place(name: str) -> str:
    """The memory that a tensor is stored in: M for M' and M''."""
    return name.rstrip(TICK)


def listed(names: Any) -> tuple[str, ...]:
    """A name or several, as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)


@dataclass(frozen=True)
class Style:
    """How an implementation runs an update over many tensors."""

    name: str
    """Name in a plan."""
    about: str
    """One-line description."""
    passes: Literal["fewest", "each"]
    """Steps in one kernel: as many as the dependences allow, or one."""
    copy: Literal["within", "apart"]
    """Whether the update's last kernel also writes the weights' copy in another type, or a separate
    one."""
    source: str
    """Source."""
    chunk: int | None = None
    """Elements that one thread block processes; None where a kernel takes one tensor."""
    blocks: int = 0
    """Thread blocks (chunks) that the arguments of one launch hold."""
    tensors: tuple[int, ...] = ()
    """Tensors that the arguments hold, by the number of lists; the first entry is for one list."""

    def launches(self, elements: Iterable[tuple[int, int]], lists: int) -> int:
        """Launches over tensors, in order; a pair is the elements of a tensor and the number of
        such tensors.

        A launch ends when it has no room for another block, even within a tensor, or for another
        tensor. A tensor that was cut continues as the first of the next launch
        (multi_tensor_apply.cuh). `lists` counts the lists that a kernel goes through in parallel:
        weights, gradients, each state, the copy.
        """
        if self.chunk is None:
            return sum(count for _, count in elements)
        limit = self.tensors[min(lists, len(self.tensors)) - 1]
        launches = blocks = tensors = 0
        for size, count in elements:
            chunks = ceil_div(size, self.chunk)
            for _ in range(count):
                tensors += 1
                full, blocks = divmod(blocks + chunks, self.blocks)
                launches += full
                if full:
                    tensors = 1 if blocks else 0
                if tensors == limit:
                    launches, blocks, tensors = launches + 1, 0, 0
        return launches + (blocks > 0)
