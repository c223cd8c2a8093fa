"""Operators with library kernels: class → plans → best tile → launch floor, as arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.algorithms.problem import columns
from perfmodel.arithmetic import Number
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.operators import owntile
from perfmodel.operators.included import included_seconds
from perfmodel.operators.operator import Operator, Request, Timed
from perfmodel.timing import floors
from perfmodel.timing.circumstances import circumstances
from perfmodel.timing.constants import Constants
from perfmodel.timing.libraries import (
    AttentionFacts,
    GemmFacts,
    KernelFacts,
    MatrixFacts,
    asked_for,
    is_known,
    unmet,
)
from perfmodel.timing.machine import Machine, machine
from perfmodel.timing.placing import placed
from perfmodel.timing.plan import Estimate, Plan, handed, time_plan
from perfmodel.timing.runs import UNKNOWN
from perfmodel.timing.setting import Setting
from perfmodel.timing.style import Style

Chosen = tuple[KernelFacts, tuple[str, ...]]
"""A class of kernels, and sentences on the choice."""


class LibraryOperator(Operator):
    """An operator whose schedules are those of libraries' kernels."""

    smaller = "a narrower type"
    """Advice where no tile fits on chip: the size to reduce."""

    @property
    def library(self) -> str:  # type: ignore[override]
        """The operator itself."""
        return self.name

    @abstractmethod
    def kernels(self, problem: Any, request: Request, here: Machine) -> Chosen:
        """The class of kernels that runs the problem, and sentences on assumptions."""

    @abstractmethod
    def plans(
        self,
        problem: Any,
        schedule: str,
        kernel: Any,
        setting: Setting,
    ) -> list[Plan]:
        """The kernels that the class launches, as plans over its whole menu of tiles."""

    def style(self, problem: Any, kernel: Any, setting: Setting) -> Style:
        """The style of the class's main kernel."""
        plan, *_ = self.plans(problem, "auto", kernel, setting)
        return plan.parts[0].style

    def few_rows(self, problem: Any, kernel: Any) -> Number:
        """Which problems run on the library's kernel for few rows."""
        return False

    def check_schedule(self, schedule: str) -> None:
        """Raise `ProblemError` for a schedule that the operator does not have."""
        if schedule not in self.schedules:
            raise ProblemError(
                f"schedule {schedule!r} is not known for {self.name}; it is one of "
                f"{', '.join(self.schedules)}"
            )

    def time(
        self, problem: Problem, device: Device, constants: Constants, request: Request
    ) -> Timed:
        """Time n problems, which must have one `same_call` code."""
        chip = machine(device)
        batch, n = columns(problem)
        conditions = circumstances(request.harness, problem.operator, constants)
        tile_columns = owntile.columns(request.tile)
        setting = Setting(chip, constants, conditions, tile_columns)
        self.check_schedule(request.schedule)
        kernel, notes = self.kernels(batch, request, chip)
        kernel = _ablation(kernel, constants)
        for variant in (kernel,) if request.tile else _smaller_versions(kernel):
            plans = self.plans(batch, request.schedule, variant, setting)
            plans, link_notes = placed(plans, request.place, device)
            plans = handed(plans, request.reuse)
            total, tile = best(chip, constants, plans, n)
            if np.all(np.isfinite(total.seconds)):
                break
        else:
            raise self._fit_error(device, plans[0], request, np.isfinite(total.seconds))
        if variant is not kernel:
            notes = (*notes, f"no tile of {kernel.name} fits on {device.slug}: a smaller one taken")
        caveats = unknowns(self.library, request.implementation, request.harness, device)
        gap = unmet(request.implementation, notes)
        if gap is not None:
            caveats["implementation"] = gap
        if link_notes:
            caveats["link"] = "; ".join(link_notes)
        included = self._extra_seconds(batch, request, kernel, setting)
        extra = np.broadcast_to(np.asarray(included, dtype=np.float64).reshape(-1), (n,))
        device_seconds = total.seconds + extra
        dispatch = floors.dispatch(
            constants,
            request.harness,
            self.called_as(problem),
            kernel.caller,
            self.few_rows(problem, kernel),
            calls=_flat_calls(sum(plan.calls for plan in plans)),
            machine=chip,
        )
        seconds = dispatch.whole(device_seconds)
        return Timed(
            schedule=" + ".join(dict.fromkeys(plan.schedule for plan in plans)),
            implementation=kernel.name,
            seconds=seconds,
            estimate=total,
            launch_seconds=seconds - device_seconds,
            included_seconds=extra,
            tile=tile,
            assumptions=tuple(dict.fromkeys((*chip.assumptions, *notes, *caveats.values()))),
            unknowns=caveats,
            dispatch=dispatch,
        )

    def _extra_seconds(
        self,
        problem: Any,
        request: Request,
        kernel: Any,
        setting: Setting,
    ) -> Number:
        """Seconds of the other kernels in the timed region."""
        constants = setting.constants
        includes = request.includes
        quantises = isinstance(kernel, GemmFacts) and kernel.quantises
        if quantises and constants.run(request.harness).library_kernels:
            includes = (*includes, "quantise_activations")
        includes = () if "included" in constants.off else tuple(dict.fromkeys(includes))
        return included_seconds(setting, problem, kernel, includes)

    def _fit_error(
        self, device: Device, plan: Plan, request: Request, fits: np.ndarray
    ) -> ProblemError:
        limit = machine(device).shared_per_block / 1024
        room = f"a block may hold {limit:.0f} KiB of shared memory"
        if request.tile:
            tile = owntile.described(request.tile, int(np.argmin(fits)))
            return owntile.TileDoesNotFit(
                f"a tile of {tile} does not fit on {device.slug}: {room}; take a smaller tile or "
                "fewer stages",
                fits,
            )
        return ProblemError(
            f"no tile of {plan.schedule} fits on {device.slug}: {room}; use {self.smaller} or "
            "another schedule"
        )


