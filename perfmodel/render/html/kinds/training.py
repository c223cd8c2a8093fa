"""Training steps: time by class, memory by kind against the device's, and plans by both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfmodel.networks.flops import USUAL
from perfmodel.render.dots import best_of
from perfmodel.render.html.columns import columns, telling
from perfmodel.render.html.kinds.registry import Document, assumptions, flat, kind
from perfmodel.render.html.sections import Bar, Bars, Dots, Rows, Section, table
from perfmodel.render.steps import longest
from perfmodel.units import binary, seconds

Row = Mapping[str, Any]

_DRAWN = 12  # number of plans with bars
_AXES = ("tensor", "pipeline", "chunks", "data", "context", "expert", "zero", "micro_batch")
_PLAN = (*_AXES, "recompute", "optimiser", "schedule", "stack", "dtype", "seq")
_FIRST = (
    *("network", "device", "devices", *_PLAN, "global_batch", "step_us", "low_us", "high_us"),
    *("tokens_per_s_per_device", "mfu", f"mfu_{USUAL}", "memory_bytes", "memory_total_bytes"),
    *("capacity_bytes", "fits", "lacking_bytes", "limiter", "forward_us", "backward_us"),
    *("bubble_us",),
)

_LEFT_OUT = r"^(by_class|known|memory_bytes_)|^(loss|ends|training|best)$"
_HEADERS = {"step_us": "time of a step", "memory_total_bytes": "memory of the fullest device"}


@kind("steps", keys=("step_us", "tokens_per_s_per_device", "bubble_us"))
def sections(documents: Sequence[Document]) -> Iterator[Section]:
    """Bars of the best plans, all plans by memory and time, their table, and impossible plans."""
    steps = [row for document in documents for row in document.rows]
    rows = [_row(step) for step in steps]
    names = _names(rows)
    rows = [{"plan": name, **row} for name, row in zip(names, rows, strict=True)]
    if all(row["memory_total_bytes"] for row in rows):
        for i in best_of(rows, "memory_total_bytes", "tokens_per_s_per_device", 1):
            rows[i]["best"] = rows[i]["plan"]
    order = sorted(
        range(len(steps)),
        key=lambda i: (rows[i]["fits"] is False, -rows[i]["tokens_per_s_per_device"]),
    )[:_DRAWN]
    note = f" (the best {_DRAWN} of {len(steps)} plans)" if len(steps) > _DRAWN else ""
    parts: list[Bars | Dots | Rows] = [
        *_times([(names[i], steps[i]) for i in order], note),
        *_memories([(names[i], steps[i]) for i in order], note),
    ]
    if len(rows) > 1:
        parts.append(_tradeoff(rows))
    yield Section(
        "Training steps",
        rows,
        columns(rows, _FIRST, headers=_HEADERS, left_out=_LEFT_OUT),
        [*parts, Rows("Plans")],
        [*_sentences(rows)],
        assumptions=assumptions(documents),
    )
    refused = [row for document in documents for row in document.head.get("refused", ())]
    if refused:
        yield table("Plans that cannot be laid out", refused)


def _row(step: Row) -> dict[str, Any]:
    """A plan as a flat row, with whether it fits, or the missing bytes."""
    row = {key.removeprefix("plan_"): value for key, value in flat(step).items()}
    size = row.get("memory_total_bytes", row.get("memory_bytes"))
    capacity = row.get("capacity_bytes")
    fits = row["fits"]
    if isinstance(fits, str):  # table for people: "yes", or the missing bytes
        row["fits"] = fits == "yes"
    if capacity and size and size > capacity:
        row["lacking_bytes"] = size - capacity
    return {**row, "memory_total_bytes": size}


def _names(rows: Sequence[Row]) -> list[str]:
    """Name of each plan: the settings that differ."""
    keys = ("network", "device", "devices", *_PLAN, "global_batch")
    varying = telling(rows, keys)
    names = [
        " ".join(
            str(row[key]) if key in ("network", "device") else f"{key.replace('_', '-')}={row[key]}"
            for key in varying
            if row.get(key) is not None
        )
        for row in rows
    ]
    return [name or str(row.get("network", "step")) for name, row in zip(names, rows, strict=True)]


def _times(steps: Sequence[tuple[str, Row]], note: str) -> Iterator[Bars]:
    bars = [
        Bar(
            name,
            step["by_class_us"],
            step["low_us"],
            step["high_us"],
            note=f"MFU {step['mfu'][USUAL]:.1%} by {USUAL}" if USUAL in step["mfu"] else "",
        )
        for name, step in steps
        if isinstance(step.get("by_class_us"), Mapping)
    ]
    if bars:
        yield Bars(f"Time of a step by class{note}", "time", {"": bars})


def _memories(steps: Sequence[tuple[str, Row]], note: str) -> Iterator[Bars]:
    bars = [
        Bar(name, step["memory_bytes"], limit=step.get("capacity_bytes"), note=_fit(step))
        for name, step in steps
        if isinstance(step.get("memory_bytes"), Mapping)
    ]
    if bars:
        yield Bars(f"Memory of the fullest device by kind{note}", "binary", {"": bars}, "capacity")


def _fit(step: Row) -> str:
    capacity = step.get("capacity_bytes")
    if capacity is None:
        return "capacity not in the spec"
    room = capacity - step["memory_total_bytes"]
    return f"fits, {binary(room)} free" if room >= 0 else f"does not fit by {binary(-room)}"


def _tradeoff(rows: Sequence[Row]) -> Dots:
    capacities = {row["capacity_bytes"] for row in rows if row.get("capacity_bytes")}
    options = ("recompute", "devices", *_AXES, "network", "device")
    varying = telling(rows, options)
    mfu = f"mfu_{USUAL}" if f"mfu_{USUAL}" in rows[0] else "mfu"
    return Dots(
        "Plans by memory and time",
        ["memory_total_bytes"],
        ["tokens_per_s_per_device", "step_us", mfu],
        ["plan"],
        log="",
        filters=varying,
        by=varying,
        ranges={"step_us": ("low_us", "high_us")},
        limits={"memory_total_bytes": [("capacity", value) for value in sorted(capacities)]},
        fits="fits",
        labelled="best",
        best={"tokens_per_s_per_device": 1, "step_us": -1, mfu: 1},
    )


def _sentences(rows: Sequence[Row]) -> Iterator[str]:
    fitting = [row for row in rows if row["fits"] is not False]
    if len(rows) > 1:
        yield f"{len(rows)} plans of training, of which {len(fitting)} fit."
        for what, key, sign in (
            ("The most tokens/s a device of those that fit", "tokens_per_s_per_device", -1),
            ("The least memory", "memory_total_bytes", 1),
        ):
            best = min(
                (row for row in (fitting or rows) if row.get(key)),
                key=lambda row: sign * row[key],
                default=None,
            )
            if best is not None:
                yield f"{what}: {best['plan']}. {_sentence(best)}"
        return
    for row in rows:
        yield _sentence(row)


def _sentence(row: Row) -> str:
    subject = (
        f"{row['network']} on {row['devices']:,} x {row['device']}: a step" if "network" in row
        else "A step"
    )  # fmt: skip
    suffix = f" by {USUAL}" if f"mfu_{USUAL}" in row else ""
    mfu = row[f"mfu_{USUAL}"] if suffix else row.get("mfu")
    limiter_us = row.get(f"by_class_us_{row['limiter']}")
    longest_part = (
        f"most of it is {row['limiter']}" if limiter_us is None
        else longest(row["limiter"], limiter_us / row["step_us"])
    )  # fmt: skip
    sentence = (
        f"{subject} takes {seconds(row['step_us'] / 1e6)} ({seconds(row['low_us'] / 1e6)} to "
        f"{seconds(row['high_us'] / 1e6)}), {row['tokens_per_s_per_device']:,.0f} tokens/s a "
        f"device, MFU {mfu:.1%}{suffix}; {longest_part}."
    )
    if row.get("bubble_us"):
        stages = f"{row['pipeline']} stages ({row.get('schedule', 'pipeline')})"
        sentence += f" {stages} wait for each other {row['bubble_us'] / row['step_us']:.0%} of it."
    size, capacity = row["memory_total_bytes"], row.get("capacity_bytes")
    if capacity:
        room = capacity - size
        fit = "It fits" if room >= 0 else f"It does not fit by {binary(-room)}"
        sentence += f" {fit}: {binary(size)} of {binary(capacity)}."
    return sentence


@kind("step lines", keys=("part", "what", "time_us", "share", "bytes"))
def lines(documents: Sequence[Document]) -> Iterator[Section]:
    """The CSV of `perfmodel train` for one step."""
    for document in documents:
        parts: dict[str, dict[str, float]] = {}
        for part, key, total in (("time", "time_us", "step"), ("memory", "bytes", "device")):
            rows = [row for row in document.rows if row["part"] == part]
            parts[part] = {row["what"]: row[key] for row in rows if row["what"] != total}
        yield Section(
            f"Training step ({document.source})",
            document.rows,
            columns(document.rows),
            [
                Bars("Time of a step by class", "time", {"": [Bar("step", parts["time"])]}),
                Bars(
                    "Memory of the fullest device by kind",
                    "binary",
                    {"": [Bar("device", parts["memory"])]},
                ),
                Rows("Lines"),
            ],
            [
                f"{document.source}: a step takes {seconds(sum(parts['time'].values()) / 1e6)} and "
                f"holds {binary(sum(parts['memory'].values()))}."
            ],
        )
