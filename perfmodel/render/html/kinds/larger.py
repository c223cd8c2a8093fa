"""Networks and tables larger than a device: offload, devices that hold them, embedding tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfmodel.render.html.columns import columns, telling
from perfmodel.render.html.kinds.registry import Document, first, kind, rows_of
from perfmodel.render.html.sections import Bar, Bars, Dots, Rows, Section
from perfmodel.units import seconds

Row = Mapping[str, Any]


@kind("policies", keys=("prefill_s", "decode_s", "decode_limiter"))
def policies(documents: Sequence[Document]) -> Iterator[Section]:
    """Time and memory of offload policies."""
    rows = rows_of(documents)
    names = [_policy(row) for row in rows]
    times = [
        Bar(name, {"prefill": row["prefill_s"], "decode": row["decode_s"]})
        for name, row in zip(names, rows, strict=True)
    ]
    sizes = [
        Bar(name, {place: row[f"{place}_bytes"] for place in ("device", "host", "disk")})
        for name, row in zip(names, rows, strict=True)
    ]
    best = max(rows, key=lambda row: row["tokens_per_s"])
    yield Section(
        "Offload policies",
        rows,
        columns(rows),
        [
            Bars("Time", "seconds", {"": times}, ranked=False),
            Bars("Memory by place", "binary", {"": sizes}),
            Rows("Policies"),
        ],
        [
            f"Offloaded, {_policy(best)}: {best['tokens_per_s']:,.3g} tokens/s, prefill "
            f"{seconds(best['prefill_s'])}, decode {seconds(best['decode_s'])}; decoding waits for "
            f"{best['decode_limiter']}."
        ],
    )


def _policy(row: Row) -> str:
    return (
        f"{row['blocks']} x {row['part']} sequences, weights {row['weights_device']:.0%} and cache "
        f"{row['cache_device']:.0%} on the device"
    )


def _dots(
    title: str, rows: Sequence[Row], x: Sequence[str], y: Sequence[str], text: str, **options: Any
) -> Section:
    """A section of dots over a size, and the table."""
    by = telling(rows, [key for key in ("batch", "context") if key != x[0]])
    dots = Dots(f"Over the {x[0].replace('_', ' ')}", x, y, x, by=by, joined=x, **options)
    return Section(title, rows, columns(rows), [dots, Rows()], [text])


@kind("recompute", keys=("split", "sent_us", "time_share"))
def recompute(documents: Sequence[Document]) -> Iterator[Section]:
    """Caches of which a part is recomputed."""
    rows = rows_of(documents)
    best = min(rows, key=lambda row: row["time_share"])
    text = (
        f"Computing {best['share']:.0%} of the cache anew takes {best['time_share']:.0%} of the "
        f"time of sending all of it (batch {best['batch']}, context {best['context']:,})."
    )
    yield _dots("Caches computed anew", rows, ["context", "batch"], ["time_us", "sent_us"], text)


@kind("streaming", keys=("link_us", "work_us", "hiding_batch"))
def streaming(documents: Sequence[Document]) -> Iterator[Section]:
    """Weights that are streamed to the device in every step."""
    rows = rows_of(documents)
    best = max(rows, key=lambda row: row["tokens_per_s"])
    text = (
        f"Streamed weights: {best['tokens_per_s']:,.3g} tokens/s at batch {best['batch']}, limited "
        f"by {best['limiter']}; the work hides the link from batch {best['hiding_batch']} on."
    )
    yield _dots("Streamed weights", rows, ["batch", "context"], ["tokens_per_s", "time_us"], text)


@kind("layers", keys=("on_device", "on_host", "time_us"))
def layers(documents: Sequence[Document]) -> Iterator[Section]:
    """Layers divided between device and host."""
    rows = rows_of(documents)
    best = max((row for row in rows if row["fits"]), key=lambda row: row["tokens_per_s"])
    text = (
        f"The most layers that pay on the device: {best['on_device']} of "
        f"{best['on_device'] + best['on_host']}, {best['tokens_per_s']:,.3g} tokens/s."
    )
    yield _dots(
        "Layers on the device", rows, ["on_device"], ["time_us", "tokens_per_s"], text,
        log="", fits="fits",
    )  # fmt: skip


@kind("machines", keys=("joules_per_token", "streamed_us", "hiding_batch"))
def machines(documents: Sequence[Document]) -> Iterator[Section]:
    """Devices that hold a network."""
    rows = rows_of(documents)
    bars = [
        Bar(f"{row['devices']} x {row['device']}", {"step": row["time_us"]}, row["low_us"],
            row["high_us"])
        for row in rows if row.get("time_us")
    ]  # fmt: skip
    yield Section(
        "Devices that hold the network",
        rows,
        columns(rows),
        [*([Bars("A decoding step", "time", {"": bars})] if bars else []), Rows()],
        [
            *first(
                (
                    f"{row['devices']:,} x {row['device']} hold it: "
                    f"{seconds(row['time_us'] / 1e6)} a token, "
                    f"{row['joules_per_token']:.3g} J a token, "
                    f"mostly {row['limiter']}."
                    for row in rows
                    if row.get("time_us")
                ),
                "devices",
            )
        ],
    )


@kind("placements", keys=("placement", "dense_us", "samples_per_s"))
def placements(documents: Sequence[Document]) -> Iterator[Section]:
    """Embedding tables by placement."""
    rows = rows_of(documents)
    several = len({row["batch"] for row in rows}) > 1
    bars = [
        Bar(
            f"{row['devices']} x {row['device']}, {row['placement']} tables"
            + (f", batch {row['batch']:,}" if several else ""),
            {"look-ups": row["time_us"], "dense": row["dense_us"] or 0.0},
            note="" if row["fits"] else "does not fit",
        )
        for row in rows
    ]
    best = max((row for row in rows if row["fits"]), key=lambda r: r["samples_per_s"], default=None)
    sentences = (
        []
        if best is None
        else [
            f"The most samples a second where the tables fit: {best['samples_per_s']:,.0f}, "
            f"{best['placement']} tables on {best['devices']} x {best['device']}, limited by "
            f"{best['limiter']}."
        ]
    )
    yield Section(
        "Embedding tables",
        rows,
        columns(rows),
        [Bars("A batch", "time", {"": bars}), Rows("Placements")],
        sentences,
    )
