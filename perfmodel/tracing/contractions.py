"""Products and attention.

FLOPs are two for each multiply-add, as torch.utils.flop_counter counts them: what a causal mask
hides included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from perfmodel.algorithms import Attention, Matmul
from perfmodel.tracing.operation import Operand, Operation
from perfmodel.tracing.registry import Call, operation


@operation("aten.linear", "aten.mm", "aten.matmul", "aten.bmm", "aten.addmm", "aten.baddbmm")
@operation("aten.mv", "aten.addmv", "aten._scaled_mm", "aten._int_mm")
def product(call: Call) -> Operation | None:
    """C = A B, of a weight stored by rows in `linear`; a bias is added as the result is written."""
    left: Operand = call.first("input", "self", "mat1", "batch1")
    right: Operand = call.first("weight", "mat2", "batch2", "vec", "tensor", "other")
    if call.aten.startswith(("aten.add", "aten.baddbmm")):
        left, right = (x for x in call.inputs if x is not call["self"])
    k = left.shape[-1]
    shared = 1
    if call.aten != "aten.linear" and len(right.shape) > 2:
        shared = math.prod(call.out.shape[:-2])
    n = math.prod(right.shape) // (k * math.prod(right.shape[:-2])) if len(right.shape) > 1 else 1
    m = max(call.out.elements // (shared * n), 1)
    return _product(call, (left,), (right,), m, n, k, shared)


@operation("aten._grouped_mm", "aten._scaled_grouped_mm", "transformers.grouped_mm_fallback")
def grouped(call: Call) -> Operation | None:
    """A product of its own for each group of rows: experts. Rows are taken as evenly spread."""
    rows, weights = (x for x in call.inputs[:2])
    if len(rows.shape) != 2 or len(weights.shape) != 3:
        return call.by_bytes("matmul")
    count, k = rows.shape
    groups, n = weights.shape[0], weights.elements // (weights.shape[0] * k)
    # So many groups as divide the rows: of few rows not every expert has one.
    batch = max(d for d in range(1, min(groups, count) + 1) if count % d == 0)
    return _product(call, (rows,), (weights,), count // batch, n, k, batch)


@operation("aten.linalg_vecdot", "aten.vdot", "aten.dot")
def dots(call: Call) -> Operation | None:
    """Sums of products along one dimension; no matrix unit takes part (cublasSdot)."""
    rank = max(len(x.shape) for x in call.inputs)
    dim = int(-1 if call["dim"] is None else call["dim"]) % rank
    domain = list(call.out.shape)
    domain.insert(dim, max(x.shape[dim - rank] for x in call.inputs if len(x.shape) >= rank - dim))
    flops = 2.0 * math.prod(domain)
    return replace(call.map(), domain=tuple(domain), reduced=(dim,), flops=flops)


def _product(
    call: Call,
    left: Sequence[Operand],
    right: Sequence[Operand],
    m: int,
    n: int,
    k: int,
    batch: int,
) -> Operation:
    problem = Matmul(m, n, k, batch, left[0].dtype if left[0].floating else "int8")
    operands = {"A": tuple(left), "B": tuple(right), "C": call.outputs[:1]}
    return call.known("matmul", problem, operands, flops=2.0 * m * n * k * batch)


_ATTENTION = ("flash_attention", "efficient_attention", "cudnn_attention")


@operation(
    "aten.scaled_dot_product_attention",
    *(f"aten._scaled_dot_product_{name}" for name in _ATTENTION),
    "aten._scaled_dot_product_flash_attention_for_cpu",
)
def attention(call: Call) -> Operation | None:
    """Attention as one kernel. A mask that is no causal one hides nothing that is known here."""
    queries, keys, values = (call[name] for name in ("query", "key", "value"))
    if len(queries.shape) < 3 or queries.dtype != keys.dtype:
        return call.by_bytes("attention")
    *batch, heads, seq_q, dim = queries.shape if len(queries.shape) > 3 else (1, *queries.shape)
    kv_heads, seq_kv, dim_v = keys.shape[-3], keys.shape[-2], values.shape[-1]
    problem = Attention(
        math.prod(batch),
        heads,
        kv_heads,
        seq_q,
        seq_kv,
        dim,
        head_dim_v=None if dim_v == dim else dim_v,
        causal=bool(call["is_causal"]),
        dtype=queries.dtype,
        dropout=bool(call["dropout_p"]),
    )
    flops = 2.0 * math.prod(batch) * heads * seq_q * seq_kv * (dim + dim_v)
    operands = {"Q": (queries,), "K": (keys,), "V": (values,), "O": call.outputs[:1]}
    kernel = call.known("attention", problem, operands, flops=flops)
    return replace(kernel, masked=isinstance(call.first("attn_mask", "attn_bias"), Operand))
