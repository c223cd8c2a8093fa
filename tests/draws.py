"""Random problems for laws, and counted predictions of them.

A law that skips refused problems would hold for a model that refuses everything. So `Draws` counts
requests and predictions, and a test fails if fewer than nine in ten of `DRAWS` were predicted
(conftest.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Problem, Rowwise
from perfmodel.algorithms.rowwise import OPS
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import Device
from perfmodel.predict import predict_arrays
from perfmodel.prediction import Predictions

N = 48  # problems of a draw, unless told
LEAST = 0.9
"""Share of a law's draws that have to be predicted."""

KINDS = (
    "matmul bf16", "matmul fp32", "matmul fp8", "matmul fp8_block", "matmul w4a16",
    "matmul w8a8_int8", "batched", "decode", "prefill", "causal", "window", "flash 1", "standard",
    "split", "backward", "both", "trained", "trained unfused", "norm backward", *OPS,
)  # fmt: skip
"""What `make` makes: operators, types, masks, schedules."""

_ATTENTION: dict[str, tuple[dict[str, Any], str]] = {
    "prefill": ({}, "auto"),
    "causal": ({"causal": True}, "auto"),
    "window": ({"causal": True}, "auto"),
    "flash 1": ({}, "tiled-1"),
    "standard": ({}, "standard"),
    "split": ({"causal": True}, "split-kv"),
    "backward": ({"direction": "bwd", "causal": True}, "auto"),
    "both": ({"direction": "fwdbwd"}, "auto"),
    "trained": ({"direction": "fwdbwd", "padding_mask": True, "dropout": True}, "auto"),
    "trained unfused": (
        {"direction": "fwdbwd", "padding_mask": True, "dropout": True},
        "standard",
    ),
}


def sizes(draw: np.random.Generator, low: int, high: int, n: int) -> np.ndarray:
    """Log-uniform whole numbers from low to high."""
    return np.exp(draw.uniform(np.log(low), np.log(high + 1), n)).astype(np.int64).clip(low, high)


def make(kind: str, seed: int, n: int = N) -> tuple[Problem, str]:
    """`n` random problems of a kind, and the schedule to predict them with."""
    draw = np.random.default_rng(seed)

    def some(low: int, high: int) -> np.ndarray:
        return sizes(draw, low, high, n)

    if kind.startswith("matmul"):
        dtype = kind.split()[1]
        return Matmul(some(1, 16384), some(1, 16384), some(1, 16384), dtype=dtype), "auto"
    if kind == "batched":
        return Matmul(some(1, 1024), some(1, 1024), some(1, 1024), some(2, 64), "fp32"), "auto"
    if kind in OPS:
        return Rowwise(kind, some(1, 65536), some(1, 65536)), "auto"
    if kind == "norm backward":
        return Rowwise("layernorm", some(1, 65536), some(1, 65536), direction="bwd"), "auto"
    groups = some(1, 8)
    heads = {"batch": some(1, 64), "heads_q": groups * some(1, 8), "heads_kv": groups}
    if kind == "decode":
        return Attention(**heads, seq_q=1, seq_kv=some(1, 131072), head_dim=128), "auto"
    queries = some(2, 8192)
    keys = queries + some(1, 4096) - 1
    options, schedule = _ATTENTION[kind]
    if kind == "window":
        options = options | {"window": some(1, 4096)}
    return Attention(**heads, seq_q=queries, seq_kv=keys, head_dim=64, **options), schedule


@dataclass
class Draws:
    """Counts of requests and predictions, and the reasons of refusals."""

    asked: int = 0
    predicted: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def run(
        self, problem: Problem, device: Device, schedule: str = "auto", **options: Any
    ) -> Predictions | None:
        """Predictions, or None where the device has no such rate or no tile fits."""
        return self.counted(predict_arrays, problem, device, schedule=schedule, **options)

    def counted(self, predict: Callable[..., Any], *asked: Any, **options: Any) -> Any:
        """What a function predicts, or None where it refuses."""
        self.asked += 1
        try:
            found = predict(*asked, **options)
        except PerfmodelError as error:
            self.refused[str(error)] += 1
            return None
        self.predicted += 1
        return found

    def clear(self) -> None:
        """Start counting anew."""
        self.asked = self.predicted = 0
        self.refused.clear()

    def check(self) -> None:
        """Fail if fewer than nine in ten requests were predicted; of few, two may be refused, which
        is one draw that is asked twice."""
        least = min(LEAST * self.asked, max(self.asked - 2, 1))
        assert self.predicted >= (least if self.asked else 0), (
            f"{self.predicted} of {self.asked} draws were predicted; refused: "
            f"{self.refused.most_common(3)}"
        )


DRAWS = Draws()
"""Of the test that runs."""
