"""The table of devices that hold a network, and of the time of a token on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from perfmodel.compression.compressed import Compressed
from perfmodel.hardware import Device
from perfmodel.onchip.holding import holding
from perfmodel.onchip.latency import is_on_chip, latency, streamed
from perfmodel.render.report import (
    Report,
    Row,
    in_micros,
    integer,
    keyed,
    micros,
    quantity,
    ranged,
    text,
    whole,
)

_STEP = (
    "step: from the faster layout over the cores to three times the slower; what vendors' "
    "compilers do is not public, so that no better bound is known"
)
_OTHERS = "a step of devices with memory off the chip: perfmodel compress"


def report(
    model: Compressed,
    devices: Sequence[Device],
    batch: int,
    context: int,
    price: float | None = None,
    stream_rate: float | None = None,
) -> Report:
    """One line for each device; with a rate, also of weights that are streamed from outside."""
    rows = [_row(model, device, batch, context, price, stream_rate) for device in devices]
    columns = [
        text("device", "device"),
        keyed("weights", "weight_bytes", quantity("B")),
        keyed("cache", "cache_bytes", quantity("B")),
        keyed("memory", "capacity_bytes", quantity("B")),
        integer("count", "devices"),
        keyed("power", "watts", quantity("W")),
        *([] if price is None else [keyed("price", "price", whole)]),
        ranged("step"),
        keyed("J/token", "joules_per_token", lambda value: f"{value:.3g}"),
        text("mostly", "limiter"),
    ]
    if stream_rate is not None:
        columns.append(keyed("streamed", "streamed_us", micros))
        columns.append(integer("hidden from", "hiding_batch"))
    on_chip = [is_on_chip(device) for device in devices]
    notes = [*([_STEP] if any(on_chip) else []), *([] if all(on_chip) else [_OTHERS])]
    title = (
        f"{model.network.name}, {model.scheme.name}: {batch:,} "
        f"{'sequence' if batch == 1 else 'sequences'} of {context:,} tokens"
    )
    return Report("machines", rows, columns, title, notes=notes)


def _row(
    model: Compressed,
    device: Device,
    batch: int,
    context: int,
    price: float | None,
    rate: float | None,
) -> Row:
    fleet = holding(model, device, batch=batch, context=context, price=price)
    row: dict[str, Any] = {**asdict(fleet), "fits": fleet.fits}
    row |= dict.fromkeys(("time_us", "low_us", "high_us", "limiter", "joules_per_token"))
    if is_on_chip(device):
        step = latency(model, device, fleet.devices, batch=batch, context=context)
        row |= in_micros(step.seconds, step.low_seconds, step.high_seconds)
        row["limiter"] = step.layouts[0].limiter
        row["joules_per_token"] = (
            None if fleet.watts is None else fleet.watts * step.seconds / batch
        )
    stream = None if rate is None else streamed(model, device, rate)
    row["streamed_us"] = None if stream is None else stream.seconds(batch) * 1e6
    row["hiding_batch"] = None if stream is None else stream.hiding_batch
    return row
