"""Bytes that each rank sends, and messages one after another: out of the counting rule.

A product C[m, n] = Σₖ A[m, k]·B[k, n] over devices leaves every exchange there is, by the axis that
is split and where C is to lie (`perfmodel.count.exchanges`): its partial sums over k are an
all-reduce, or a reduce-scatter where C lies in shards; split along n it is gathered to be whole, or
dealt out anew along m. So no collective has a formula of its own here.

    all-reduce 2(P − 1)/P · n     reduce-scatter, all-gather, all-to-all (P − 1)/P · n

are what comes out. A message that goes on from rank to rank crosses each link once.
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

# Axis of the product that is split, and the axis that the shards of C are to lie along.
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
    """What one rank does of a collective, as a share of its bytes."""

    sent: Fraction
    """Bytes that it sends, and receives, for each byte of the collective."""
    steps: int
    """Messages that it sends one after another."""


@lru_cache(maxsize=1024)
def counted(op: str, ranks: int) -> Counted:
    """What each of `ranks` ranks sends of a collective of one byte, and in how many messages."""
    if ranks == 1:
        return Counted(Fraction(0), 0)
    if op not in _LEAVES:
        return Counted(Fraction(1), 1 if op == "send-receive" else ranks - 1)
    axis, lies = _LEAVES[op]
    sizes = {"b": 1, "m": ranks, "n": ranks, "k": ranks}
    schedule = over(_PRODUCT, sizes, {axis: (ranks, "ranks")})
    byte = dict.fromkeys(_ROLES, element("int8"))
    (found,) = exchanges(schedule, sizes, byte, {("C", "ranks"): lies})
    # Of an all-to-all the bytes are one rank's own.
    whole = found.tensor_bytes / ranks if op == "all-to-all" else found.tensor_bytes
    return Counted(Fraction(found.sent_bytes) / Fraction(whole), int(found.steps))
