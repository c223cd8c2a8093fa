"""Bytes and successive messages of each rank, derived from the counting rule.

A product C[m, n] = Σₖ A[m, k]·B[k, n] over devices produces every exchange, by the axis that is
split and the placement of C (`perfmodel.count.exchanges`). Split along k, its partial sums are an
all-reduce, or a reduce-scatter where C is sharded. Split along n, an all-gather makes C whole, or
an all-to-all shards it along m. So no collective needs a formula of its own. The results are

    all-reduce 2(P − 1)/P · n     reduce-scatter, all-gather, all-to-all (P − 1)/P · n

for P ranks and n bytes. A message that is passed on from rank to rank crosses each link once.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from perfmodel.algorithms.matmul import matmul
from perfmodel.count.exchanges import exchanges
from perfmodel.elements import element
from perfmodel.schedules.mesh import over
from perfmodel.schedules.schedule import Kernel, Schedule

# Axis of the product that is split, and the axis along which C is sharded.
_LEAVES: dict[str, tuple[str, str | None]] = {
    "all-reduce": ("k", None),
    "reduce-scatter": ("k", "m"),
    "all-gather": ("n", None),
    "all-to-all": ("n", "m"),
}
_PRODUCT = Schedule("product", matmul(), (Kernel("product", ("multiply",), ()),))
_ROLES = {tensor.element for tensor in matmul().tensors.values()}


@dataclass(frozen=True)
class Counted:
    """The traffic of one rank in a collective, as a share of its bytes."""

    sent: Fraction
    """Bytes that the rank sends, and receives, for each byte of the collective."""
    steps: int
    """Number of messages that it sends one after another."""


@lru_cache(maxsize=1024)
def counted(op: str, ranks: int) -> Counted:
    """Bytes that each of `ranks` ranks sends for a collective of one byte, and its messages."""
    if ranks == 1:
        return Counted(Fraction(0), 0)
    if op not in _LEAVES:
        return Counted(Fraction(1), 1 if op == "send-receive" else ranks - 1)
    axis, lies = _LEAVES[op]
    sizes = {"b": 1, "m": ranks, "n": ranks, "k": ranks}
    schedule = over(_PRODUCT, sizes, {axis: (ranks, "ranks")})
    byte = dict.fromkeys(_ROLES, element("int8"))
    (exchange,) = exchanges(schedule, sizes, byte, {("C", "ranks"): lies})
    # The bytes of an all-to-all are those of one rank.
    size = exchange.tensor_bytes / ranks if op == "all-to-all" else exchange.tensor_bytes
    return Counted(
        Fraction(float(exchange.sent_bytes)) / Fraction(float(size)), int(exchange.steps)
    )
