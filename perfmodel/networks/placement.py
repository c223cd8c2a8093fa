"""Exchanges of a product that devices share, derived from the counting rule.

A mesh axis is a grid loop whose blocks are devices (`perfmodel.count.exchanges`). A product whose
weight is split along its columns (`out`) has the mesh over n forward, and over the reduced axis in
the gradient of its input. A split along the rows (`in`) is the reverse. Each device has all rows of
the activations, or a shard of them (`sequence`). The rule derives, forward and backward:

    out            nothing, all-reduce            (Megatron's f, 1909.08053, section 3)
    in             all-reduce, nothing            (its g)
    out, sequence  all-gather, reduce-scatter     (2205.05198, section 4.2.2)
    in, sequence   reduce-scatter, all-gather

Copies of a weight have the mesh over the tokens. For them the rule derives the sum of the gradient
and the gathering of the weight's shards.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from perfmodel.algorithms import Matmul
from perfmodel.networks.operations.exchange import Way, way_of
from perfmodel.operators.mesh import crossing

Split = Literal["out", "in"]

_SIDE = 4  # kinds of exchanges do not depend on size
_RANKS = 2


@lru_cache(maxsize=8)
def way(split: Split, *, sequence: bool) -> Way:
    """The exchange before a product split by columns, or after one split by rows."""
    lies = "m" if sequence else None
    columns = _kind("n", "A", lies)  # of the operand that every device reads in full
    rows = _kind("k", "C", lies)  # of the result, of which every device has a partial sum
    return way_of(columns, rows) if split == "out" else way_of(rows, columns)


def gradients(*, sharded: bool) -> str:
    """The collective that sums a weight's gradient over its copies. The sum ends whole on each
    device, or in shards (ZeRO 1 and above)."""
    return _kind("k", "C", "m" if sharded else None)


def weights() -> str:
    """The collective that gathers a weight stored in shards (ZeRO 3)."""
    return _kind("m", "B", "n")


@lru_cache(maxsize=32)
def _kind(axis: str, tensor: str, lies: str | None) -> str:
    """The collective of a tensor in a product over a mesh along `axis`. The tensor lies whole, or
    in shards along another axis. Empty where nothing moves."""
    layout = {(tensor, axis): lies}
    product = Matmul(_SIDE, _SIDE, _SIDE)
    kinds = [e.kind for e in crossing(product, {axis: _RANKS}, layout) if e.tensor == tensor]
    return kinds[0] if kinds else ""
