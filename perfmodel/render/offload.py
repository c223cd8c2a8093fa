"""Tables of ways to run a network that is larger than its device: rows and their columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np

from perfmodel.hardware import Device
from perfmodel.networks.network import Network
from perfmodel.offload import recompute, sharing
from perfmodel.offload.layershape import LayerShape, Request, Stored, network_of
from perfmodel.offload.layertimes import Answer
from perfmodel.offload.policymemory import held
from perfmodel.offload.streaming import Streaming
from perfmodel.render.report import Column, Report, Row, text

_PLACES = (
    "weights, cache, what layers pass on: percent on device, in host memory, on disk; waits for: "
    "what takes longest in decoding"
)
_NO_GAIN = (
    "an activation is no smaller than the keys and values made of it, as with grouped or latent "
    "heads: recomputing any of them saves nothing"
)
_WHERE = ("device", "host", "disk")


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _shares(header: str, part: str) -> Column:
    """The percentages of a part on device, host and disk."""

    def shares(row: Row) -> str:
        return ", ".join(f"{row[f'{part}_{place}']:.0%}"[:-1] for place in _WHERE)

    return Column(header, shares, number=False)


_RATE = Column("tokens/s", "tokens_per_s", _rate)
_POLICY = (
    Column("sequences", lambda row: f"{row['blocks']} x {row['part']}"),
    _shares("weights", "weights"),
    _shares("cache", "cache"),
    _shares("passed on", "activations"),
    Column("prefill", "prefill_s"),
    Column("decode", "decode_s"),
    _RATE,
    text("waits for", "decode_limiter"),
    Column("device", "device_bytes"),
    Column("host", "host_bytes"),
)
_RECOMPUTED = (
    Column("batch", "batch"),
    Column("context", "context", of="tokens"),
    Column(key="gains"),
    Column("computed anew", "split"),
    Column("share", "share", of=lambda plan: plan.split / plan.tokens),
    Column("all sent", "sent_us", of=lambda plan: plan.seconds(0), scale=1e6),
    Column("at the split", "time_us", of=lambda plan: plan.seconds(plan.split), scale=1e6),
    Column("of all sent", "time_share"),
)
_STREAMED = (
    Column("batch", "batch"),
    Column("context", "context"),
    Column("link", "link_us"),
    Column("work", "work_us"),
    Column("step", "time_us"),
    _RATE,
    text("limiter", "limiter"),
    Column("hidden from", "hiding_batch"),
)
_LAYERS = (
    Column("on device", "on_device"),
    Column("on host", "on_host"),
    Column("step", "time_us"),
    _RATE,
    Column("device", "device_bytes"),
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
            for place, share in zip(_WHERE, getattr(placed, part), strict=True)
        },
        "prefill_s": float(answer.prefill_seconds),
        "decode_s": float(answer.decode_seconds),
        "tokens_per_s": float(answer.tokens_per_s),
        "prefill_limiter": answer.prefill.limiter(),
        "decode_limiter": answer.decode.limiter(),
        **{f"{place}_bytes": float(getattr(demand, place)) for place in _WHERE},
    }
    return Report("policies", [row], _POLICY, title, notes=[*notes, _PLACES])


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
    plans = [
        recompute.of_network(network, device, batch, tokens)
        for batch, tokens in product(batches, contexts)
    ]
    sentences = [*notes, *([] if plans[0].gains else [_NO_GAIN])]
    return Report.of("recompute", plans, _RECOMPUTED, title=title, notes=sentences)


def streaming(
    network: Stored, device: Device, batches: Sequence[int], contexts: Sequence[int], title: str
) -> Report:
    """Weights streamed over the link in every step: one line for each batch and context."""
    rows = []
    for plan in (Streaming(network, device, tokens) for tokens in contexts):
        for batch in batches:
            duration, work = plan.seconds(batch), plan.work_seconds(batch)
            row = {
                "batch": batch,
                "context": plan.context,
                "link_us": plan.link_seconds * 1e6,
                "work_us": work * 1e6,
                "time_us": duration * 1e6,
                "tokens_per_s": batch / duration,
                "limiter": "link" if plan.link_seconds >= work else "work",
                "hiding_batch": plan.hiding_batch,
            }
            rows.append(row)
    note = "hidden from: the batch whose own work takes as long as the link; its cache may not fit"
    return Report("streaming", rows, _STREAMED, title, notes=[note])


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
    rest = len(splits) - len(rows)
    notes = [f"{rest} further numbers of layers do not fit"] if rest else []
    return Report("layers", rows, _LAYERS, title, notes=notes)


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
