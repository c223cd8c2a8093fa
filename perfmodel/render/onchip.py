"""What holds a network, and how long a token takes there, as a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perfmodel.render.report import Column, Report, Row, integer, micros, text
from perfmodel.units import si


def report(rows: Sequence[Row], title: str, notes: Iterable[str] = ()) -> Report:
    """A line a device."""
    columns = [
        text("device", "device"),
        Column("weights", lambda row: row["weight_bytes"], lambda value: si(value, "B")),
        Column("cache", lambda row: row["cache_bytes"], lambda value: si(value, "B")),
        Column("memory", lambda row: row["capacity_bytes"], lambda value: si(value, "B")),
        Column("fits", lambda row: row["fits"], lambda value: "yes" if value else "no"),
        integer("devices", "devices"),
        Column("power", lambda row: row["watts"], lambda value: si(value, "W")),
        Column("price", lambda row: row["price"], lambda value: f"{value:,.0f}"),
        Column("step", _range, number=False),
        Column("J/token", lambda row: row["joules_per_token"], lambda value: f"{value:.3g}"),
        text("mostly", "limiter"),
        Column("streamed", lambda row: row["streamed_us"], micros),
        integer("hidden from", "hiding_batch"),
    ]
    return Report("machines", rows, columns, title, notes=list(notes))


def _range(row: Row) -> str | None:
    if row["low_us"] is None:
        return None
    return f"{micros(row['low_us'])} to {micros(row['high_us'])}"
