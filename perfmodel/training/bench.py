"""Speed of predictions of networks and training steps: rows of the benchmark table."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from perfmodel.hardware import load
from perfmodel.networks import library
from perfmodel.networks.networktime import predict_network
from perfmodel.networks.setting import Setting
from perfmodel.training.plan import Plan
from perfmodel.training.step import predict_step

Row = dict[str, Any]
NETWORK = "gpt3-175b"
DEVICE = "a100-sxm-80gb"
_PLANS = [
    Plan(
        seq=2048, micro_batch=micro, accumulation=16 * stages, tensor=tensor, pipeline=stages,
        data=data, recompute=recompute,
    )
    for tensor in (1, 2, 4, 8)
    for stages in (1, 2, 4, 8)
    for data in (1, 8, 64)
    for micro in (1, 2)
    for recompute in ("none", "selective", "full")
]  # fmt: skip


def bench_steps() -> list[Row]:
    """A cold pass of GPT-3, and plans a minute of processor time."""
    network, device = library.load(NETWORK), load(DEVICE)
    passes = [
        _cpu_seconds(partial(predict_network, network, Setting(batch=batch, seq=2048), device))
        for batch in range(5, 10)
    ]
    grid = _cpu_seconds(lambda: [predict_step(network, plan, device) for plan in _PLANS])
    warm = _cpu_seconds(lambda: [predict_step(network, plan, device) for plan in _PLANS])
    return [
        {"name": "GPT-3 forward and backward", "value": min(passes), "unit": "s"},
        _rate("GPT-3 plans of a new grid", grid),
        _rate("GPT-3 plans once more", warm),
    ]


def _rate(name: str, seconds: float) -> Row:
    return {"name": name, "value": 60 * len(_PLANS) / seconds, "unit": "plans/min"}


def _cpu_seconds(job: Callable[[], object]) -> float:
    """Processor seconds of one run."""
    start = time.process_time()
    job()
    return time.process_time() - start
