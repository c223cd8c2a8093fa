"""Lower bounds on the traffic across one boundary for any schedule, in elements.

Matrix product: COSMA (1908.09606), Theorem 1: 2mnk/√M + mn, attained by outer products of a =
√(M+1) − 1 to within √M / (√(M+1) − 1). Attention: Saha & Ye (2402.07443): of order q·x·d²/M for M ≥
d², where FlashAttention is optimal, and q·x·d/√M below; the two meet at M = d². Every kernel moves
its inputs and outputs at least once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfmodel.algorithms.algorithm import Algorithm, Step
from perfmodel.arithmetic import Number, is_symbolic, maximum, product, where
from perfmodel.count import rule


@dataclass(frozen=True)
class Bound:
    """A lower bound of the traffic of a kernel."""

    value: Number
    """The bound in elements."""
    name: str
    """The theorem."""
    order_only: bool = False
    """Whether the theorem gives only an order of growth."""


def matmul_bound(m: Number, n: Number, k: Number, memory: Number) -> Number:
    """2mnk/√M + mn: COSMA, Theorem 1."""
    return 2 * m * n * k / memory ** _half(memory) + m * n


def outer_product_factor(memory: Number) -> Number:
    """Traffic of whole outer products over the bound: √M / (√(M+1) − 1) (COSMA, section 5.2.7)."""
    half = _half(memory)
    return memory**half / ((memory + 1) ** half - 1)


def attention_order(queries: Number, keys: Number, dim: Number, memory: Number) -> Number:
    """Order of attention's traffic, constants 1: q·x·d²/M for M ≥ d², else q·x·d/√M."""
    large = queries * keys * dim**2 / memory
    small = queries * keys * dim / memory ** _half(memory)
    return where(memory >= dim**2, large, small)


def compulsory(fused: Algorithm, sizes: Mapping[str, Number]) -> Number:
    """Elements when every input is read once and every output written once."""
    return sum(rule.size(sizes, fused.tensors[n]) for n in (*fused.inputs, *fused.outputs))


def lower_bound(fused: Algorithm, sizes: Mapping[str, Number], memory: Number) -> Bound:
    """The best known bound for a kernel's steps at `memory` elements on chip.

    One contraction is a matrix product. Two contractions, with a normalisation between them and the
    second summing over an axis that the first produced, are attention.
    """
    least = compulsory(fused, sizes)
    contractions = [step for step in fused.steps if step.kind == "contraction"]
    sparse = fused.mask is not None
    if len(contractions) == 1 and not sparse and not _has_windows(fused):
        parts = _matmul_axes(fused, contractions[0])
        if parts is not None:
            b, m, n, k = (product(sizes[axis] for axis in axes) for axes in parts)
            if contractions[0].outputs[0] in fused.outputs:
                bound = Bound(b * matmul_bound(m, n, k, memory), "COSMA: 2mnk/√M + mn")
            else:
                # A product that later steps consume on chip is never written.
                transfer = matmul_bound(m, n, k, memory) - m * n
                bound = Bound(b * transfer, "COSMA: 2mnk/√M, the product staying on chip")
            return _larger(bound, least)
    normalised = any(step.kind == "normalisation" for step in fused.steps)
    if len(contractions) == 2 and normalised and not sparse:
        parts = _matmul_axes(fused, contractions[0])
        if parts is not None:
            b, q, x, d = (product(sizes[axis] for axis in axes) for axes in parts)
            value = b * attention_order(q, x, d, memory)
            regime = "q·x·d²/M or, for M < d², q·x·d/√M"
            return _larger(Bound(value, f"Saha & Ye: of order {regime}", True), least)
    return Bound(least, "compulsory: every input and output once")


def _larger(bound: Bound, least: Number) -> Bound:
    if is_symbolic(bound.value, least):
        return bound
    value = maximum(bound.value, least)
    top = bound if not isinstance(value, int | float) or value == bound.value else None
    return Bound(value, top.name, top.order_only) if top else Bound(value, "compulsory: all once")


def _has_windows(fused: Algorithm) -> bool:
    return any(tensor.windows for tensor in fused.tensors.values())


def _matmul_axes(
    fused: Algorithm, step: Step
) -> tuple[list[str], list[str], list[str], list[str]] | None:
    """(batch, rows, columns, summed) axes of a contraction; None where one of the last three is
    empty.

    Only the axes of operands are traced back to tensors in memory, so maps before the product do
    not matter.
    """
    a, b = (set(fused.tensors[name].axes) for name in step.inputs)
    axes = fused.step_axes(step)
    summed = [axis for axis in axes if axis in step.reduces]
    batch = [axis for axis in axes if axis in a & b and axis not in step.reduces]
    rows = [axis for axis in axes if axis in a - b]
    columns = [axis for axis in axes if axis in b - a]
    return (batch, rows, columns, summed) if rows and columns and summed else None


def _half(memory: Any) -> Any:
    """The exponent ½, exact for symbols."""
    if is_symbolic(memory):
        import sympy

        return sympy.Rational(1, 2)
    return 0.5
