"""Tables of weight formats: compared on devices, and listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from perfmodel.columns import Row
from perfmodel.compression import naming, quantised
from perfmodel.compression.quantised import Format
from perfmodel.compression.scheme import Scheme
from perfmodel.render.report import Column, Report, on_device, text
from perfmodel.render.trees import own

EVEN = (
    "bytes: of 16-bit layers over these; even at: tokens of a step at which multiplying takes as "
    "long as reading the weights"
)
ACCURACY = "what a format does to the network's answers is not predicted here: measure it"
_WIDTH = 4096


def _of_format(member: str, otherwise: Any) -> Callable[[Scheme], Any]:
    """A member of a scheme's format; schemes that are no format of the table have another value."""
    return lambda scheme: getattr(scheme, member) if isinstance(scheme, Format) else otherwise


def _multiplied(scheme: Scheme) -> str:
    """The type of its products."""
    return str(_of_format("multiplies", "fp16")(scheme)) or "widened"


_LISTED = (
    text("format", "format", of="name"),
    Column("bits", "bits", "{:.3f}", of=lambda scheme: scheme.mean_bits(_WIDTH, _WIDTH)),
    text("multiplied", "multiplies", of=_multiplied),
    text("what it is", "about", wrap=62),
    Column(key="aliases", of=_of_format("aliases", [])),
    Column(key="source", of=_of_format("source", "")),
)

_COMPARED = (
    *own("device"),
    text("format", "format"),
    Column("bits", "bits", "{:.3f}"),
    Column("weights", "weight_bytes"),
    Column("batch", "batch"),
    *own("time_us", "low_us"),
    Column("gain", "gain", "{:.2f}x"),
    Column("bytes", "byte_gain", "{:.2f}x"),
    Column("even at", "balanced_tokens", "{:.0f}"),
    *own("limiter"),
)


def report(cases: Sequence[Row], network: str, context: int, notes: Iterable[str] = ()) -> Report:
    """One line for each device, format and batch."""
    suffix = on_device(case["device"] for case in cases)
    title = f"{network}{suffix}: a decoding step, {context:,} tokens in each sequence's cache"
    sentences = [*_too_large(cases), *notes, EVEN, ACCURACY]
    return Report("formats", cases, _COMPARED, title, notes=sentences, examples=cases)


def _too_large(cases: Sequence[Row]) -> Iterator[str]:
    """Devices that cannot hold weights and cache, one line each."""
    by_device: dict[str, list[str]] = {}
    for case in cases:
        if not case["fits"]:
            batches = by_device.setdefault(case["device"], [])
            batches.append(f"{case['format']} at {case['batch']:,}")
    for device, batches in by_device.items():
        yield f"weights and cache do not fit on {device}: {', '.join(batches)}"


def listing() -> Report:
    """Every format of the table, and an example of each other scheme."""
    schemes = map(naming.scheme, (*quantised.names(), *naming.KINDS))
    return Report.of("formats", schemes, _LISTED, notes=["bits of a 4096 x 4096 matrix"])
