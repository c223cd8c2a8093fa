"""What bundled kernels need of Triton's interpreter and it lacks: atomic sums through a tensor
descriptor, conversions to 8-bit floats that round to nearest, and products of scaled blocks."""

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


# The magnitudes of e2m1 (OCP Microscaling Formats 1.0, table 5), then those with a sign.
_E2M1 = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], dtype=np.float32)
_FOUR_BITS = np.concatenate((_E2M1, -_E2M1))


def _widened(value: TensorHandle, kind: Any) -> np.ndarray:
    """Elements of an operand of `tl.dot_scaled` [rows, k], packed along k, as fp32."""
    if kind == ir.ScaleDotElemTypeTY.E2M1:
        return _FOUR_BITS[np.stack((value.data & 15, value.data >> 4), axis=-1)].reshape(
            value.data.shape[0], -1
        )
    types = {
        ir.ScaleDotElemTypeTY.E4M3: torch.float8_e4m3fn,
        ir.ScaleDotElemTypeTY.E5M2: torch.float8_e5m2,
        ir.ScaleDotElemTypeTY.BF16: torch.bfloat16,
        ir.ScaleDotElemTypeTY.FP16: torch.float16,
    }
    return torch.from_numpy(np.ascontiguousarray(value.data)).view(types[kind]).float().numpy()


def _scaled(operand: np.ndarray, scale: TensorHandle | None) -> np.ndarray:
    """An operand [rows, k] times its scales [rows, k / block]: e8m0, or e4m3 where they are so."""
    if scale is None:
        return operand
    e4m3 = scale.dtype.scalar == tl.float8e4nv
    kind = torch.float8_e4m3fn if e4m3 else torch.float8_e8m0fnu
    factors = torch.from_numpy(np.ascontiguousarray(scale.data)).view(kind).float().numpy()
    return operand * np.repeat(factors, operand.shape[1] // factors.shape[1], axis=1)


def _scaled_product(
    builder: InterpreterBuilder,
    a: TensorHandle, a_scale: TensorHandle | None, a_kind: Any,
    b: TensorHandle, b_scale: TensorHandle | None, b_kind: Any,
    fast: bool, a_by_k: bool, b_by_k: bool, total: TensorHandle,
) -> TensorHandle:  # fmt: skip
    """total + a·b of two matrices that are packed along k, summed in fp32."""
    if not (a_by_k and b_by_k and a.data.ndim == 2):
        raise NotImplementedError("only matrices that are packed along k are interpreted")
    columns = TensorHandle(np.ascontiguousarray(b.data.T), b.dtype)
    left, right = _scaled(_widened(a, a_kind), a_scale), _scaled(_widened(columns, b_kind), b_scale)
    return TensorHandle(left @ right.T + total.data, total.dtype.scalar)


def allow_scaled_products() -> None:
    """Let Triton's interpreter run `tl.dot_scaled`; no effect if it can.

    That of Triton 3.7 has no such operation.
    """
    if not hasattr(InterpreterBuilder, "create_dot_scaled"):
        InterpreterBuilder.create_dot_scaled = _scaled_product
