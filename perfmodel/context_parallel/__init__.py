"""Context parallelism: attention over a sequence that is split among devices.

    carrier = OverLink(link_of(device, "nvlink")[1])
    predict_context(Attention(1, 32, 8, 131072, 131072, 128, causal=True), device, carrier, ranks=8)

placement.py has each device's tokens, and the attention problems that a mask leaves of them.
carrier.py times what crosses links, contexttime.py four ways to share attention (ring, gather,
ulysses, tree), and the length at which a link is hidden.
"""

from perfmodel.context_parallel.carrier import Carrier, OverLink, OverSystem
from perfmodel.context_parallel.contexttime import (
    WAYS,
    every_way,
    predict_context,
    threshold,
)
from perfmodel.context_parallel.placement import PLACEMENTS, placed

__all__ = [
    "PLACEMENTS",
    "WAYS",
    "Carrier",
    "OverLink",
    "OverSystem",
    "every_way",
    "placed",
    "predict_context",
    "threshold",
]
