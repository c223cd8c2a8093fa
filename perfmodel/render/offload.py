"""Tables of ways to run a network that is larger than its device: rows and their columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np

from perfmodel.hardware import Device
from perfmodel.networks.network import Network
from perfmodel.offload import recompute, sharing
from perfmodel.offload.layershape import LayerShape, Request, Stored, network_of
from perfmodel.offload.layertimes import Answer
from perfmodel.offload.policymemory import held
from perfmodel.offload.streaming import Streaming
from perfmodel.render.report import (
    Column,
    Report,
    Row,
    binary,
    integer,
    keyed,
    micros,
    percent,
    text,
)
from perfmodel.units import seconds

_PLACES = (
    "weights, cache, what layers pass on: percent on device, in host memory, on disk; waits for: "
    "what takes longest in decoding"
)
_NO_GAIN = (
    "an activation is no smaller than the keys and values made of it, as with grouped or latent "
    "heads: recomputing any of them saves nothing"
)


def policy(
    shape: LayerShape,
    request: Request,
    answer: Answer,
    costs: str,
    title: str,
    notes: Iterable[str],
) -> Report:
    """A policy: its placement, the time of a block, and the limiting resource."""
    placed = answer.policy
    demand = held(shape, request, placed)
    row = {
        "costs": costs,
        "part": placed.part,
        "blocks": placed.blocks,
        **{
            f"{part}_{place}": float(np.asarray(share))
            for part in ("weights", "cache", "activations")
            for place, share in zip(("device", "host", "disk"), getattr(placed, part), strict=True)
        },
        "prefill_s": float(answer.prefill_seconds),
        "decode_s": float(answer.decode_seconds),
        "tokens_per_s": float(answer.tokens_per_s),
        "prefill_limiter": answer.prefill.limiter(),
        "decode_limiter": answer.decode.limiter(),
        "device_bytes": float(demand.device),
        "host_bytes": float(demand.host),
        "disk_bytes": float(demand.disk),
    }
    columns = [
        Column("sequences", lambda row: f"{row['blocks']} x {row['part']}"),
        _shares("weights", "weights"),
        _shares("cache", "cache"),
        _shares("passed on", "activations"),
        keyed("prefill", "prefill_s", seconds),
        keyed("decode", "decode_s", seconds),
        _RATE,
        text("waits for", "decode_limiter"),
        keyed("device", "device_bytes", binary),
        keyed("host", "host_bytes", binary),
    ]
    return Report("policies", [row], columns, title, notes=[*notes, _PLACES])


def recomputed(
    network: Network,
    device: Device,
    batches: Sequence[int],
    contexts: Sequence[int],
    title: str,
    notes: Iterable[str],
) -> Report:
    """How much of a cache in host memory to recompute, for one layer: one line for each batch and
    context (KVPR)."""
    rows = [
        {
            "batch": batch,
            "context": tokens,
            "gains": plan.gains,
            "split": plan.split,
            "share": plan.split / tokens,
            "sent_us": plan.seconds(0) * 1e6,
            "time_us": plan.seconds(plan.split) * 1e6,
            "time_share": plan.time_share,
        }
        for batch, tokens in product(batches, contexts)
        for plan in [recompute.of_network(network, device, batch, tokens)]
    ]
    columns = [
        integer("batch", "batch"),
        integer("context", "context"),
        integer("computed anew", "split"),
        percent("share", "share"),
        keyed("all sent", "sent_us", micros),
        keyed("at the split", "time_us", micros),
        percent("of all sent", "time_share"),
    ]
    if not rows[0]["gains"]:
        notes = [*notes, _NO_GAIN]
    return Report("recompute", rows, columns, title, notes=list(notes))


def streaming(
    network: Stored, device: Device, batches: Sequence[int], contexts: Sequence[int], title: str
) -> Report:
    """Weights streamed over the link in every step: one line for each batch and context."""
    rows = []
    for tokens in contexts:
        plan = Streaming(network, device, tokens)
        for batch in batches:
            duration, work = plan.seconds(batch), plan.work_seconds(batch)
            row = {
                "batch": batch,
                "context": tokens,
                "link_us": plan.link_seconds * 1e6,
                "work_us": work * 1e6,
                "time_us": duration * 1e6,
                "tokens_per_s": batch / duration,
                "limiter": "link" if plan.link_seconds >= work else "work",
                "hiding_batch": plan.hiding_batch,
            }
            rows.append(row)
    columns = [
        integer("batch", "batch"),
        integer("context", "context"),
        keyed("link", "link_us", micros),
        keyed("work", "work_us", micros),
        keyed("step", "time_us", micros),
        _RATE,
        text("limiter", "limiter"),
        integer("hidden from", "hiding_batch"),
    ]
    note = "hidden from: the batch whose own work takes as long as the link; its cache may not fit"
    return Report("streaming", rows, columns, title, notes=[note])


def layers(
    network: Stored, device: Device, host: Device, batch: int, context: int, title: str
) -> Report:
    """One line for each number of layers that fits on the device."""
    count = network_of(network).layers
    splits = [sharing.layers(network, device, host, n, batch, context) for n in range(count + 1)]
    rows = [
        {
            "on_device": number,
            "on_host": count - number,
            "time_us": split.seconds * 1e6,
            "tokens_per_s": batch / split.seconds,
            "device_bytes": split.device_bytes,
            "fits": True,
        }
        for number, split in enumerate(splits)
        if split.device_bytes <= device.memory_bytes
    ]
    columns = [
        integer("on device", "on_device"),
        integer("on host", "on_host"),
        keyed("step", "time_us", micros),
        _RATE,
        keyed("device", "device_bytes", binary),
    ]
    rest = len(splits) - len(rows)
    notes = [f"{rest} further numbers of layers do not fit"] if rest else []
    return Report("layers", rows, columns, title, notes=notes)


def by_device(devices: Sequence[str], reports: Sequence[Report], title: str) -> Report:
    """The rows of several devices as one report, with a column for the device."""
    rows = [
        {"device": device, **row}
        for device, report in zip(devices, reports, strict=True)
        for row in report.rows
    ]
    notes = [report.title for report in reports] + [n for each in reports for n in each.notes]
    columns = [text("device", "device"), *reports[0].columns]
    return Report(reports[0].name, rows, columns, title, notes=list(dict.fromkeys(notes)))


def _shares(header: str, part: str) -> Column:
    """The percentages of a part on device, host and disk."""

    def shares(row: Row) -> str:
        places = ("device", "host", "disk")
        return ", ".join(f"{row[f'{part}_{place}']:.0%}"[:-1] for place in places)

    return Column(header, shares, number=False)


def _three_digits(value: Any) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


_RATE = keyed("tokens/s", "tokens_per_s", _three_digits)
