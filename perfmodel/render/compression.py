"""Tables of weight formats: compared on devices, and listed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from perfmodel.compression import naming, quantised
from perfmodel.compression.comparing import Compared
from perfmodel.render.report import (
    Report,
    Row,
    in_micros,
    integer,
    keyed,
    micros,
    quantity,
    ranged,
    several,
    text,
    times,
)

EVEN = (
    "bytes: of 16-bit layers over these; even at: tokens of a step at which multiplying takes as "
    "long as reading the weights"
)
ACCURACY = "what a format does to the network's answers is not predicted here: measure it"
_BITS = keyed("bits", "bits", lambda value: f"{value:.3f}")


def report(
    cases: Sequence[Compared], network: str, context: int, notes: Iterable[str] = ()
) -> Report:
    """One line for each device, format and batch."""
    rows = [_row(case) for case in cases]
    device = several("device", rows)
    columns = [
        *device,
        text("format", "format"),
        _BITS,
        keyed("weights", "weight_bytes", quantity("B")),
        integer("batch", "batch"),
        keyed("step", "time_us", micros),
        ranged("range"),
        keyed("gain", "gain", times),
        keyed("bytes", "byte_gain", times),
        keyed("even at", "balanced_tokens", lambda value: f"{value:.0f}"),
        text("limiter", "limiter"),
    ]
    suffix = "" if device or not rows else f" on {cases[0].device}"
    title = f"{network}{suffix}: a decoding step, {context:,} tokens in each sequence's cache"
    sentences = [*_too_large(cases), *notes, EVEN, ACCURACY]
    return Report("formats", rows, columns, title, notes=sentences)


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
    ends = in_micros(*(row.pop(name) for name in ("seconds", "low_seconds", "high_seconds")))
    return {**row, **ends, "tokens_per_s": case.tokens_per_s}


def listing() -> Report:
    """Every format of the table, and an example of each other scheme."""
    rows = [
        {
            "format": form.name,
            "bits": form.bits_at(4096),
            "multiplies": form.multiplies or "widened",
            "about": form.about,
            "aliases": list(form.aliases),
            "source": form.source,
        }
        for form in map(quantised.load, quantised.names())
    ] + [
        {
            "format": form.name,
            "bits": form.bits(4096, 4096),
            "multiplies": "fp16",
            "about": form.about,
            "aliases": [],
            "source": "",
        }
        for form in map(naming.scheme, naming.KINDS)
    ]
    columns = (
        text("format", "format"),
        _BITS,
        text("multiplied", "multiplies"),
        text("what it is", "about", wrap=62),
    )
    return Report("formats", rows, columns, notes=["bits of a 4096 x 4096 matrix"])
