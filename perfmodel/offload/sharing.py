"""Work divided between two machines: rows in parallel, or layers one after another.

Rows are independent items: sequences, heads, experts, samples. A machine takes τ seconds for all of
them. With a share x on the device and the rest on the host, the time is max(x·τ_d, (1 − x)·τ_h). It
is least where both take equally long:

    x* = (1/τ_d) / (1/τ_d + 1/τ_h)

Transfers over the link are added. Where they exceed the saving, everything stays on one machine.
Layers run one after another, so their times add up (llama.cpp, `-ngl`).
"""

from __future__ import annotations

from dataclasses import dataclass

from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.networks.setting import step
from perfmodel.offload.layershape import Stored, network_of, of_network, predicted
from perfmodel.offload.links import host_bytes_per_s


@dataclass(frozen=True)
class Shared:
    """Rows divided between a device and its host."""

    share: float
    """Share of the device, 0 to 1."""
    seconds: float
    """Seconds of both, with transfers."""


def rows(device_seconds: float, host_seconds: float, transfer_seconds: float = 0.0) -> Shared:
    """The best share of rows on the device; `transfer_seconds` counts only if both have rows.

    All rows on one machine if that is faster. Each machine already holds the data of its rows.
    """
    if not device_seconds > 0.0 or not host_seconds > 0.0:
        raise ProblemError("both machines need a time above 0 for all rows")
    share = host_seconds / (device_seconds + host_seconds)
    split = Shared(share, share * device_seconds + transfer_seconds)
    single = (Shared(1.0, device_seconds), Shared(0.0, host_seconds))
    return min(split, *single, key=lambda s: s.seconds)


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
