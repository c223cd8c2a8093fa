"""Layers divided between a device and its host, which run one after another (llama.cpp, `-ngl`)."""

from __future__ import annotations

from dataclasses import replace

from perfmodel.errors import ProblemError
from perfmodel.graph.live import Memory
from perfmodel.graph.tree import Tree
from perfmodel.hardware import Device
from perfmodel.networks.setting import step
from perfmodel.offload.layershape import Stored, network_of, of_network, predicted
from perfmodel.offload.links import host_bytes_per_s


def layers(
    stored: Stored, device: Device, host: Device, on_device: int, batch: int, context: int
) -> Tree:
    """A decode step with some layers on the device, the rest and their cache on its host:
    t = L_d·t_d + L_h·t_h + ends, plus two transfers of the activations if both have layers.

    Embeddings and head run on the machine of the last layer. Raises `ProblemError` for more layers
    than the network has.
    """
    network = network_of(stored)
    if not 0 <= on_device <= network.layers:
        raise ProblemError(
            f"{on_device} layers on the device are not 0 to the {network.layers} of {network.name}"
        )
    shape, share = of_network(stored), on_device / network.layers
    inner = [predicted(stored, step(batch, context, ends=False), one) for one in (device, host)]
    last = 0 if on_device else 1
    network_step = predicted(stored, step(batch, context), (device, host)[last])
    parts = [inner[0].times(share)] * (share > 0.0) + [inner[1].times(1.0 - share)] * (share < 1.0)
    parts.append(
        Tree.part("embedding and head", "network", network_step.seconds - inner[last].seconds)
    )
    if 0 < on_device < network.layers:
        sent = 2.0 * batch * shape.activation_bytes / host_bytes_per_s(device, host)
        parts.append(Tree.part("activations", "communication", sent, resource="link"))
    held_bytes = on_device * (shape.weight_bytes + batch * context * shape.cache_bytes)
    return replace(
        Tree.series("step", "network", parts),
        settings={"on_device": on_device, "on_host": network.layers - on_device, "batch": batch},
        device=device.slug,
        memory=Memory.of({"hbm": (held_bytes, device.memory_bytes)}),
    )
