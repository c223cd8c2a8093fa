"""Terms of the time model that can be switched off by name, to see what each is worth."""

from __future__ import annotations

from collections.abc import Mapping

TERMS: Mapping[str, str] = {
    "menu": "one tile per class instead of the best of its menu",
    "split": "no slicing of k or of the keys",
    "floor": "no launch floor",
    "blocks": "no price of a round of thread blocks, no filling and draining",
    "padding": "counts as the algorithm asks, not rounded up to tiles",
    "waves": "work spread evenly, no waves or tails",
    "lanes": "all lanes awake, however few the warps",
    "special": "no special-function unit",
    "vector": "no vector unit",
    "shared": "no shared-memory traffic",
    "transpose": "no transposing of 8-bit values",
    "l2": "no L2 bandwidth",
    "translation": "no waiting for addresses of pages",
    "llc": "no bandwidth of a memory-side cache",
    "hbm": "no memory bandwidth",
    "latency": "no latency of streamed tiles",
    "power": "no power limit",
    "lag": "the power limit at once, rested or not",
    "included": "nothing else inside the timed region",
}
