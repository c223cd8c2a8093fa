"""A recommender: embedding bags, and the dense layers before and after them (`models.yaml`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfmodel import yamltable
from perfmodel.algorithms import Matmul
from perfmodel.embeddings.bag import Bags, of_sizes
from perfmodel.errors import UnknownName
from perfmodel.hardware import Device
from perfmodel.predict import predict

Layer = tuple[int, int]
"""Columns of a product's output, and its reduced dimension."""


@dataclass(frozen=True)
class Recommender:
    """Tables and dense layers."""

    name: str
    """Name on the command line."""
    about: str
    """One-line description."""
    source: str
    """Source of its sizes."""
    rows: tuple[int, ...]
    """Rows of each table."""
    lookups: tuple[float, ...]
    """Rows of each table that a sample looks up."""
    dim: int
    """Elements of a row."""
    dtype: str
    """Type of an element."""
    dense: tuple[Layer, ...]
    """Products of the bottom network, the interaction and the top network, in order."""

    def bags(self, batch: int, exponent: float) -> Bags:
        """The look-ups of a batch."""
        tables = of_sizes(self.rows, self.lookups)
        return Bags(batch, tables, self.dim, self.dtype, exponent)

    def dense_seconds(self, batch: int, device: Device, dtype: str = "fp16") -> float:
        """Seconds of all dense layers, one after another."""
        return sum(predict(Matmul(batch, n, k, dtype=dtype), device).seconds for n, k in self.dense)


def load(name: str) -> Recommender:
    """The recommender with this name. Raises `UnknownName`."""
    entry = _table().get(name)
    if entry is None:
        raise UnknownName("recommender", name, _table())
    return entry


def names() -> tuple[str, ...]:
    """Every recommender."""
    return tuple(_table())


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Recommender]:
    document = yamltable.read(Path(__file__).with_name("models.yaml"))
    return {name: _recommender(name, entry) for name, entry in document["models"].items()}


def _recommender(name: str, entry: Mapping[str, Any]) -> Recommender:
    dense = (*entry["bottom"], *entry["interaction"], *entry["top"])
    return Recommender(
        name, entry["about"], entry["source"], tuple(entry["rows"]), tuple(entry["lookups"]),
        entry["dim"], entry["dtype"], tuple((n, k) for n, k in dense),
    )  # fmt: skip
