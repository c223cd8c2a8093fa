"""Context parallelism: attention over a sequence that is split among devices.

    carrier = OverLink(link_of(device, "nvlink")[1])
    predict_context(Attention(1, 32, 8, 131072, 131072, 128, causal=True), device, carrier, ranks=8)

placement.py has each device's tokens and counts the pairs that a mask leaves. It has the
attention problems of a device, too; contexttraffic.py the exchanged bytes, by the counting rule.
carrier.py times both.

contexttime.py combines these into four ways (ring, gather, ulysses, tree). threshold.py finds the
length at which a link is hidden, and the fastest way at each length.
"""

from perfmodel.context_parallel.carrier import Carrier, OverLink, OverSystem
from perfmodel.context_parallel.contexttime import WAYS, ContextPrediction, predict_context
from perfmodel.context_parallel.placement import PLACEMENTS, imbalance, placed, ring_imbalance
from perfmodel.context_parallel.threshold import Crossover, Threshold, crossovers, threshold

__all__ = [
    "PLACEMENTS",
    "WAYS",
    "Carrier",
    "ContextPrediction",
    "Crossover",
    "OverLink",
    "OverSystem",
    "Threshold",
    "crossovers",
    "imbalance",
    "placed",
    "predict_context",
    "ring_imbalance",
    "threshold",
]
