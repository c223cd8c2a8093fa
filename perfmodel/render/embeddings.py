"""Embedding look-ups by placement, as a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perfmodel.render.report import Column, Report, Row, integer, micros, percent, text
from perfmodel.units import si


def report(rows: Sequence[Row], title: str, notes: Iterable[str] = ()) -> Report:
    """A line a batch, device and placement."""
    columns = [
        integer("batch", "batch"),
        text("tables in", "placement"),
        text("device", "device"),
        integer("devices", "devices"),
        percent("hit", "hit"),
        Column("look-ups", lambda row: row["time_us"], micros),
        Column("range", _range, number=False),
        Column("dense", lambda row: row["dense_us"], micros),
        Column("samples/s", lambda row: row["samples_per_s"], lambda value: si(value, "").rstrip()),
        text("limiter", "limiter"),
        Column("fits", lambda row: row["fits"], lambda value: "yes" if value else "no"),
        percent("pays from", "break_even_hit"),
    ]
    return Report("placements", rows, columns, title, notes=list(notes))


def _range(row: Row) -> str:
    return f"{micros(row['low_us'])} to {micros(row['high_us'])}"
