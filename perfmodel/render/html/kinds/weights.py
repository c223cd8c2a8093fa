"""Weight formats compared, and the list of formats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfmodel.render.html.columns import columns, telling
from perfmodel.render.html.kinds.registry import Document, first, kind, rows_of
from perfmodel.render.html.sections import Dots, Rows, Section, table
from perfmodel.units import seconds, si


@kind("formats", keys=("format", "bits"))
def sections(documents: Sequence[Document]) -> Iterator[Section]:
    """Rates by size and batch, and the table."""
    flat_rows = rows_of(documents)
    rows = [row for row in flat_rows if row.get("time_us") is not None]
    if len(rows) < len(flat_rows):  # the list of formats: `perfmodel compress` without a network
        yield table("Weight formats", [row for row in flat_rows if row.get("time_us") is None])
    if not rows:
        return
    filters = telling(rows, ("format", "device", "batch"))
    yield Section(
        "Networks in weight formats",
        rows,
        columns(rows, ("device", "format", "bits", "batch", "time_us", "low_us", "high_us")),
        [
            Dots(
                "A decoding step by format",
                ["weight_bytes", "batch", "bits"],
                ["tokens_per_s", "time_us", "gain"],
                ["format", "device", "batch"],
                log="y",
                filters=filters,
                by=filters,
                ranges={"time_us": ("low_us", "high_us")},
                fits="fits",
            ),
            Rows("Formats"),
        ],
        [*first(_sentences(rows), "devices and batches")],
    )


def _sentences(rows: Sequence[dict[str, object]]) -> Iterator[str]:
    groups: dict[tuple[object, object], list[dict[str, object]]] = {}
    for row in rows:
        groups.setdefault((row["device"], row["batch"]), []).append(row)
    for (device, batch), group in groups.items():
        best = min(group, key=lambda row: float(str(row["time_us"])))
        yield (
            f"{device}, batch {batch}: the fastest of {len(group)} formats is {best['format']}, "
            f"{seconds(float(str(best['time_us'])) / 1e6)} a step with "
            f"{si(float(str(best['weight_bytes'])), 'B')} of weights."
        )
