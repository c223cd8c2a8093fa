"""A mean layer in bytes and operations, for offloading."""

from __future__ import annotations

from dataclasses import dataclass

from perfmodel.compression.compressed import Compressed
from perfmodel.errors import ProblemError
from perfmodel.graph import Tree
from perfmodel.hardware import Device
from perfmodel.networks.expand import parameters
from perfmodel.networks.network import Network
from perfmodel.networks.networktime import predict_network
from perfmodel.networks.setting import Setting
from perfmodel.networks.summary import cached_elements

_BYTES = 2.0
"""Bytes of an element of activations and cache, and of weights that no format narrows."""

Stored = Network | Compressed
"""A network with its weights in 16 bits, or under a scheme."""


def network_of(stored: Stored) -> Network:
    """The network, as its scheme leaves it."""
    return stored.network if isinstance(stored, Compressed) else stored


def predicted(stored: Stored, setting: Setting, device: Device) -> Tree:
    """A pass over a network with the products of its scheme."""
    if isinstance(stored, Compressed):
        return stored.predict(setting, device)
    return predict_network(stored, setting, device)


@dataclass(frozen=True)
class Request:
    """The tokens of each sequence. Raises `ProblemError` for numbers below 1."""

    prompt: int
    """Tokens of the prompt, s."""
    generated: int
    """Generated tokens, n."""

    def __post_init__(self) -> None:
        for name in ("prompt", "generated"):
            if getattr(self, name) < 1:
                raise ProblemError(f"{name} is {getattr(self, name)}; it is 1 or more")

    @property
    def middle(self) -> float:
        """Mean number of cached tokens in decoding: s + n/2."""
        return self.prompt + self.generated / 2.0

    @property
    def tokens(self) -> int:
        """Tokens of a sequence at its end: s + n."""
        return self.prompt + self.generated


@dataclass(frozen=True)
class LayerShape:
    """A mean layer of a network; activations and cache are in 16 bits."""

    layers: int
    """Number of layers, l."""
    hidden: int
    """Width of an activation, h."""
    inner: int
    """Width of the inner layer."""
    heads: int
    """Query heads."""
    weight_bytes: float
    """Bytes of one layer's weights."""
    cache_bytes: float
    """Bytes of cache for one token in one layer."""
    weights: float
    """Number of one layer's weights."""

    @property
    def activation_bytes(self) -> float:
        """Bytes of the activations of one token."""
        return _BYTES * self.hidden

    @property
    def product_flops(self) -> float:
        """Operations of the products for one token in one layer: two a weight."""
        return 2.0 * self.weights

    @property
    def pair_flops(self) -> float:
        """Operations for one query and key: scores and values of all heads."""
        return 4.0 * self.hidden


def of_network(stored: Stored) -> LayerShape:
    """The mean layer of a network, with the widest inner layer that one token uses."""
    network = network_of(stored)
    weights = parameters(network, Setting(1, 1, ends=False))
    count = sum(weight.elements * repeat for weight, repeat in weights)
    stored_bytes = (
        sum(stored.stored_bytes(weight) * repeat for weight, repeat in weights)
        if isinstance(stored, Compressed)
        else _BYTES * count
    )
    cache = sum(block.repeat * cached_elements(block.attention) for block in network.blocks)
    return LayerShape(
        network.layers,
        network.hidden,
        max(block.mlp.inner * max(block.mlp.chosen, 1) for block in network.blocks),
        max(block.attention.heads for block in network.blocks),
        stored_bytes / network.layers,
        _BYTES * cache / network.layers,
        count / network.layers,
    )
