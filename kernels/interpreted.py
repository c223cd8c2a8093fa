"""Adds to Triton's interpreter atomic sums through a tensor descriptor, which a bundled kernel
uses."""

from __future__ import annotations

from typing import Any

import triton.language as tl
from triton._C.libtriton import ir
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle


def _descriptor_sum(
    builder: InterpreterBuilder, kind: Any, tile: Any, value: TensorHandle, offsets: Any
) -> TensorHandle:
    """Add a tile to memory atomically: what lies within the descriptor's shape."""
    if kind != ir.DESCRIPTOR_REDUCE_KIND.ADD:
        raise NotImplementedError(f"{kind} through a tensor descriptor is not interpreted")
    pointers, inside = tile.materialize_pointers(offsets)
    return builder.create_atomic_rmw(
        ir.ATOMIC_OP.FADD,
        pointers,
        value,
        TensorHandle(inside, tl.int1),
        ir.MEM_SEMANTIC.RELAXED,
        ir.MEM_SYNC_SCOPE.GPU,
    )


def allow_descriptor_sums() -> None:
    """Let Triton's interpreter run kernels that add through tensor descriptors; no effect if it
    can.

    The interpreter of Triton 3.7 supports loads and stores through descriptors, but no reductions.
    """
    if not hasattr(InterpreterBuilder, "create_descriptor_reduce"):
        InterpreterBuilder.create_descriptor_reduce = _descriptor_sum
