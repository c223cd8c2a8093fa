"""The table of devices that hold a network, and of the time of a token on them."""

from __future__ import annotations

from collections.abc import Sequence

from perfmodel.columns import SOME, columns_of, span
from perfmodel.compression.compressed import Compressed
from perfmodel.hardware import Device
from perfmodel.onchip.holding import Holding, holding
from perfmodel.onchip.latency import is_on_chip, latency, streamed
from perfmodel.render.report import Column, Report, Row, text

_STEP = (
    "step: from the faster layout over the cores to three times the slower; what vendors' "
    "compilers do is not public, so that no better bound is known"
)
_OTHERS = "a step of devices with memory off the chip: perfmodel compress"
_COLUMNS = (
    *columns_of(Holding),
    Column("step", span, number=False),
    Column("J/token", "joules_per_token", "{:.3g}"),
    text("mostly", "limiter"),
    Column("streamed", "streamed_us", when=SOME),
    Column("hidden from", "hiding_batch", when=SOME),
)


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
    on_chip = [is_on_chip(device) for device in devices]
    notes = [*([_STEP] if any(on_chip) else []), *([] if all(on_chip) else [_OTHERS])]
    title = (
        f"{model.network.name}, {model.scheme.name}: {batch:,} "
        f"{'sequence' if batch == 1 else 'sequences'} of {context:,} tokens"
    )
    return Report("machines", rows, _COLUMNS, title, notes=notes)


def _row(
    model: Compressed,
    device: Device,
    batch: int,
    context: int,
    price: float | None,
    rate: float | None,
) -> Row:
    fleet = holding(model, device, batch=batch, context=context, price=price)
    row: Row = dict.fromkeys(("time_us", "low_us", "high_us", "limiter", "joules_per_token",
                              "streamed_us", "hiding_batch"))  # fmt: skip
    if is_on_chip(device):
        step = latency(model, device, fleet.devices, batch=batch, context=context)
        joules = None if fleet.watts is None else fleet.watts * step.seconds / batch
        row = {**row, **step.as_row(joules_per_token=joules)}
    if rate is not None:
        stream = streamed(model, device, rate, batch)
        row = {**row, "streamed_us": stream.seconds * 1e6, **stream.settings}
    return {**row, **fleet.as_dict()}
