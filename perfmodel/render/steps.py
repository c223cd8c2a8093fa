"""Reports of training steps: one step with its classes and memory, or one line for each plan."""

from __future__ import annotations

from collections.abc import Sequence

from perfmodel.render.refused import Refused, lines
from perfmodel.render.refused import head as refused_head
from perfmodel.render.report import (
    Column,
    Report,
    Row,
    binary,
    integer,
    keyed,
    micros,
    percent,
    quantity,
    text,
)
from perfmodel.training.result import Step

_AXES = {
    "device": "device",
    "devices": "devices",
    "tensor": "tensor",
    "pipeline": "pipeline",
    "chunks": "chunks",
    "data": "data",
    "context": "context",
    "expert": "expert",
    "zero": "zero",
    "micro_batch": "micro-batch",
    "global_batch": "global-batch",
    "recompute": "recompute",
}
"""Axes of a grid of plans, with their names in a table."""
_ALWAYS = frozenset({"devices", "zero", "micro_batch", "global_batch", "recompute"})
"""Fields that a title always includes."""


def data(steps: Sequence[Step], refused: Refused) -> Report:
    """All data, one document for each plan; impossible plans with their reasons."""
    rows = [step.as_dict() for step in steps]
    return Report("steps", rows, [], head=refused_head(refused, "plan"), examples=rows)


def single(step: Step, convention: str) -> Report:
    """One step: a line for each class, then a line for each kind of memory."""
    times = dict(sorted(step.classes.items(), key=lambda item: -item[1]))
    memory = step.memory
    sizes = {**memory.lines, "device": memory.total_bytes}
    capacity = memory.capacity_bytes
    rows: list[Row] = [
        {"part": "time", "what": name, "time_us": seconds * 1e6, "share": seconds / step.seconds}
        for name, seconds in {**times, "step": step.seconds}.items()
    ]
    rows += [
        {
            "part": "memory",
            "what": name,
            "bytes": size,
            "share": size / capacity if capacity else None,
        }
        for name, size in sizes.items()
    ]
    columns = [
        text("of", "part"),
        text("", "what"),
        keyed("time", "time_us", micros),
        keyed("bytes", "bytes", binary),
        percent("share", "share"),
    ]
    return Report("step", rows, columns, title(step), notes=notes(step, convention), examples=rows)


def title(step: Step) -> str:
    """Network, device and plan on one line."""
    plan = step.plan
    axes = ("tensor", "pipeline", "chunks", "data", "context", "expert")
    layout = "".join(f"{name}={getattr(plan, name)} " for name in axes if getattr(plan, name) > 1)
    return (
        f"{step.network.name} on {plan.devices:,} x {step.device}: "
        f"{layout}seq={plan.seq} micro-batch={plan.micro_batch} "
        f"global-batch={plan.global_batch} recompute={plan.recompute} zero={plan.zero} "
        f"dtype={plan.dtype} stack={plan.stack}"
    )


def notes(step: Step, convention: str) -> list[str]:
    """Time with its range, rate, MFU, main limiter, and whether it fits."""
    ends = f"{micros(step.low_seconds * 1e6)} to {micros(step.high_seconds * 1e6)}"
    rate = step.tokens_per_second_per_device
    sentences = [
        f"a step takes {micros(step.seconds * 1e6)} ({ends}): {rate:,.0f} tokens/s a device",
        f"MFU {_mfu(step, convention)}, of {step.peak_flops / 1e12:,.0f} TFLOP/s dense "
        f"{step.plan.dtype}",
        longest(step.limiter, step.classes[step.limiter] / step.seconds),
        *_overlap(step),
        fit(step),
    ]
    return [*sentences, *(f"assumed: {line}" for line in step.assumptions)]


def longest(part: str, share: float) -> str:
    """The longest part with its share of a step; one longer than the step is hidden in part."""
    if share <= 1.0:
        return f"most of it is {part} ({share:.0%})"
    return (
        f"its longest part is {part}: {share:.0%} of the step, of which "
        f"{share - 1.0:.0%} or more is hidden beside other parts"
    )


def _overlap(step: Step) -> list[str]:
    """Why shares add up to more than the step, where they do."""
    parts = sum(step.classes.values()) / step.seconds
    if parts <= 1.005:
        return []
    return [f"overlapped: its parts run beside each other and add up to {parts:.0%} of the step"]


def _mfu(step: Step, convention: str) -> str:
    """The MFU by a convention; by the causal one, beside that which counts masked scores too."""
    share = f"{step.mfu(convention):.1%} by {convention}"
    if convention != "causal":
        return share
    return f"{share} ({step.mfu('megatron'):.1%} by megatron, which counts masked scores)"


def fit(step: Step) -> str:
    """Whether it fits into the fullest device's memory."""
    memory = step.memory
    if memory.capacity_bytes is None:
        return f"holds {binary(memory.total_bytes)}; the device's capacity is not in its spec"
    if memory.fits:
        return f"fits: {binary(memory.total_bytes)} of {binary(memory.capacity_bytes)}"
    return f"does not fit by {binary(memory.lacking_bytes)}"


def several(steps: Sequence[Step], refused: Refused, convention: str) -> Report:
    """One line for each plan in order; varying fields in columns, common ones in the title.

    Impossible plans are listed below, with numbers that would work.
    """
    rows = [_row(step, convention) for step in steps]
    varying = [name for name in _AXES if len({row[name] for row in rows}) > 1]
    columns = [
        *(_axis(name) for name in varying),
        keyed("step", "step_us", micros),
        keyed("tokens/s a device", "tokens_per_s_per_device", quantity("")),
        percent(f"MFU ({convention})", "mfu", rank=1),
        keyed("memory", "memory_bytes", binary),
        text("fits", "fits"),
        text("limiter", "limiter", rank=3),
    ]
    plan = steps[0].plan
    common = {
        header: getattr(plan, name)
        for name, header in _AXES.items()
        if name not in (*varying, "device") and (name in _ALWAYS or getattr(plan, name) != 1)
    } | {"seq": plan.seq, "dtype": plan.dtype, "stack": plan.stack}
    suffix = "" if "device" in varying else f" on {steps[0].device}"
    fields = " ".join(f"{key}={value}" for key, value in common.items())
    title = f"{steps[0].network.name}{suffix}: {fields}"
    return Report("steps", rows, columns, title, notes=lines(refused), examples=rows)


def _axis(name: str) -> Column:
    """A column for a field that distinguishes plans; some follow from the others."""
    rank = 2 if name in ("data", "global_batch") else 0
    return (text if name in ("device", "recompute") else integer)(_AXES[name], name, rank=rank)


def _row(step: Step, convention: str) -> Row:
    plan = step.plan
    return {
        "device": step.device,
        **{name: getattr(plan, name) for name in _AXES if name != "device"},
        "step_us": step.seconds * 1e6,
        "low_us": step.low_seconds * 1e6,
        "high_us": step.high_seconds * 1e6,
        "tokens_per_s_per_device": step.tokens_per_second_per_device,
        "mfu": step.mfu(convention),
        "memory_bytes": step.memory.total_bytes,
        "fits": "yes" if step.memory.fits else f"not by {binary(step.memory.lacking_bytes)}",
        "limiter": step.limiter,
    }
