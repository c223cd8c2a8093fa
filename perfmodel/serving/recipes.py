"""Published settings of benchmarks that their tables leave out (`recipes.yaml`).

Each is for rows of a source, an engine and an architecture. A cell of a row comes before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from perfmodel import yamltable
from perfmodel.entries import made
from perfmodel.hardware import Device
from perfmodel.serving.engine import Engine


@dataclass(frozen=True)
class Recipe:
    """How a benchmark starts an engine, and what it publishes."""

    benchmark: str
    """How names of its tables begin."""
    source: str
    """Where the settings stand."""
    statistic: str = "mean"
    """Statistic of first tokens."""
    engine: str = ""
    """The engine; empty: any."""
    architecture: str = ""
    """How the device's architecture begins; empty: any."""
    cache: str = ""
    """Type of the KV cache; empty: the engine's."""
    tokens: int = 0
    """Most tokens of a step; 0: the engine's."""
    polls: Mapping[int, int] = field(default_factory=dict)
    """Steps from one look at new requests to the next, by the clients from which on it holds;
    empty: the engine's."""
    gather: int = 0
    """Most steps that prompts wait until every copy has one; 0: the engine's."""

    def matches(self, source: str, engine: str, device: Device) -> bool:
        """Whether rows of a source, an engine and a device run so."""
        return (
            source.lower().startswith(self.benchmark)
            and self.engine in ("", engine)
            and device.architecture.startswith(self.architecture)
        )

    def polled(self, engine: Engine, clients: float) -> Engine:
        """The engine with these settings under a number of clients."""
        limits = [limit for limit in self.polls if clients >= limit]
        batching = replace(
            engine.batching,
            tokens=self.tokens or engine.batching.tokens,
            poll=self.polls[max(limits)] if limits else engine.batching.poll,
            gather=self.gather or engine.batching.gather,
        )
        return replace(engine, batching=batching)


@lru_cache(maxsize=1)
def _table() -> tuple[Recipe, ...]:
    document = yamltable.read(Path(__file__).with_name("recipes.yaml"))
    return tuple(made(Recipe, entry) for entry in document["recipes"])


def recipe(source: str, engine: str, device: Device) -> Recipe:
    """The settings of a row's source; without any where none is known."""
    matching = (each for each in _table() if each.matches(source, engine, device))
    return next(matching, Recipe("", ""))
