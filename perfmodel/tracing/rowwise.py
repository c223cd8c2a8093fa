"""Softmax, norms and gathers of rows."""

from __future__ import annotations

import math
from dataclasses import replace

from perfmodel.algorithms import Rowwise
from perfmodel.operators import load
from perfmodel.tracing.operand import Operand
from perfmodel.tracing.operation import Operation
from perfmodel.tracing.registry import Call, operation


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
