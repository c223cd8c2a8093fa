"""The table of devices that hold a network, and of the time of a token on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perfmodel.render.report import (
    Report,
    Row,
    integer,
    keyed,
    micros,
    quantity,
    ranged,
    text,
    whole,
)


def report(rows: Sequence[Row], title: str, notes: Iterable[str]) -> Report:
    """One line for each device."""
    priced = any(row["price"] is not None for row in rows)
    streamed = any(row["streamed_us"] is not None for row in rows)
    columns = [
        text("device", "device"),
        keyed("weights", "weight_bytes", quantity("B")),
        keyed("cache", "cache_bytes", quantity("B")),
        keyed("memory", "capacity_bytes", quantity("B")),
        integer("count", "devices"),
        keyed("power", "watts", quantity("W")),
        *([keyed("price", "price", whole)] if priced else []),
        ranged("step"),
        keyed("J/token", "joules_per_token", lambda value: f"{value:.3g}"),
        text("mostly", "limiter"),
    ]
    if streamed:
        columns += [
            keyed("streamed", "streamed_us", micros),
            integer("hidden from", "hiding_batch"),
        ]
    return Report("machines", rows, columns, title, notes=list(notes))
