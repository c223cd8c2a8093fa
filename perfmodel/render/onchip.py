"""The report of devices that hold a network, and of the time of a token on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perfmodel.render.report import Column, Report, Row, integer, micros, span, text
from perfmodel.units import si


def report(rows: Sequence[Row], title: str, notes: Iterable[str] = ()) -> Report:
    """One line for each device."""
    columns = [
        text("device", "device"),
        Column("weights", lambda row: row["weight_bytes"], lambda value: si(value, "B")),
        Column("cache", lambda row: row["cache_bytes"], lambda value: si(value, "B")),
        Column("memory", lambda row: row["capacity_bytes"], lambda value: si(value, "B")),
        integer("count", "devices"),
        Column("power", lambda row: row["watts"], lambda value: si(value, "W")),
        *(_PRICE if any(row["price"] is not None for row in rows) else ()),
        Column("step", span, number=False),
        Column("J/token", lambda row: row["joules_per_token"], lambda value: f"{value:.3g}"),
        text("mostly", "limiter"),
        *(_STREAMED if any(row["streamed_us"] is not None for row in rows) else ()),
    ]
    return Report("machines", rows, columns, title, notes=list(notes))


_PRICE = (Column("price", lambda row: row["price"], lambda value: f"{value:,.0f}"),)
_STREAMED = (
    Column("streamed", lambda row: row["streamed_us"], micros),
    integer("hidden from", "hiding_batch"),
)
