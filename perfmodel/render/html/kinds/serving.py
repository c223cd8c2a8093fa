"""Served networks: latency, throughput against interactivity, memory capacity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfmodel.render.html.columns import columns, telling
from perfmodel.render.html.kinds.registry import (
    TOLD,
    Document,
    assumptions,
    first,
    flat,
    kind,
    rows_of,
)
from perfmodel.render.html.sections import Bar, Bars, Dots, Rows, Section
from perfmodel.units import binary

Row = Mapping[str, Any]

_DRAWN = 16  # number of loads with bars
_SYSTEM = ("network", "device", "engine", "weights", "cache", "devices")
_AXES = ("tensor", "pipeline", "expert", "data", "load", "isl", "osl")
_FIRST = (
    *("network", "device", "engine", "load", "size", "resident"),
    *("ttft_ms", "low_ttft_ms", "high_ttft_ms", "tpot_ms", "low_tpot_ms", "high_tpot_ms"),
    *("output_tokens_per_s", "output_tokens_per_s_per_device", "tokens_per_s_per_user"),
    *("requests_per_s", "e2e_ms", "limiter"),
)
_RANGED = ("ttft_ms", "tpot_ms", "output_tokens_per_s")
_SIZES = {"static batch": "batch", "concurrency": "clients", "rate": "requests a second"}


@kind("loads", keys=("ttft_ms", "tpot_ms", "output_tokens_per_s_per_device"))
def sections(documents: Sequence[Document]) -> Iterator[Section]:
    """Throughput against interactivity, times over the load, time of a token by class, and the
    table."""
    rows = [_row(row) for document in documents for row in document.rows]
    for row, name in zip(rows, _names(rows), strict=True):
        row["system"] = name
    sizes = [name for load, name in _SIZES.items() if any(row["load"] == load for row in rows)]
    yield Section(
        "Served networks",
        rows,
        columns(rows, _FIRST, r"^terms_us|^known", {"size": " or ".join(sizes)}),
        [*_dots(rows, ", ".join(sizes)), *_classes(rows), Rows("Loads")],
        [*_sentences(rows)],
        assumptions=assumptions(documents),
    )
    if _varies(rows, "system") and _varies(rows, "size"):
        plans = [*_plans(rows)]
        yield Section("Plans, best first", plans, columns(plans, _FIRST))


def _plans(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """A row for each system: its plan, its fastest token, and its load of most tokens/s of a
    device."""
    systems: dict[str, list[Row]] = {}
    for row in rows:
        systems.setdefault(row["system"], []).append(row)
    rate = "output_tokens_per_s_per_device"
    best_of = {name: max(group, key=lambda row: row[rate]) for name, group in systems.items()}
    for name in sorted(systems, key=lambda name: -best_of[name][rate]):
        best = best_of[name]
        yield {
            **{key: best.get(key) for key in (*_SYSTEM, *_AXES[:4])},
            "fastest_tpot_ms": min(row["tpot_ms"] for row in systems[name]),
            **{key: best.get(key) for key in ("load", "size", "ttft_ms", "tpot_ms", rate)},
        }


def _dots(rows: Sequence[Row], sizes: str) -> Iterator[Dots]:
    filters = telling(rows, ("system", *_SYSTEM, *_AXES))
    ranges = {key: (f"low_{key}", f"high_{key}") for key in _RANGED}
    yield Dots(
        "Throughput against interactivity",
        ["tokens_per_s_per_user"],
        ["output_tokens_per_s_per_device", "output_tokens_per_s"],
        ["system", "size"],
        log="y",
        filters=filters,
        by=filters,
        ranges=ranges,
        joined=["system"],
        labelled="size" if _varies(rows, "size") else "",
    )
    if _varies(rows, "size"):
        yield Dots(
            f"Over the load: {sizes}",
            ["size", "resident"],
            ["tpot_ms", "ttft_ms", "output_tokens_per_s", "e2e_ms"],
            ["system", "size"],
            filters=filters,
            by=filters,
            ranges=ranges,
            joined=["system"],
        )


def _varies(rows: Sequence[Row], key: str) -> bool:
    return len({row.get(key) for row in rows}) > 1


def _row(row: Row) -> dict[str, Any]:
    """A load as a flat row, with the rate that one user sees."""
    return {**flat(row), "tokens_per_s_per_user": 1e3 / row["tpot_ms"] if row["tpot_ms"] else None}


def _names(rows: Sequence[Row]) -> list[str]:
    """Name of each system: network, device, engine, and the settings that differ."""
    keys = ("weights", "cache", *_AXES[:4], "isl", "osl")
    varying = [key for key in keys if _varies(rows, key)]
    return [
        ", ".join(
            [
                f"{row['network']} on {row['devices']} x {row['device']}",
                str(row["engine"]),
                *(f"{key} {row[key]}" for key in varying),
            ]
        )
        for row in rows
    ]


def _size(row: Row) -> str:
    """A load in words."""
    if row["load"] == "full" or row.get("size") is None:
        return f"{row['resident']:,.0f} at a time"
    return f"{_SIZES.get(str(row['load']), 'load')} {row['size']:g}"


def _classes(rows: Sequence[Row]) -> Iterator[Bars]:
    """The time between tokens by class, for loads that were predicted with their terms."""
    bars = []
    several = _varies(rows, "system")
    for row in rows[:_DRAWN]:
        lengths = {
            key.removeprefix("token_").removesuffix("_ms"): value
            for key, value in row.items()
            if key.startswith("token_") and key.endswith("_ms") and value
        }
        label = f"{row['system']}, {_size(row)}" if several else _size(row)
        if lengths:
            bars.append(Bar(label, lengths, row["low_tpot_ms"], row["high_tpot_ms"]))
    if bars:
        suffix = f" (the first {_DRAWN} of {len(rows)} loads)" if len(rows) > _DRAWN else ""
        yield Bars(f"Time between tokens by class{suffix}", "ms", {"": bars})


def _sentences(rows: Sequence[Row]) -> Iterator[str]:
    systems = list(dict.fromkeys(row["system"] for row in rows))
    best_of = {
        name: max(
            row["output_tokens_per_s_per_device"] or 0.0 for row in rows if row["system"] == name
        )
        for name in systems
    }
    leaders = sorted(systems, key=lambda name: -best_of[name])[:TOLD]
    for system in leaders:
        group = [row for row in rows if row["system"] == system]
        first = min(group, key=lambda row: row["tpot_ms"])
        best = max(group, key=lambda row: row["output_tokens_per_s"])
        yield f"{system}: {_times(first)}."
        if best is not first:
            yield f"{system}: most tokens at {_times(best)}."
    if len(systems) > len(leaders):
        yield (
            f"And {len(systems) - len(leaders)} more systems, with fewer tokens/s of a device: "
            f"{'; '.join(name for name in systems if name not in leaders)}."
        )
    limits = Counter(row["limiter"] for row in rows)
    text = ", ".join(
        f"{name} in {count} {'load' if count == 1 else 'loads'}"
        for name, count in limits.most_common()
    )
    yield f"What takes longest between tokens: {text}."


def _times(row: Row) -> str:
    ttft, tpot = (
        f"{name} {_short(row[key])} ms "
        f"({_short(row[f'low_{key}'])} to {_short(row[f'high_{key}'])})"
        for name, key in (("TTFT", "ttft_ms"), ("TPOT", "tpot_ms"))
    )
    return f"{_size(row)}: {ttft}, {tpot}, {row['output_tokens_per_s']:,.0f} tokens/s"


def _short(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"


_KINDS = ("weights", "context", "exchange_buffers", "graphs", "activations", "cache_room")


@kind("fits", keys=("bytes_per_token", "cache_room_bytes", "total_bytes"))
def fits(documents: Sequence[Document]) -> Iterator[Section]:
    """Capacity: memory by kind, and the table."""
    rows = rows_of(documents)
    bars, lines = [], []
    for row in rows:
        answer = (
            f"{row['sequences']:,} sequences of {row['tokens']:,} tokens" if "sequences" in row
            else f"a batch of {row['batch']:,} with {row['context']:,} tokens each"
        )  # fmt: skip
        label = f"{row['network']} on {row['device']} by {row['engine']}"
        lengths = {name.replace("_", " "): row.get(f"{name}_bytes", 0.0) for name in _KINDS}
        bars.append(Bar(label, lengths, limit=row["total_bytes"], note=answer))
        lines.append(f"{label}: room for {answer}; a token takes {binary(row['bytes_per_token'])}.")
    sets = list({(bar.label, *bar.lengths.items()): bar for bar in bars}.values())
    memories = (
        sets if len(sets) == len(bars) else [Bar(b.label, b.lengths, limit=b.limit) for b in sets]
    )
    yield Section(
        "What fits",
        rows,
        columns(rows),
        [
            Bars(
                "Memory by what holds it"
                + (f" (the first {_DRAWN} of {len(memories)})" if len(memories) > _DRAWN else ""),
                "binary",
                {"": memories[:_DRAWN]},
                "capacity",
            ),
            Rows(),
        ],
        [*first(lines, "answers")],
    )
