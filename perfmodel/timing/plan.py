"""A plan: the kernels that carry out an operator, over a menu of tiles, ready to be timed.

Arrays of problems have shape (n, 1) and menus (1, m): every count and every time broadcasts to
(n, m), and the best column is taken for each row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.count import Cost, count
from perfmodel.elements import ElementType
from perfmodel.schedules.schedule import Schedule
from perfmodel.timing.constants import Constants
from perfmodel.timing.kernel import TERMS, Style, time_kernel
from perfmodel.timing.machine import Machine


@dataclass(frozen=True)
class Part:
    """A schedule with its sizes and types, the style of its kernels, and a price for its start.

    Of the schedule's kernels those named in `only` run here; all of them where that is empty.
    """

    schedule: Schedule
    sizes: Mapping[str, Number]
    elements: Mapping[str, ElementType]
    style: Style
    styles: Mapping[str, Style] = field(default_factory=dict)
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Parts in launch order; `tile` names the menu's columns, `schedule` what to call the whole.

    `beside` are the seconds of small kernels that the library launches around them, `allowed` says
    which columns it has for which problem, `memory_bytes` what is held at once besides, `calls` how
    often a framework is called for it where it is not one call for all.
    """

    schedule: str
    parts: tuple[Part, ...]
    tile: Mapping[str, np.ndarray]
    beside: Number = 0.0
    allowed: np.ndarray | bool = True
    memory_bytes: Number = 0.0
    calls: int = 0


@dataclass
class Estimate:
    """Sums over all kernels of a plan, arrays of shape (n, m)."""

    seconds: np.ndarray
    terms: dict[str, np.ndarray]
    matrix_flops: np.ndarray
    vector_ops: np.ndarray
    special_ops: np.ndarray
    bytes: dict[str, np.ndarray]
    waves: np.ndarray
    occupancy: np.ndarray
    memory_bytes: Number

    def plus(self, other: Estimate) -> Estimate:
        """This estimate and another one after it."""

        def both(mine: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> dict[str, Any]:
            return {name: mine[name] + theirs[name] for name in mine}

        return Estimate(
            seconds=self.seconds + other.seconds,
            terms=both(self.terms, other.terms),
            matrix_flops=self.matrix_flops + other.matrix_flops,
            vector_ops=self.vector_ops + other.vector_ops,
            special_ops=self.special_ops + other.special_ops,
            bytes=both(self.bytes, other.bytes),
            waves=np.maximum(self.waves, other.waves),
            occupancy=np.minimum(self.occupancy, other.occupancy),
            memory_bytes=np.maximum(self.memory_bytes, other.memory_bytes),
        )

    def take(self, column: np.ndarray) -> Estimate:
        """One column of the menu for each row, shape (n,)."""

        def pick(values: np.ndarray) -> np.ndarray:
            shape = (len(column), self.seconds.shape[1])
            full = np.broadcast_to(values, shape)
            return np.asarray(full[np.arange(len(column)), column])

        return Estimate(
            seconds=pick(self.seconds),
            terms={name: pick(values) for name, values in self.terms.items()},
            matrix_flops=pick(self.matrix_flops),
            vector_ops=pick(self.vector_ops),
            special_ops=pick(self.special_ops),
            bytes={name: pick(values) for name, values in self.bytes.items()},
            waves=pick(self.waves),
            occupancy=pick(self.occupancy),
            memory_bytes=pick(np.asarray(self.memory_bytes, dtype=np.float64)),
        )


def estimate(
    machine: Machine, constants: Constants, plan: Plan, shape: tuple[int, int]
) -> Estimate:
    """Time every kernel of a plan and add up; infinite where a tile does not fit."""
    zero = np.zeros(shape)
    total = Estimate(
        seconds=zero,
        terms=dict.fromkeys((*TERMS, "gap"), zero),
        matrix_flops=zero,
        vector_ops=zero,
        special_ops=zero,
        bytes={"hbm": zero, "l2": zero, "shared": zero},
        waves=zero,
        occupancy=zero,
        memory_bytes=np.asarray(plan.memory_bytes, dtype=np.float64) + zero,
    )
    first = True
    for part in plan.parts:
        cost = count(part.schedule, part.sizes, part.elements)
        _add_part(machine, constants, total, part, cost, first)
        total.memory_bytes = np.maximum(total.memory_bytes, np.asarray(cost.memory_bytes, float))
        first = False
    total.seconds = np.where(plan.allowed, total.seconds + plan.beside, np.inf)
    total.terms["gap"] = total.terms["gap"] + plan.beside
    return total


def combining_seconds(machine: Machine, constants: Constants, style: Style) -> float:
    """Seconds before a combining kernel moves its first byte: its launch, unless that is done by
    then, and its own start.
    """
    gap = 0.0 if style.ahead else constants["kernel_gap"]
    return float(machine.at_clock(gap + constants[style.combine]))


def _add_part(
    machine: Machine, constants: Constants, total: Estimate, part: Part, cost: Cost, first: bool
) -> None:
    launched = [k for k in cost.kernels if not part.only or k.name in part.only]
    for i, kernel in enumerate(launched):
        style = part.styles.get(kernel.name, part.style)
        time = time_kernel(machine, constants, part.schedule, kernel, part.elements, style)
        gap = 0.0 if first and i == 0 else machine.at_clock(constants["kernel_gap"])
        used: Number = 1.0
        if kernel.nest.kernel.combines:
            # With one slice there is nothing to combine, and the kernel is not launched.
            gap = combining_seconds(machine, constants, style)
            used = np.asarray(kernel.bytes_at("hbm") > 0, dtype=np.float64)
        total.seconds = total.seconds + used * (time.seconds + gap)
        for name in TERMS:
            total.terms[name] = total.terms[name] + used * time.terms[name]
        total.terms["gap"] = total.terms["gap"] + used * gap
        total.matrix_flops = total.matrix_flops + kernel.matrix_flops
        total.vector_ops = total.vector_ops + kernel.vector_ops
        total.special_ops = total.special_ops + kernel.special_ops
        total.bytes["hbm"] = total.bytes["hbm"] + time.hbm_bytes
        total.bytes["l2"] = total.bytes["l2"] + time.l2_bytes
        total.bytes["shared"] = total.bytes["shared"] + kernel.shared_bytes
        if i == 0:
            total.waves = np.maximum(total.waves, time.waves)
            total.occupancy = np.maximum(total.occupancy, time.occupancy)
