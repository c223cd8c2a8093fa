"""Which part of a network a parameter is, for a format of weights that stores parts differently.

Releases keep routers, norms, biases and positions at 16 bits. Formats differ in the embedding and
the head, and some are of experts alone.
"""

from __future__ import annotations

from typing import Literal

from perfmodel.networks.network import Network
from perfmodel.networks.value import Weight

Part = Literal["layer", "expert", "head", "embedding", "kept"]
"""`layer`: a matrix of every layer; `expert`: one of an expert; `kept`: none that is narrowed."""


def part(weight: Weight, network: Network) -> Part:
    """The part of the network that a parameter is; a tied embedding is the head."""
    if weight.name == "head.weight" or (network.tied and weight.name == "embedding.weight"):
        return "head"
    if weight.name == "embedding.weight":
        return "embedding"
    if weight.kind != "matrix" or weight.name.startswith("router"):
        return "kept"
    return "expert" if weight.expert else "layer"


def narrowed(weight: Weight, network: Network, *, experts_only: bool) -> bool:
    """Whether a format stores a parameter of the layers; one of experts alone stores no other
    matrix of a network that has experts."""
    role = part(weight, network)
    stores_layers = not (experts_only and any(block.mlp.experts for block in network.blocks))
    return role == "expert" or (role == "layer" and stores_layers)
