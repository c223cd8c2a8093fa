"""The report of embedding look-ups by placement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from perfmodel.render.report import Column, Report, Row, integer, micros, percent, span, text
from perfmodel.units import si


def report(rows: Sequence[Row], title: str, notes: Iterable[str] = ()) -> Report:
    """One line for each batch, device and placement."""
    several = len({row["batch"] for row in rows}) > 1
    pays = any(row["break_even_hit"] is not None for row in rows)
    columns = [
        *([integer("batch", "batch")] if several else []),
        text("tables in", "placement"),
        Column("device", _device, number=False),
        percent("hit", "hit"),
        Column("look-ups", lambda row: row["time_us"], micros),
        Column("range", span, number=False),
        Column("dense", lambda row: row["dense_us"], micros),
        Column("samples/s", lambda row: row["samples_per_s"], lambda value: si(value, "").rstrip()),
        text("limiter", "limiter"),
        *([percent("pays at", "break_even_hit")] if pays else []),
    ]
    return Report("placements", rows, columns, title, notes=[*_too_large(rows), *notes])


def _too_large(rows: Sequence[Row]) -> Iterator[str]:
    devices = dict.fromkeys(_device(row) for row in rows if not row["fits"])
    if devices:
        yield f"the tables do not fit on {', '.join(devices)}"


def _device(row: Row) -> str:
    name = str(row["device"])
    return name if row["devices"] == 1 else f"{row['devices']} x {name}"
