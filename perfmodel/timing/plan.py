"""A plan: the kernels that carry out an operator, timed for every tile of a menu.

Problems are arrays of shape (n, 1) and menus of tiles of shape (1, m). Counts and times broadcast
to (n, m); the fastest column is taken for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Any

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.count import Cost, KernelCost, count, rule
from perfmodel.elements import ElementType
from perfmodel.frozen import dataclass
from perfmodel.schedules.schedule import Schedule
from perfmodel.timing.constants import Constants
from perfmodel.timing.kernel import KernelTime, term_names, time_kernel
from perfmodel.timing.machine import Link, Machine
from perfmodel.timing.memory import hbm_rate
from perfmodel.timing.reuse import Reuse, Reuses
from perfmodel.timing.style import Style
from perfmodel.timing.traffic import held_share


@dataclass(frozen=True)
class Part:
    """A schedule with its sizes and types, and the style of its kernels."""

    schedule: Schedule
    """The schedule."""
    sizes: Mapping[str, Number]
    """Extent of each axis."""
    elements: Mapping[str, ElementType]
    """Element type of each role."""
    style: Style
    """What the library does in every kernel."""
    styles: Mapping[str, Style] = field(default_factory=dict)
    """The same for kernels that differ from the others, by name."""
    only: tuple[str, ...] = ()
    """Names of the kernels of the schedule that run; empty: all."""
    placed: Mapping[str, Link] = field(default_factory=dict)
    """Inputs that are read over a link, with that link."""
    reuse: Mapping[str, Sequence[Reuse]] | None = None
    """What earlier kernels left of the inputs in the caches; None: what an earlier run of the same
    kernel left (`Circumstances.warm`)."""
    used: Number = 1.0
    """1 for problems that launch this part, 0 for the rest."""
    stands_in: bool = False
    """Whether another part already counts the memory of its tensors."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Inputs that do not share the memory of another tensor."""
        inputs = self.schedule.algorithm.inputs
        return tuple(name for name in inputs if name not in self.style.shared)

    def bytes_of(self, names: Iterable[str]) -> Number:
        """Bytes of memory that some tensors take."""
        tensors = (self.schedule.algorithm.tensors[name] for name in names)
        return sum(rule.size(self.sizes, t) * self.elements[t.element].bytes for t in tensors)


@dataclass(frozen=True)
class Plan:
    """Parts in launch order, for every tile of a menu."""

    schedule: str
    """Name of the schedule in the prediction."""
    parts: tuple[Part, ...]
    """Schedules with their sizes and styles."""
    tile: Mapping[str, np.ndarray]
    """Dimensions of the tile in each column of the menu."""
    beside: Number = 0.0
    """Seconds of small kernels that the library launches around them."""
    allowed: np.ndarray | bool = True
    """Which columns the library offers, by problem: shape (n, m) or one value for all."""
    memory_bytes: Number = 0.0
    """Bytes of memory that are held at once besides the tensors."""
    calls: Number = 0
    """Framework calls that the plan takes; 0: one call for the whole."""


@dataclass
class Estimate:
    """Sums over all kernels of a plan, in one column of the menu for each problem: shape (n,)."""

    seconds: np.ndarray
    """Seconds of all kernels."""
    terms: dict[str, np.ndarray]
    """Seconds of each term."""
    matrix_flops: np.ndarray
    """Operations on the matrix unit."""
    vector_ops: np.ndarray
    """Operations on the vector unit."""
    special_ops: np.ndarray
    """Operations on the special-function unit."""
    bytes: dict[str, np.ndarray]
    """Bytes that cross into each level."""
    waves: np.ndarray
    """Waves: the largest number over the first kernels of the parts."""
    occupancy: np.ndarray
    """Resident blocks a unit: within a plan the largest number over the first kernels of its parts,
    over several plans the smallest."""
    memory_bytes: np.ndarray
    """Bytes held in the device's memory."""
    beyond_bytes: dict[str, np.ndarray]
    """Bytes held behind each link."""

    @classmethod
    def of(cls, parts: Sequence[tuple[np.ndarray, Estimate]]) -> Estimate:
        """The sums of all problems, from those of some, each with the places of its problems."""
        n = sum(len(index) for index, _ in parts)

        def joined(values: Sequence[Any]) -> Any:
            if isinstance(values[0], dict):
                return {name: joined([each[name] for each in values]) for name in values[0]}
            array = np.empty(n)
            for (index, _), value in zip(parts, values, strict=True):
                array[index] = value
            return array

        names = (item.name for item in fields(cls))
        return cls(**{name: joined([getattr(each, name) for _, each in parts]) for name in names})

    def times(self, number: Number) -> Estimate:
        """The sums of `number` estimates, each of which may be that of a kernel that does not run
        (0)."""
        runs = np.asarray(number) > 0
        return Estimate(
            seconds=self.seconds * number,
            terms={name: value * number for name, value in self.terms.items()},
            matrix_flops=self.matrix_flops * number,
            vector_ops=self.vector_ops * number,
            special_ops=self.special_ops * number,
            bytes={name: value * number for name, value in self.bytes.items()},
            waves=self.waves * runs,
            occupancy=np.where(runs, self.occupancy, np.inf),
            memory_bytes=self.memory_bytes * runs,
            beyond_bytes={name: value * runs for name, value in self.beyond_bytes.items()},
        )

    def plus(self, other: Estimate) -> Estimate:
        """The sums of this estimate and of another one that runs after it."""

        def merge(
            first: dict[str, np.ndarray], second: dict[str, np.ndarray], join: Any = np.add
        ) -> dict[str, Any]:
            return {
                name: join(first.get(name, 0.0), second.get(name, 0.0))
                for name in {**first, **second}
            }

        return Estimate(
            seconds=self.seconds + other.seconds,
            terms=merge(self.terms, other.terms),
            matrix_flops=self.matrix_flops + other.matrix_flops,
            vector_ops=self.vector_ops + other.vector_ops,
            special_ops=self.special_ops + other.special_ops,
            bytes=merge(self.bytes, other.bytes),
            waves=np.maximum(self.waves, other.waves),
            occupancy=np.minimum(self.occupancy, other.occupancy),
            memory_bytes=np.maximum(self.memory_bytes, other.memory_bytes),
            beyond_bytes=merge(self.beyond_bytes, other.beyond_bytes, np.maximum),
        )


