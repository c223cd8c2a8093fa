"""Context parallelism: attention whose sequence several devices share.

    carrier = OverLink(link_of(device, "nvlink")[1])
    predict_context(Attention(1, 32, 8, 131072, 131072, 128, causal=True), device, carrier, ranks=8)

placement.py says which tokens a device holds and counts what a mask leaves of them, calls.py which
attention problems a device computes, traffic.py what crosses, by the counting rule. clock.py and
carrier.py have the times of both; ring.py runs a ring step by step, predict.py joins all of it into
the four ways (ring, gather, ulysses, tree), threshold.py finds where a link hides and where one way
overtakes another.
"""

from perfmodel.context_parallel.carrier import Carrier, OverLink, OverSystem
from perfmodel.context_parallel.placement import PLACEMENTS, imbalance, placed, ring_imbalance
from perfmodel.context_parallel.predict import WAYS, ContextPrediction, predict_context
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
