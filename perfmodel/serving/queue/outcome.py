"""What clients saw: first tokens, times between tokens, whole requests, rates, goodput."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from perfmodel.columns import DIFFERS, Column, Result, Row
from perfmodel.quantities import shown
from perfmodel.serving.queue.traffic import Arrivals
from perfmodel.serving.targets import Targets

STATISTICS = ("mean", "p50", "p90", "p99")
"""Statistics of a metric."""


_UNITS = {"ttft_ms": 1e3, "tpot_ms": 1e3, "e2e_s": 1.0}
"""Metrics with their units, and how many of a unit a second has."""


def _quantiles(key: str) -> Callable[[Row], str]:
    """The statistics of a metric."""
    return lambda row: "{} ({} {} {})".format(
        *(shown(row[f"{key}_{name}"], "number") for name in STATISTICS)
    )


def _some(key: str) -> Callable[[Sequence[Row]], bool]:
    return lambda rows: any(row[key] for row in rows)


@dataclass(frozen=True)
class Outcome(Result):
    """A simulation; arrays have one entry a request."""

    arrivals: Arrivals
    """The requests."""
    sent: np.ndarray
    """Seconds at which each was sent."""
    first: np.ndarray
    """Seconds of its first token."""
    end: np.ndarray
    """Seconds of its last token."""
    preemptions: Annotated[int, Column("preemptions", when=_some("preemptions"), place=3)]
    """Times that a request gave up its cache and began anew."""
    hit_tokens: int
    """Tokens of prompts that were cached."""
    fullest: Annotated[float, Column("cache", show="percent", rank=3, place=4)]
    """Largest share of the cache that requests held."""

    @cached_property
    def seconds(self) -> Mapping[str, np.ndarray]:
        """Seconds of each request by metric: `ttft`, `tpot` of those of several tokens, `e2e`."""
        several = self.arrivals.outputs > 1
        steps = self.arrivals.outputs[several] - 1
        return {
            "ttft": self.first - self.sent,
            "tpot": (self.end - self.first)[several] / steps
            if several.any()
            else np.full(1, np.nan),
            "e2e": self.end - self.sent,
        }

    def statistic(self, metric: str, name: str) -> float:
        """Seconds of a metric: its mean, or the quantile that `p99` and the like name."""
        values = self.seconds[metric]
        return float(np.mean(values) if name == "mean" else np.percentile(values, float(name[1:])))

    @property
    def requests(self) -> Annotated[int, Column()]:
        """Number of requests."""
        return len(self.arrivals)

    @property
    def isl(self) -> Annotated[int, Column("isl", when=DIFFERS)]:
        """Mean tokens of a prompt."""
        return round(float(self.arrivals.inputs.mean()))

    @property
    def osl(self) -> Annotated[int, Column("osl", when=DIFFERS)]:
        """Mean output tokens."""
        return round(float(self.arrivals.outputs.mean()))

    @property
    def metrics(
        self,
    ) -> Annotated[
        Mapping[str, float],
        Column(flat=True),
        Column("TTFT ms", _quantiles("ttft_ms")),
        Column("TPOT ms", _quantiles("tpot_ms")),
        Column("E2E s", _quantiles("e2e_s")),
    ]:
        """The statistics of every metric."""
        return {
            f"{key}_{name}": self.statistic(key.partition("_")[0], name) * scale
            for key, scale in _UNITS.items()
            for name in STATISTICS
        }

    @property
    def duration(self) -> float:
        """Seconds from the first request to the last token."""
        return float(self.end.max() - self.sent.min())

    @property
    def requests_per_s(self) -> Annotated[float, Column()]:
        """Requests a second, over all seconds until the last token as benchmarks count."""
        return len(self.arrivals) / self.duration

    @property
    def output_tokens_per_s(self) -> Annotated[float, Column("tokens/s", rank=2)]:
        """Output tokens a second."""
        return float(self.arrivals.outputs.sum()) / self.duration

    @property
    def cached_share(
        self,
    ) -> Annotated[float, Column("prefix hits", when=_some("cached_share"), rank=3, place=2)]:
        """Share of the prompts' tokens that were cached."""
        return self.hit_tokens / float(self.arrivals.inputs.sum())

    def good_share(self, targets: Targets) -> float:
        """Share of requests that meet all targets."""
        ttft, tpot = targets.limits
        good = self.seconds["ttft"] <= ttft
        good[self.arrivals.outputs > 1] &= self.seconds["tpot"] <= tpot
        return float(good.mean())
