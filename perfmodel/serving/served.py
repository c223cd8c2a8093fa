"""Metrics of a load, each with its range: first token, time between tokens, rates.

serve(Steps(deployment), "concurrency", [1, 8, 64], isl=1024, osl=1024)

The range of a metric is the operators' range, widened by the engine's (`spread.yaml`):

    ln(high / value)² = ln(operators' high / value)² + width²

Errors of operators and engines are independent, so their half-widths add in quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from perfmodel import yamltable
from perfmodel.columns import DIFFERS, SOME, Column, Result, Row
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.networks.network import Network
from perfmodel.published import Nearest
from perfmodel.quantities import shown
from perfmodel.serving import disaggregated, requests
from perfmodel.serving.clients import STATISTICS
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.requests import Load, Requests
from perfmodel.serving.steps import Steps
from perfmodel.serving.times import Times

LOADS = ("static batch", "concurrency", "rate", "full")
"""Kinds of load: a batch that starts and ends together, concurrent clients, requests a second, all
that fits."""
METRICS = (
    "ttft_ms", "tpot_ms", "e2e_ms", "output_tokens_per_s", "total_tokens_per_s",
    "input_tokens_per_s",
)  # fmt: skip
"""Metrics of a load."""
_MILLI, _MICRO = 1e3, 1e6


class Value(NamedTuple):
    """A number with its 80 % range."""

    value: float
    """Predicted."""
    low: float
    """Low end."""
    high: float
    """High end."""

    def times(self, factor: float) -> Value:
        """The value and its range times `factor`."""
        return Value(*(each * factor for each in self))

    @property
    def inverse(self) -> Value:
        """The rate for a time."""
        return Value(1.0 / self.value, 1.0 / self.high, 1.0 / self.low)


def _ranged(key: str) -> Callable[[Row], str]:
    """A metric with its range."""
    return lambda row: "{} ({}-{})".format(
        *(shown(row[f"{end}{key}"], "number") for end in ("", "low_", "high_"))
    )


def _is_not_size(rows: Sequence[Row]) -> bool:
    return any(row["resident"] != row["size"] for row in rows)


def _several_devices(rows: Sequence[Row]) -> bool:
    return any(row["devices"] > 1 for row in rows)


@dataclass(frozen=True)
class Served(Result):
    """One load of a deployment."""

    of: Annotated[Deployment, Column(flat=True)]
    """The deployment."""
    kind: Annotated[str, Column(key="load")]
    """One of `LOADS`."""
    size: Annotated[float, Column("size", place=1)]
    """Sequences, clients or requests a second, over all copies; 0 for a full load."""
    load: Load
    """All loads that were predicted together."""
    place: int
    """The index of this load among them."""
    parts: float
    """Loads like this one in all: over copies, and groups in different pipeline stages."""
    spread: Spread
    """What the engine adds to ranges."""
    statistic: Annotated[str, Column(place=3)] = "mean"
    """Statistic of first tokens, one of `clients.STATISTICS`."""
    nearest: Annotated[Nearest | None, Column(place=4)] = None
    """The nearest published run; None where none is near or none was looked for."""

    @property
    def isl(self) -> Annotated[int, Column("isl", when=DIFFERS)]:
        """Tokens of a prompt (ISL), without those of its images; those that an encoder reads."""
        read = self.of.encoded if self.of.network.frames is None else 0
        return read or int(self.load.requests.isl[self.place]) - self.image_tokens

    @property
    def image_tokens(self) -> Annotated[int, Column("image tokens", when=DIFFERS)]:
        """Tokens of a prompt that its images are."""
        return self.of.image_tokens

    @property
    def osl(self) -> Annotated[int, Column("osl", when=DIFFERS)]:
        """Output tokens (OSL)."""
        return int(self.load.requests.osl[self.place])

    @property
    def cached(self) -> Annotated[int, Column("cached", when=DIFFERS)]:
        """Tokens of a prompt that are in the cache already."""
        return int(np.broadcast_to(self.load.requests.cached, self.load.ttft.shape)[self.place])

    @property
    def resident(self) -> Annotated[float, Column("resident", when=_is_not_size, place=1)]:
        """Concurrent requests of each copy."""
        return float(self.load.resident[self.place]) * self.parts / self.of.copies

    @property
    def requests_per_s(self) -> Annotated[float, Column(place=3)]:
        """Completed requests a second, over all copies."""
        return float(self.load.requests_per_s[self.place]) * self.parts

    @property
    def known(self) -> Annotated[Mapping[str, str], Column(place=3)]:
        """Whether the engine's host is fitted, and whether devices share layers."""
        return {
            "engine": "fitted" if self.of.engine.fitted else "unfitted",
            "devices": "several" if self.of.tensor > 1 else "one",
        }

    @property
    def ttft_seconds(self) -> float:
        """Seconds to the first token, by its statistic."""
        return float(self.load.quantiles.get(self.statistic, self.load.ttft)[self.place])

    @property
    def tpot_seconds(self) -> float:
        """Seconds between tokens."""
        return float(self.load.tpot[self.place])

    def metric(self, name: str) -> Value:
        """One of `METRICS`, for the whole system. Raises `UnknownName`."""
        if name not in METRICS:
            raise UnknownName("metric", name, METRICS)
        ttft, tpot = float(self.load.ttft[self.place]), self.tpot_seconds
        first, later = (times.range(self.place) for times in (self.load.prompt, self.load.token))
        decode = (self.osl - 1) * tpot
        if name == "ttft_ms":
            return self._value(name, self.ttft_seconds * _MILLI, first)
        if name == "tpot_ms":
            return self._value(name, tpot * _MILLI, later)
        ends = tuple(
            (ttft * a + decode * b) / (ttft + decode) for a, b in zip(first, later, strict=True)
        )
        if name == "e2e_ms":
            return self._value(name, float(self.load.seconds[self.place]) * _MILLI, ends)
        seconds = self._value(name, 1.0, ends)
        return seconds.inverse.times(self._rate(name) * self.parts)

    def _rate(self, name: str) -> float:
        """Tokens a second of one copy; an engine of one sequence is timed only while it decodes."""
        load, i = self.load, self.place
        if name == "input_tokens_per_s" and self.kind == "static batch":
            return float(load.resident[i]) * self.isl / float(load.ttft[i])
        single = self.of.engine.batching.sequences == 1 and self.kind == "static batch"
        if single and name == "output_tokens_per_s":
            return 1.0 / float(load.tpot[i])
        outputs = 0 if name == "input_tokens_per_s" else self.osl
        inputs = 0 if name == "output_tokens_per_s" else self.isl
        return float(load.requests_per_s[i]) * (outputs + inputs)

    def _value(self, name: str, value: float, ends: Sequence[float]) -> Value:
        group = group_of(name, fitted=bool(self.of.engine.fitted))
        low, high = self.spread.around(group, value, value * ends[0], value * ends[1])
        return Value(value, low, high)

    @property
    def limiter(self) -> Annotated[str, Column("limiter", when=SOME, place=3)]:
        """The class of operations that takes most of the time between tokens."""
        seconds = self.load.token.by_kind(self.place)
        return max(seconds, key=lambda kind: seconds[kind])

    def terms(self) -> Mapping[str, Mapping[str, float]]:
        """Microseconds by operation of the first token's step and of a further token's step."""
        return {"prompt": self._terms(self.load.prompt), "token": self._terms(self.load.token)}

    def _terms(self, times: Times) -> dict[str, float]:
        terms: dict[str, float] = {}
        for line, row in zip(times.lines, times.seconds, strict=True):
            terms[line.name] = terms.get(line.name, 0.0) + float(row[self.place]) * _MICRO
        return terms

    @property
    def metrics(
        self,
    ) -> Annotated[
        Mapping[str, float],
        Column(flat=True, place=2),
        Column("TTFT ms", _ranged("ttft_ms"), place=2),
        Column("TPOT ms", _ranged("tpot_ms"), place=2),
        Column("tokens/s", "output_tokens_per_s", place=2),
    ]:
        """The metrics of times and of output, each with the ends of its range."""
        ends = ("", "low_", "high_")
        return {
            f"{end}{name}": value
            for name in METRICS[:4]
            for end, value in zip(ends, self.metric(name), strict=True)
        }

    @property
    def output_tokens_per_s_per_device(
        self,
    ) -> Annotated[float, Column("a device", when=_several_devices, place=2)]:
        """Output tokens a second of one device."""
        return self.metric("output_tokens_per_s").value / self.of.devices


