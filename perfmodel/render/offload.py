"""Tables of ways to run a network that is larger than its device: a tree on a line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from perfmodel.offload.policy import PLACES
from perfmodel.render.report import Column, Report, Row, text
from perfmodel.render.trees import own


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _shares(header: str, part: str) -> Column:
    """The percentages of a part on device, host and disk."""

    def shares(row: Row) -> str:
        return ", ".join(f"{row[f'{part}_{place}']:.0%}"[:-1] for place in PLACES)

    return Column(header, shares, number=False)


_RATE = Column("tokens/s", "tokens_per_s", _rate)
_BATCH = (Column("batch", "batch"), Column("context", "context"))
_COLUMNS: Mapping[str, Sequence[Column]] = {
    "policies": (
        Column("sequences", lambda row: f"{row['blocks']} x {row['part']}"),
        _shares("weights", "weights"),
        _shares("cache", "cache"),
        _shares("passed on", "activations"),
        Column("prefill", "prefill_us"),
        Column("decode", "decode_us"),
        _RATE,
        text("waits for", "decode_limiter"),
        Column("device", "footprints.hbm", "binary"),
        Column("host", "footprints.host", "binary"),
    ),
    "recompute": (
        *_BATCH,
        Column("computed anew", "split"),
        Column("share", "share"),
        Column("all sent", "sent_us"),
        Column("at the split", "time_us"),
        Column("of all sent", "time_share"),
    ),
    "streaming": (
        *_BATCH,
        Column("link", "link_us"),
        Column("work", "work_us"),
        *own("time_us"),
        _RATE,
        *own("limiter"),
        Column("hidden from", "hiding_batch"),
    ),
    "layers": (
        Column("on device", "on_device"),
        Column("on host", "on_host"),
        *own("time_us", "low_us"),
        _RATE,
        *own("limiter"),
        Column("device", "footprints.hbm", "binary"),
    ),
}
_NOTES = {
    "policies": "weights, cache, what layers pass on: percent on device, in host memory, on disk; "
    "waits for: what takes longest in decoding",
    "streaming": "hidden from: the batch whose own work takes as long as the link; its cache may "
    "not fit",
}


def report(name: str, rows: Sequence[Row], title: str, notes: Iterable[str]) -> Report:
    """One line for each row, with the device where it differs."""
    lines = dict.fromkeys([*notes, *filter(None, [_NOTES.get(name)])])
    columns = [*own("device"), *_COLUMNS[name]]
    return Report(name, rows, columns, title, notes=list(lines), examples=rows)
