"""Products of groups of rows, a matrix a group: the experts of a mixture, whose loads differ."""

from __future__ import annotations

from functools import cached_property, lru_cache
from itertools import starmap

import numpy as np

from perfmodel.algorithms.matmul import Matmul
from perfmodel.algorithms.sizes import check_positive
from perfmodel.arithmetic import Number, product
from perfmodel.errors import ProblemError
from perfmodel.frozen import dataclass

# Loads that stand for those of all groups: means of as many equal parts of the sorted loads.
_LOADS = 64
DRAWS = 5
"""Draws from a power law, whose mean load stands for any."""


@dataclass(frozen=True)
class GroupedMatmul(Matmul):
    """`batch` groups of rows, `m` in all, each multiplied by its own [k, n]; arrays of such.

    Groups are spread over `ranks` devices, of which the busiest is the problem's. A group without
    rows is not read.
    """

    chosen: Number = 1
    """Groups that each token chooses: its copies are `chosen` of the rows, in different groups."""
    ranks: Number = 1
    """Devices that the groups are spread over."""
    skew: Number = 0.0
    """Exponent of the power law that loads are drawn from; 0: they are even."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("chosen", "ranks"):
            check_positive(name, getattr(self, name))
        if np.any(np.asarray(self.skew) < 0) or not np.all(np.isfinite(self.skew)):
            raise ProblemError(f"skew must be a number of 0 or more, not {self.skew!r}")

    @property
    def operator(self) -> str:
        """`grouped-gemm`."""
        return "grouped-gemm"

    @property
    def batched(self) -> bool:
        """Whether libraries run it by kernels for strided batches: they do not."""
        return False

    @cached_property
    def loads(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Occupied groups of the busiest rank, shape (n,); rows of them in equal parts, and the
        parts' shares of the groups, shape (n, parts)."""
        columns = (self.m, self.batch, self.ranks, self.chosen, self.skew)
        flat = np.broadcast_arrays(*(np.asarray(each, dtype=np.float64) for each in columns))
        keys = np.stack([each.reshape(-1) for each in flat], axis=1).tolist()
        groups, rows, shares = zip(*(busiest_loads(*key) for key in keys), strict=True)
        return np.array(groups), np.stack(rows), np.stack(shares)

    def sizes(self) -> dict[str, Number]:
        """Occupied groups of the busiest rank, their mean rows, and n and k."""
        groups, rows, shares = self.loads
        columns = (self.m, self.batch, self.ranks, self.chosen, self.skew)
        shape = np.broadcast_shapes(*(np.shape(each) for each in columns))
        mean = (rows * shares).sum(axis=1)
        return {
            "b": groups.reshape(shape)[()],
            "m": mean.reshape(shape)[()],
            "n": self.n,
            "k": self.k,
        }

    def row_tiles(self, tile_rows: np.ndarray) -> np.ndarray:
        """Tiles of a group on average, each group's last one ragged; shape (n, tiles)."""
        _, rows, shares = self.loads
        tiles = np.ceil(rows[:, :, None] / np.atleast_2d(tile_rows)[:, None])
        return np.asarray((tiles * shares[:, :, None]).sum(axis=1))

    def flops(self) -> Number:
        """2·n·k for each row of the busiest rank."""
        return product([2, *self.sizes().values()])


def reached(ranks: Number, chosen: Number) -> Number:
    """Expected ranks that hold some of a token's experts: ranks · (1 − (1 − 1/ranks)^chosen).

    Its `chosen` experts are spread evenly over all ranks.
    """
    return ranks * (1.0 - (1.0 - 1.0 / ranks) ** chosen)


def busiest_rows(
    rows: Number, groups: Number, ranks: Number, chosen: Number, skew: Number
) -> Number:
    """Rows of the busiest rank, whole ones."""
    columns = (np.asarray(each, dtype=np.float64) for each in (rows, groups, ranks, chosen, skew))
    flat = np.broadcast_arrays(*columns)
    keys = np.stack([each.reshape(-1) for each in flat], axis=1).tolist()
    sums = [count * float(means @ shares) for count, means, shares in starmap(busiest_loads, keys)]
    most = np.ceil(np.round(sums, 6)).reshape(flat[0].shape)
    return most if most.ndim else int(most)


@lru_cache(maxsize=65536)
def busiest_loads(
    rows: float, groups: float, ranks: float, chosen: float, skew: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Occupied groups of the busiest rank, their rows in `_LOADS` parts, and the parts' shares.

    Even loads differ by one row at most. Others are drawn: shares are x with density x^-skew
    between 1 and 0.8 of the tokens, or between 0.01 and 2 where there are more groups than rows
    (aiconfigurator, collector/helper.py, power_law_logits: recalled). A group has each token once.
    """
    local = max(int(np.ceil(groups / ranks)), 1)
    if not skew:
        base, extra = divmod(rows, groups)
        more = min(np.ceil(extra / ranks), local)
        loads = np.repeat([base, base + 1.0], [local - int(more), int(more)])
        draws = [loads]
    else:
        draws = [
            busiest_part(drawn_loads(draw, rows, int(groups), chosen, skew), int(ranks))
            for draw in range(DRAWS)
        ]
    occupied = np.sort(np.concatenate([loads[loads > 0] for loads in draws]))
    parts = [part for part in np.array_split(occupied, _LOADS) if len(part)]
    means, shares = np.ones(_LOADS), np.zeros(_LOADS)
    means[: len(parts)] = [part.mean() for part in parts]
    shares[: len(parts)] = [len(part) / len(occupied) for part in parts]
    return float(max(round(len(occupied) / len(draws)), 1)), means, shares


def drawn_loads(draw: int, rows: float, groups: int, chosen: float, skew: float) -> np.ndarray:
    """Rows of every group in one draw, shape (groups,); they add up to `rows`."""
    tokens = rows / chosen
    low, high = (1.0, max(0.8 * tokens, 1.0)) if rows > groups else (0.01, 2.0)
    uniform = np.random.default_rng(draw).random(groups)
    if skew == 1.0:
        shares = low * (high / low) ** uniform
    else:
        ends = low ** (1.0 - skew), high ** (1.0 - skew)
        shares = (ends[0] + (ends[1] - ends[0]) * uniform) ** (1.0 / (1.0 - skew))
    most = max(np.ceil(tokens), np.ceil(rows / groups))
    loads = np.minimum(np.round(shares / shares.sum() * rows), most)
    order = np.argsort(-shares)
    missing = round(rows - loads.sum())
    while missing:
        able = order[loads[order] < most] if missing > 0 else order[loads[order] > 0]
        step = able[: abs(missing)]
        loads[step] += np.sign(missing)
        missing -= int(np.sign(missing)) * len(step)
    return np.asarray(loads)


def busiest_part(loads: np.ndarray, ranks: int) -> np.ndarray:
    """Loads of the groups of the rank that has the most rows."""
    parts = np.array_split(loads, ranks)
    return np.asarray(max(parts, key=lambda part: float(part.sum())))
