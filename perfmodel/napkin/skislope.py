"""Ski slopes: the least traffic of an algorithm at every on-chip capacity, fused and not.

Named after the shape of the curve (Orojenesis, Huang et al. 2024): steep while more memory buys
reuse, flat once only the compulsory traffic is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from perfmodel.algorithms.declaration import Case
from perfmodel.hardware import Device
from perfmodel.napkin.bounds import lower_bound
from perfmodel.napkin.front import fronts
from perfmodel.napkin.fusion import part
from perfmodel.napkin.tiles import COLUMNS

POINTS = 120


@dataclass(frozen=True)
class Curve:
    """Least bytes moved at each capacity; infinite where nothing fits."""

    name: str
    """What is fused: all steps, the best fusion, none."""
    kernels: tuple[tuple[str, ...], ...]
    """The steps of each kernel; empty where they vary."""
    moved_bytes: np.ndarray
    """Least bytes at each capacity."""


@dataclass(frozen=True)
class Slopes:
    """Curves of least traffic over one axis of capacities."""

    algorithm: str
    """The algorithm."""
    problem: Mapping[str, object]
    """Its sizes and type."""
    capacity_bytes: np.ndarray
    """The capacities."""
    curves: tuple[Curve, ...]
    """The curves."""
    bound_bytes: np.ndarray
    """The lower bound at each capacity."""
    bound_name: str
    """The theorem of the lower bound."""
    levels: Mapping[str, float]
    """Capacities of the levels of the device."""
    device: str
    """The device; empty without one."""

    def crossing(self) -> float | None:
        """The smallest capacity from which fusing all steps moves no more than fusing none."""
        fused, unfused = self.curves[0].moved_bytes, self.curves[-1].moved_bytes
        wins = fused <= unfused
        losses = np.flatnonzero(~wins | ~np.isfinite(fused))
        i = int(losses[-1]) + 1 if len(losses) else 0
        return float(self.capacity_bytes[i]) if i < len(wins) else None


def ski_slopes(
    case: Case,
    device: Device | None = None,
    *,
    low_bytes: float = 4 * 1024,
    high_bytes: float = 512 * 2**20,
    points: int = POINTS,
    columns: int = COLUMNS,
) -> Slopes:
    """Least traffic at `points` capacities from `low_bytes` to `high_bytes`.

    Curves: all steps fused, the best fusion at each capacity, every step alone. Elements have the
    problem's types, sums fp32.
    """
    table = fronts(case.algorithm, case.sizes, case.elements, columns)
    capacity = np.geomspace(low_bytes, high_bytes, points)
    names = tuple(step.name for step in case.algorithm.steps)
    singles = tuple((name,) for name in names)
    curves = [Curve("fused", (names,), table.moved((names,), capacity))]
    if len(names) > 1:
        curves.append(Curve("best fusion", (), table.best_moved(capacity)))
        curves.append(Curve("one kernel a step", singles, table.moved(singles, capacity)))
    bound, bound_name = _bound(case, capacity)
    return Slopes(
        case.algorithm.name,
        case.parameters,
        capacity,
        tuple(curves),
        bound,
        bound_name,
        levels(device) if device is not None else {},
        device.name if device is not None else "",
    )


def levels(device: Device) -> dict[str, float]:
    """On-chip capacities of a device: a block's registers and shared memory, and the last cache."""
    sizes = {
        "registers": 4 * device.registers if device.registers else None,
        "shared": device.shared_max_per_block_bytes,
        "L2": device.l2_capacity_bytes,
    }
    return {name: float(value) for name, value in sizes.items() if value}


def _bound(case: Case, capacity: np.ndarray) -> tuple[np.ndarray, str]:
    """The lower bound of the whole algorithm, in bytes of its data type."""
    width = case.elements["data"].bytes
    fused = part(case.algorithm, [step.name for step in case.algorithm.steps])
    bounds = [lower_bound(fused, case.sizes, float(c / width)) for c in capacity]
    names = dict.fromkeys(item.name for item in bounds)
    return np.array([float(item.value) * width for item in bounds]), next(iter(names))
