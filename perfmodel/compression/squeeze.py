"""SqueezeLLM (2306.07629): weights as entries of a table a column, with sparse outliers.

    bits = b + 16·2ᵇ/k + share·(16 + 32) + 32/k

A weight's b bits select one of 2ᵇ fp16 values; each column has its own table. A `share` of the
weights is stored separately as compressed sparse rows, with 16 bits of value, 32 of index, and a
32-bit bound a column (section 4.2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from perfmodel.algorithms import Matmul
from perfmodel.compression.scheme import Decoding, Scheme, beside, passes_over_weights, weight_only
from perfmodel.compression.unstructured import sparse_product
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.predict import predict
from perfmodel.prediction import Prediction

_VALUE_BITS, _INDEX_BITS = 16, 32
# Look-ups of an fp16 value in shared memory: one a weight.
_LOOK_UP = Decoding(vector=1.0, shared=1.0)


@dataclass(frozen=True)
class Squeeze(Scheme):
    """A dense part of table look-ups, and a sparse part. Raises `ProblemError`."""

    table_bits: int
    """Bits of a weight's table index."""
    sparse: float = 0.0
    """Share of the weights in the sparse part."""

    def __post_init__(self) -> None:
        if not 1 <= self.table_bits <= 8:
            raise ProblemError(f"squeeze: {self.table_bits} bits a weight; give 1 to 8")
        if not 0.0 <= self.sparse < 1.0:
            raise ProblemError(f"squeeze: {self.sparse:.2%} of the weights apart; give 0 to 100 %")

    @property
    def name(self) -> str:
        """squeeze:3 or squeeze:3:0.45%."""
        suffix = f":{100.0 * self.sparse:g}%" if self.sparse else ""
        return f"squeeze:{self.table_bits}{suffix}"

    @property
    def about(self) -> str:
        """Both parts, in one line."""
        suffix = f", {100.0 * self.sparse:g} % of the weights apart" if self.sparse else ""
        return f"SqueezeLLM: tables of {2**self.table_bits} values a column{suffix}"

    def dense_bits(self, k: int) -> float:
        """Bits a weight of the dense part, tables included."""
        return self.table_bits + _VALUE_BITS * (1 << self.table_bits) / k

    def sparse_bytes(self, n: int, k: int) -> float:
        """Bytes of the sparse part: values, indices and a bound a column."""
        if not self.sparse:
            return 0.0
        return (self.sparse * n * k * (_VALUE_BITS + _INDEX_BITS) + n * _INDEX_BITS) / 8.0

    def stored_bytes(self, n: int, k: int) -> float:
        """Bytes of both parts."""
        return n * k * self.dense_bits(k) / 8.0 + self.sparse_bytes(n, k)

    def kernels(self, problem: Matmul, device: Device) -> tuple[Prediction, ...]:
        """The product of the dense part, then that of the sparse part, which is added to it."""
        m, n, k, batch = (int(problem.sizes()[axis]) for axis in "mnkb")
        product = predict(replace(problem, dtype=weight_only(self.dense_bits(k))), device)
        weights = float(n * k * batch) * passes_over_weights(product, m)
        dense = beside(product, "decode", _LOOK_UP.seconds(weights, device))
        if not self.sparse:
            return (dense,)
        bytes_ = batch * self.sparse_bytes(n, k)
        return dense, sparse_product(problem, self.sparse * n * k * batch, bytes_, device)
