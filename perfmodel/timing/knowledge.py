"""What is known of a prediction's device, implementation and harness before anyone runs it.

    known("gemm-16", load("l40"), "torch", "cublas-mma", "cuda_graph")
    # Known(device='sibling', implementation='fitted', harness='known')

The fit writes what it saw into `spread.yaml`: per family of operators its devices, their
architectures, and the kernels under the names that frameworks run them by. What a prediction rests
on is read off that, and its range with it (`perfmodel.timing.spread`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from perfmodel import yamltable
from perfmodel.hardware import Device
from perfmodel.timing.architectures import architecture_of
from perfmodel.timing.libraries import framework_of
from perfmodel.timing.runs import UNKNOWN

DeviceKnown = Literal["fitted", "sibling", "calibrated", "generation", "none"]
ImplementationKnown = Literal["fitted", "named", "assumed"]
HarnessKnown = Literal["known", "assumed"]


@dataclass(frozen=True)
class Known:
    """How much a prediction knows."""

    device: DeviceKnown = "fitted"
    """`fitted`: runs of the operator on it are in the fit; `sibling`: runs on another device of its
    architecture are; `calibrated`: its architecture is new to the operator, but its spec has
    measured rates of memory and of a cache or a unit; `generation`: its data sheet alone; `none`:
    no GPU, an architecture that no table describes, or an operator that nothing was fitted to."""
    implementation: ImplementationKnown = "fitted"
    """`fitted`: runs of the kernel by that framework are in the fit; `named`: facts about the
    kernel are, but no runs; `assumed`: nothing is named, or by an unknown name, and a good
    library's kernel is taken."""
    harness: HarnessKnown = "known"
    """`known`: one of the harnesses of `runs.yaml`; `assumed`: nobody said how the run was timed,
    and device time is taken."""

    def as_dict(self) -> dict[str, str]:
        """The JSON form."""
        return asdict(self)


LEVELS: Mapping[str, tuple[str, ...]] = {
    "device": get_args(DeviceKnown),
    "implementation": get_args(ImplementationKnown),
    "harness": get_args(HarnessKnown),
}
"""The levels of each axis, best known first."""


@lru_cache(maxsize=1)
def table() -> Mapping[str, Any]:
    """The shipped table: per family what was fitted and how far it missed, per level a factor."""
    loaded: Mapping[str, Any] = yamltable.read(Path(__file__).with_name("spread.yaml"))
    return loaded


def known(
    family: str, device: Device, implementation: str | None, kernel: str, harness: str
) -> Known:
    """What is known where a framework's `implementation` (None: nothing named) runs `kernel`.

    `kernel` is empty where nothing is known by the name.
    """
    entry = table()["families"].get(family)
    return Known(
        _device(entry, device),
        _implementation(entry, implementation, kernel),
        "assumed" if harness == UNKNOWN else "known",
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
    found = device.measured
    if found is None or not found.hbm_bandwidth:
        return False
    return bool(found.l2_bandwidth or found.llc_bandwidth or found.matrix or found.vector)


def _implementation(
    entry: Mapping[str, Any] | None, implementation: str | None, kernel: str
) -> ImplementationKnown:
    if not implementation or not kernel:
        return "assumed"
    fitted = entry["kernels"] if entry is not None else ()
    run_by = framework_of(implementation)
    asked = signature(run_by, kernel)
    ran = any(asked == one or (not run_by and one.endswith(f" {kernel}")) for one in fitted)
    return "fitted" if ran else "named"


def signature(framework: str, kernel: str) -> str:
    """How the table writes a kernel that a framework runs."""
    return f"{framework} {kernel}" if framework else kernel
