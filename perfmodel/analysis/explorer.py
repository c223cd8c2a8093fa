"""A grid of sizes on all devices, for a page with sliders: times to three digits and limiters.

    {"operators": [{"title", "sizes", "useful", "times": {device: {"us", "limiter"}},
                    "lacking": {device: why}}], ...}

Arrays are over the grid, first size slowest. A device without what the operator needs has no
times for it, and `lacking` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Problem
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import Device, specs
from perfmodel.predict import predict_arrays

KINDS = ("gpu",)
"""Kinds of devices for which predictions were compared with runs."""


@dataclass(frozen=True)
class Question:
    """One operator, with the sizes that can be chosen and the fixed parameters."""

    title: str
    """Title of the question."""
    sizes: Mapping[str, Sequence[int]]
    """Values of each size that can be chosen."""
    make: Callable[..., Problem]
    """Makes the problem from arrays of the sizes, in the order of `sizes`."""
    types: Sequence[str] = ("bf16", "fp16")
    """Types in order of preference: the first that a device's matrix unit has."""


_POWERS = tuple(2**i for i in range(14))
_LENGTHS = tuple(2**i for i in range(9, 17))

QUESTIONS = (
    Question(
        "gemm, 16 bits: C[m, n] = A[m, k] B[k, n], n = k",
        {"m": _POWERS, "n = k": (1024, 2048, 4096, 8192, 16384)},
        lambda m, n, dtype: Matmul(m, n, n, dtype=dtype),
    ),
    Question(
        "attention, 16 bits: prefill, causal, 32 heads of 128, 8 of keys",
        {"sequence": _LENGTHS, "batch": (1, 2, 4, 8, 16)},
        lambda seq, batch, dtype: Attention(batch, 32, 8, seq, seq, 128, causal=True, dtype=dtype),
    ),
    Question(
        "attention, 16 bits: decode of one token, 32 heads of 128, 8 of keys",
        {"cached keys": _LENGTHS, "batch": (1, 4, 16, 64, 256)},
        lambda keys, batch, dtype: Attention(batch, 32, 8, 1, keys, 128, dtype=dtype),
    ),
)


def explored(devices: Sequence[Device] | None = None) -> dict[str, Any]:
    """The grid of `devices`, by default of all shipped GPUs."""
    gpus = list(devices if devices is not None else (d for d in specs() if d.kind in KINDS))
    limiters: dict[str, int] = {}
    answers = [_answer(question, gpus, limiters) for question in QUESTIONS]
    return {
        "devices": [device.slug for device in gpus],
        "limiters": list(limiters),
        "operators": answers,
        "note": "Times are the model's for the usual library of each device, with bf16, or fp16 "
        "where a matrix unit lacks that; three digits. Tick devices to draw their curves.",
    }


def _answer(
    question: Question, devices: Sequence[Device], limiters: dict[str, int]
) -> dict[str, Any]:
    grid = [values.ravel() for values in np.meshgrid(*question.sizes.values(), indexing="ij")]
    times: dict[str, Any] = {}
    failures: dict[str, str] = {}
    flops = np.zeros(grid[0].size)
    for i, device in enumerate(devices):
        dtype = next((name for name in question.types if name in device.matrix_types), None)
        if dtype is None:
            failures[str(i)] = f"without a matrix rate of {' or '.join(question.types)} in the spec"
            continue
        try:
            answer = predict_arrays(question.make(*grid, dtype=dtype), device)
        except PerfmodelError as error:
            failures[str(i)] = str(error)
            continue
        flops = answer.useful_flops
        levels = [answer.levels.get(name, name) for name in answer.limiter.tolist()]
        times[str(i)] = {
            "us": [_three_digits(value * 1e6) for value in answer.seconds],
            "limiter": [limiters.setdefault(name, len(limiters)) for name in levels],
        }
    sizes = [{"name": name, "values": list(values)} for name, values in question.sizes.items()]
    return {
        "title": question.title,
        "sizes": sizes,
        "useful": [_three_digits(value) for value in flops],
        "times": times,
        "lacking": failures,
    }


def _three_digits(value: float) -> float | int | None:
    """A number rounded to three digits; None if it is not finite."""
    if not np.isfinite(value):
        return None
    rounded = float(f"{value:.3g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
