"""Collectives: exchanges among devices over the links of a system.

    from perfmodel.collectives import Collective, predict_collective
    from perfmodel.hardware import systems
    predict_collective(Collective("all-reduce", 2**20, ranks=8), systems.load("dgx-h100"))

Time is start + hops·α + bytes over links / achieved bandwidth + the last copy in device memory. The
counting rule gives the bytes (`counts`), the system the path (`route`). Algorithm and protocol are
the ones that the library would choose (`nccl`, `custom`).
"""

from perfmodel.collectives.collectiveprediction import CollectivePrediction, CollectivePredictions
from perfmodel.collectives.collectivetime import predict_collective
from perfmodel.collectives.problem import OPS, Collective

__all__ = [
    "OPS",
    "Collective",
    "CollectivePrediction",
    "CollectivePredictions",
    "predict_collective",
]