@dataclass(frozen=True)
class Launch:
    """One kernel of a plan, for every tile of the menu."""

    cost: KernelCost
    """Operations and bytes of the kernel."""
    time: KernelTime
    """Seconds of the kernel, by term."""
    gap: float
    """Idle seconds before the kernel."""
    used: Number
    """1 for problems that launch it, 0 for the rest."""
    leads: bool
    """Whether it is the first kernel of its part."""


@dataclass(frozen=True)
class Timing:
    """The kernels of a plan over its whole menu, shape (n, m).

    Only seconds are summed for every column. All other sums are made for the chosen column (`at`).
    """

    plan: Plan
    """The plan that was timed."""
    launches: tuple[Launch, ...]
    """Its kernels in launch order."""
    seconds: np.ndarray
    """Seconds of the whole plan; infinite where a tile does not fit or is not allowed."""
    memory_bytes: np.ndarray
    """Bytes held in the device's memory."""
    beyond_bytes: Mapping[str, np.ndarray]
    """Bytes held behind each link."""
    levels: tuple[str, ...]
    """Levels whose bytes are counted."""

    def at(self, column: np.ndarray) -> Estimate:
        """The sums for one column of the menu per problem; `column` has shape (n,)."""
        rows = np.arange(len(column))

        def pick(values: Number) -> np.ndarray:
            array = np.asarray(values, dtype=np.float64)
            if array.ndim == 0:  # the same in every column
                return array
            column_index = column if array.shape[-1] > 1 else 0
            row_index = (rows if array.shape[0] > 1 else 0,) if array.ndim > 1 else ()
            return np.asarray(array[(*row_index, column_index)])

        zero = np.zeros(len(column))
        total = Estimate(
            seconds=self.seconds[rows, column],
            terms={
                **dict.fromkeys(term_names(self.levels), zero),
                "gap": zero + pick(self.plan.beside),
            },
            matrix_flops=zero,
            vector_ops=zero,
            special_ops=zero,
            bytes=dict.fromkeys(reversed(self.levels), zero),
            waves=zero,
            occupancy=zero,
            memory_bytes=zero + pick(self.memory_bytes),
            beyond_bytes={name: zero + pick(held) for name, held in self.beyond_bytes.items()},
        )
        for launch in self.launches:
            _add(total, launch, pick)
        return total


def time_plan(machine: Machine, constants: Constants, plan: Plan, shape: tuple[int, int]) -> Timing:
    """Time every kernel of a plan and add up; infinite where a tile does not fit. `shape` is (n,
    m)."""
    launches: list[Launch] = []
    memory = np.asarray(plan.memory_bytes, dtype=np.float64)
    beyond_bytes: dict[str, np.ndarray] = {}
    for part in plan.parts:
        cost = count(part.schedule, part.sizes, part.elements)
        launches += _launches(machine, constants, part, cost, first=not launches)
        rest = part.bytes_of((*part.style.shared, *part.placed))
        if not part.stands_in:
            memory = np.maximum(memory, np.asarray(cost.memory_bytes, dtype=np.float64) - rest)
        for level in dict.fromkeys(link.name for link in part.placed.values()):
            level_bytes = part.bytes_of(n for n, link in part.placed.items() if link.name == level)
            beyond_bytes[level] = np.maximum(beyond_bytes.get(level, 0.0), level_bytes)
    total = sum(launch.used * (launch.time.seconds + launch.gap) for launch in launches)
    seconds = np.where(plan.allowed, total + plan.beside, np.inf)
    menu_seconds = np.broadcast_to(seconds, shape)
    levels = (*machine.boundaries, *beyond_bytes)
    return Timing(plan, tuple(launches), menu_seconds, memory, beyond_bytes, levels)


