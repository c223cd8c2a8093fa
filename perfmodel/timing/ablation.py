"""Terms of the time model that can be switched off by name, to see what each is worth."""

from __future__ import annotations

from collections.abc import Mapping

TERMS: Mapping[str, str] = {
    "menu": "one tile per class instead of the best of its menu",
    "split": "no slicing of k or of the keys",
    "floor": "no launch floor",
    "blocks": "no cost of rounds of thread blocks, no pipeline fill and drain",
    "padding": "exact counts, not rounded up to tiles",
    "waves": "work spread evenly, no waves or tails",
    "lanes": "all lanes busy, however few the warps",
    "special": "no special-function unit",
    "vector": "no vector unit",
    "shared": "no shared-memory traffic",
    "transpose": "no transposing of 8-bit values",
    "l2": "no L2 bandwidth",
    "llc": "no bandwidth of a memory-side cache",
    "hbm": "no memory bandwidth",
    "latency": "no latency of streamed tiles",
    "power": "no power limit",
    "lag": "the power limit without its response time",
    "included": "no other kernels in the timed region",
}
