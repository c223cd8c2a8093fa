"""What passes memory once as problems whose bytes are those of its tensors, each in its own type.

A stream is an element-wise map (`Rowwise`) over the elements of its largest tensor. Tensors of that
size are counted by type, in two types at most. Smaller ones (a bias, a sum) are left out while they
are less than 1/64 of all bytes. Where they are more, or where there are three types, the stream is
a map over bytes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from perfmodel.algorithms import Rowwise
from perfmodel.elements import element

_MOST_TENSORS = 64
"""Tensors of one size that stand for a stream's bytes, which are exact to one of them."""


@dataclass(frozen=True)
class Streamed:
    """A tensor that a stream reads or writes."""

    elements: int
    """Elements of it that are read or written."""
    dtype: str
    """Their type."""

    @property
    def bytes(self) -> int:
        """Bytes of them."""
        return math.ceil(self.elements * element(self.dtype).bytes)


def stream(
    variant: str, reads: Sequence[Streamed], writes: Sequence[Streamed], cols: int = 1
) -> Rowwise | None:
    """The map that reads and writes these tensors; None where they have no elements.

    `cols` is the length of a row of the largest tensor, where it has rows.
    """
    tensors = [*reads, *writes]
    size = max((x.elements for x in tensors), default=0)
    if size < 1:
        return None
    small = sum(x.bytes for x in tensors if x.elements < size)
    types = Counter(x.dtype for x in tensors if x.elements == size)
    if len(types) > 2 or small * _MOST_TENSORS > sum(x.bytes for x in tensors):
        return of_bytes(variant, sum(x.bytes for x in reads), sum(x.bytes for x in writes))
    read_types = Counter(x.dtype for x in reads if x.elements == size)
    write_types = Counter(x.dtype for x in writes if x.elements == size)
    rows, cols = (size // cols, cols) if cols > 0 and size % cols == 0 else (1, size)
    if len(read_types) == len(write_types) == 1:
        (dtype, inputs), (output_dtype, outputs) = *read_types.items(), *write_types.items()
        cast = None if output_dtype == dtype else output_dtype
        return Rowwise("pointwise", rows, cols, dtype, variant, inputs, outputs, cast)
    (dtype, _), *rest = types.most_common()
    second = rest[0][0] if rest else ""
    return Rowwise(
        "pointwise", rows, cols, dtype, variant, read_types[dtype], write_types[dtype],
        also_inputs=read_types[second], also_outputs=write_types[second], also_dtype=second,
    )  # fmt: skip


def of_bytes(variant: str, read_bytes: int, written_bytes: int) -> Rowwise | None:
    """The map over bytes that reads and writes so many."""
    largest = max(read_bytes, written_bytes)
    if largest < 1:
        return None
    size = max(math.gcd(read_bytes, written_bytes), -(-largest // _MOST_TENSORS))
    inputs, outputs = round(read_bytes / size), round(written_bytes / size)
    return Rowwise("pointwise", 1, size, "int8", variant, inputs, outputs)
