"""What devices that share a product exchange: read off the counting rule, not stated.

A mesh axis is a grid loop whose blocks are devices (`perfmodel.count.exchanges`). A product whose
weight is split along its columns (`out`) has the mesh over n forward and over the reduced axis in
the gradient of its input; one whose weight is split along its rows (`in`) the other way round. Rows
of the activations lie whole on every device, or in shards (`sequence`). From that the rule finds,
forward and backward,

    out            nothing, all-reduce            (Megatron's f, 1909.08053, section 3)
    in             all-reduce, nothing            (its g)
    out, sequence  all-gather, reduce-scatter     (2205.05198, section 4.2.2)
    in, sequence   reduce-scatter, all-gather

and of copies of a weight, whose mesh is over the tokens, the sum of its gradient and the gathering
of its shards.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from perfmodel.algorithms import Matmul
from perfmodel.networks.operations.exchange import Way, way_of
from perfmodel.operators.mesh import crossing

Split = Literal["out", "in"]

_SIDE = 4  # kinds of exchanges are the same at every size
_RANKS = 2


@lru_cache(maxsize=8)
def way(split: Split, *, sequence: bool) -> Way:
    """The exchange before a product that is split by columns, or behind one split by rows."""
    lies = "m" if sequence else None
    columns = _kind("n", "A", lies)  # of the operand that every device reads whole
    rows = _kind("k", "C", lies)  # of the result that every device has a part of
    return way_of(columns, rows) if split == "out" else way_of(rows, columns)


def gradients(*, sharded: bool) -> str:
    """What copies of a weight exchange of its gradient, which is summed over their tokens: it ends
    whole on each, or in shards (ZeRO 1 and on)."""
    return _kind("k", "C", "m" if sharded else None)


def weights() -> str:
    """What copies with rows of their own exchange of a weight that lies in shards (ZeRO 3)."""
    return _kind("m", "B", "n")


@lru_cache(maxsize=32)
def _kind(axis: str, tensor: str, lies: str | None) -> str:
    """What a product over a mesh along `axis` exchanges of a tensor that lies in shards along
    another one, or whole; empty where nothing."""
    stored = {(tensor, axis): lies}
    product = Matmul(_SIDE, _SIDE, _SIDE)
    found = [one.kind for one in crossing(product, {axis: _RANKS}, stored) if one.tensor == tensor]
    return found[0] if found else ""
