"""Tiles × slices of k that a matmul class may use, and the properties of each on a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.frozen import dataclass
from perfmodel.timing.libraries.facts import GemmFacts, TileRow
from perfmodel.timing.machine import Machine

# Row blocks launched together (swizzle), so that their columns are shared in L2; the optimum in
# theory is √(slots·BN/BM).
GROUP = 8

# Rows of a thread's outputs in products on the vector unit (Gray, maxas: SGEMM, 8 x 8).
_THREAD_ROWS = 8.0


@dataclass(frozen=True)
class Candidates:
    """Columns of a menu of tiles, shape (1, c), or (n, c) where each problem has its own menu.

    A tile serves problems of `above` < m <= `upto` rows and n <= `widest` columns.
    """

    rows: np.ndarray
    """Rows of the tile."""
    columns: np.ndarray
    """Columns of the tile."""
    threads: np.ndarray
    """Threads of a block."""
    above: np.ndarray
    """The tile serves problems of more rows than this."""
    upto: np.ndarray
    """Most rows of a problem that the tile serves."""
    widest: np.ndarray
    """Most columns of a problem that the tile serves."""
    slices: np.ndarray
    """Slices of k."""
    turned: bool = False
    """Whether rows and columns of the problem are swapped."""

    def by_columns(self) -> Candidates:
        """The same menu for a caller that calls a column-major library directly.

        cuBLAS is column-major. A row-major framework calls it for the transposed product (PyTorch,
        at::cuda::blas::gemm), and menus are written from the framework's side.
        """
        return replace(self, rows=self.columns, columns=self.rows, turned=not self.turned)

    def serves(self, m: Number, n: Number) -> np.ndarray:
        """Whether the library has a column for problems of m rows and n columns."""
        m, n = (n, m) if self.turned else (m, n)
        return np.asarray((m > self.above) & (m <= self.upto) & (n <= self.widest))

    def fits(self, sizes: Mapping[str, Number], most: float) -> np.ndarray:
        """Whether a column is unsliced, or has at most `most` blocks with its slices."""
        tiles = np.ceil(sizes["m"] / self.rows) * np.ceil(sizes["n"] / self.columns)
        blocks = sizes["b"] * tiles * self.slices
        return np.asarray((self.slices == 1) | (blocks <= most))


def candidates(kernel: GemmFacts) -> Candidates:
    """Every tile of the class with every slicing of k; by rows of the problem where the library has
    several menus."""
    return _candidates(tuple(sorted(kernel.tiles.items())), kernel.splits, kernel.slim_columns)


def own_menu(tile: Mapping[str, np.ndarray], threads: np.ndarray) -> Candidates:
    """A menu of one column, shape (n, 1): the caller's own tile, which serves any problem."""
    rows = tile["m"]
    any_size, slices = np.full_like(rows, np.inf), tile.get("slices", np.ones_like(rows))
    return Candidates(rows, tile["n"], threads, 0.0 * rows, any_size, any_size, slices)


@lru_cache(maxsize=64)
def _candidates(
    tiles: tuple[tuple[int, tuple[TileRow, ...]], ...], splits: tuple[int, ...], slim: int
) -> Candidates:
    """The menu of `tiles`, keyed by the most rows they serve; the last serves any number of rows.

    It is cached, so all chunks of a sweep share it.
    """
    limits = [limit for limit, _ in tiles]
    ranges = zip([0, *limits], [*limits[:-1], np.inf], strict=False)
    entries = [
        (*tile, *rows) for rows, (_, some) in zip(ranges, tiles, strict=True) for tile in some
    ]
    menu = np.array(entries, dtype=np.float64)
    order, slices = np.meshgrid(np.arange(len(menu)), np.array(splits, float), indexing="ij")
    rows, columns, threads, least, most = menu[order.ravel()].T[:, None]
    widest = np.where(columns < slim, columns, np.inf)
    cuts = slices.ravel()[None]
    return Candidates(rows, columns, threads, least, most, widest, cuts)


def step_depth(kernel: GemmFacts, menu: Candidates, width: float, weight: float) -> Number:
    """Extent of a step of k: a 128-byte line of the wider operand.

    Kernels on the vector unit step by 8 (CUTLASS, default_gemm_configuration.h: OpClassSimt); with
    8-bit types by 8 registers of four values each (GemmShape<128, 128, 32> there).

    Kernels for few rows have no matrix instructions: all threads of a block load `few_load` bytes
    of weights each.
    """
    line = max(8, int(32 // width)) if kernel.instruction == "vector" else int(128 // width)
    if not kernel.few_load:
        return line
    weights = menu.rows if menu.turned else menu.columns
    of_threads = menu.threads * kernel.few_load / (weights * weight)
    return np.where(menu.upto <= min(kernel.tiles), of_threads, line)


def slice_k(k: np.ndarray, slices: np.ndarray, depth: Number) -> np.ndarray:
    """Extent of k that one slice sums: whole pairs of steps."""
    return np.asarray(np.ceil(np.ceil(k / slices) / (2 * depth)) * (2 * depth))


def stages_held(machine: Machine, stage_bytes: Number, most: int = 0) -> Number:
    """Buffers of k steps: the depth of the software pipeline.

    Two (double buffering through registers) before Ampere and on other vendors' devices. Later, as
    many asynchronous copies as fit in half of the shared memory, or in all of it with tensor copies
    (one block a unit). A kernel may have `most` of them; 0: any number.
    """
    if machine.staged:
        return 2
    if machine.architecture.copies != "tensor":
        buffers = np.clip(machine.shared_per_block / 2 // stage_bytes, 3, 5)
    else:
        buffers = np.clip(machine.shared_per_block // stage_bytes, 3, 8)
    return np.minimum(buffers, most) if most else buffers


def thread_tile(rows: Number, columns: Number, threads: Number) -> tuple[float, Number]:
    """Rows and columns of a thread's outputs in products on the vector unit.

    A multiply-add reads its operands from the thread's own registers, which the thread loads. A
    unit loads 128 bytes a clock, one number a lane of a warp. A thread with 8 x 8 outputs therefore
    loads for as long as it multiplies, where all four schedulers multiply in every clock.
    """
    return _THREAD_ROWS, rows * columns / threads / _THREAD_ROWS
