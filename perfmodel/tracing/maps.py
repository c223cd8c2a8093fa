"""Element-wise operators that take more than an operation an element, reductions, copies; softmax,
norms, and gathers of rows.

Every other operator that torch tags as element-wise is a map of one operation an element.
"""

from __future__ import annotations

import math
from dataclasses import replace

from perfmodel.algorithms import Rowwise
from perfmodel.algorithms.rowwise import VARIANTS
from perfmodel.operators import load
from perfmodel.tracing.operation import Operand, Operation
from perfmodel.tracing.registry import Call, operation

# Where ATen calls a map otherwise than the model does.
_CALLED = {"reciprocal": "div", "exp2": "exp", "log": "exp", "sin": "exp", "cos": "exp",
           "erf": "gelu", "mish": "gelu", "softplus": "silu", "hardswish": "silu",
           "log_sigmoid": "silu", "log1p": "exp", "expm1": "exp", "swish": "silu"}  # fmt: skip


@operation(*(f"aten.{name}" for name in (*VARIANTS, *_CALLED)))
def function(call: Call) -> Operation | None:
    """A map whose operations are counted by name."""
    name = call.aten.removeprefix("aten.")
    vector_ops, special_ops = VARIANTS[_CALLED.get(name, name)]
    return call.map(vector_ops=vector_ops, special_ops=special_ops)


@operation("aten.to", "aten._to_copy", "aten.type_as")
def convert(call: Call) -> Operation | None:
    """Another type; the same one is the same tensor."""
    (source, *_) = call.inputs
    return None if source.dtype == call.out.dtype else call.map(reads=(source,))


@operation("aten.dropout", "aten.native_dropout", "aten.feature_dropout")
def dropout(call: Call) -> Operation | None:
    """Nothing where it is switched off."""
    if not call["train"]:
        return None
    vector_ops, special_ops = VARIANTS["dropout"]
    return call.map(vector_ops=vector_ops, special_ops=special_ops)


@operation("aten.cat", "aten.concat", "aten.stack")
def join(call: Call) -> Operation | None:
    """Tensors side by side: each is read once and written once."""
    return call.map()


