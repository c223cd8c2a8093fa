"""What bundled kernels need of Triton's interpreter and it lacks: atomic sums through a tensor
descriptor, and conversions to 8-bit floats that round to nearest."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
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


def round_to_8_bits() -> None:
    """Let Triton's interpreter round to the nearest E4M3, ties to even, as the hardware does.

    The interpreter of Triton 3.7 cuts the lower bits off.
    """
    cut = InterpreterBuilder.create_fp_to_fp

    def converted(
        builder: InterpreterBuilder, value: TensorHandle, kind: Any, rounding: Any
    ) -> Any:
        if kind.scalar != tl.float8e4nv or value.dtype.scalar != tl.float32:
            return cut(builder, value, kind, rounding)
        rounded = torch.from_numpy(np.ascontiguousarray(value.data)).to(torch.float8_e4m3fn)
        return TensorHandle(rounded.view(torch.uint8).numpy(), tl.float8e4nv)

    InterpreterBuilder.create_fp_to_fp = converted
