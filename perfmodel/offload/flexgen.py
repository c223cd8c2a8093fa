"""FlexGen's cost model with its published constants (`flexgen.yaml`).

The port is exact: OPT-30B on a T4 at the policy 20, 80, 0, 100, 0, 100 with three parts of 48 gives
7.136 tokens a second; FlexGen measured 7.32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from perfmodel.catalogue import Table
from perfmodel.offload.layershape import LayerShape, Request
from perfmodel.offload.layertimes import LayerTimes
from perfmodel.offload.policy import Policy


@dataclass(frozen=True)
class Small:
    """Efficiency loss of the host with small parts and narrow layers, as a factor of its rate:

    max(least, 1 + both·p·n − part·p − width·n),  p = log₂⁺(64/part), n = log₂⁺(4096/h).
    """

    least: float
    """Lower limit of the factor."""
    both: float
    """Coefficient of p·n."""
    part: float
    """Coefficient of p, for each halving of a part below 64 sequences."""
    width: float
    """Coefficient of n, for each halving of a layer below 4096."""

    def factor(self, part: int, hidden: int) -> float:
        """The factor of the host's rate."""
        shortfall = max(0.0, math.log2(64.0 / part))
        narrow = max(0.0, math.log2(4096.0 / hidden))
        loss = self.part * shortfall + self.width * narrow - self.both * shortfall * narrow
        return max(self.least, 1.0 - loss)


@dataclass(frozen=True)
class Fitted:
    """Fitted rates of one machine: bytes and operations a second."""

    name: str
    """Name of the machine."""
    device: str
    """The device's slug."""
    source: str
    """Source."""
    to_device: float
    """Host to device."""
    cache_to_host: float
    """Keys and values, device to host."""
    activations_to_host: float
    """Activations, device to host."""
    from_disk: float
    """Disk to host."""
    from_disk_weights_share: float
    """Share of `from_disk` that weights reach in decoding."""
    cache_to_disk: float
    """Keys and values to disk in prefill."""
    activations_to_disk: float
    """Activations to disk in prefill."""
    decode_to_disk: float
    """Keys and values, or activations, to disk in decoding."""
    prefill_products: float
    """Matrix products of prompts."""
    prefill_attention: float
    """Attention of prompts."""
    decode_products: float
    """Matrix products of single tokens."""
    decode_attention: float
    """Attention of single tokens on the device."""
    host_attention: float
    """Attention of single tokens on the host."""
    small: Small
    """Efficiency loss of the host with small parts."""
    first_comes: bool = True
    """Whether transfers to the device precede all else in decoding, as in FlexGen's code."""

    def prefill(self, shape: LayerShape, request: Request, policy: Policy) -> LayerTimes:
        """Times of a layer in prefill, by cost_model.py."""
        s, batch = request.prompt, policy.batch
        cache = shape.cache_bytes * (s + 1) * batch
        activations = shape.activation_bytes * s * batch
        rest, (_, _, on_disk) = 1.0 - policy.activations[0], policy.activations
        weights_rest, cache_rest = 1.0 - policy.weights[0], 1.0 - policy.cache[0]
        return LayerTimes(
            (shape.weight_bytes * weights_rest + activations * rest) / self.to_device,
            cache * cache_rest / self.cache_to_host + activations * rest / self.activations_to_host,
            (shape.weight_bytes * policy.weights[2] + activations * on_disk) / self.from_disk,
            cache * policy.cache[2] / self.cache_to_disk
            + activations * on_disk / self.activations_to_disk,
            batch * s * shape.product_flops / self.prefill_products
            + batch * s**2 * shape.pair_flops / self.prefill_attention,
        )

    def decode(self, shape: LayerShape, request: Request, policy: Policy) -> LayerTimes:
        """Times of a layer in decoding, by cost_model.py."""
        batch = policy.batch
        cache = shape.cache_bytes * request.middle * batch
        activations = shape.activation_bytes * batch
        rest, on_disk = 1.0 - policy.activations[0], policy.activations[2]
        weights = shape.weight_bytes * policy.weights[2]
        pairs = batch * request.middle * shape.pair_flops
        host = self.host_attention * self.small.factor(policy.part, shape.hidden)
        return LayerTimes(
            (shape.weight_bytes * (1.0 - policy.weights[0]) + activations * rest) / self.to_device,
            activations * rest / self.activations_to_host,
            (
                cache * policy.cache[2]
                + activations * on_disk
                + weights / self.from_disk_weights_share
            )
            / self.from_disk,
            (shape.cache_bytes * batch * policy.cache[2] + activations * on_disk)
            / self.decode_to_disk,
            batch * shape.product_flops / self.decode_products
            + pairs * policy.cache[0] / self.decode_attention
            + pairs * (1.0 - policy.cache[0]) / host,
        )


FITTED = Table(
    "machine that FlexGen's model was fitted to",
    Fitted,
    Path(__file__).with_name("flexgen.yaml"),
    "machines",
)
"""The machines, in file order."""
load, names = FITTED.load, FITTED.names
