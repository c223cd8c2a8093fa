"""Popularity of rows, and the hit rate of a cache.

By Zipf's law, the row of rank i is looked up in proportion to i^-a. Two caches of C rows:

- static: the C most popular rows are pinned. For one table, hit = H(C, a) / H(N, a), with H(n, a)
  the sum of i^-a over i = 1 … n.
- LRU, by Che's approximation (Che, Tung & Wang 2002; Fricker et al. 2012): a row is cached if it
  was looked up within the last τ look-ups, where τ solves Σ (1 − e^(−p τ)) = C. Then
  hit = Σ p (1 − e^(−p τ)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfmodel.errors import ProblemError

_EXACT = 2**12  # ranks with a rate of their own; higher ranks are in groups of equal rate
_GROUPS_A_DOUBLING = 64
_PRECISION = 1e-10


@dataclass(frozen=True, eq=False)
class Popularity:
    """Rows in groups: `counts` rows, each with a share `rates` of all look-ups."""

    rates: np.ndarray
    """Share of the look-ups that go to one row of the group; Σ rates · counts = 1."""
    counts: np.ndarray
    """Number of rows in the group."""

    @property
    def rows(self) -> float:
        """Number of rows."""
        return float(self.counts.sum())

    def static_hit(self, cached: float) -> float:
        """Hit rate of `cached` pinned rows, the most popular ones."""
        _check_rows(cached)
        order = np.argsort(-self.rates, kind="stable")
        rates, counts = self.rates[order], self.counts[order]
        offset = np.cumsum(counts) - counts
        hits = np.clip(cached - offset, 0.0, counts)
        return min(float(np.sum(hits * rates)), 1.0)

    def lru_hit(self, cached: float) -> float:
        """Hit rate of an LRU cache of `cached` rows."""
        _check_rows(cached)
        if cached >= self.rows:
            return 1.0
        if cached == 0.0:
            return 0.0
        presence = -np.expm1(-self.rates * self.characteristic(cached))
        return float(np.sum(self.counts * self.rates * presence))

    def characteristic(self, cached: float) -> float:
        """τ, by bisection: look-ups after which a row that is not looked up again is evicted."""
        low, high = cached, cached
        while self._distinct_rows(high) < cached and np.isfinite(high):
            low, high = high, 2.0 * high
        while high - low > _PRECISION * high and np.isfinite(high):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self._distinct_rows(middle) < cached else (low, middle)
        return high

    def _distinct_rows(self, lookups: float) -> float:
        """Expected number of distinct rows in `lookups` look-ups."""
        return float(np.sum(self.counts * -np.expm1(-self.rates * lookups)))


def zipf(rows: int, exponent: float) -> Popularity:
    """One table of `rows` rows by Zipf's law; exponent 0: all rows equal. Raises `ProblemError`.

    Beyond 4,096 ranks, ranks within a 64th of a doubling share a rate. It is the integral of x^-a
    over them, extended by half a rank on either side; that equals their sum to a millionth.
    """
    if rows < 1:
        raise ProblemError(f"a table of {rows} rows; give 1 or more")
    if not 0.0 <= exponent <= 10.0:
        raise ProblemError(f"a Zipf exponent of {exponent:g}; give 0 to 10, such as 1.05")
    ranks = np.arange(1, min(rows, _EXACT) + 1, dtype=np.float64)
    weights, counts = ranks**-exponent, np.ones_like(ranks)
    if rows > _EXACT:
        steps = int(np.ceil(np.log2(rows / _EXACT) * _GROUPS_A_DOUBLING))
        edges = np.unique(np.round(np.geomspace(_EXACT, rows, steps + 1)))
        sizes = np.diff(edges)
        mass = _integral(edges[1:] + 0.5, exponent) - _integral(edges[:-1] + 0.5, exponent)
        weights, counts = np.append(weights, mass / sizes), np.append(counts, sizes)
    return Popularity(weights / np.sum(weights * counts), counts)


def mixed(parts: Sequence[tuple[Popularity, float, int]]) -> Popularity:
    """Several kinds of tables: the look-ups of one table and the number of such tables."""
    total = sum(lookups * n for _, lookups, n in parts)
    if not total > 0.0:
        raise ProblemError("no table is looked up; give look-ups of 1 or more")
    return Popularity(
        np.concatenate([part.rates * (lookups / total) for part, lookups, _ in parts]),
        np.concatenate([part.counts * n for part, _, n in parts]),
    )


def _integral(x: np.ndarray, exponent: float) -> np.ndarray:
    """∫ x^-a."""
    if exponent == 1.0:
        return np.asarray(np.log(x))
    return np.asarray(x ** (1.0 - exponent) / (1.0 - exponent))


def _check_rows(cached: float) -> None:
    if not cached >= 0.0:
        raise ProblemError(f"a cache of {cached:g} rows; give 0 or more")
