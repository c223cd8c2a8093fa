"""The report of weight formats compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from perfmodel.compression.comparing import Compared
from perfmodel.render.report import Column, Report, Row, integer, micros, span, text
from perfmodel.units import si

EVEN = (
    "bytes: of 16-bit layers over these; even at: tokens of a step at which multiplying takes as "
    "long as reading the weights"
)
ACCURACY = "what a format does to the network's answers is not predicted here: measure it"


def report(
    found: Sequence[Compared], network: str, context: int, notes: Iterable[str] = ()
) -> Report:
    """One line for each device, format and batch."""
    several = len({case.device for case in found}) > 1
    columns = [
        *([text("device", "device")] if several else []),
        text("format", "format"),
        Column("bits", lambda row: row["bits"], lambda value: f"{value:.3f}"),
        Column("weights", lambda row: row["weight_bytes"], lambda value: si(value, "B")),
        integer("batch", "batch"),
        Column("step", lambda row: row["time_us"], micros),
        Column("range", span, number=False),
        Column("gain", lambda row: row["gain"], lambda value: f"{value:.2f}x"),
        Column("bytes", lambda row: row["byte_gain"], lambda value: f"{value:.2f}x"),
        Column("even at", lambda row: row["balanced_tokens"], lambda value: f"{value:.0f}"),
        text("limiter", "limiter"),
    ]
    suffix = "" if several or not found else f" on {found[0].device}"
    title = f"{network}{suffix}: a decoding step, {context:,} tokens in each sequence's cache"
    sentences = [*_too_large(found), *notes, EVEN, ACCURACY]
    return Report("formats", [_row(case) for case in found], columns, title, notes=sentences)


def _too_large(cases: Sequence[Compared]) -> Iterator[str]:
    """Devices that cannot hold weights and cache, one line each."""
    by_device: dict[str, list[str]] = {}
    for case in cases:
        if not case.fits:
            by_device.setdefault(case.device, []).append(f"{case.scheme} at {case.batch:,}")
    for device, batches in by_device.items():
        yield f"weights and cache do not fit on {device}: {', '.join(batches)}"


def _row(case: Compared) -> Row:
    row = asdict(case)
    row["format"] = row.pop("scheme")
    for name, key in (
        ("time_us", "seconds"),
        ("low_us", "low_seconds"),
        ("high_us", "high_seconds"),
    ):
        row[name] = row.pop(key) * 1e6
    return {**row, "tokens_per_s": case.tokens_per_s}
