"""The form of a declared graph's file: its keys, their types and meanings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfmodel.algorithms.declarationform import Expression, Names, Value
from perfmodel.frozen import dataclass

Shape = Expression | tuple[Expression, ...]
"""An extent, or a list of extents."""


@dataclass(frozen=True, kw_only=True)
class TensorForm:
    """A tensor that is not one whole operand, or lies elsewhere."""

    shape: Shape
    """Its extents, the contiguous one last."""
    type: str = ""
    """Its element type."""
    place: str = ""
    """The level that it lies in: hbm, host, peer, network."""
    over: str = ""
    """The tensor whose memory it takes."""


@dataclass(frozen=True, kw_only=True)
class PartForm:
    """An operand that is a part of tensors."""

    part: Names
    """Tensors of which it is a part."""


@dataclass(frozen=True, kw_only=True)
class NodeForm:
    """An operator at its sizes, and the tensors that it reads and writes."""

    operator: str
    """What it computes: a name of perfmodel list operators, or a file."""
    sizes: Mapping[str, Value] | None = None
    """Options of the operator: sizes as expressions, names and flags as they are."""
    reads: Mapping[str, Names | PartForm] | None = None
    """Operand to the tensors that it is."""
    writes: Mapping[str, Names | PartForm] | None = None
    """Operand to the tensors that it is."""
    repeat: Expression = 1
    """How often it runs, each time over tensors of its own."""
    schedule: str = ""
    """One of its operator's schedules."""
    implementation: str = ""
    """The library's kernel that runs it."""


@dataclass(frozen=True, kw_only=True)
class GraphForm:
    """A graph: operators joined by tensors."""

    name: str
    """What results call it."""
    about: str = ""
    """One line."""
    source: str = ""
    """Where its operators and sizes are from."""
    dtype: str = "bf16"
    """Type of data unless told."""
    sizes: Mapping[str, Expression] | None = None
    """Sizes that a user sets, with defaults."""
    inputs: Mapping[str, Shape | TensorForm] | None = None
    """Tensors that are there before."""
    weights: Mapping[str, Shape | TensorForm] | None = None
    """Tensors that stay."""
    tensors: Mapping[str, Shape | TensorForm] | None = None
    """Tensors between nodes that are part of an operand, or have a type or a place of their own."""
    outputs: Names = ()
    """Tensors that outlive the graph."""
    nodes: Mapping[str, NodeForm]
    """Operators by name, in the order in which they run."""


def schema() -> dict[str, Any]:
    """The JSON Schema of a file."""
    from perfmodel.entryschema import object_of

    parts: dict[str, Any] = {}
    form = object_of(GraphForm, parts=parts)
    return {"title": "A graph: operators joined by tensors", **form, "$defs": parts}
