"""Exchanges among the devices of a group, derived from the counting rule.

Each way is defined by a split axis and the axis along which its tensors are sharded; there are no
formulas. Forward and backward:

    ring, gather    queries split; K, V (and dK, dV) sharded along the keys
    ulysses         heads split; all other tensors sharded along the tokens
    tree            keys split; O and the statistics of the softmax are reduced
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from perfmodel.algorithms import Attention
from perfmodel.count.exchanges import Exchange
from perfmodel.elements import element
from perfmodel.operators.mesh import crossing

_GRADIENTS = ("dK", "dV")

# Way → the split axis, and for each pass the axis along which a tensor is sharded. The backward
# pass of gather and Ulysses takes its inputs as the forward pass left them.
_LIES: Mapping[str, tuple[str, Mapping[str, Mapping[str, str]]]] = {
    "ring": (
        "q",
        {"fwd": {"K": "x", "V": "x"}, "bwd": {"K": "x", "V": "x", "dK": "x", "dV": "x"}},
    ),
    "gather": ("q", {"fwd": {"K": "x", "V": "x"}, "bwd": {"dK": "x", "dV": "x"}}),
    "ulysses": (
        "g",
        {
            "fwd": {"Q": "q", "K": "x", "V": "x", "O": "q"},
            "bwd": {"dO": "q", "dQ": "q", "dK": "x", "dV": "x"},
        },
    ),
    "tree": ("x", {"fwd": {}}),
}


def exchanged(
    way: str, problem: Attention, ranks: int, *, gradient: str = "fp32"
) -> tuple[Exchange, ...]:
    """Exchanges of one pass of a problem, `problem.direction`, shared among `ranks` devices.

    `gradient` is the type in which partial dK and dV are sent; they are computed in the problem's
    type.
    """
    axis, layouts = _LIES[way]
    placement = {(tensor, axis): along for tensor, along in layouts[problem.direction].items()}
    streams = way != "gather"  # the kernels start once all keys have arrived
    transfers = crossing(replace(problem, causal=False), {axis: ranks}, placement, fused=streams)
    factor = float(element(gradient).bits / problem.elements()["gradient"].bits)
    return tuple(_multiple(one, factor) if one.tensor in _GRADIENTS else one for one in transfers)


def _multiple(exchange: Exchange, times: float) -> Exchange:
    """The same exchange with `times` the bytes, if it sums partial results."""
    if exchange.kind != "reduce-scatter":
        return exchange
    return replace(
        exchange,
        tensor_bytes=exchange.tensor_bytes * times,
        sent_bytes=exchange.sent_bytes * times,
    )


def ring_held_bytes(problem: Attention, ranks: int) -> float:
    """Bytes of a device in a ring: its queries and output, and keys and values in use and in
    transit.

    With as many key-value as query heads these are six blocks for any number of devices
    (2310.01889, table 1).
    """
    sizes, elements = problem.sizes(), problem.elements()
    heads = sizes["b"] * sizes["g"]
    rows = heads * sizes["r"] * sizes["q"] / ranks
    cells = heads * sizes["x"] / ranks
    resident = rows * (sizes["d"] * elements["data"].bytes + sizes["e"] * elements["output"].bytes)
    blocks = cells * (sizes["d"] + sizes["e"]) * elements["kv"].bytes
    return float(resident + 2 * blocks)
