"""Plans by memory and speed: the trade-off of recomputation, shards and micro-batches."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from perfmodel.errors import ProblemError
from perfmodel.render.chart import Chart
from perfmodel.render.dots import Dots, best_of, dots_chart
from perfmodel.render.page import Page
from perfmodel.training.result import Step

_AXES = {
    "tensor": "tp", "pipeline": "pp", "chunks": "chunks", "data": "dp", "context": "cp",
    "expert": "ep", "zero": "zero", "micro_batch": "micro-batch",
}  # fmt: skip


def tradeoff_chart(found: Sequence[Step], page: Page | None = None) -> Chart:
    """A point for each plan: memory of its fullest device against tokens/s a device.

    Colours and shapes show recomputation and the kind and number of devices. The line joins plans
    that no other plan dominates, and these are named by what sets them apart. Raises `ProblemError`
    without a plan.
    """
    if not found:
        raise ProblemError("no plan can be laid out, so there is nothing to draw")
    devices = list(dict.fromkeys(step.device for step in found))
    several = len({(step.device, step.plan.devices) for step in found}) > 1
    varying = [name for name in _AXES if len({getattr(step.plan, name) for step in found}) > 1]
    rows = [
        {
            "plans": f"recompute {step.plan.recompute}"
            + (f", {step.plan.devices:,} x {step.device}" if several else ""),
            "recompute": step.plan.recompute,
            "device": step.device,
            "devices": step.plan.devices,
            **{name: getattr(step.plan, name) for name in varying},
            "memory_bytes": step.memory.total_bytes,
            "tokens_per_s_per_device": step.tokens_per_second_per_device,
            "fits": step.memory.fits,
        }
        for step in sorted(found, key=lambda step: devices.index(step.device))
    ]
    best = list(best_of(rows, "memory_bytes", "tokens_per_s_per_device", operator.gt))
    for i in best:
        words = " ".join(f"{_AXES[name]} {rows[i][name]}" for name in varying)
        rows[i]["label"] = words or str(rows[i]["plans"])
    capacities = {step.memory.capacity_bytes or 0.0 for step in found} - {0.0}
    dots = Dots(
        f"{found[0].network.name} on {', '.join(devices)}: memory and speed of plans",
        ["memory_bytes"],
        ["tokens_per_s_per_device"],
        log="",
        by=["plans"],
        limits={"memory_bytes": [("capacity", value) for value in sorted(capacities)]},
        fits="fits",
        labelled="label",
        headers={"memory_bytes": "memory of the fullest device",
                 "tokens_per_s_per_device": "tokens/s a device"},
    )  # fmt: skip
    sentence = f"{len(found)} plans; those that do not fit are pale."
    return dots_chart(rows, dots, sentence=sentence, front=best, page=page)
