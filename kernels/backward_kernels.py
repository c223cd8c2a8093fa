"""Kernels of the attention backward pass: D and N, gradients by key and by query tiles, sums."""

from __future__ import annotations

import triton
import triton.language as tl
from perfmodel_kernels.backward_tiles import (
    key_gradients,
    key_ranges,
    query_gradient,
    query_ranges,
    rows_of,
    statistics_of,
    store_rows,
)


@triton.jit
def attention_delta(
    OUT, DO, L, DELTA, NORM, seq_q, E: tl.constexpr, BE: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    """D = rowsum(dO ∘ O) and N = L · log₂e, ROWS rows of one head a block."""
    row_tiles = (seq_q + ROWS - 1) // ROWS
    block = tl.program_id(0)
    head, first = block // row_tiles, block % row_tiles * ROWS
    o = rows_of(OUT, head, first, seq_q, E, ROWS, BE, False, False).to(tl.float32)
    do = rows_of(DO, head, first, seq_q, E, ROWS, BE, False, False).to(tl.float32)
    row = first + tl.arange(0, ROWS)
    at = head.to(tl.int64) * seq_q + row
    norm = statistics_of(L, head, first, seq_q, ROWS, False) * 1.4426950408889634
    tl.store(DELTA + at, tl.sum(o * do, 1), mask=row < seq_q)
    tl.store(NORM + at, norm, mask=row < seq_q)


@triton.jit
def in_head(step, steps, GROUPED: tl.constexpr):
    """Head of the group and step within it, of a loop over `steps` of each head."""
    if GROUPED:
        r = step // tl.maximum(steps, 1)
        i = step - r * steps
    else:
        r = 0
        i = step
    return r, i


@triton.jit
def attention_key_gradients(
    Q, K, V, DO, NORM, DELTA, DQ, DK, DV, scale, root, group, seq_q, seq_kv,
    D: tl.constexpr, E: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
    BR: tl.constexpr, BC: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    EDGES: tl.constexpr, SPREAD: tl.constexpr, GROUPED: tl.constexpr, SUM_QUERIES: tl.constexpr,
    DESCRIPTORS: tl.constexpr, TURNED: tl.constexpr, BY_BITS: tl.constexpr,
):  # fmt: skip
    """dK and dV of BC keys, and √d · dQ added to memory; key tiles fastest, then heads.

    A block has one query head (SPREAD) or all of its group. First come the query tiles that see
    every key, then (EDGES) those that a mask or the end of the rows or the keys cuts. Loops hoist
    nothing: addresses of K and V kept from one to the next would cost the registers that the sums
    need.
    """
    key_tiles = (seq_kv + BC - 1) // BC
    block = tl.program_id(0)
    x0 = block % key_tiles * BC
    outer = block // key_tiles
    heads = group if GROUPED else 1
    kv_head = outer // group if SPREAD else outer
    k = rows_of(K, kv_head, x0, seq_kv, D, BC, BD, not EDGES, DESCRIPTORS)
    v = rows_of(V, kv_head, x0, seq_kv, E, BC, BE, not EDGES, DESCRIPTORS)
    first, whole, edge, last = query_ranges(x0, seq_q, seq_kv, BR, BC, CAUSAL, WINDOW)
    dk = tl.full([BC, BD], 0.0, tl.float32)
    dv = tl.full([BC, BE], 0.0, tl.float32)
    tiles = (edge - whole) // BR
    for step in tl.range(0, heads * tiles, disable_licm=True):
        r, i = in_head(step, tiles, GROUPED)
        dk, dv = key_gradients(
            dk, dv, k, v, Q, DO, NORM, DELTA, DQ,
            outer * heads + r, whole + i * BR, x0, seq_q, seq_kv, scale,
            D, E, BD, BE, BR, BC, CAUSAL, WINDOW,
            False, DESCRIPTORS, SUM_QUERIES, TURNED, BY_BITS,
        )  # fmt: skip
    if EDGES:
        before = (whole - first + BR - 1) // BR
        cut = before + (last - edge + BR - 1) // BR
        for step in tl.range(0, heads * cut, disable_licm=True):
            r, i = in_head(step, cut, GROUPED)
            q0 = tl.where(i < before, first + i * BR, edge + (i - before) * BR)
            dk, dv = key_gradients(
                dk, dv, k, v, Q, DO, NORM, DELTA, DQ,
                outer * heads + r, q0, x0, seq_q, seq_kv, scale,
                D, E, BD, BE, BR, BC, CAUSAL, WINDOW,
                True, DESCRIPTORS, SUM_QUERIES, TURNED, BY_BITS,
            )  # fmt: skip
    store_rows(DK, dk * root, outer, x0, seq_kv, D, BC, BD, not EDGES, False)
    store_rows(DV, dv, outer, x0, seq_kv, E, BC, BE, not EDGES, False)


@triton.jit
def attention_query_gradients(
    Q, K, V, DO, NORM, DELTA, DQ, scale, root, group, seq_q, seq_kv,
    D: tl.constexpr, E: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
    BR: tl.constexpr, BC: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    EDGES: tl.constexpr, DESCRIPTORS: tl.constexpr, BY_BITS: tl.constexpr,
):  # fmt: skip
    """dQ of BR rows of one head; query tiles fastest, those that see most keys first."""
    row_tiles = (seq_q + BR - 1) // BR
    block = tl.program_id(0)
    i = block % row_tiles
    if CAUSAL:
        i = row_tiles - 1 - i
    q0 = i * BR
    head = block // row_tiles
    kv_head = head // group
    q = rows_of(Q, head, q0, seq_q, D, BR, BD, not EDGES, DESCRIPTORS)
    do = rows_of(DO, head, q0, seq_q, E, BR, BE, not EDGES, DESCRIPTORS)
    norm = statistics_of(NORM, head, q0, seq_q, BR, not EDGES)
    delta = statistics_of(DELTA, head, q0, seq_q, BR, not EDGES)
    first, whole, edge, last = key_ranges(q0, seq_q, seq_kv, BR, BC, CAUSAL, WINDOW)
    dq = tl.full([BR, BD], 0.0, tl.float32)
    for x0 in tl.range(whole, edge, BC, disable_licm=True):
        dq = query_gradient(
            dq, q, do, norm, delta, K, V, kv_head, q0, x0, seq_q, seq_kv, scale,
            D, E, BD, BE, BR, BC, CAUSAL, WINDOW, False, DESCRIPTORS, BY_BITS,
        )  # fmt: skip
    if EDGES:
        for cut in tl.range(first + (edge - whole), last, BC, disable_licm=True):
            x0 = tl.where(cut < edge, cut - (edge - whole), cut)
            dq = query_gradient(
                dq, q, do, norm, delta, K, V, kv_head, q0, x0, seq_q, seq_kv, scale,
                D, E, BD, BE, BR, BC, CAUSAL, WINDOW, True, DESCRIPTORS, BY_BITS,
            )  # fmt: skip
    store_rows(DQ, dq * root, head, q0, seq_q, D, BR, BD, not EDGES, False)


@triton.jit
def attention_conversion(
    SUM, DQ, root, seq_q, D: tl.constexpr, BD: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    """dQ from the fp32 sum of √d · dQ, ROWS rows of one head a block."""
    row_tiles = (seq_q + ROWS - 1) // ROWS
    block = tl.program_id(0)
    head, first = block // row_tiles, block % row_tiles * ROWS
    dq = rows_of(SUM, head, first, seq_q, D, ROWS, BD, False, False)
    store_rows(DQ, dq * root, head, first, seq_q, D, ROWS, BD, False, False)


@triton.jit
def attention_combine_heads(
    KEYS, VALUES, DK, DV, group, seq_kv,
    D: tl.constexpr, E: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """dK and dV of ROWS keys from the fp32 parts of each query head of their group."""
    tiles = (seq_kv + ROWS - 1) // ROWS
    block = tl.program_id(0)
    kv_head, first = block // tiles, block % tiles * ROWS
    dk = tl.full([ROWS, BD], 0.0, tl.float32)
    dv = tl.full([ROWS, BE], 0.0, tl.float32)
    for r in range(group):
        head = kv_head * group + r
        dk += rows_of(KEYS, head, first, seq_kv, D, ROWS, BD, False, False)
        dv += rows_of(VALUES, head, first, seq_kv, E, ROWS, BE, False, False)
    store_rows(DK, dk, kv_head, first, seq_kv, D, ROWS, BD, False, False)
    store_rows(DV, dv, kv_head, first, seq_kv, E, ROWS, BE, False, False)
