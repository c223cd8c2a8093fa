"""Work that two machines divide: rows beside each other, layers one after another.

Rows are whatever needs nothing of each other: sequences, heads, experts, samples. With τ seconds
for all of them on a machine, a share x on the device and the rest on the host take
max(x·τ_d, (1 − x)·τ_h), least where both take as long:

    x* = (1/τ_d) / (1/τ_d + 1/τ_h)

What crosses the link comes on top, and where that is more than sharing saves, all stays on one of
them. Layers follow each other, so that their times add up (llama.cpp, `-ngl`).
"""

from __future__ import annotations

from dataclasses import dataclass

from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.networks.inference import step
from perfmodel.networks.network import Network
from perfmodel.networks.predict import predict_network
from perfmodel.offload.layershape import of_network
from perfmodel.offload.links import host_bytes_per_s


@dataclass(frozen=True)
class Shared:
    """Rows divided between a device and its host."""

    share: float
    """Of the device: 0 to 1."""
    seconds: float
    """Of both, transfers included."""


def rows(device_seconds: float, host_seconds: float, transfer_seconds: float = 0.0) -> Shared:
    """The best share of rows on the device; `transfer_seconds` where both have some.

    All on one where that is faster. The device's rows are at hand there, the host's here.
    """
    if not device_seconds > 0.0 or not host_seconds > 0.0:
        raise ProblemError("both machines need a time above 0 for all rows")
    share = host_seconds / (device_seconds + host_seconds)
    both = Shared(share, share * device_seconds + transfer_seconds)
    alone = (Shared(1.0, device_seconds), Shared(0.0, host_seconds))
    return min(both, *alone, key=lambda one: one.seconds)


def experts_touched(experts: int, chosen: int, tokens: int) -> float:
    """Distinct experts that so many tokens meet under even routing: E·(1 − (1 − k/E)^T). On a host
    that keeps the experts (KTransformers), only these are read."""
    return experts * (1.0 - (1.0 - chosen / experts) ** tokens)


@dataclass(frozen=True)
class LayerSplit:
    """Some layers on the device, the rest and their cache on its host: a decoding step."""

    on_device: int
    """Layers on the device, and with the last of them the head."""
    seconds: float
    """Of the step."""
    device_bytes: float
    """Weights and cache on the device."""


def layers(
    network: Network, device: Device, host: Device, on_device: int, batch: int, context: int
) -> LayerSplit:
    """t = L_d·t_d + L_h·t_h + ends + two crossings of the activations where both have layers.

    Embeddings and head run where the last layer does. Raises `ProblemError` for more layers than
    there are.
    """
    if not 0 <= on_device <= network.layers:
        raise ProblemError(f"{on_device} layers on the device; {network.name} has {network.layers}")
    shape, share = of_network(network), on_device / network.layers
    last = device if on_device else host
    times = {one.slug: _step(network, one, batch, context) for one in (device, host)}
    inner = {one.slug: _step(network, one, batch, context, ends=False) for one in (device, host)}
    seconds = share * inner[device.slug] + (1.0 - share) * inner[host.slug]
    seconds += times[last.slug] - inner[last.slug]
    if 0 < on_device < network.layers:
        seconds += 2.0 * batch * shape.activation_bytes / host_bytes_per_s(device, host)
    cache = batch * context * shape.cache_bytes
    return LayerSplit(on_device, seconds, on_device * (shape.weight_bytes + cache))


def _step(network: Network, device: Device, batch: int, context: int, ends: bool = True) -> float:
    return predict_network(network, step(batch, context, ends=ends), device).seconds
