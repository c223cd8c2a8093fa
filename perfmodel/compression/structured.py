"""Structured pruning: whole heads and columns of inner layers removed. The result is a smaller
dense network (Numerical Pruning, 2412.12441)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from perfmodel.algorithms import Matmul
from perfmodel.compression.quantised import Quantised
from perfmodel.compression.quantised import load as load_format
from perfmodel.compression.scheme import PLAIN, Scheme
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.networks.network import Block, Network
from perfmodel.prediction import Prediction

_COLUMNS = 64
"""Columns of an inner layer that are kept or removed together, so that products keep whole
tiles."""


@dataclass(frozen=True)
class Pruned(Scheme):
    """A share of heads and of inner columns removed from every layer. Raises `ProblemError`."""

    share: float
    """Share that is removed."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.share < 1.0:
            raise ProblemError(f"prune: a share of {self.share:g}; give 0 to below 1, such as 0.25")

    @property
    def name(self) -> str:
        """prune:0.25."""
        return f"prune:{self.share:g}"

    @property
    def about(self) -> str:
        """What is removed, in one line."""
        return f"{self.share:.0%} of the heads and inner columns left out"

    def stored_bytes(self, n: int, k: int) -> float:
        """16 bits for each remaining weight."""
        return _plain_scheme().stored_bytes(n, k)

    def kernels(self, problem: Matmul, device: Device) -> tuple[Prediction, ...]:
        """Plain products."""
        return _plain_scheme().kernels(problem, device)

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


def _plain_scheme() -> Quantised:
    return Quantised(load_format(PLAIN))
