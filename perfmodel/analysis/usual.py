"""The kernel that a prediction takes on each architecture if none is named."""

from __future__ import annotations

from collections.abc import Mapping

from perfmodel.algorithms import Attention, Matmul, Problem
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import Device, specs
from perfmodel.predict import predict
from perfmodel.timing.architectures import architecture_of

_SIZE = 4096
CASES: Mapping[str, Problem] = {
    "attention fp16": Attention(1, 32, 32, _SIZE, _SIZE, 128, dtype="fp16"),
    **{
        f"gemm {dtype}": Matmul(_SIZE, _SIZE, _SIZE, dtype=dtype)
        for dtype in ("fp16", "fp32", "fp8", "int8")
    },
}
"""The problems predicted on each architecture, by operator and type."""


def families() -> Mapping[str, tuple[Device, ...]]:
    """Shipped devices by architecture; devices without a described one by kind: cpu, gpu ..."""
    table: dict[str, list[Device]] = {}
    for device in specs():
        name = architecture_of(device).name
        table.setdefault(device.kind if name == "other" else name, []).append(device)
    return {name: tuple(table[name]) for name in sorted(table)}


def usual(device: Device) -> Mapping[str, str]:
    """The kernel of each case; empty where the device cannot run it."""
    return {name: _kernel(problem, device) for name, problem in CASES.items()}


def _kernel(problem: Problem, device: Device) -> str:
    try:
        return predict(problem, device).implementation or ""
    except PerfmodelError:
        return ""
