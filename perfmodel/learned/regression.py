"""Residuals of nearby runs: Gaussian-process regression with a fixed length scale.

    k(x, x') = s² exp(−|x − x'| / ℓ),   mean(x) = k(x, X) (K + N)⁻¹ r,
    variance(x) = s² − k(x, X) (K + N)⁻¹ k(X, x) + n²

X are the runs, r their residuals in ln, K = k(X, X), N the noise of each run on its diagonal
(Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, equations 2.25 and 2.26).
Coordinates are standardised logarithms; a differing word (a type, a kernel) adds a fixed distance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perfmodel.frozen import dataclass

LENGTH = 2.5
"""Length scale in standard deviations of a coordinate."""
NOISE = 0.07
"""Standard deviation in ln of runs of one kernel about a smooth curve: copies of one kernel on
sibling devices differ by .03 to .05 in the median after one factor."""
_WORD = 0.7
SIGNALS = (0.03, 0.06, 0.09, 0.12, 0.18, 0.25, 0.35)
"""Candidates for s."""
_USUAL_SIGNAL = 0.12
_SIGNAL_SPREAD = 0.7  # of ln s about the usual one
_OUTLIER = 2.5  # standard deviations beyond which a run counts less
_ROUNDS = 3


@dataclass(frozen=True)
class Scale:
    """Standardises numbers: (ln x − centre) / width for each name."""

    centre: Mapping[str, float]
    """Mean of the logarithms."""
    width: Mapping[str, float]
    """Their standard deviation; names that do not vary are left out."""

    @classmethod
    def of(cls, numbers: Mapping[str, np.ndarray]) -> Scale:
        """The scale of some runs."""
        logs = {name: np.log(np.maximum(each, 1e-12)) for name, each in numbers.items()}
        width = {name: float(each.std()) for name, each in logs.items()}
        return cls(
            {name: float(each.mean()) for name, each in logs.items()},
            {name: value for name, value in width.items() if value > 1e-6},
        )

    def coordinates(self, numbers: Mapping[str, np.ndarray], n: int) -> np.ndarray:
        """Coordinates of n problems, (n, names). A number that a problem lacks is taken as 1."""
        columns = [
            (np.log(np.maximum(np.broadcast_to(numbers.get(name, 1.0), n), 1e-12))
             - self.centre[name]) / width
            for name, width in self.width.items()
        ]  # fmt: skip
        if not columns:
            return np.zeros((n, 1))
        return np.asarray(np.stack(columns, axis=1) * np.sqrt(3.0 / len(columns)))


def distances(
    a: np.ndarray,
    a_words: Sequence[frozenset[str]],
    b: np.ndarray,
    b_words: Sequence[frozenset[str]],
) -> np.ndarray:
    """Distances of all pairs, (len(a), len(b)): of coordinates, and of words that differ.

    One set of words stands for all of its side.
    """
    squares = np.square(a).sum(1)[:, None] + np.square(b).sum(1) - 2.0 * (a @ b.T)
    kinds, others = (list(dict.fromkeys(each)) for each in (a_words, b_words))
    apart = np.array([[len(one ^ other) for other in others] for one in kinds], dtype=float)
    rows, columns = (
        np.array([found.index(words) for words in each])
        for found, each in ((kinds, a_words), (others, b_words))
    )
    different = apart[rows[:, None], columns]
    return np.asarray(np.sqrt(np.maximum(squares, 0.0) + _WORD**2 * different))


@dataclass(frozen=True)
class Process:
    """A process of some runs' residuals."""

    signal: float
    """s: how far residuals are from zero, in ln."""
    residuals: np.ndarray
    """r."""
    weights: np.ndarray
    """(K + N)⁻¹ r."""
    inverse: np.ndarray
    """(K + N)⁻¹."""

    @classmethod
    def of(cls, gaps: np.ndarray, residuals: np.ndarray, signal: float) -> Process:
        """The process of runs whose distances from each other are `gaps`."""
        inverse = np.linalg.inv(_kernel(gaps, signal) + NOISE**2 * np.eye(len(residuals)))
        return cls(signal, residuals, inverse @ residuals, inverse)

    def at(self, gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of problems at distances `gaps`, (problems, runs)."""
        near = _kernel(gaps, self.signal)
        taught = ((near @ self.inverse) * near).sum(1)
        variance = np.maximum(self.signal**2 - taught, 0.0) + NOISE**2
        return near @ self.weights, np.sqrt(variance)

    def left_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Error of each run predicted from all others, and its standard deviation (Rasmussen and
        Williams, 5.12)."""
        precision = np.diag(self.inverse)
        return self.weights / precision, 1.0 / np.sqrt(precision)


def settled(gaps: np.ndarray, residuals: np.ndarray) -> tuple[float, np.ndarray]:
    """The likely signal, and the residuals with outliers pulled towards what the others say."""
    signal = _likely_signal(gaps, np.clip(residuals, -0.5, 0.5))
    pulled = residuals
    for _ in range(_ROUNDS):
        errors, deviations = Process.of(gaps, pulled, signal).left_out()
        expected = pulled - errors
        reach = _OUTLIER * deviations
        pulled = np.clip(residuals, expected - reach, expected + reach)
    return signal, pulled


def _kernel(gaps: np.ndarray, signal: float) -> np.ndarray:
    return np.asarray(signal**2 * np.exp(-gaps / LENGTH))


def _likely_signal(gaps: np.ndarray, residuals: np.ndarray) -> float:
    """The most likely s, given how large it usually is (marginal likelihood, ibid. 5.8)."""

    def log_posterior(signal: float) -> float:
        factor = np.linalg.cholesky(_kernel(gaps, signal) + NOISE**2 * np.eye(len(residuals)))
        white = np.linalg.solve(factor, residuals)
        prior = (np.log(signal / _USUAL_SIGNAL) / _SIGNAL_SPREAD) ** 2
        return float(-0.5 * white @ white - np.log(np.diag(factor)).sum() - 0.5 * prior)

    return max(SIGNALS, key=log_posterior)
