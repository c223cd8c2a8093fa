"""The table of embedding look-ups by placement."""

from __future__ import annotations

from collections.abc import Sequence

from perfmodel.render.report import (
    Column,
    Report,
    Row,
    count,
    integer,
    keyed,
    micros,
    percent,
    ranged,
    text,
)

_RANGE = "range: what opening a page of memory costs a row, between nothing and 128 bytes' worth"
_PAYS = "pays at: the hit rate from which the cache is faster than the host's CPU alone"


def report(rows: Sequence[Row], title: str) -> Report:
    """One line for each batch, device and placement."""
    several = len({row["batch"] for row in rows}) > 1
    pays = any(row["break_even_hit"] is not None for row in rows)
    columns = [
        *([integer("batch", "batch")] if several else []),
        text("tables in", "placement"),
        Column("device", _device, number=False),
        percent("hit", "hit"),
        keyed("look-ups", "time_us", micros),
        ranged("range"),
        keyed("dense", "dense_us", micros),
        keyed("samples/s", "samples_per_s", count),
        text("limiter", "limiter"),
        *([percent("pays at", "break_even_hit")] if pays else []),
    ]
    lacking = dict.fromkeys(_device(row) for row in rows if not row["fits"])
    notes = [f"the tables do not fit on {', '.join(lacking)}"] if lacking else []
    notes += [_PAYS, _RANGE] if pays else [_RANGE]
    return Report("placements", rows, columns, title, notes=notes)


def _device(row: Row) -> str:
    name = str(row["device"])
    return name if row["devices"] == 1 else f"{row['devices']} x {name}"
