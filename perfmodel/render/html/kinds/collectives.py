"""Collectives by size, and the ridges of links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from perfmodel.render.html.columns import columns, telling
from perfmodel.render.html.kinds.registry import Document, assumptions, first, kind, rows_of
from perfmodel.render.html.sections import Dots, Rows, Section
from perfmodel.units import binary, seconds, si

_HEADERS = {"problem_bytes": "size", "problem_ranks": "ranks", "problem_dtype": "type"}
_SERIES = ("system", "library", "collective", "problem_ranks", "problem_dtype")


@kind("collectives", keys=("collective", "bus_gb_per_s", "protocol", "time_us", "device"))
def sections(documents: Sequence[Document]) -> Iterator[Section]:
    """Times and bandwidths over size, and the table."""
    rows = rows_of(documents)
    for row in rows:
        row["series"] = (
            f"{row['collective']} of {row['library']} on {row['problem_ranks']} x {row['device']} "
            f"({row['system']})"
        )
    filters = telling(rows, (*_SERIES, "algorithm", "protocol", "limiter"))
    yield Section(
        "Collectives",
        rows,
        columns(rows, (*_SERIES, "problem_bytes"), "^known", _HEADERS),
        [
            Dots(
                "Time and bandwidth over the size",
                ["problem_bytes", "problem_ranks"],
                ["bus_gb_per_s", "time_us"],
                ["series", "problem_bytes"],
                filters=filters,
                by=["series", *filters],
                ranges={"time_us": ("low_us", "high_us")},
                joined=["series", "problem_bytes"],
            ),
            Rows("Collectives"),
        ],
        [*first(_sentences(rows), "series")],
        assumptions=assumptions(documents),
    )


def _sentences(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    for series in list(dict.fromkeys(row["series"] for row in rows)):
        group = [row for row in rows if row["series"] == series]
        first = min(group, key=lambda row: row["problem_bytes"])
        best = max(group, key=lambda row: row["bus_gb_per_s"])
        yield (
            f"{series}: {seconds(first['time_us'] / 1e6)} for {binary(first['problem_bytes'])}, at "
            f"most {si(best['bus_gb_per_s'] * 1e9, 'B/s')} of bus bandwidth "
            f"({binary(best['problem_bytes'])})."
        )


@kind("ridges", keys=("ridge_flop_per_byte", "parallelism", "threshold"))
def ridges(documents: Sequence[Document]) -> Iterator[Section]:
    """The threshold above which arithmetic hides each parallelism's communication."""
    rows = rows_of(documents)
    yield Section(
        "Links as roofs",
        rows,
        columns(rows),
        [Rows()],
        [
            *first(
                (
                    f"{row['system']}, {row['parallelism']} parallelism over {row['link']}: "
                    f"covered with {row['bound']} {row['threshold']:,.0f} {row['quantity']}."
                    for row in rows
                ),
                "links",
            )
        ],
    )
