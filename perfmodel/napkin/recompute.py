"""Sending a cache, or sending activations and computing keys and values anew (KVPR, 2411.17089).

Of s cached tokens, l are sent as activations of h numbers and multiplied by the weights of keys and
values, w columns each; the others' keys and values come over in the meantime:

    t(l) = b·l·h·q_x/v + max(4·b·l·h·w/g, 2·b·(s − l)·w·q/v)

for b sequences, q_x and q bytes of an activation and of a cached number, v bytes a second over the
link, g operations a second of the product. Numbers, arrays and SymPy symbols alike.

The first part of the maximum rises with l, the second falls; they meet at

    l* = s·q·g / (2·h·v + q·g)

Beyond, t rises. Before, its slope is b·(h·q_x − 2·w·q)/v. So l* is the best split where
h·q_x < 2·w·q, and l = 0 elsewhere: an activation row is then no smaller than the keys and values
made of it. Multi-head attention has w = h, and gains; grouped heads have w = h·n_kv/n, and gain
with fewer than two query heads a key head only; a latent cache is a tenth of the activations.
"""

from __future__ import annotations

from typing import Any

from perfmodel.arithmetic import Number


def activation_seconds(rows: Number, hidden: Number, width: Number, link: Number) -> Number:
    """Seconds in which `rows` activations of `hidden` numbers of `width` bytes come over."""
    return rows * hidden * width / link


def product_seconds(rows: Number, hidden: Number, columns: Number, rate: Number) -> Number:
    """Seconds of both products, `columns` of keys and as many of values: 4·rows·h·w operations."""
    return 4 * rows * hidden * columns / rate


def cache_seconds(rows: Number, columns: Number, width: Number, link: Number) -> Number:
    """Seconds in which keys and values of `rows` tokens come over."""
    return 2 * rows * columns * width / link


def meeting_share(hidden: Number, width: Number, rate: Number, link: Number) -> Number:
    """l*/s: the share of the tokens at which computing takes as long as sending the others."""
    return width * rate / (2 * hidden * link + width * rate)


def gains(hidden: Number, columns: Number, activation_width: Number, width: Number) -> Any:
    """Whether computing any of it anew is faster than sending it: h·q_x < 2·w·q."""
    return hidden * activation_width < 2 * columns * width


def time_share(
    share: Number, hidden: Number, columns: Number, activation_width: Number, width: Number
) -> Number:
    """Time at the split over the time of sending everything:
    1 − (l*/s)·(1 − h·q_x/(2·w·q))."""
    return 1 - share * (1 - hidden * activation_width / (2 * columns * width))