def _smaller_versions(kernel: KernelFacts) -> Iterator[KernelFacts]:
    """The class, then versions of it with smaller and smaller tiles."""
    yield kernel
    while isinstance(kernel, AttentionFacts) and (smaller := kernel.smaller()) != kernel:
        kernel = smaller
        yield kernel


def unknowns(name: str, implementation: str | None, harness: str, device: Device) -> dict[str, str]:
    """What is unknown of a run: its kernel, its harness, a device that is not a GPU.

    `name` is the operator whose library kernels it uses.
    """
    caveats = {}
    if implementation and asked_for(name, implementation) is None:
        choice = "a good library's is taken"
        if is_known(name, implementation):
            choice = "taken for the kernel whose name it contains"
        caveats["implementation"] = f"implementation {implementation!r} is not known: {choice}"
    if harness == UNKNOWN:
        caveats["harness"] = "how the run was timed is not known: device time is taken"
    if device.kind != "gpu":
        caveats["kind"] = f"{device.slug} is not a GPU, and the model is fitted to GPUs only"
    return caveats


def _flat_calls(calls: Number) -> Number:
    """Calls of each problem as shape (n,), from a column."""
    return calls.reshape(-1) if isinstance(calls, np.ndarray) else calls


def _ablation(kernel: KernelFacts, constants: Constants) -> KernelFacts:
    """The class without its menu or its slicing, where `constants.off` has these."""
    if "menu" in constants.off and isinstance(kernel, MatrixFacts):
        kernel = replace(kernel, tiles={dim: menu[:1] for dim, menu in kernel.tiles.items()})
    if "split" in constants.off and isinstance(kernel, GemmFacts):
        kernel = replace(kernel, splits=(1,))
    return kernel


def multiplied_as(wanted: str, dtype: str, here: Machine) -> tuple[str, tuple[str, ...]]:
    """The type by which the library's kernel is chosen, and a sentence where it is another one.

    `wanted` is the type that `dtype` is multiplied in. Quantised operands keep the kernels of their
    format, whatever type these multiply in.
    """
    run = here.multiplied_as(wanted)
    if run == wanted:
        return dtype, ()
    note = f"{here.device.slug} has no {wanted} rate: values are widened and multiplied as {run}"
    return (run if dtype == wanted else dtype), (note,)


def best(
    here: Machine, constants: Constants, plans: list[Plan], n: int
) -> tuple[Estimate, Mapping[str, np.ndarray]]:
    """Each plan's fastest column for every problem, summed over the plans, and the first plan's
    tile."""
    total: Estimate | None = None
    tile: dict[str, np.ndarray] = {}
    for plan in plans:
        width = max((value.shape[-1] for value in plan.tile.values()), default=1)
        timing = time_plan(here, constants, plan, (n, width))
        column = np.argmin(timing.seconds, axis=1)
        estimate = timing.at(column)
        total = estimate if total is None else total.plus(estimate)
        tile = tile or {name: np.broadcast_to(v, (n, width))[np.arange(n), column]
                        for name, v in plan.tile.items()}  # fmt: skip
    assert total is not None
    return total, tile
