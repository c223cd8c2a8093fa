"""A tensor as one operation sees it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from perfmodel.elements import TORCH

TYPES = {
    **TORCH,
    **dict.fromkeys(("bool", "uint8"), "int8"),
    **dict.fromkeys(("int16", "uint16"), "fp16"),
    **dict.fromkeys(("int32", "uint32"), "fp32"),
    **dict.fromkeys(("int64", "uint64", "complex64"), "fp64"),
}
"""Types of torch as ours. Of what is no float the width alone counts: nothing multiplies it."""


@dataclass(frozen=True)
class Operand:
    """A tensor in memory, seen as a view of it."""

    tensor: str
    """The tensor of the graph that it lies in."""
    shape: tuple[int, ...]
    """Extents of the view."""
    dtype: str
    """Element type."""
    spread: tuple[int, ...] = ()
    """Dimensions along which every index is the same element."""
    floating: bool = True
    """Whether it has a gradient."""

    @property
    def elements(self) -> int:
        """Elements that the view names, each as often as it names it."""
        return math.prod(self.shape)

    @property
    def distinct(self) -> int:
        """Elements that it names once."""
        extents = (n for i, n in enumerate(self.shape) if i not in self.spread)
        return math.prod(extents)

    def gradient(self) -> Operand:
        """The gradient of its tensor, of the same shape."""
        return replace(self, tensor=f"d.{self.tensor}")


def operand(tensor: str, value: Any) -> Operand:
    """What a meta tensor says of a view."""
    shape = tuple(int(n) for n in value.shape)
    strides = tuple(int(n) for n in value.stride())
    spread = tuple(i for i, n in enumerate(shape) if n > 1 and strides[i] == 0)
    name = str(value.dtype).removeprefix("torch.")
    floating = value.dtype.is_floating_point
    return Operand(tensor, shape, TYPES.get(name, "fp32"), spread, floating)
