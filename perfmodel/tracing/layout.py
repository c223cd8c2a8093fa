"""Copies that torch makes of operands whose layout a product's kernel cannot read.

`matmul` of operands with several leading dimensions is a `bmm` of one: each operand is expanded to
the common leading dimensions and reshaped (ATen/native/LinearAlgebra.cpp, `_matmul_impl`). The
reshape is a view where the strides allow one, and else a copy: heads that lie beside each other in
the rows of a token are copied apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

COPY = "aten.clone"
"""The operator of such a copy."""
_NAMES = ("self", "other")


def copied(aten: str, values: Sequence[Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The tensors, of those that an operator is given, that it copies first, and as what shape."""
    if aten != "aten.matmul":
        return
    if any(len(value.shape) < 3 for value in values):  # folded into a product of two matrices
        return
    batch = _broadcast([value.shape[:-2] for value in values])
    for name, value in zip(_NAMES, values, strict=True):
        wide = value.expand(*batch, *value.shape[-2:])
        try:
            wide.view(math.prod(batch), *value.shape[-2:])
        except (RuntimeError, ValueError):
            yield name, tuple(int(n) for n in wide.shape)


def _broadcast(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The shape that both broadcast to."""
    rank = max(len(shape) for shape in shapes)
    ranked = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(max(extents) for extents in zip(*ranked, strict=True))
