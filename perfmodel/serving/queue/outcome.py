"""What clients saw: first tokens, times between tokens, whole requests, rates, goodput."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from perfmodel.serving.queue.traffic import Arrivals
from perfmodel.serving.targets import Targets

STATISTICS = ("mean", "p50", "p90", "p99")
"""Statistics of a metric."""


@dataclass(frozen=True)
class Outcome:
    """A simulation; arrays have one entry a request."""

    arrivals: Arrivals
    """The requests."""
    sent: np.ndarray
    """Seconds at which each was sent."""
    first: np.ndarray
    """Seconds of its first token."""
    end: np.ndarray
    """Seconds of its last token."""
    preemptions: int
    """Times that a request gave up its cache and began anew."""
    hit_tokens: int
    """Tokens of prompts that were cached."""
    fullest: float
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
    def duration(self) -> float:
        """Seconds from the first request to the last token."""
        return float(self.end.max() - self.sent.min())

    @property
    def requests_per_s(self) -> float:
        """Requests a second, over all seconds until the last token as benchmarks count."""
        return len(self.arrivals) / self.duration

    @property
    def output_tokens_per_s(self) -> float:
        """Output tokens a second."""
        return float(self.arrivals.outputs.sum()) / self.duration

    @property
    def hit_share(self) -> float:
        """Share of the prompts' tokens that were cached."""
        return self.hit_tokens / float(self.arrivals.inputs.sum())

    def good_share(self, targets: Targets) -> float:
        """Share of requests that meet all targets."""
        ttft, tpot = targets.limits
        good = self.seconds["ttft"] <= ttft
        good[self.arrivals.outputs > 1] &= self.seconds["tpot"] <= tpot
        return float(good.mean())
