"""A recommender: embedding bags, and the dense layers before and after them (`models.yaml`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfmodel.algorithms import Matmul
from perfmodel.catalogue import Table
from perfmodel.embeddings.bag import Bags, of_sizes
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
    bottom: tuple[Layer, ...]
    """Products of the network before the tables, in order."""
    interaction: tuple[Layer, ...]
    """Products of the interaction."""
    top: tuple[Layer, ...]
    """Products of the network after it."""

    @property
    def dense(self) -> tuple[Layer, ...]:
        """Every product, in order."""
        return self.bottom + self.interaction + self.top

    def bags(self, batch: int, exponent: float) -> Bags:
        """The look-ups of a batch."""
        tables = of_sizes(self.rows, self.lookups)
        return Bags(batch, tables, self.dim, self.dtype, exponent)

    def dense_seconds(self, batch: int, device: Device, dtype: str = "fp16") -> float:
        """Seconds of all dense layers, one after another."""
        products = (Matmul(batch, n, k, dtype=dtype) for n, k in self.dense)
        return sum(predict(product, device).seconds for product in products)


RECOMMENDERS = Table("recommender", Recommender, Path(__file__).with_name("models.yaml"), "models")
"""The recommenders, in file order."""
load, names = RECOMMENDERS.load, RECOMMENDERS.names
