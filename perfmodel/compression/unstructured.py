"""Unstructured sparsity: Flash-LLM's tiled CSL, and compressed sparse rows.

Tiled CSL (Xia et al., 2309.10285, section 4.3) stores a non-zero in 32 bits: an fp16 value and its
index in a tile of 256 × 64 weights. Non-zeros are padded to four a tile, and each tile has a 32-bit
offset. A block scatters a tile into shared memory and multiplies it as a dense one: fewer bytes,
the same operations. With a share β of zeros

    bytes / (2nk) = 2(1 − β),      no fewer bytes than b bits a weight while β ≤ 1 − b/32
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from perfmodel.algorithms import Matmul
from perfmodel.compression.scheme import (
    Scheme,
    accesses_per_s,
    beside,
    passes_over_weights,
    scattered,
    weight_only,
)
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.predict import predict, rank
from perfmodel.prediction import Prediction
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine
from perfmodel.timing.memory import hbm_rate

NONZERO_BITS = 32
"""Bits of a value and its index in tiled CSL."""
_TILE = (256, 64)
_PADDED_TO = 4
_OFFSET_BYTES = 4
_VALUE_BYTES = 2
_NARROW_INDEX = 65536


def _check_share(name: str, zeros: float) -> None:
    if not 0.0 <= zeros < 1.0:
        raise ProblemError(f"{name}: a share of zeros of {zeros:g}; give 0 to below 1, such as 0.8")


@dataclass(frozen=True)
class TiledCsl(Scheme):
    """Load as sparse, compute as dense. Raises `ProblemError`."""

    zeros: float
    """Share of the weights that are zero."""

    def __post_init__(self) -> None:
        _check_share("csl", self.zeros)

    @property
    def name(self) -> str:
        """csl:0.8."""
        return f"csl:{self.zeros:g}"

    @property
    def about(self) -> str:
        """What is stored, in one line."""
        return f"Flash-LLM's tiled CSL: {1.0 - self.zeros:.0%} of the weights at 32 bits"

    def stored_bytes(self, n: int, k: int) -> float:
        """Padded non-zeros of each tile, and its offset; tiles at the edges have fewer
        non-zeros."""
        total = 0.0
        for rows, count in _tiles(n, _TILE[0]):
            for columns, times in _tiles(k, _TILE[1]):
                nonzeros = (1.0 - self.zeros) * rows * columns
                slots = -(-nonzeros // _PADDED_TO) * _PADDED_TO
                total += count * times * (slots * NONZERO_BITS / 8.0 + _OFFSET_BYTES)
        return total

    def kernels(self, problem: Matmul, device: Device) -> tuple[Prediction, ...]:
        """A product of fewer stored bits; extracting tiles overlaps its other resources."""
        m, n, k, batch = (int(problem.sizes()[axis]) for axis in "mnkb")
        product = predict(replace(problem, dtype=weight_only(self.bits(n, k))), device)
        times = passes_over_weights(product, m) * batch
        return (beside(product, "decode", self._extraction(times * n * k, device)),)

    def _extraction(self, weights: float, device: Device) -> float:
        """Seconds of shared memory. Zeros are written over a tile, two weights an access; each
        non-zero is stored at its index, with random bank conflicts; the matrix unit then reads the
        tile."""
        stores = (1.0 - self.zeros) * scattered()
        return weights * (0.5 + stores + 0.5) / accesses_per_s(machine(device))

    def notes(self, device: Device) -> tuple[str, ...]:
        """How far published kernels are from the bound."""
        del device
        return (
            "csl: Flash-LLM's own kernels reach 84, 68 and 42 % of the bound by bytes at 70, 80 "
            "and 90 % zeros (A100); the model has bytes and banks, not what else held them back",
        )


@dataclass(frozen=True)
class Csr(Scheme):
    """Compressed sparse rows on the vector unit (Sputnik). Raises `ProblemError`."""

    zeros: float
    """Share of the weights that are zero."""

    def __post_init__(self) -> None:
        _check_share("csr", self.zeros)

    @property
    def name(self) -> str:
        """csr:0.95."""
        return f"csr:{self.zeros:g}"

    @property
    def about(self) -> str:
        """What is stored, in one line."""
        return f"compressed sparse rows: {1.0 - self.zeros:.0%} of the weights with an index"

    def stored_bytes(self, n: int, k: int) -> float:
        """Bytes of a value and an index a non-zero, and a bound a column."""
        index = 2 if k <= _NARROW_INDEX else 4
        return (1.0 - self.zeros) * n * k * (_VALUE_BYTES + index) + 4.0 * n

    def kernels(self, problem: Matmul, device: Device) -> tuple[Prediction, ...]:
        """One sparse product."""
        n, k, batch = (int(problem.sizes()[axis]) for axis in "nkb")
        nonzeros = (1.0 - self.zeros) * n * k * batch
        return (sparse_product(problem, nonzeros, batch * self.stored_bytes(n, k), device),)


def _tiles(extent: int, tile: int) -> tuple[tuple[int, int], ...]:
    """Lengths of the tiles along an axis, with how many there are."""
    count, rest = divmod(extent, tile)
    return ((tile, count), (rest, 1)) if rest else ((tile, count),)


_SECTOR_BYTES = 32
# Dependent loads: a row's bounds, then an index and a value, then the activations at that index.
_DEPENDENT_LOADS = 3


def sparse_product(
    problem: Matmul, nonzeros: float, stored_bytes: float, device: Device
) -> Prediction:
    """One kernel of compressed sparse rows: each non-zero reads the m activations of its row.

    Bytes: the stored matrix, and results. Each non-zero takes 2m operations of the vector unit and
    ⌈2m/32⌉ sectors of activations, which are in L2 (Gale et al., Sputnik, 2006.10901, section 5).
    Rows of a network's outliers are uneven; a balanced split over units is assumed.
    """
    chip, constants = machine(device), default()
    dense = predict(replace(problem, dtype="fp16"), device)
    m, n = float(problem.m), float(problem.n)
    sectors = -(-2.0 * m // _SECTOR_BYTES) * _SECTOR_BYTES
    bytes_ = stored_bytes + 2.0 * m * n
    operations = 2.0 * m * nonzeros
    terms = dict.fromkeys(dense.terms, 0.0)
    terms |= {
        "hbm": bytes_ / hbm_rate(chip, constants),
        "l2": nonzeros * sectors / (chip.l2_bytes_per_s * constants["l2_share"]),
        "vector": operations
        / (2.0 * chip.vector_ops_per_unit * chip.units * constants["vector_share"]),
        "latency": _DEPENDENT_LOADS * chip.hbm_latency,
        "launch": dense.terms["launch"],
    }
    longest = max(terms.values())
    seconds = longest + terms["launch"]
    first, second = rank({k: np.array([v]) for k, v in terms.items()}, np.array([seconds]))
    low, high = dense.low_seconds / dense.seconds, dense.high_seconds / dense.seconds
    return replace(
        dense,
        algorithm="sparse product",
        implementation="csr",
        seconds=seconds,
        low_seconds=low * seconds,
        high_seconds=high * seconds,
        limiter=str(first[0]),
        runner_up=str(second[0]),
        terms=terms,
        flops={"matrix": 0.0, "vector": operations, "special": 0.0},
        useful_flops=operations,
        bytes={**dict.fromkeys(dense.bytes, 0.0), "l2": nonzeros * sectors, "hbm": bytes_},
        footprint_bytes=bytes_ + 2.0 * m * float(problem.k),
    )