def serve(
    steps: Steps,
    kind: str,
    sizes: Sequence[float] | np.ndarray,
    isl: int | np.ndarray,
    osl: int | np.ndarray,
    *,
    cached: float | np.ndarray = 0.0,
    vary: float | np.ndarray = 0.0,
    statistic: str = "mean",
    spread: Spread | None = None,
) -> list[Served]:
    """Loads of one kind, predicted together; sizes are over all copies. Prompts have `isl` tokens
    and the deployment's images.

    `cached` is the part of a prompt whose keys and values are cached (a prefix): a number of
    tokens, or below 1 a share. One token at least is computed. In host memory it is read, or
    computed again where the first token comes sooner so. `vary` is (longest − shortest) /
    mean of the output lengths of clients, and `statistic` is that of first tokens.

    Raises `UnknownName` for another kind of load or statistic, `ProblemError` for a load that does
    not fit or cannot be served.
    """
    if steps.of.network.patches is not None:
        raise ProblemError(f"{steps.of.network.name} makes no token after token; serve a decoder")
    totals = np.atleast_1d(np.asarray(sizes, dtype=float))
    _check(kind, statistic, totals, {"isl": isl, "osl": osl}, vary)
    if steps.of.network.frames is not None:
        _check_text(steps.of.network, int(np.max(np.add(isl, osl))))
    lengths = np.broadcast_to(isl, totals.shape).tolist()
    own_pass = bool(steps.of.network.encoder) and len(set(lengths)) > 1
    if own_pass or (steps.of.cached_outside and len(totals) > 1):  # each decides for itself
        columns = [each.tolist() for each in np.broadcast_arrays(totals, isl, osl, cached, vary)]
        return [
            serve(steps, kind, [size], tokens, answer, cached=part, vary=share,
                  statistic=statistic, spread=spread)[0]
            for size, tokens, answer, part, share in zip(*columns, strict=True)
        ]  # fmt: skip
    kept, first = steps.of.reading(lengths[0])
    steps = steps if kept is steps.of else Steps(kept)
    prompt = np.asarray(isl, float) + (first - lengths[0])
    copies = steps.of.copies
    loads = totals / copies if kind == "rate" else np.ceil(totals / copies)
    groups = _groups(steps.of, kind, loads)
    requests = Requests(
        prompt, np.asarray(osl, float), _cached_tokens(prompt, cached), vary, groups
    )
    if steps.of.pools and kind != "concurrency":
        raise ProblemError(f"pools serve clients; give --concurrency in place of {kind}")
    predicted = disaggregated.closed if steps.of.pools else _LOADED[kind]
    ways = [predicted(steps, loads / groups, requests)]
    if steps.of.cached_outside and np.any(requests.cached):
        with suppress(ProblemError):  # all of the prompt computed, in place of reading a part
            ways.append(predicted(steps, loads / groups, replace(requests, cached=0.0)))
    load = min(ways, key=lambda way: float(way.ttft.max()))
    parts = copies * groups if kind == "full" else totals * groups / loads
    return [
        Served(
            steps.of, kind, float(size), load, i, float(parts[i]), spread or default(), statistic
        )
        for i, size in enumerate(totals)
    ]


