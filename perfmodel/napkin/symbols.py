"""The counting rule run on SymPy symbols: a kernel's traffic H and memory M as formulas.

Sizes are named by their axes. Tiles are named g_axis where the axis is grouped and s_axis where it
is streamed, as in FlashAttention on a Napkin. `exact` formulas hold for every size, with ragged
ends. `smooth` ones assume that every tile divides its axis, which an optimum in closed form needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from perfmodel.algorithms.algorithm import Algorithm, Band
from perfmodel.count import count
from perfmodel.errors import ProblemError
from perfmodel.napkin.nests import Nest, held, schedule, units

Expression = Any


@dataclass(frozen=True)
class Formulas:
    """Formulas of one kernel, in elements."""

    nest: Nest
    """Its loop nest."""
    sizes: Mapping[str, Expression]
    """Symbol of each size, by axis."""
    tiles: Mapping[str, Expression]
    """Symbol of each tile, by axis."""
    reads: Mapping[str, Expression]
    """Elements read of each tensor, exact."""
    writes: Mapping[str, Expression]
    """Elements written of each tensor, exact."""
    memory: Expression
    """Elements that a block holds."""
    operations: Expression
    """Operations of the kernel."""
    note: str
    """Assumptions of the formulas."""

    @property
    def transfer(self) -> Expression:
        """H: all traffic across the boundary, exact."""
        return sum((*self.reads.values(), *self.writes.values()))

    @property
    def smooth_transfer(self) -> Expression:
        """H with tiles that divide their axes."""
        return smooth(self.transfer)

    @property
    def smooth_memory(self) -> Expression:
        """M with tiles no larger than their axes."""
        return smooth(self.memory)

    def evaluator(self, expression: Expression) -> Callable[..., Any]:
        """`expression` as a NumPy function of the sizes and tiles, by keyword."""
        import sympy

        symbols = sorted(expression.free_symbols, key=str)
        function = sympy.lambdify(symbols, expression, modules="numpy")

        def call(**values: Any) -> Any:
            return function(*(values[str(symbol)] for symbol in symbols))

        return call


def formulas(
    fused: Algorithm, nest: Nest, sizes: Mapping[str, int] | None = None, stages: int = 1
) -> Formulas:
    """Count one kernel on symbols; axes of extent 1 in `sizes` are taken as 1.

    A causal mask needs square tiles that divide a square problem. Other bands have no closed form
    and raise `ProblemError`.
    """
    import sympy

    def symbol(name: str) -> Expression:
        return sympy.Symbol(name, positive=True, integer=True)

    extents = {
        axis: sympy.Integer(1) if sizes is not None and sizes[axis] == 1 else symbol(axis)
        for axis in fused.axes
    }
    tiles = {axis: symbol(f"g_{axis}" if axis in nest.grid else f"s_{axis}") for axis in nest.tiled}
    mask, note, shared, length, substitution = _mask(fused.mask, nest, extents, tiles)
    algorithm = replace(fused, mask=mask)
    elements = units(fused)
    plan = schedule(algorithm, nest, {**tiles, **shared}, stages=stages)
    kernel = count(plan, {**extents, **dict.fromkeys(shared, length)}, elements).kernels[0]
    # Memory M does not depend on a mask, nor on equal tiles of its two axes.
    unmasked = schedule(replace(fused, mask=None), nest, tiles, stages=stages)
    full = count(unmasked, extents, elements).kernels[0]

    def clean(value: Any) -> Expression:
        return _tidy(sympy.sympify(value).subs(substitution))

    return Formulas(
        nest=nest,
        sizes=extents,
        tiles=tiles,
        reads={n: clean(t.read_bytes) for n, t in kernel.l2.items() if t.read_bytes != 0},
        writes={n: clean(t.write_bytes) for n, t in kernel.l2.items() if t.write_bytes != 0},
        memory=clean(held(fused, full.nest, elements)),
        operations=clean(kernel.matrix_flops),
        note=note,
    )


def _mask(
    mask: Band | None, nest: Nest, extents: Mapping[str, Any], tiles: Mapping[str, Any]
) -> tuple[Band | None, str, dict[str, Any], Any, dict[Any, Any]]:
    """(mask, note, tiles and extents to count with, substitutions to restore them).

    A causal mask is counted with T square tiles to a side. The result holds for all tiles that nest
    in the tile of the outer loop, the only one that H depends on.
    """
    import sympy

    if mask is None or not mask.bounded:
        return None, "", {}, None, {}
    if mask.sparse:
        band = Band(mask.query, mask.key, share=sympy.Symbol("σ", positive=True))
        return band, "σ is the share of the tiles that the pattern keeps", {}, None, {}
    if mask.left is not None or not {mask.query, mask.key} <= tiles.keys():
        raise ProblemError(
            "a window has no closed form, nor has a causal mask whose two axes are not both tiled; "
            "leave the mask out to see the formulas"
        )
    outer = next(axis for axis in (*nest.grid, *nest.stream) if axis in (mask.query, mask.key))
    inner = mask.key if outer == mask.query else mask.query
    trips = sympy.Symbol("T", positive=True, integer=True)
    tile = tiles[outer]
    note = f"causal, {mask.query} = {mask.key}; {tile} divides them and {tiles[inner]} divides it"
    ends = (mask.query, mask.key)
    return mask, note, dict.fromkeys(ends, tile), trips * tile, {trips: extents[outer] / tile}


def _tidy(expression: Expression) -> Expression:
    """⌈n / min(t, n)⌉ is ⌈n / t⌉."""
    import sympy

    def ceiling(inner: Any) -> Any:
        top, bottom = sympy.fraction(inner)
        if isinstance(bottom, sympy.Min) and top in bottom.args:
            return sympy.ceiling(top / next(a for a in bottom.args if a != top))
        return sympy.ceiling(inner)

    return expression.replace(sympy.ceiling, ceiling)


def smooth(expression: Expression) -> Expression:
    """The expression where every tile divides its axis and a streamed row has several tiles."""
    import sympy

    limit = expression.replace(sympy.Piecewise, lambda *branches: branches[0].args[0])
    limit = limit.replace(sympy.ceiling, lambda inner: inner)
    # Tiles carry an underscore; a tile is no larger than its axis.
    limit = limit.replace(
        lambda e: isinstance(e, sympy.Min),
        lambda e: next((a for a in e.args if "_" in str(a)), e),
    )
    return sympy.expand(limit)


def value(expression: Expression, **values: Any) -> float:
    """A formula as a number; symbols are given by name."""
    import sympy

    formula = sympy.sympify(expression)
    return float(formula.subs({symbol: values[str(symbol)] for symbol in formula.free_symbols}))
