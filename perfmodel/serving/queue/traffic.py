"""Requests as they come: when, how long, and what of their prompts is cached.

Gaps between arrivals are drawn from a gamma distribution of a given coefficient of variation c
(standard deviation over mean): 1 is a Poisson process, 0 an even one, above 1 come bursts. Clients
in a closed loop send their next request when the last one ends. Lengths are drawn evenly, or with a
longer tail (`LENGTHS`), with the mean that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.fieldoption import FieldOption

MOST_REQUESTS = 1_000_000
"""Limit on the requests of a simulation."""
_REQUESTS = 1_000
"""Requests of a simulation that names no number."""
_PANEL = "Queue"
"""Heading of the options."""


def _uniform(draws: np.random.Generator, count: int, variation: float) -> np.ndarray:
    half = np.sqrt(3.0) * variation
    return draws.uniform(1.0 - half, 1.0 + half, count)


def _lognormal(draws: np.random.Generator, count: int, variation: float) -> np.ndarray:
    sigma = np.sqrt(np.log1p(variation**2))
    return draws.lognormal(-(sigma**2) / 2.0, sigma, count)


def _gamma(draws: np.random.Generator, count: int, variation: float) -> np.ndarray:
    return draws.gamma(variation**-2, variation**2, count)


LENGTHS: Mapping[str, Callable[[np.random.Generator, int, float], np.ndarray]] = {
    "uniform": _uniform, "lognormal": _lognormal, "gamma": _gamma,
}  # fmt: skip
"""Distributions of mean 1 by name; `gamma` of variation 1 is the exponential one."""


def _check_lengths(text: str) -> str:
    """The text of a distribution. Raises `UnknownName` and `ProblemError`."""
    name, _, number = text.partition(":")
    if name not in LENGTHS:
        raise UnknownName("distribution of lengths", name, LENGTHS)
    try:
        variation = float(number)
    except ValueError:
        variation = -1.0
    most = 0.57 if name == "uniform" else 10.0
    if not 0.0 < variation <= most:
        raise ProblemError(
            f"--lengths {text}: give standard deviation over mean, above 0 and at most {most:g}, "
            f"as in {name}:0.5"
        )
    return text


@dataclass(frozen=True)
class Arrivals:
    """Requests in order of arrival, as arrays."""

    seconds: np.ndarray
    """When each is sent; for clients in a closed loop only that of their first."""
    inputs: np.ndarray
    """Tokens of the prompt."""
    outputs: np.ndarray
    """Tokens of the answer."""
    cached: np.ndarray
    """Tokens of the prompt that are cached when it comes."""
    priorities: np.ndarray
    """Priority; less is served first."""
    pieces: Sequence[Sequence[int]] = ()
    """Hashes of the prompt's pieces, each of all text up to its end; empty: none are known."""
    piece: int = 512
    """Tokens of a hashed piece."""
    clients: int = 0
    """Clients in a closed loop; 0: requests come whether others have ended or not."""

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def ranked(self) -> bool:
        """Whether requests differ in priority."""
        return bool(np.any(self.priorities != self.priorities[:1]))

    @property
    def longest(self) -> int:
        """Tokens of the longest request."""
        return int(np.max(self.inputs + self.outputs))


@dataclass(frozen=True)
class Traffic:
    """How requests are drawn."""

    requests: Annotated[int | None, FieldOption(_PANEL, single=True)] = None
    """Simulate N requests one by one, for percentiles, instead of the means of closed forms."""
    arrivals: Annotated[str | None, FieldOption(_PANEL, "FILE")] = None
    """Simulate the requests of a trace: CSV or JSON lines with arrival, input, output[, prefix],
    or as Mooncake, Azure and BurstGPT publish theirs; --requests takes the first N."""
    seed: Annotated[int, FieldOption(_PANEL, least=0, single=True)] = 0
    """Seed of what is drawn."""
    burst: Annotated[float, FieldOption(_PANEL, "CV", least=0, most=20)] = 1.0
    """With --rate: standard deviation over mean of the time between arrivals; 1 is Poisson, 0
    even."""
    lengths: Annotated[
        str | None, FieldOption(_PANEL, "NAME:CV", single=True, read=_check_lengths)
    ] = None
    """How input and output lengths vary about --isl and --osl, with standard deviation over mean:
    uniform:0.3, lognormal:1, gamma:0.8 [default: outputs by --vary]."""

    def __post_init__(self) -> None:
        if self.requests is not None and not 1 <= self.requests <= MOST_REQUESTS:
            raise ProblemError(f"--requests {self.requests}: give 1 to {MOST_REQUESTS:,}")

    def arriving(
        self, isl: int, osl: int, *, rate: float = 0.0, clients: int = 0, cached: float = 0.0,
        vary: float = 0.0,
    ) -> Arrivals:  # fmt: skip
        """Requests of mean lengths `isl` and `osl` at `rate` a second, or by `clients`; `cached`
        is a number of tokens of each prompt, or below 1 a share."""
        count = self.requests or _REQUESTS
        draws = np.random.default_rng(self.seed)
        gaps = _gamma(draws, count, self.burst) if self.burst else np.ones(count)
        inputs, outputs = (self._lengths(draws, mean, count) for mean in (isl, osl))
        if vary and not self.lengths:
            outputs = _whole(osl * _uniform(draws, count, vary / np.sqrt(12.0)))
        part = inputs * cached if cached < 1.0 else np.full(count, cached)
        return Arrivals(
            np.zeros(count) if clients else np.cumsum(gaps) / rate, inputs, outputs,
            np.minimum(np.floor(part), inputs - 1).astype(int), np.zeros(count, int),
            clients=clients,
        )  # fmt: skip

    def _lengths(self, draws: np.random.Generator, mean: int, count: int) -> np.ndarray:
        if self.lengths is None:
            return np.full(count, mean)
        name, _, variation = self.lengths.partition(":")
        return _whole(mean * LENGTHS[name](draws, count, float(variation)))


def _whole(lengths: np.ndarray) -> np.ndarray:
    """Tokens: whole numbers, 1 at least."""
    return np.asarray(np.maximum(np.rint(lengths), 1).astype(int))
