"""Schemes that store fewer weights: sparse matrices, tables with outliers, and pruned networks.

2:4          two of every four weights, each with a 2-bit index, in (b + 2)/2 bits and scales:
             16 → 9, 8 → 5, 4 → 3. Groups and scales cover the positions of the dense format
             (2408.11743). The unit multiplies half of k, at up to twice the rate (2104.08378).
csl:β        Flash-LLM's tiled CSL (2309.10285, section 4.3): a non-zero in 32 bits, an fp16
             value and its index in a tile of 256 × 64 weights, padded to four a tile, and an
             offset a tile. A block scatters a tile into shared memory and multiplies it as a
             dense one: 2(1 − β) of the bytes, the same operations.
csr:β        compressed sparse rows on the vector unit (Sputnik, 2006.10901)
squeeze:b:s  SqueezeLLM (2306.07629): b bits select one of 2ᵇ fp16 values, a table a column; a
             share s of the weights is apart as compressed sparse rows (section 4.2), in
             b + 16·2ᵇ/k + s·(16 + 32) + 32/k bits
prune:s      a share of heads and inner columns removed: a smaller dense network (2412.12441)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import factorial

import numpy as np

from perfmodel.algorithms import Matmul
from perfmodel.compression import quantised
from perfmodel.compression.quantised import Format
from perfmodel.compression.scheme import (
    PLAIN,
    PLAIN_BITS,
    Decoding,
    Scheme,
    Shape,
    accesses_per_s,
    beside,
    decoded,
    weight_only,
)
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.networks.network import Block, Network
from perfmodel.predict import predict, rank
from perfmodel.prediction import Prediction
from perfmodel.timing.architectures import architecture_of
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine
from perfmodel.timing.memory import hbm_rate

NONZERO_BITS = 32
"""Bits of a value and its index in tiled CSL."""
BANKS = 32
"""Banks of shared memory, four bytes wide; also lanes that access it together."""

_PLACE_BITS = 2
# cuSPARSELt's published products reach 1.2 to 1.8 times the dense ones where the unit limits.
_LEAST_GAIN = 1.2
_TILE = (256, 64)
_PADDED_TO = 4
_OFFSET_BYTES = 4
_VALUE_BITS, _INDEX_BITS = 16, 32
_NARROW_INDEX = 65536
# Look-ups of an fp16 value in shared memory: one a weight.
_LOOK_UP = Decoding(vector=1.0, shared=1.0)
_SECTOR_BYTES = 32
# Dependent loads: a row's bounds, then an index and a value, then the activations at that index.
_DEPENDENT_LOADS = 3
# Columns of an inner layer that are kept or removed together, so that products keep whole tiles.
_COLUMNS = 64


@dataclass(frozen=True)
class TwoOfFour(Scheme):
    """Half of the weights, in a dequantised or plain 16-bit format. Raises `ProblemError`."""

    format: Format
    """Format of the kept weights."""

    def __post_init__(self) -> None:
        if self.format.multiplies not in ("", PLAIN):
            raise ProblemError(
                f"2:4 of {self.format.name} is not modelled; take fp16, w8a16 or w4a16"
            )
        name = "2:4" if self.plain else f"2:4:{self.format.name}"
        self._is(name, f"two of every four weights kept: {self.format.about}")

    @property
    def plain(self) -> bool:
        """Whether the kept weights are 16 bits wide."""
        return self.format.multiplies == PLAIN

    def _kept_bits(self, k: int) -> float:
        """Bits of a kept weight, its index, and the scales of two weights."""
        scales = self.format.bits_at(k) - self.format.bits
        return self.format.bits + _PLACE_BITS + 2.0 * scales

    def stored_bytes(self, n: int, k: int) -> float:
        """Half of the weights, each with its index."""
        return n * -(-k // 2) * self._kept_bits(k) / 8.0

    def check(self, device: Device) -> None:
        """Raises `ProblemError` where the matrix unit cannot skip zeros."""
        if not architecture_of(device).sparse_2_4:
            raise ProblemError(
                f"{self.name} cannot run: the matrix unit of {device.slug} skips no zeros "
                "(NVIDIA from Ampere on and AMD from CDNA 3 on do)"
            )

    def kernels(self, problem: Matmul, device: Device) -> tuple[Prediction, ...]:
        """A product over half of k. Traffic that this leaves out is added: the other half of the
        activations and, for plain weights, the indices."""
        m, n, k, batch = Shape.of(problem)
        half = -(-k // 2)
        dtype = PLAIN if self.plain else weight_only(self._kept_bits(k))
        product = predict(replace(problem, k=half, dtype=dtype), device)
        extra_bytes = m * (k - half) * PLAIN_BITS / 8.0
        if self.plain:
            extra_bytes += n * half * _PLACE_BITS / 8.0
        rate = hbm_rate(machine(device), default())
        seconds = product.terms["hbm"] + batch * extra_bytes / rate
        total = beside(product, "hbm", seconds)
        if total.limiter not in ("matrix", "power"):
            return (total,)
        return (replace(total, high_seconds=total.high_seconds * 2.0 / _LEAST_GAIN),)

    def notes(self, device: Device) -> tuple[str, ...]:
        """The matrix rate."""
        del device
        return (
            "2:4: the matrix rate is taken as twice the dense peak, which is its limit; "
            "libraries are published at 1.2 to 1.8 times",
        )


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
        about = f"Flash-LLM's tiled CSL: {1.0 - self.zeros:.0%} of the weights at 32 bits"
        self._is(f"csl:{self.zeros:g}", about)

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
        _, n, k, _ = Shape.of(problem)
        bits = self.mean_bits(n, k)
        return (decoded(problem, bits, device, lambda weights: self._extraction(weights, device)),)

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


def _tiles(extent: int, tile: int) -> tuple[tuple[int, int], ...]:
    """Lengths of the tiles along an axis, with how many there are."""
    count, rest = divmod(extent, tile)
    return ((tile, count), (rest, 1)) if rest else ((tile, count),)


@lru_cache(maxsize=8)
def scattered(banks: int = BANKS) -> float:
    """Cycles of as many random accesses as there are banks: the expected load of the fullest bank.

    P(no bank has more than j) is n!/nⁿ times the coefficient of xⁿ in (Σ_{i≤j} xⁱ/i!)ⁿ (balls in
    bins; Kolchin et al. 1978, Random Allocations, chapter 2). The mean is Σ_j P(more than j): 3.53
    for 32 banks.
    """
    mean = 0.0
    for most in range(banks):
        series = np.array([1.0 / factorial(i) if i <= most else 0.0 for i in range(banks + 1)])
        power = np.zeros(banks + 1)
        power[0] = 1.0
        for _ in range(banks):
            power = np.convolve(power, series)[: banks + 1]
        mean += 1.0 - float(power[banks]) * factorial(banks) / float(banks) ** banks
    return mean


@dataclass(frozen=True)
class Csr(Scheme):
    """Compressed sparse rows on the vector unit (Sputnik). Raises `ProblemError`."""

    zeros: float
    """Share of the weights that are zero."""

    def __post_init__(self) -> None:
        _check_share("csr", self.zeros)
        about = f"compressed sparse rows: {1.0 - self.zeros:.0%} of the weights with an index"
        self._is(f"csr:{self.zeros:g}", about)

    def stored_bytes(self, n: int, k: int) -> float:
        """Bytes of a value and an index a non-zero, and a bound a column."""
        index = 2 if k <= _NARROW_INDEX else 4
        return (1.0 - self.zeros) * n * k * (_VALUE_BITS // 8 + index) + 4.0 * n

    def kernels(self, problem: Matmul, device: Device) -> tuple[Prediction, ...]:
        """One sparse product."""
        _, n, k, batch = Shape.of(problem)
        nonzeros = (1.0 - self.zeros) * n * k * batch
        return (sparse_product(problem, nonzeros, batch * self.stored_bytes(n, k), device),)


def sparse_product(
    problem: Matmul, nonzeros: float, stored_bytes: float, device: Device
) -> Prediction:
    """One kernel of compressed sparse rows: each non-zero reads the m activations of its row.

    Bytes: the stored matrix, and results. Each non-zero takes 2m operations of the vector unit and
    ⌈2m/32⌉ sectors of activations, which are in L2 (Gale et al., Sputnik, 2006.10901, section 5).
    Rows of a network's outliers are uneven; a balanced split over units is assumed.
    """
    chip, constants = machine(device), default()
    dense = predict(replace(problem, dtype=PLAIN), device)
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
        share = f"{100.0 * self.sparse:g}" if self.sparse else ""
        self._is(
            f"squeeze:{self.table_bits}" + (f":{share}%" if share else ""),
            f"SqueezeLLM: tables of {2**self.table_bits} values a column"
            + (f", {share} % of the weights apart" if share else ""),
        )

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
        _, n, k, batch = Shape.of(problem)
        bits = self.dense_bits(k)
        dense = decoded(problem, bits, device, lambda weights: _LOOK_UP.seconds(weights, device))
        if not self.sparse:
            return (dense,)
        bytes_ = batch * self.sparse_bytes(n, k)
        return dense, sparse_product(problem, self.sparse * n * k * batch, bytes_, device)


@dataclass(frozen=True)
class Pruned(Scheme):
    """A share of heads and of inner columns removed from every layer. Raises `ProblemError`."""

    share: float
    """Share that is removed."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.share < 1.0:
            raise ProblemError(f"prune: a share of {self.share:g}; give 0 to below 1, such as 0.25")
        about = f"{self.share:.0%} of the heads and inner columns left out"
        self._is(f"prune:{self.share:g}", about)

    def stored_bytes(self, n: int, k: int) -> float:
        """16 bits for each remaining weight."""
        return quantised.load(PLAIN).stored_bytes(n, k)

    def kernels(self, problem: Matmul, device: Device) -> tuple[Prediction, ...]:
        """Plain products."""
        return quantised.load(PLAIN).kernels(problem, device)

    def network(self, network: Network) -> Network:
        """The smaller network."""
        return replace(
            network,
            name=f"{network.name}, {self.name}",
            blocks=tuple(map(self._block, network.blocks)),
            encoder=tuple(map(self._block, network.encoder)),
        )

    def _block(self, block: Block) -> Block:
        """Groups of query heads are removed with their keys and values."""
        attention, mlp = block.attention, block.mlp
        group = attention.heads // attention.kv_heads
        kv_heads = self._remainder(attention.kv_heads, 1)
        smaller = replace(attention, heads=kv_heads * group, kv_heads=kv_heads)
        return replace(
            block, attention=smaller, mlp=replace(mlp, inner=self._remainder(mlp.inner, _COLUMNS))
        )

    def _remainder(self, count: int, step: int) -> int:
        """The remaining count, in whole steps and at least one."""
        return min(count, max(step, round((1.0 - self.share) * count / step) * step))
