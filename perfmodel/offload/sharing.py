"""Layers divided between a device and its host, which run one after another (llama.cpp, `-ngl`)."""

from __future__ import annotations

from dataclasses import dataclass

from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.networks.setting import step
from perfmodel.offload.layershape import Stored, network_of, of_network, predicted
from perfmodel.offload.links import host_bytes_per_s


@dataclass(frozen=True)
class LayerSplit:
    """A decode step with some layers on the device, the rest and their cache on its host."""

    on_device: int
    """Layers on the device; the head is with the last layer."""
    seconds: float
    """Seconds of the step."""
    device_bytes: float
    """Bytes of weights and cache on the device."""


def layers(
    stored: Stored, device: Device, host: Device, on_device: int, batch: int, context: int
) -> LayerSplit:
    """t = L_d·t_d + L_h·t_h + ends, plus two transfers of the activations if both have layers.

    Embeddings and head run on the machine of the last layer. Raises `ProblemError` for more layers
    than the network has.
    """
    network = network_of(stored)
    if not 0 <= on_device <= network.layers:
        raise ProblemError(
            f"{on_device} layers on the device are not 0 to the {network.layers} of {network.name}"
        )
    shape, share = of_network(stored), on_device / network.layers
    last = device if on_device else host
    times = {m.slug: _step(stored, m, batch, context) for m in (device, host)}
    inner = {m.slug: _step(stored, m, batch, context, ends=False) for m in (device, host)}
    seconds = share * inner[device.slug] + (1.0 - share) * inner[host.slug]
    seconds += times[last.slug] - inner[last.slug]
    if 0 < on_device < network.layers:
        seconds += 2.0 * batch * shape.activation_bytes / host_bytes_per_s(device, host)
    cache = batch * context * shape.cache_bytes
    return LayerSplit(on_device, seconds, on_device * (shape.weight_bytes + cache))


def _step(stored: Stored, device: Device, batch: int, context: int, ends: bool = True) -> float:
    return predicted(stored, step(batch, context, ends=ends), device).seconds
