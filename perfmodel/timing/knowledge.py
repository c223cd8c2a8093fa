"""What the fit knows of a prediction's device, implementation and harness.

    known("gemm-16", load("l40"), "torch", "cublas-mma", "cuda_graph")
    # Known(device='sibling', implementation='fitted', harness='known')

The fit records in `spread.yaml`, per family of operators, its devices, their architectures, and the
kernels with the framework that ran them. The levels here follow from that record, and the range of
a prediction follows from the levels (`perfmodel.timing.spread`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from perfmodel import yamltable
from perfmodel.columns import Result
from perfmodel.frozen import dataclass
from perfmodel.hardware import Device
from perfmodel.timing.architectures import architecture_of
from perfmodel.timing.libraries import framework_of
from perfmodel.timing.runs import UNKNOWN

# The harness of a prediction that asks for none.
_DEVICE_TIME = "kernel"

DeviceKnown = Literal["fitted", "sibling", "calibrated", "generation", "none"]
ImplementationKnown = Literal["fitted", "named", "assumed"]
HarnessKnown = Literal["known", "unseen", "assumed"]


@dataclass(frozen=True)
class Known(Result):
    """How much the fit covers of a prediction."""

    device: DeviceKnown = "fitted"
    """`fitted`: the fit has runs of the operator on this device; `sibling`: it has runs on another
    device of the architecture; `calibrated`: no runs on the architecture, but the spec has measured
    rates of memory and of a cache or a unit; `generation`: datasheet values only; `none`: not a
    GPU, an architecture that no table describes, or an operator without a fit."""
    implementation: ImplementationKnown = "fitted"
    """`fitted`: the fit has runs of the kernel by that framework; `named`: the kernel's facts are
    known, but the fit has no runs; `assumed`: no name or an unknown one is given, and a good
    library's kernel is taken."""
    harness: HarnessKnown = "known"
    """`known`: device time, or a harness by which the fit has runs of that framework; `unseen`: a
    harness of `runs.yaml` by which it has none, as in a source that the fit has not seen;
    `assumed`: no harness is given, and device time is taken."""


LEVELS: Mapping[str, tuple[str, ...]] = {
    "device": get_args(DeviceKnown),
    "implementation": get_args(ImplementationKnown),
    "harness": get_args(HarnessKnown),
}
"""The levels of each axis, best known first."""


@lru_cache(maxsize=1)
def table() -> Mapping[str, Any]:
    """The shipped table: per family what was fitted and its errors, per level a factor."""
    loaded: Mapping[str, Any] = yamltable.read(Path(__file__).with_name("spread.yaml"))
    return loaded


def known(
    family: str, device: Device, implementation: str | None, kernel: str, harness: str
) -> Known:
    """What is known where a framework's `implementation` (None: none named) runs `kernel`.

    `kernel` is empty where the name is unknown.
    """
    entry = table()["families"].get(family)
    return Known(
        _device(entry, device),
        _implementation(entry, implementation, kernel),
        _harness(entry, implementation, harness),
    )


def _device(entry: Mapping[str, Any] | None, device: Device) -> DeviceKnown:
    architecture = architecture_of(device).name
    if entry is None or device.kind != "gpu" or architecture == "other":
        return "none"
    if device.slug in entry["devices"]:
        return "fitted"
    if architecture in entry["architectures"]:
        return "sibling"
    return "calibrated" if is_calibrated(device) else "generation"


def is_calibrated(device: Device) -> bool:
    """Whether memory and a cache or a unit of the device have been measured."""
    rates = device.measured
    if rates is None or not rates.hbm_bandwidth:
        return False
    return bool(rates.l2_bandwidth or rates.llc_bandwidth or rates.matrix or rates.vector)


def _implementation(
    entry: Mapping[str, Any] | None, implementation: str | None, kernel: str
) -> ImplementationKnown:
    if not implementation or not kernel:
        return "assumed"
    signatures = entry["kernels"] if entry is not None else ()
    run_by = framework_of(implementation)
    key = signature(run_by, kernel)
    is_fitted = any(key == one or (not run_by and one.endswith(f" {kernel}")) for one in signatures)
    return "fitted" if is_fitted else "named"


def _harness(
    entry: Mapping[str, Any] | None, implementation: str | None, harness: str
) -> HarnessKnown:
    if harness == UNKNOWN:
        return "assumed"
    if entry is None or not implementation or harness == _DEVICE_TIME:
        return "known"
    timed = signature(framework_of(implementation), harness)
    return "known" if timed in entry["harnesses"] else "unseen"


def signature(framework: str, kernel: str) -> str:
    """A framework and its kernel, or its harness, as the table writes them."""
    return f"{framework} {kernel}" if framework else kernel