def handed(plans: Sequence[Plan], reuses: Reuses | None) -> list[Plan]:
    """The plans with `reuses` as what earlier kernels left in the caches; unchanged where None.

    Reuses that are given replace what an earlier run of the same kernel would have left.
    """
    if reuses is None:
        return list(plans)
    columns = {name: tuple(one.column() for one in said) for name, said in reuses.items()}

    def with_reuse(part: Part, leads: bool) -> Part:
        if part.reuse is not None and not leads:  # it reads what a kernel of the plan left
            return part
        tensors = (*part.inputs, *part.schedule.algorithm.outputs)
        return replace(part, reuse={name: columns[name] for name in tensors if name in columns})

    return [
        replace(plan, parts=tuple(with_reuse(part, i == 0) for i, part in enumerate(plan.parts)))
        for plan in plans
    ]


def combining_seconds(machine: Machine, constants: Constants, style: Style) -> float:
    """Seconds before a combining kernel (split-K, split-KV) moves its first byte: the launch gap
    and its own start.

    Where blocks combine inside the kernel, the last block waits for three L2 round trips: it writes
    its own result, adds to a counter and reads the results of the rest.
    """
    if style.combining_seconds is None:
        return 3.0 * machine.l2_latency
    return float(machine.at_clock(constants["kernel_gap"] + style.combining_seconds))


def adding_seconds(
    machine: Machine,
    constants: Constants,
    style: Style,
    partial_sums: Number,
) -> np.ndarray:
    """Seconds of a combining kernel that adds up `partial_sums` numbers in fp32, by a short
    estimate.

    Partial sums that the L2 does not hold go to memory and back.
    """
    partial_bytes = 4.0 * partial_sums
    l2_rate = machine.l2_bytes_per_s * constants["l2_share"]
    misses = 1.0 - held_share(partial_bytes, machine.l2_distinct_bytes, constants["l2_knee"])
    memory_seconds = 2.0 * partial_bytes * misses / hbm_rate(machine, constants)
    crossing = np.maximum(2.0 * partial_bytes / l2_rate, memory_seconds)
    second = np.maximum(crossing, machine.l2_latency) + machine.at_clock(constants["block_price"])
    return np.asarray(second + combining_seconds(machine, constants, style))


def _launches(
    machine: Machine, constants: Constants, part: Part, cost: Cost, *, first: bool
) -> list[Launch]:
    """The timed kernels of a part; `first` where no kernel of the plan runs before it."""
    launches: list[Launch] = []
    for kernel in cost.kernels:
        if part.only and kernel.name not in part.only:
            continue
        style = part.styles.get(kernel.name, part.style)
        time = time_kernel(
            machine,
            constants,
            part.schedule,
            kernel,
            part.elements,
            style,
            placed=part.placed,
            reuse=part.reuse,
        )
        leads = not launches
        gap = 0.0 if first and leads else float(machine.at_clock(constants["kernel_gap"]))
        share = part.used
        if kernel.nest.kernel.combines:
            # With one slice there is nothing to combine, and the kernel is not launched.
            gap = combining_seconds(machine, constants, style)
            share = np.asarray(kernel.bytes_at("hbm") > 0, dtype=np.float64)
        launches.append(Launch(kernel, time, gap, share, leads))
    return launches


def _add(total: Estimate, launch: Launch, pick: Callable[[Number], np.ndarray]) -> None:
    """Add one kernel to the sums; `pick` takes the chosen column of its counts and times."""
    cost, time, share = launch.cost, launch.time, pick(launch.used)
    for name, seconds in time.terms.items():
        total.terms[name] = total.terms[name] + share * pick(seconds)
    total.terms["gap"] = total.terms["gap"] + share * launch.gap
    total.matrix_flops = total.matrix_flops + share * pick(cost.matrix_flops)
    total.vector_ops = total.vector_ops + share * pick(cost.vector_ops)
    total.special_ops = total.special_ops + share * pick(cost.special_ops)
    for level, bytes_ in time.bytes.items():
        total.bytes[level] = total.bytes[level] + share * pick(bytes_)
    if launch.leads:
        total.waves = np.maximum(total.waves, pick(time.waves))
        total.occupancy = np.maximum(total.occupancy, pick(time.occupancy))
