"""The window of attention as benchmarks write it: keys a query, -1, or a pair (left, right).

A pair, and a heading such as window_left, count the keys beside the query's own: (1023, 0) is a
window of 1,024 keys, as in `window_size` of flash_attn_func and `window_left` of FlashInfer. -1 is
no limit on that side.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfmodel.table.numerals import number

WANTED = "not a number of keys, -1 for all, or a pair (left, right) whose right is 0 or as left"
_ALL = ("", "none", "full", "all")
_PAIR = re.compile(r"[(\[]?\s*(-?\d+)\s*[,;]\s*(-?\d+)\s*[)\]]?")


@dataclass(frozen=True)
class Window:
    """The keys that a query sees."""

    keys: float
    """Nearest keys, the query's own among them; 0: all."""
    closed: bool = False
    """Whether it ends at the query, as under a causal mask."""


def parsed(text: str, *, beside: bool, causal: bool) -> Window | None:
    """The window in a cell; None if it is none, or looks further to one side than to the other.

    With `beside` a number leaves out the query's own key. Under a `causal` mask the right side does
    not count.
    """
    if text.lower() in _ALL:
        return Window(0)
    pair = _PAIR.fullmatch(text)
    if pair is None:
        keys = number(text, scaled=True)
        if keys is None or keys % 1 or keys < -1:
            return None
        return Window(0 if keys < 0 else keys + beside)
    left, right = int(pair[1]), int(pair[2])
    if left < -1 or not (causal or right in (0, left)):
        return None
    return Window(left + 1, closed=right == 0)
