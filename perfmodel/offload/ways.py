"""Ways to run a network larger than its device, as plain rows for a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from perfmodel.hardware import Device
from perfmodel.networks.network import Network
from perfmodel.offload import recompute, sharing
from perfmodel.offload.layershape import LayerShape, Request, Stored, network_of
from perfmodel.offload.layertimes import Answer
from perfmodel.offload.memory import held
from perfmodel.offload.streaming import Streaming

Row = Mapping[str, Any]


def policy_row(shape: LayerShape, request: Request, found: Answer, costs: str) -> Row:
    """A policy: its placement, the time of a block, and the limiting resource."""
    policy = found.policy
    demand = held(shape, request, policy)
    shares = {
        f"{part}_{place}": float(np.asarray(share))
        for part in ("weights", "cache", "activations")
        for place, share in zip(("device", "host", "disk"), getattr(policy, part), strict=True)
    }
    return {
        "costs": costs,
        "part": policy.part,
        "blocks": policy.blocks,
        **shares,
        "prefill_s": float(found.prefill_seconds),
        "decode_s": float(found.decode_seconds),
        "tokens_per_s": float(found.tokens_per_s),
        "prefill_limiter": found.prefill.limiter(),
        "decode_limiter": found.decode.limiter(),
        "device_bytes": float(demand.device),
        "host_bytes": float(demand.host),
        "disk_bytes": float(demand.disk),
    }


def recompute_rows(
    network: Network, device: Device, batches: Sequence[int], contexts: Sequence[int]
) -> Iterator[Row]:
    """KVPR: how much of a cache in host memory to recompute, for one layer."""
    for batch in batches:
        for tokens in contexts:
            plan = recompute.of_network(network, device, batch, tokens)
            yield {
                "batch": batch,
                "context": tokens,
                "gains": plan.gains,
                "split": plan.split,
                "share": plan.split / tokens,
                "sent_us": plan.seconds(0) * 1e6,
                "time_us": plan.seconds(plan.split) * 1e6,
                "time_share": plan.time_share,
            }


def streaming_rows(
    network: Stored, device: Device, batches: Sequence[int], contexts: Sequence[int]
) -> Iterator[Row]:
    """Weights streamed over the link in every step."""
    for tokens in contexts:
        plan = Streaming(network, device, tokens)
        for batch in batches:
            seconds, work = plan.seconds(batch), plan.work_seconds(batch)
            yield {
                "batch": batch,
                "context": tokens,
                "link_us": plan.link_seconds * 1e6,
                "work_us": work * 1e6,
                "time_us": seconds * 1e6,
                "tokens_per_s": batch / seconds,
                "limiter": "link" if plan.link_seconds >= work else "work",
                "hiding_batch": plan.hiding_batch,
            }


def layer_rows(
    network: Stored, device: Device, host: Device, batch: int, context: int
) -> Iterator[Row]:
    """Every number of layers on the device, and whether they fit."""
    layers = network_of(network).layers
    for count in range(layers + 1):
        split = sharing.layers(network, device, host, count, batch, context)
        yield {
            "on_device": count,
            "on_host": layers - count,
            "time_us": split.seconds * 1e6,
            "tokens_per_s": batch / split.seconds,
            "device_bytes": split.device_bytes,
            "fits": split.device_bytes <= device.memory_bytes,
        }