@operation("aten.clone", "aten.reshape", "aten.contiguous", "aten.flatten", "aten.repeat")
@operation("aten.pixel_shuffle", "aten.pixel_unshuffle", "aten.channel_shuffle")
def rearranged(call: Call) -> Operation | None:
    """The same elements in another order; those that are repeated are read again."""
    out = call.out
    columns = out.shape[-1] if out.shape else 1
    problem = Rowwise("pointwise", max(out.elements // columns, 1), columns, out.dtype, "copy")
    return call.known("pointwise", problem, {"X": call.inputs[:1], "Y": call.outputs})


@operation("aten.copy")
def overwrite(call: Call) -> Operation | None:
    """A tensor over another one, which is not read."""
    return call.map(reads=call.inputs[1:2])


@operation("aten.constant_pad_nd", "aten.pad", "aten.roll", "aten.flip", "aten.repeat_interleave")
@operation("aten.where", "aten.diff", "aten.floor_divide", "aten.__and__", "aten.__or__")
@operation("aten.__xor__", "aten.__lshift__", "aten.__rshift__", "aten.clamp", "aten.rsub")
@operation("aten.tril", "aten.triu", "aten.masked_fill", "aten.outer", "aten.addr", "aten.glu")
def copy(call: Call) -> Operation | None:
    """Every element of the result is written, and read from where it comes."""
    return call.map()


@operation("aten.sum", "aten.mean", "aten.amax", "aten.amin", "aten.max", "aten.min", "aten.prod")
@operation("aten.any", "aten.all", "aten.argmax", "aten.argmin", "aten.logsumexp", "aten.norm")
@operation("aten.linalg_vector_norm")
def reduction(call: Call) -> Operation | None:
    """Along the dimensions named, else along all; the larger of two tensors is a map."""
    if len(call.inputs) > 1:
        return call.map()
    return call.reduction(_dims(call.first("dim", "axis")))


@operation("aten.var", "aten.std", "aten.var_mean", "aten.std_mean")
def variance(call: Call) -> Operation | None:
    """Two sums in one pass."""
    return call.reduction(_dims(call["dim"]), vector_ops=3.0)


def _dims(dims: object) -> tuple[int, ...]:
    if dims is None:
        return ()
    return tuple(int(d) for d in dims) if isinstance(dims, list | tuple) else (int(str(dims)),)


CONSTANTS = tuple(
    f"aten.{name}"
    for name in (
        "zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "empty_like",
        "new_zeros", "new_ones", "new_full", "new_empty", "scalar_tensor", "arange", "linspace",
        "eye", "lift_fresh_copy",
    )
)  # fmt: skip
"""Operators that make a tensor of no other tensor's elements."""


@operation(*CONSTANTS, "aten.detach_")
def made(call: Call) -> Operation | None:
    """Constants, which are made once and not in every pass."""
    return None


# Sorting, scattering and gathering by index: what they take beside their bytes is not known here.
@operation("aten.sort", "aten.topk", "aten.argsort", "aten.histc", "aten.bincount", "aten.cumsum")
@operation("aten.cumprod", "aten.gather", "aten.scatter", "aten.scatter_add", "aten.index_add")
@operation("aten.index_put", "aten.masked_scatter", "aten.nonzero", "aten.one_hot")
@operation("aten.searchsorted", "aten.bucketize", "aten.multinomial", "aten.unique", "aten.isin")
@operation("aten.nll_loss_forward")
@operation(
    "aten.max_pool2d", "aten.avg_pool2d", "aten.adaptive_avg_pool2d", "aten.upsample_nearest2d"
)
@operation("aten.mse_loss", "aten.binary_cross_entropy_with_logits", "aten.embedding_bag")
def by_bytes(call: Call) -> Operation | None:
    """Known by name, and counted by the bytes that they read and write."""
    return call.by_bytes()


def _rows(x: Operand, columns: int) -> tuple[int, int]:
    return x.elements // columns, columns


@operation("aten.softmax", "aten._softmax", "aten.log_softmax", "aten._log_softmax")
def softmax(call: Call) -> Operation | None:
    """Along the last dimension; along another one it is counted by its bytes."""
    x: Operand = call.inputs[0]
    if int(call["dim"]) % len(x.shape) != len(x.shape) - 1:
        return call.by_bytes("softmax")
    problem = Rowwise("softmax", *_rows(x, x.shape[-1]), x.dtype, output_dtype=_out_type(call, x))
    return call.known("softmax", problem, {"X": (x,), "Y": call.outputs[:1]})


@operation("aten.layer_norm", "aten.native_layer_norm")
def layer_norm(call: Call) -> Operation | None:
    """With weight and bias; with less it is a map over rows that stay on chip."""
    x, weight, bias = call["input"], call["weight"], call["bias"]
    columns = math.prod(call["normalized_shape"])
    if weight is None or bias is None:
        return call.map(vector_ops=6.0, kind="norm")
    problem = Rowwise("layernorm", *_rows(x, columns), x.dtype, output_dtype=_out_type(call, x))
    operands = {"X": (x,), "gamma": (weight,), "beta": (bias,), "Y": call.outputs[:1]}
    return call.known("norm", problem, operands)


@operation("aten.rms_norm", "aten._fused_rms_norm")
def rms_norm(call: Call) -> Operation | None:
    """With a weight; without one it is a map over rows that stay on chip."""
    x, weight = call["input"], call["weight"]
    columns = math.prod(call["normalized_shape"])
    if weight is None:
        return call.map(vector_ops=3.0, kind="norm")
    problem = Rowwise("rmsnorm", *_rows(x, columns), x.dtype, output_dtype=_out_type(call, x))
    return call.known("norm", problem, {"X": (x,), "gamma": (weight,), "Y": call.outputs[:1]})


def _out_type(call: Call, x: Operand) -> str | None:
    """The type of the result, where it is another one than that of the input."""
    return None if call.out.dtype == x.dtype else call.out.dtype


@operation("aten.group_norm", "aten.native_group_norm", "aten.batch_norm")
@operation("aten.native_batch_norm", "aten._native_batch_norm_legit")
def other_norm(call: Call) -> Operation | None:
    """Norms along other dimensions than the last."""
    return call.map(vector_ops=6.0, kind="norm")


@operation("aten.embedding", "aten.index_select", "aten.index")
def rows(call: Call) -> Operation | None:
    """Rows of a table by number; the other rows are not read. Elements that are picked otherwise
    are counted by their bytes."""
    table: Operand = call.first("weight", "self")
    indices = call.first("indices", "index")
    numbers = [x for x in (indices if isinstance(indices, list) else [indices]) if x is not None]
    first = not isinstance(indices, list) or indices[0] is not None
    columns = math.prod(table.shape[1:])
    by_row = len(numbers) == 1 and numbers[0].elements * columns == call.out.elements
    if not first or not by_row or call["dim"]:
        part = replace(table, shape=call.out.shape, spread=())
        return call.by_bytes(reads=(part, *numbers))
    gather = load("embedding")
    problem = gather.problem(tokens=numbers[0].elements, hidden=columns, dtype=table.dtype)
    operands = {"ids": (numbers[0],), "table": (table,), "Y": call.outputs[:1]}
    return call.known("embedding", problem, operands)
