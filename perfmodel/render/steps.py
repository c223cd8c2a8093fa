"""Training steps as reports: one with its classes and its memory, or a line a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perfmodel.render.report import (
    Column,
    Report,
    Row,
    binary,
    integer,
    micros,
    percent,
    quantity,
    text,
)
from perfmodel.training.plan import Plan
from perfmodel.training.result import Step


def data(found: Sequence[Step], refused: Sequence[tuple[str, str]]) -> Report:
    """Everything, a document a plan; plans that cannot be laid out with their reasons."""
    rows = [one.as_dict() for one in found]
    head = {"refused": [{"plan": plan, "reason": why} for plan, why in refused]}
    return Report("steps", rows, [], head=head, examples=rows)


def single(step: Step, convention: str) -> Report:
    """One step: a line a class, then a line a kind of memory."""
    rows: list[dict[str, Any]] = [
        {"part": "time", "what": name, "time_us": seconds * 1e6, "share": seconds / step.seconds}
        for name, seconds in sorted(step.classes.items(), key=lambda item: -item[1])
    ]
    rows.append({"part": "time", "what": "step", "time_us": step.seconds * 1e6, "share": 1.0})
    capacity = step.memory.capacity_bytes
    rows += [
        {
            "part": "memory",
            "what": name,
            "bytes": held,
            "share": held / capacity if capacity else None,
        }
        for name, held in step.memory.lines.items()
    ]
    total = step.memory.total_bytes
    share = total / capacity if capacity else None
    rows.append({"part": "memory", "what": "device", "bytes": total, "share": share})
    columns = [
        text("of", "part"),
        text("", "what"),
        Column("time", lambda row: row.get("time_us"), micros),
        Column("bytes", lambda row: row.get("bytes"), binary),
        percent("share", "share"),
    ]
    return Report("step", rows, columns, title(step), notes=notes(step, convention), examples=rows)


def title(step: Step) -> str:
    """Network, device and plan on one line."""
    where = f"{step.network.name} on {step.plan.devices:,} x {step.device}"
    return f"{where}: {_in_words(_said(step.plan))}"


def _said(plan: Plan) -> dict[str, int | str]:
    """What lays a plan out, by the names of titles and columns."""
    return {
        "tensor": plan.tensor,
        "pipeline": plan.pipeline,
        "chunks": plan.chunks,
        "data": plan.data,
        "context": plan.context,
        "expert": plan.expert,
        "seq": plan.seq,
        "micro-batch": plan.micro_batch,
        "global-batch": plan.global_batch,
        "recompute": plan.recompute,
        "zero": plan.zero,
        "dtype": plan.dtype,
        "stack": plan.stack,
    }


_SPLITS = ("tensor", "pipeline", "chunks", "data", "context", "expert")
"""Numbers of devices or pieces, of which 1 is nothing to say."""


def _in_words(said: Mapping[str, int | str]) -> str:
    shown = (f"{name}={value}" for name, value in said.items() if name not in _SPLITS or value != 1)
    return " ".join(shown)


def notes(step: Step, convention: str) -> list[str]:
    """Time with its range, rate, MFU, what limits it, and whether it fits."""
    ends = f"{micros(step.low_seconds * 1e6)} to {micros(step.high_seconds * 1e6)}"
    each = step.tokens_per_second_per_device
    found = [
        f"a step takes {micros(step.seconds * 1e6)} ({ends}): {each:,.0f} tokens/s a device",
        f"MFU {step.mfu(convention):.1%} by {convention}, of {step.peak_flops / 1e12:,.0f} TFLOP/s "
        f"dense {step.plan.dtype}",
        f"most of it is {step.limiter} ({step.classes[step.limiter] / step.seconds:.0%})",
        fit(step),
    ]
    return [*found, *(f"assumed: {line}" for line in step.assumptions)]


def fit(step: Step) -> str:
    """Whether the fullest device holds it."""
    held = step.memory
    if held.capacity_bytes is None:
        return f"holds {binary(held.total_bytes)}; the device's capacity is not in its spec"
    if held.fits:
        return f"fits: {binary(held.total_bytes)} of {binary(held.capacity_bytes)}"
    return f"does not fit by {binary(held.lacking_bytes)}"


def several(
    found: Sequence[Step], refused: Sequence[tuple[str, str]], convention: str, shown: int
) -> Report:
    """A line a plan, as given; plans that cannot be laid out below, with what would work.

    What all plans share stands in the title, what sets them apart in columns.
    """
    said = [_said(step.plan) for step in found]
    apart = [name for name in (said[0] if said else ()) if len({one[name] for one in said}) > 1]
    rows = [_row(step, convention) for step in found]
    columns = [
        integer("devices", "devices"),
        *(_axis(name) for name in apart),
        Column("step", lambda row: row["step_us"], micros),
        Column("tokens/s a device", lambda row: row["tokens_per_s_per_device"], quantity("")),
        percent("MFU", "mfu", rank=1),
        Column("memory", lambda row: row["memory_bytes"], binary),
        text("fits", "fits"),
        text("limiter", "limiter", rank=3),
    ]
    why = [f"left out: {plan}: {reason}" for plan, reason in refused[:shown]]
    if len(refused) > shown:
        why.append(f"left out: {len(refused) - shown} more plans (--format json lists all)")
    title = "no plan can be laid out"
    if found:
        alike = {name: value for name, value in said[0].items() if name not in apart}
        title = f"{found[0].network.name} on {found[0].device}: {_in_words(alike)}"
    return Report("steps", rows, columns, title, notes=why, examples=rows)


def _axis(name: str) -> Column:
    """A column of what sets plans apart; the copies (`data`) follow from the other splits."""
    key, rank = name.replace("-", "_"), 2 if name == "data" else 0
    return Column(name, lambda row: row[key], number=name not in _WORDS, rank=rank)


_WORDS = ("recompute", "dtype", "stack")


def _row(step: Step, convention: str) -> Row:
    plan = step.plan
    return {
        "devices": plan.devices,
        **{name.replace("-", "_"): value for name, value in _said(plan).items()},
        "step_us": step.seconds * 1e6,
        "low_us": step.low_seconds * 1e6,
        "high_us": step.high_seconds * 1e6,
        "tokens_per_s_per_device": step.tokens_per_second_per_device,
        "mfu": step.mfu(convention),
        "memory_bytes": step.memory.total_bytes,
        "fits": "yes" if step.memory.fits else f"not by {binary(step.memory.lacking_bytes)}",
        "limiter": step.limiter,
    }
