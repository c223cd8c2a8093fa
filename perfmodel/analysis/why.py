"""Explains a predicted time: shares of the roofs, the floor, and which changes would help.

    answer = why(Matmul(8192, 8192, 8192), load("h100-sxm"), prediction)
    answer.roofs["matrix"], answer.floor_by, answer.helps[0].saves

The floor is the larger of two times from the datasheet: the minimum operations at the dense peak
(`perfmodel.timing.physical`), and all inputs and outputs once at main-memory bandwidth, or the
predicted memory traffic if that is less because of the last cache. The gains are predictions with
a number 10 % better, so a rate saves at most 1 − 1 / 1.1 of the time. What saves more crosses a
step, which is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from perfmodel.algorithms import Problem
from perfmodel.analysis.quantities import QUANTITIES, Quantity, Setting
from perfmodel.analysis.whatif import NEAR, step, tried
from perfmodel.count import compulsory_bytes
from perfmodel.frozen import dataclass
from perfmodel.hardware import Device
from perfmodel.operators import operator_of
from perfmodel.prediction import Prediction
from perfmodel.timing.constants import default
from perfmodel.timing.physical import dense_peak, seconds_of_operations

_TRIED = 3  # terms whose hardware numbers are tried: the limiter and the next longest
_NEAR = 0.4  # of the limiter's time; shorter terms are not tried
_LEAST = 0.005  # of the time; smaller gains are not reported
_BEHIND: Mapping[str, str] = {
    "matrix": "matrix",
    "special": "special",
    "vector": "vector",
    "latency": "latency",
    "power": "power",
    "launch": "launch",
    "gap": "launch",
}


@dataclass(frozen=True)
class Help:
    """The gain from a better hardware number."""

    number: str
    """Its name: HBM3 bandwidth, matrix rate."""
    saves: float
    """Share of the time saved if it is 10 % better."""
    step: str = ""
    """What steps where that saves more than a tenth can be worth: "waves 2→1"; else empty."""


@dataclass(frozen=True)
class Why:
    """The explanation of one predicted time."""

    roofs: Mapping[str, float] = field(default_factory=dict)
    """Rate over peak by term: matrix and special-function units, and memory levels. The peak is the
    datasheet's, or for a cache without one the measured rate."""
    floor_seconds: float = 0.0
    """Time that no kernel can beat, from the datasheet; 0 if the datasheet lacks the numbers."""
    floor_by: str = ""
    """What sets the floor: "operations" or "bytes"."""
    helps: tuple[Help, ...] = ()
    """Hardware numbers that would help, largest gain first; empty if no library's kernel is
    known."""


def why(problem: Problem, device: Device, found: Prediction, **how: Any) -> Why:
    """Explain the prediction `found` of a single `problem` on `device`.

    `how` are the arguments that it was predicted with, as `predict_arrays` takes them.
    """
    floor, bound = 0.0, ""
    if not (how.get("place") or how.get("mesh")):  # both move bytes elsewhere
        bytes_ = min(float(compulsory_bytes(problem)), found.bytes["hbm"])
        work = found.flops["matrix"]
        operations = seconds_of_operations(problem, device, work, widened=True)
        least = {"bytes": bytes_ / device.hbm_bytes_per_s, "operations": float(operations)}
        bound = max(least, key=lambda name: least[name])
        floor = least[bound]
    # Skipped for a declared algorithm: its schedule is searched again for each change, which takes
    # seconds.
    gains = _gains(problem, device, found, how) if operator_of(problem).library else ()
    helps = sorted(gains, key=lambda item: -item.saves)
    return Why(dict(_roofs(problem, device, found)), floor, bound if floor else "", tuple(helps))


def _roofs(problem: Problem, device: Device, kernel: Prediction) -> Iterator[tuple[str, float]]:
    """Rates over peaks, where the spec has a peak."""
    if kernel.flops["matrix"]:
        yield (
            "matrix",
            kernel.flops["matrix"] / kernel.seconds / dense_peak(problem, device, widened=True),
        )
    per_clock = device.special_per_clock
    if per_clock and kernel.flops["special"]:
        peak = per_clock * device.boost_hz * device.units
        yield "special", kernel.flops["special"] / kernel.seconds / peak
    for name, bytes_ in kernel.bytes.items():
        level = device.level(name)
        peak_or_none = level and (level.bytes_per_s or level.measured_bytes_per_s)
        if peak_or_none:
            yield name, bytes_ / kernel.seconds / peak_or_none


def _gains(
    problem: Problem, device: Device, kernel: Prediction, options: Mapping[str, Any]
) -> Iterator[Help]:
    setting = Setting(problem, device, default(), options)
    base = tried(setting)
    for quantity in _candidates(kernel):
        if not quantity.belongs(setting) or not quantity.read(setting):
            continue
        factor = 1 / NEAR if quantity.is_better_smaller else NEAR
        outcome = tried(quantity.scaled(setting, factor))
        saving = 1 - float(outcome.seconds[0] / base.seconds[0])
        if saving >= _LEAST:
            slope = math.log(1 - saving) / math.log(factor)
            yield Help(quantity.on(device), saving, step(base, outcome, 0, quantity, slope))


def _candidates(kernel: Prediction) -> list[Quantity]:
    """The numbers behind the longest terms."""
    longest = kernel.terms[kernel.limiter]
    terms = [
        name
        for name, seconds in kernel.terms.items()
        if seconds >= _NEAR * longest or name in (kernel.limiter, kernel.runner_up)
    ]
    terms.sort(key=lambda name: (name != kernel.limiter, -kernel.terms[name]))
    names = (_BEHIND.get(name, f"{name}_bandwidth") for name in terms)
    keys = dict.fromkeys(name for name in names if name in QUANTITIES)
    return [QUANTITIES[name] for name in keys][:_TRIED]
