"""Requests as options: lengths, cached prefixes, the kind of load and its size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from perfmodel.cli import ranges, spellings
from perfmodel.errors import ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.serving.clients import STATISTICS

_LOAD = "Load"
"""Heading of the options."""
_LENGTH = ranges.read("1k", "")
Tokens = Annotated[ranges.Values, FieldOption(_LOAD, "TOKENS")]


def _rates(text: str) -> list[float]:
    fault = "is no number of requests a second; write 0.5,1,2.5"
    return ranges.numbers(text, "--rate", lambda rate: 0.0 < rate < 1e9, fault)


def _parts(text: str) -> list[float]:
    """Cached tokens, or below 1 their share, from a list: 512, 1k, 0.5, 50%.

    All of a prompt is all but one token, which is computed.
    """
    fault = "is no share; write 0.5 or 50%, or a number of tokens"
    values: list[float] = []
    for part in spellings.names(text):
        if part.endswith("%") or "." in part:
            shares = ranges.numbers(part, "--cached", lambda share: 0.0 <= share <= 1.0, fault)
            values += [min(share, 1.0 - 1e-9) for share in shares]
        else:
            values += ranges.read(part, "--cached", 0)
    return values


@dataclass(frozen=True)
class Load:
    """The requests that a network serves."""

    isl: Tokens = _LENGTH
    """Input length: tokens of a prompt."""
    osl: Tokens = _LENGTH
    """Output length: generated tokens of a request."""
    batch: Annotated[ranges.Values | None, FieldOption(_LOAD, "SEQUENCES")] = None
    """Load: static batches that start and end together: a size, list (1,8) or range (1:256:x2)."""
    concurrency: Annotated[
        ranges.Values | None, FieldOption(_LOAD, "CLIENTS", ("--concurrency", "--users"))
    ] = None
    """Load: concurrent clients, each with one request at a time: a size, list or range."""
    rate: Annotated[Sequence[float] | None, FieldOption(_LOAD, "RATES", read=_rates)] = None
    """Load: requests a second, with commas: 0.5,1,2.5."""
    load: Annotated[str | None, FieldOption(_LOAD, "full", names=("full",), single=True)] = None
    """Load: as many concurrent requests as fit."""
    cached: Annotated[str, FieldOption(_LOAD, "TOKENS")] = "0"
    """Tokens of a prompt that are in the cache already (a prefix), or their share: 512, 0.5, 50%;
    with commas."""
    vary: Annotated[float, FieldOption(_LOAD, "SHARE", least=0, most=2)] = 0.0
    """How much the output lengths of --concurrency vary: (longest - shortest) / mean. Clients of
    equal lengths stay in phase."""
    statistic: Annotated[str, FieldOption(_LOAD, "NAME", single=True, names=tuple(STATISTICS))] = (
        "mean"
    )
    """Statistic of the time to the first token."""

    def __post_init__(self) -> None:
        kinds = ("batch", "concurrency", "rate", "load")
        names = [f"--{name}" for name in kinds if getattr(self, name) is not None]
        if len(names) > 1:
            raise ProblemError(f"{' and '.join(names)} are different kinds of load; give one")

    @cached_property
    def kind(self) -> str:
        """The kind of load: full, rate, concurrency or static batch."""
        if self.load is not None:
            return "full"
        if self.rate is not None:
            return "rate"
        return "static batch" if self.concurrency is None else "concurrency"

    @cached_property
    def sizes(self) -> list[float]:
        """The sizes of that kind; a batch of 1 by default."""
        return (
            [0.0]
            if self.load is not None
            else list(self.rate or self.concurrency or self.batch or (1,))
        )

    @cached_property
    def lengths(self) -> dict[str, list[Any]]:
        """Input and output lengths, and what of a prompt is cached."""
        return {"isl": list(self.isl), "osl": list(self.osl), "cached": _parts(self.cached)}

    def batches(self, option: str) -> list[int]:
        """The sizes as numbers of sequences. Raises `ProblemError` for another kind of load."""
        if self.kind not in ("static batch", "concurrency"):
            raise ProblemError(f"{option} is of --batch or --concurrency; give one")
        return [int(size) for size in self.sizes]
