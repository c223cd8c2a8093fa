"""Reports of ways to run a network that is larger than its device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from perfmodel.render.report import (
    Column,
    Report,
    Row,
    binary,
    integer,
    micros,
    percent,
    text,
)
from perfmodel.units import seconds


def policies(rows: Sequence[Row], title: str, notes: Iterable[str] = ()) -> Report:
    """One line for each policy."""
    columns = [
        Column("sequences", lambda row: f"{row['blocks']} x {row['part']}"),
        Column("weights", lambda row: _shares(row, "weights"), number=False),
        Column("cache", lambda row: _shares(row, "cache"), number=False),
        Column("passed on", lambda row: _shares(row, "activations"), number=False),
        _duration("prefill", "prefill_s"),
        _duration("decode", "decode_s"),
        _rate(),
        text("waits for", "decode_limiter"),
        Column("device", lambda row: row["device_bytes"], binary),
        Column("host", lambda row: row["host_bytes"], binary),
    ]
    return Report("policies", rows, columns, title, notes=[*notes, _PLACES])


_PLACES = (
    "weights, cache, what layers pass on: percent on device, in host memory, on disk; waits for: "
    "what takes longest in decoding"
)


def recompute(rows: Sequence[Row], title: str, notes: Iterable[str] = ()) -> Report:
    """One line for each batch and context."""
    columns = [
        integer("batch", "batch"),
        integer("context", "context"),
        integer("computed anew", "split"),
        percent("share", "share"),
        _micro("all sent", "sent_us"),
        _micro("at the split", "time_us"),
        percent("of all sent", "time_share"),
    ]
    return Report("recompute", rows, columns, title, notes=list(notes))


def streaming(rows: Sequence[Row], title: str, notes: Iterable[str] = ()) -> Report:
    """One line for each batch and context."""
    columns = [
        integer("batch", "batch"),
        integer("context", "context"),
        _micro("link", "link_us"),
        _micro("work", "work_us"),
        _micro("step", "time_us"),
        _rate(),
        text("limiter", "limiter"),
        integer("hidden from", "hiding_batch"),
    ]
    return Report("streaming", rows, columns, title, notes=list(notes))


def layers(rows: Sequence[Row], title: str, notes: Iterable[str] = ()) -> Report:
    """One line for each number of layers."""
    columns = [
        integer("on device", "on_device"),
        integer("on host", "on_host"),
        _micro("step", "time_us"),
        _rate(),
        Column("device", lambda row: row["device_bytes"], binary),
    ]
    fitting = [row for row in rows if row["fits"]]
    rest = len(rows) - len(fitting)
    if rest:
        notes = [*notes, f"{rest} further numbers of layers do not fit"]
    return Report("layers", fitting, columns, title, notes=list(notes))


def _shares(row: Row, what: str) -> str:
    return ", ".join(f"{row[f'{what}_{place}']:.0%}"[:-1] for place in ("device", "host", "disk"))


def _duration(header: str, key: str) -> Column:
    return Column(header, lambda row: row[key], seconds)


def _micro(header: str, key: str) -> Column:
    return Column(header, lambda row: row[key], micros)


def _rate() -> Column:
    return Column("tokens/s", lambda row: row["tokens_per_s"], _three_digits)


def _three_digits(value: Any) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
