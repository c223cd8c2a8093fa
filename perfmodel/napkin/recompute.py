"""Transferring a KV cache, or transferring activations and recomputing keys and values (KVPR,
2411.17089).

Of s cached tokens, l are sent as activations of h numbers and multiplied by the weights of keys and
values, w columns each. The keys and values of the other tokens are transferred meanwhile:

    t(l) = b·l·h·q_x/v + max(4·b·l·h·w/g, 2·b·(s − l)·w·q/v)

b is the number of sequences, q_x and q are bytes of an activation and of a cached number, v is the
link's bytes a second, g the product's operations a second. Numbers, arrays and SymPy symbols are
accepted.

The first argument of the maximum rises with l, the second falls. They meet at

    l* = s·q·g / (2·h·v + q·g)

Above l*, t rises. Below, its slope is b·(h·q_x − 2·w·q)/v. So l* is the best split where h·q_x <
2·w·q. Elsewhere l = 0 is best: an activation row is then no smaller than the keys and values made
from it.

Multi-head attention has w = h and gains. Grouped heads have w = h·n_kv/n and gain only with fewer
than two query heads a key head. A latent cache is a tenth of the activations.
"""

from __future__ import annotations

from typing import Any

from perfmodel.arithmetic import Number


def activation_seconds(rows: Number, hidden: Number, width: Number, link: Number) -> Number:
    """Transfer seconds of `rows` activations of `hidden` numbers of `width` bytes."""
    return rows * hidden * width / link


def product_seconds(rows: Number, hidden: Number, columns: Number, rate: Number) -> Number:
    """Seconds of both products, for keys and values of `columns` each: 4·rows·h·w operations."""
    return 4 * rows * hidden * columns / rate


def cache_seconds(rows: Number, columns: Number, width: Number, link: Number) -> Number:
    """Transfer seconds of the keys and values of `rows` tokens."""
    return 2 * rows * columns * width / link


def meeting_share(hidden: Number, width: Number, rate: Number, link: Number) -> Number:
    """l*/s: the share of tokens at which recomputing takes as long as transferring the rest."""
    return width * rate / (2 * hidden * link + width * rate)


def gains(hidden: Number, columns: Number, activation_width: Number, width: Number) -> Any:
    """Whether recomputing some of the cache is faster than transferring all: h·q_x < 2·w·q."""
    return hidden * activation_width < 2 * columns * width


def time_share(
    share: Number, hidden: Number, columns: Number, activation_width: Number, width: Number
) -> Number:
    """Time at the split over the time of transferring everything: 1 − (l*/s)·(1 −
    h·q_x/(2·w·q))."""
    return 1 - share * (1 - hidden * activation_width / (2 * columns * width))
