"""The form of a declared algorithm's file: its keys, their types and meanings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, get_args

from perfmodel.algorithms.algorithm import StepKind
from perfmodel.frozen import dataclass

KINDS: tuple[str, ...] = get_args(StepKind)
Names = str | tuple[str, ...]
"""A name, or a list of names."""
Expression = float | str
"""A number, or an expression of names: operators + - * / // %, functions log2 sqrt ceil min max."""
Value = float | str | bool
"""A number, a flag, or an expression."""


@dataclass(frozen=True, kw_only=True)
class TensorForm:
    """An array."""

    axes: Names = ()
    """Its axes, the contiguous one last."""
    element: str = "data"
    """Its element role: data, output, accumulator, statistic, or one of types."""
    windows: tuple[Any, ...] = ()
    """Pairs of a position and a tap that share a dimension: [axis, tap] or [axis, tap, stride]."""
    constant: bool = False
    """Whether it has no gradient: labels, indices, tables."""


@dataclass(frozen=True, kw_only=True)
class DerivativeForm:
    """What a step's gradient takes beside the gradient of its result."""

    reads: Names = ()
    """Tensors of the step that its gradient reads."""
    vector: float = 0.0
    """Vector operations of the gradient per point."""
    special: float = 0.0
    """Special functions of the gradient per point."""


@dataclass(frozen=True, kw_only=True)
class StepForm:
    """A step: one kind with its inputs, and what it makes."""

    contraction: Names = ()
    """A sum of products of two tensors, on the matrix unit."""
    map: Names = ()
    """Element by element."""
    normalisation: Names = ()
    """Every element divided by something that all along an axis decide."""
    reduction: Names = ()
    """A sum, maximum or the like, on the vector unit."""
    to: Names
    """What it makes."""
    over: Names = ()
    """Axes that it sums away."""
    along: str = ""
    """The axis that a normalisation runs along."""
    late: Names = ()
    """Inputs that play no part in a normaliser, such as a norm's weights."""
    vector: float = 0.0
    """Vector operations per point of the step's axes."""
    special: float = 0.0
    """Special functions per point of the step's axes."""
    derivative: DerivativeForm | None = None
    """What the step's gradient takes beside the gradient of its result."""


@dataclass(frozen=True, kw_only=True)
class MaskForm:
    """Which scores are skipped."""

    query: str
    """Axis of the queries."""
    key: str
    """Axis of the keys."""
    causal: Value = False
    """Whether later keys are hidden."""
    window: Value = 0
    """Nearest keys that are seen; 0 for all."""
    share: Value = 1
    """Share of the tiles that a block-sparse pattern keeps."""


@dataclass(frozen=True, kw_only=True)
class DeclarationForm:
    """An algorithm: axes, tensors and steps."""

    name: str
    """What commands call it."""
    about: str = ""
    """What it is, in a line."""
    source: str = ""
    """Where it comes from."""
    parameters: Mapping[str, Value] | None = None
    """What a user sets, with defaults; each is an option of the command line."""
    limits: Names = ()
    """Comparisons of parameters that every problem satisfies: top_k <= experts."""
    axes: Mapping[str, Expression]
    """Extent of every axis."""
    types: Mapping[str, str] | None = None
    """Type of each element role: fp32, fp8 ..., or data for what --dtype says."""
    tensors: Mapping[str, Names | TensorForm]
    """Axes of each array, the contiguous one last."""
    steps: Mapping[str, StepForm]
    """What is computed, in any order."""
    outputs: Names
    """Tensors that must reach memory."""
    recompute: Names = ()
    """Tensors that the backward pass makes again instead of reading them."""
    mask: MaskForm | None = None
    """Which scores are skipped."""
    operator: Mapping[str, Value] | None = None
    """A built-in operator by its `name`, with its sizes as expressions of the parameters."""


def keys(form: Any) -> tuple[str, ...]:
    """The keys of a form, in their order."""
    return tuple(item.name for item in fields(form))


def needed(form: Any) -> tuple[str, ...]:
    """The keys that a file must have."""
    return tuple(item.name for item in fields(form) if item.default is MISSING)


def schema() -> dict[str, Any]:
    """The JSON Schema of a file."""
    from perfmodel.entryschema import object_of

    parts: dict[str, Any] = {}
    form = object_of(DeclarationForm, parts=parts)
    parts["StepForm"]["oneOf"] = [{"required": [kind]} for kind in KINDS]
    return {"title": "An algorithm: axes, tensors and steps", **form, "$defs": parts}
