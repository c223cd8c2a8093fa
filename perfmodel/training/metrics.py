"""The metrics of a training-run table, computed from a predicted step in the metric's unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.training.result import Step
from perfmodel.training.runnetwork import Row
from perfmodel.training.stepmemory import RANGE, allocated_bytes

# How tables name a way of counting operations, and the convention that they mean.
_CONVENTIONS = {
    "narayanan": "narayanan",
    "korthikanti": "megatron",
    "causal attention halved": "causal",
    "palm": "palm",
    "no causal": "megatron",
    "not halved": "palm-all",
    "as printed": "causal",  # Llama 3 (2407.21783): 43 % at 8 k and 38 % at 131 k agree only so
}


def convention_of(row: Row) -> str:
    """The convention by which a row counts operations. Raises `ProblemError` where its cell is
    empty."""
    text = str(row.get("convention") or "").lower()
    for words, name in _CONVENTIONS.items():
        if words in text:
            return name
    if "page counts" in text:  # Megatron-LM halves causal attention since 2025
        return "causal" if "bridge" in str(row.get("software")).lower() else "megatron"
    raise ProblemError("the convention of FLOPs is empty; fill the column, or give times")


def _device_hours(step: Step, row: Row, seconds: float) -> float:
    tokens = row.get("tokens_total")
    if not tokens or tokens != tokens:
        raise ProblemError("device_hours needs tokens_total; fill the column")
    return float(tokens) / step.plan.tokens * seconds * step.plan.devices / 3600.0


def _fill(step: Step, row: Row) -> float:
    """Share of a row that one sequence fills, where sequences are packed: the row's cell, or what
    the stack packs in pretraining."""
    cell = row.get("fill")
    if cell and cell == cell:
        return float(cell)
    packs = step.network.head == "pretraining" and step.plan.training
    return step.plan.setting.stack.packed_fill.get(step.plan.seq, 1.0) if packs else 1.0


_Read = Callable[[Step, Row, float], float]

_METRICS: Mapping[str, _Read] = {
    "step_ms": lambda _step, _row, seconds: seconds * 1e3,
    "iteration_ms": lambda _step, _row, seconds: seconds * 1e3,
    "forward_ms": lambda step, _row, seconds: step.forward_seconds * seconds / step.seconds * 1e3,
    "backward_ms": lambda step, _row, seconds: step.backward_seconds * seconds / step.seconds * 1e3,
    "tokens_per_s_per_device": lambda step, _row, seconds: (
        step.plan.tokens / seconds / step.plan.devices
    ),
    "sequences_per_s": lambda step, row, seconds: (
        step.plan.global_batch / _fill(step, row) / seconds
    ),
    "tflops_per_device": lambda step, row, seconds: (
        step.flops_per_second_per_device(convention_of(row)) * step.seconds / seconds / 1e12
    ),
    "mfu_percent": lambda step, row, seconds: (
        step.mfu(convention_of(row)) * step.seconds / seconds * 100.0
    ),
    "device_hours": _device_hours,
}

METRICS = (*_METRICS, "peak_gib")
"""Every metric."""


def value(step: Step, row: Row) -> tuple[float, float, float]:
    """A row's metric of a step, with its range. Raises `UnknownName` for another metric."""
    name = str(row["metric"])
    if name == "peak_gib":
        gib = allocated_bytes(step.memory) / 2**30
        low, high = RANGE
        return gib, gib * low, gib * high
    if name not in _METRICS:
        raise UnknownName("metric", name, METRICS)
    ends = (step.seconds, step.low_seconds, step.high_seconds)
    middle, low, high = (_METRICS[name](step, row, seconds) for seconds in ends)
    return middle, min(low, high), max(low, high)