def _check_text(network: Network, tokens: int) -> None:
    """Raise `ProblemError` where a decoder beside sound has fewer positions than tokens."""
    if tokens > network.positions:
        raise ProblemError(
            f"{network.name} has {network.positions} positions for start tokens and their answer, "
            f"fewer than {tokens}; give --isl 4 --osl 200"
        )


def _check(
    kind: str,
    statistic: str,
    sizes: np.ndarray,
    lengths: Mapping[str, int | np.ndarray],
    vary: float | np.ndarray,
) -> None:
    """Raise `UnknownName` and `ProblemError` for what is no load."""
    for label, name, names in (("load", kind, LOADS), ("statistic", statistic, STATISTICS)):
        if name not in names:
            raise UnknownName(label, name, names)
    if kind != "full" and not np.all(sizes > 0):
        raise ProblemError(f"{kind} {sizes.min():g}: give a number above 0")
    for name, value in lengths.items():
        if np.min(value) < 1:
            raise ProblemError(f"{name} is {np.min(value)}; it is 1 or more")
    if not np.all((np.asarray(vary) >= 0.0) & (np.asarray(vary) <= 2.0)):
        raise ProblemError(f"vary is {np.max(vary):g}; lengths vary by 0 to 2 of their mean")


def _cached_tokens(isl: np.ndarray, cached: float | np.ndarray) -> np.ndarray:
    """Cached tokens of each prompt: at least one token is computed."""
    part = np.asarray(cached, float)
    if not np.all((part >= 0.0) & (part <= isl)):
        raise ProblemError(
            f"cached is {np.max(part):g} of a prompt of {np.min(isl):g} tokens; give 0 to "
            f"{np.min(isl):g} tokens, or a share such as 0.5"
        )
    return np.minimum(np.where(part < 1.0, np.floor(part * isl), part), isl - 1.0)


