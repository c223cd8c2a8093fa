"""The best tiles in closed form: minimise H subject to M, as a geometric programme.

H and M are sums of monomials in the tiles. Tiles that H does not depend on shrink to nothing in M
(a stream may be arbitrarily thin). As M grows, some monomials dominate. Where they number one more
than the tiles they bind, the weights δ of the dual solve a linear system, and

    H_lead = Π (c_i / δ_i)^δ_i · Π (C_j / μ_j)^μ_j · λ^λ · M^-λ,      Σ δ = 1, λ = Σ μ

At the best tiles the arithmetic and geometric means are equal (Duffin, Peterson & Zener 1967,
Geometric Programming, chapter III). Inserted into all of H they give the canonical form of
FlashAttention on a Napkin, section 4.1: H* = Σ_t α_t · M^-β_t.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

Expression = Any
Exponents = tuple[Any, ...]


@dataclass(frozen=True)
class Term:
    """α · M^-β: one term of H*."""

    alpha: Expression
    """The factor α."""
    beta: Expression
    """The exponent β."""


@dataclass(frozen=True)
class Optimum:
    """Best tiles as formulas of M, and H* = Σ α M^-β.

    `beta` is the exponent that dominates as M grows: the smallest positive one.
    """

    tiles: Mapping[str, Expression]
    """Best tile of each axis."""
    vanishing: tuple[str, ...]
    """Axes whose tile may be arbitrarily thin."""
    terms: tuple[Term, ...]
    """The terms of H*."""
    memory: Expression
    """The symbol or formula of M."""

    @property
    def transfer(self) -> Expression:
        """H* as one formula."""
        return sum(term.alpha * self.memory**-term.beta for term in self.terms)

    @property
    def beta(self) -> Expression:
        """The exponent of the leading term, 0 where H does not depend on M."""
        return min((term.beta for term in self.terms if term.beta != 0), default=0)

    def narrower(self, ratio: Expression) -> Expression:
        """Factor by which the leading term's bytes fall with elements `ratio` times narrower.

        Elements shrink and more of them fit on chip: q^(1 + β) (section 4.3).
        """
        return ratio ** (1 + self.beta)

    def smaller(self, ratio: Expression) -> Expression:
        """Factor on the leading term when M is multiplied by `ratio`."""
        return ratio**-self.beta


def monomials(expression: Expression, tiles: Sequence[Any]) -> dict[Exponents, Expression]:
    """Coefficients of a sum of monomials in the tiles, by exponents."""
    import sympy

    table: dict[Exponents, Expression] = {}
    for term in sympy.Add.make_args(sympy.expand(expression)):
        powers = term.as_powers_dict()
        exponents = tuple(powers.get(tile, sympy.Integer(0)) for tile in tiles)
        rest = term / sympy.prod(t**e for t, e in zip(tiles, exponents, strict=True))
        table[exponents] = table.get(exponents, sympy.Integer(0)) + rest
    return {key: sympy.factor(value) for key, value in table.items() if value != 0}


def optimum(transfer: Expression, memory: Expression, tiles: Mapping[str, Any]) -> Optimum | None:
    """The best tiles of smooth formulas; None where no leading monomials determine them."""
    import sympy

    size = sympy.Symbol("M", positive=True)
    symbols = list(tiles.values())
    costs = monomials(transfer, symbols)
    indices = [i for i in range(len(symbols)) if any(e[i] != 0 for e in costs)]
    vanishing = tuple(axis for i, axis in enumerate(tiles) if i not in indices)
    keep = [symbols[i] for i in indices]
    names = [axis for i, axis in enumerate(tiles) if i in indices]
    thin = memory.subs({symbols[i]: 0 for i in range(len(symbols)) if i not in indices})
    objective, limits = monomials(transfer, keep), monomials(thin, keep)
    keep, names, objective, limits = _merge(keep, names, objective, limits)
    constant = tuple(sympy.Integer(0) for _ in keep)
    slopes = {e: c for e, c in objective.items() if e != constant}
    if not slopes:
        return Optimum({}, vanishing, (Term(objective.get(constant, 0), 0),), size)
    limits.pop(constant, None)
    if any(c.is_negative or c.could_extract_minus_sign() for c in slopes.values()):
        return None
    for leading, binding in _subsets(slopes, limits, len(keep)):
        best = _solution(leading, binding, keep, size)
        if best is not None and _leads(best, slopes, limits, keep, size):
            terms = _canonical_terms(objective, keep, best, size)
            return Optimum(dict(zip(names, best, strict=True)), vanishing, terms, size)
    return None


def _merge(
    keep: list[Any], names: list[str], costs: dict[Exponents, Any], limits: dict[Exponents, Any]
) -> tuple[list[Any], list[str], dict[Exponents, Any], dict[Exponents, Any]]:
    """Tiles that appear only as a product are solved as one: "r·q" is the product of two."""
    columns = [tuple(e[i] for e in (*costs, *limits)) for i in range(len(keep))]
    first = [columns.index(column) for column in columns]
    leaders = [i for i in range(len(keep)) if first[i] == i]
    products = ["·".join(names[k] for k in range(len(keep)) if first[k] == i) for i in leaders]

    def cut(table: dict[Exponents, Any]) -> dict[Exponents, Any]:
        return {tuple(e[i] for i in leaders): c for e, c in table.items()}

    return [keep[i] for i in leaders], products, cut(costs), cut(limits)


Monomials = list[tuple[Exponents, Expression]]


def _subsets(
    slopes: Mapping[Exponents, Any], limits: Mapping[Exponents, Any], tiles: int
) -> Iterator[tuple[Monomials, Monomials]]:
    """Sets of one more monomial than tiles: the fewest that can determine all tiles."""
    for terms in range(min(tiles, len(slopes)), 0, -1):
        constraints = tiles + 1 - terms
        for leading in combinations(slopes.items(), terms):
            for binding in combinations(limits.items(), constraints):
                yield list(leading), list(binding)


def _solution(
    leading: Monomials, binding: Monomials, tiles: Sequence[Any], size: Any
) -> list[Any] | None:
    """Tiles at which the monomials have the proportions of the dual; None if there are none."""
    import sympy

    rows = [[1] * len(leading) + [0] * len(binding)]
    rows += [[e[v] for e, _ in (*leading, *binding)] for v in range(len(tiles))]
    matrix = sympy.Matrix(rows)
    if matrix.det() == 0:
        return None
    weights = list(matrix.LUsolve(sympy.Matrix([1] + [0] * len(tiles))))
    if any(weight <= 0 for weight in weights):
        return None
    delta, mu = weights[: len(leading)], weights[len(leading) :]
    # Ratios of leading terms and the values of binding ones are monomial equations in the tiles.
    equations: list[tuple[Exponents, Any]] = []
    (first, c0), d0 = leading[0], delta[0]
    for (exponents, c), d in zip(leading[1:], delta[1:], strict=True):
        ratio = tuple(a - b for a, b in zip(exponents, first, strict=True))
        equations.append((ratio, d * c0 / (d0 * c)))
    total = sum(mu)
    equations += [(e, size * m / (total * c)) for (e, c), m in zip(binding, mu, strict=True)]
    powers = sympy.Matrix([list(e) for e, _ in equations])
    if powers.det() == 0:
        return None
    inverse = powers.inv()
    values = [value for _, value in equations]
    return [
        sympy.powsimp(sympy.prod(v ** inverse[i, k] for k, v in enumerate(values)), force=True)
        for i in range(len(tiles))
    ]


def _leads(
    best: Sequence[Any],
    slopes: Mapping[Exponents, Any],
    limits: Mapping[Exponents, Any],
    tiles: Sequence[Any],
    size: Any,
) -> bool:
    """Whether no other monomial grows faster than these as M grows."""
    growth = [_power(value, size) for value in best]

    def order(exponents: Exponents) -> Any:
        return sum(e * g for e, g in zip(exponents, growth, strict=True))

    top = max(order(e) for e in slopes)
    orders = [order(e) for e in limits]
    ties = sum(1 for e in slopes if order(e) == top) + sum(1 for c in orders if c == 1)
    return max(orders) <= 1 and ties == len(tiles) + 1


def _power(value: Any, size: Any) -> Any:
    """The exponent of M in a monomial."""
    import sympy

    return sympy.powsimp(value, force=True).as_powers_dict().get(size, 0) if value.has(size) else 0


def _canonical_terms(
    objective: Mapping[Exponents, Any], tiles: Sequence[Any], best: Sequence[Any], size: Any
) -> tuple[Term, ...]:
    """All of H at the best tiles as α · M^-β, largest β first."""
    import sympy

    sums: dict[Any, Any] = {}
    for exponents, c in objective.items():
        value = c * sympy.prod(b**e for b, e in zip(best, exponents, strict=True))
        beta = -sum(e * _power(b, size) for b, e in zip(best, exponents, strict=True))
        alpha = sympy.powsimp(sympy.simplify(value * size**beta), force=True)
        sums[beta] = sums.get(beta, 0) + alpha
    return tuple(
        Term(sympy.simplify(alpha), beta)
        for beta, alpha in sorted(sums.items(), key=lambda item: -item[0])
    )
