"""Write the compiled code that a wheel carries: that of the usual calls on each device.

PERFMODEL_VARIANTS is `all`, or devices with commas between. Every call is recorded as it is when a
user makes it (`perfmodel.compiled`), and equal code is compiled once. One library holds all of it,
for each kind of processor a wheel is for.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Problem, Rowwise
from perfmodel.compiled import build, variants
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import Device, load
from perfmodel.hardware.catalogue import specs
from perfmodel.predict import predict_arrays


def usual(draw: np.random.Generator) -> Iterator[Problem]:
    """The calls that a wheel has code for: single products and several, prompts, decoding, rows."""

    def sizes(low: int, high: int) -> np.ndarray:
        return np.exp(draw.uniform(np.log(low), np.log(high), 64)).astype(np.int64)

    products = sizes(1, 16384), sizes(16, 16384), sizes(16, 16384)
    for dtype in ("bf16", "fp8"):
        yield Matmul(*products, dtype=dtype)
    yield Matmul(*products, sizes(2, 64))
    groups, keys = sizes(1, 16), sizes(16, 16384)
    heads = {"heads_q": groups * sizes(1, 9), "heads_kv": groups, "head_dim": 128}
    for causal in (True, False):
        yield Attention(batch=sizes(1, 64), seq_q=keys, seq_kv=keys, causal=causal, **heads)
    yield Attention(batch=sizes(1, 64), seq_q=1, seq_kv=keys, **heads)
    for operator in ("softmax", "rmsnorm"):
        yield Rowwise(operator, sizes(1, 65536), sizes(16, 65536))


def sources(devices: list[Device]) -> list[str]:
    """The code of all usual calls on these devices, each once."""
    written: dict[str, None] = {}
    variants._build = lambda variant, waits: written.setdefault(variant.program.source)  # type: ignore[assignment]
    os.environ[variants.ENVIRONMENT] = "wait"
    for device in devices:
        for problem in usual(np.random.default_rng(1)):
            with suppress(PerfmodelError):  # a type that the device does not multiply
                predict_arrays(problem, device)
    return list(written)


def write(folder: Path, which: str) -> list[Path]:
    """The libraries for this machine's kinds of processors, in `folder`."""
    code = sources([load(name) for name in which.split(",")] if which != "all" else specs())
    paths = []
    for level in build.LEVELS[platform.machine()]:
        paths.append(folder / build.library(level))
        build.compiled(code, paths[-1], *([f"-march={level}"] if "x86" in level else []))
    return paths