_LOADED: Mapping[str, Callable[[Steps, np.ndarray, Requests], Load]] = {
    "static batch": requests.static,
    "concurrency": requests.closed,
    "rate": requests.open_loop,
    "full": lambda steps, _size, asks: requests.full(steps, asks),
}
"""What predicts each kind of load."""


def _groups(setup: Deployment, kind: str, loads: np.ndarray) -> np.ndarray:
    """Groups of the requests of each copy: as many as pipeline stages, but of one request or
    more."""
    if not setup.engine.batching.piped:
        return np.ones_like(loads)
    if kind in ("rate", "full"):
        return np.full_like(loads, setup.pipeline)
    return np.asarray(np.minimum(loads, setup.pipeline))


GROUPS = ("first", "pace fitted", "pace unfitted")
"""Groups of metrics whose errors have one cause. `first`: first tokens, whose queues depend on
the clients; `pace fitted` and `pace unfitted`: decoding under engines with and without a fitted
host."""
_FIRST = ("ttft_ms", "input_tokens_per_s")


@dataclass(frozen=True)
class Spread:
    """Half-widths by group, as natural logarithms."""

    widths: Mapping[str, float]
    """Half-widths that are added to the operators'."""

    @classmethod
    def none(cls) -> Spread:
        """The operators' ranges alone."""
        return cls(dict.fromkeys(GROUPS, 0.0))

    def around(self, group: str, value: float, low: float, high: float) -> tuple[float, float]:
        """The ends of the range of a value in a group; `low` and `high` are the operators'."""
        width = self.widths[group]
        return (
            value * math.exp(-math.hypot(math.log(value / low), width)),
            value * math.exp(math.hypot(math.log(high / value), width)),
        )


@lru_cache(maxsize=1)
def default() -> Spread:
    """The shipped widths."""
    widths = yamltable.read(Path(__file__).with_name("spread.yaml"))["widths"]
    return Spread({name: float(width) for name, width in widths.items()})


def group_of(metric: str, *, fitted: bool) -> str:
    """The group of a metric under an engine whose host is `fitted` or not."""
    if metric in _FIRST:
        return "first"
    return "pace fitted" if fitted else "pace unfitted"
