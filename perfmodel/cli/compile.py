"""`perfmodel compile KERNEL`: resources and instructions of a kernel's binary, for any GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import click

from perfmodel.cli import completing, known
from perfmodel.cli.arguments import SomeDevices
from perfmodel.cli.build import PASS_ON, command
from perfmodel.cli.kerneloptions import Config, Kernel, configured, loaded, problems
from perfmodel.cli.output import Shown
from perfmodel.cli.progress import counted
from perfmodel.errors import ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.hardware import Device, load
from perfmodel.render.report import Column, Report, binary, ratio, text

if TYPE_CHECKING:
    from perfmodel.evidence.compiled.compiled import CompiledKernel, CompiledLaunch
    from perfmodel.evidence.compiled.targets import Target
    from perfmodel.evidence.kernel import BundledKernel


@dataclass(frozen=True)
class Asked:
    """What `compile` is asked for."""

    kernel: Kernel
    """A bundled kernel, or a file's."""
    target: Annotated[
        list[str] | None,
        FieldOption(None, "NAMES", ("--target", "-t"), complete=completing.targets),
    ] = None
    """Compile for these: sm_80, sm_89, sm_90, sm_100, sm_120, gfx942, with commas or repeated."""
    device: SomeDevices = None
    """Devices to compute occupancy for: a100,h100 or repeated (perfmodel hardware list)."""
    config: Config = None
    """Set a field of the config: bm=128; repeats."""


def compile(context: click.Context, asked: Asked, shown: Shown) -> None:
    """Compile a kernel without a GPU: registers, spills, occupancy, instructions, limiter.

    The problem's sizes are options as in predict (--seq 8k --head-dim 64, -m 4096, --dtype fp16).
    Without --target and --device, all targets that the kernel is written for are compiled. Without
    --config, the first config of its menu that fits is taken. A pass is one tile of the innermost
    loop.

    \b
        perfmodel compile matmul --target sm_90 --target gfx942 -m 4096 -n 4096 -k 4096
        perfmodel compile attention-tiled --device h100-sxm --seq 4096 --causal
        perfmodel compile matmul --target sm_89 --config bm=256 --config stages=2 --format json
    """
    from perfmodel.evidence.compiled.targets import target as named

    targets = [named(name) for text in asked.target or () for name in known.names(text)]
    program = loaded(asked.kernel)
    by_target = dict(_devices(program, targets, known.devices(asked.device or ())))
    with counted("compiling") as tell:
        rows = [
            row
            for problem in problems(program, context.args)
            for build in _builds(program, problem, asked.config or [], [*by_target], tell)
            for row in _rows(build, by_target[build.target])
        ]
    title = f"{program.name}: {program.summary}"
    shown.emit(Report("compiled", rows, _columns(rows), title=title))


def _devices(
    kernel: BundledKernel, targets: Sequence[Target], devices: Sequence[Device]
) -> list[tuple[Target, list[Device]]]:
    """Each target with its devices: those named, else one representative device.

    Where nothing is named, the targets are all that the kernel is written for.
    """
    from perfmodel.evidence.compiled.targets import TARGETS, target_of

    pairs = [(target_of(device), device) for device in devices]
    all_targets = [target for target in TARGETS.values() if kernel.takes(target.name)]
    order = list(targets) or list(dict.fromkeys(target for target, _ in pairs)) or all_targets
    for target, device in pairs:
        if target not in order:
            raise ProblemError(f"{device.slug} runs {target.name}; add --target {target.name}")
    groups = {item.name: [device for target, device in pairs if target == item] for item in order}
    return [(item, groups[item.name] or [load(item.device)]) for item in dict.fromkeys(order)]


def _builds(
    kernel: BundledKernel,
    problem: Any,
    settings: Sequence[str],
    targets: Sequence[Target],
    tell: Callable[[int, int], None],
) -> list[CompiledKernel]:
    from perfmodel.evidence.compiled.compiled import (
        CompiledKernel,
        Request,
        compile_all,
        first_fitting,
    )

    if not settings:
        return first_fitting(kernel, problem, targets, tell)
    config = configured(kernel.configs[0], settings)
    builds = []
    requests = [Request(kernel, problem, config, target) for target in targets]
    for _, outcome in compile_all(requests, tell):
        if not isinstance(outcome, CompiledKernel):
            raise outcome
        builds.append(outcome)
    return builds


def _rows(build: CompiledKernel, devices: Sequence[Device]) -> Iterator[dict[str, Any]]:
    """The values of every launch on every device."""
    for launch in build.launches:
        for device in devices:
            yield _row(build, launch, device)


def _row(build: CompiledKernel, launch: CompiledLaunch, device: Device) -> dict[str, Any]:
    occupancy, slots = launch.occupancy(device), launch.issue_slots(device)
    config = {item.name: getattr(build.config, item.name) for item in fields(build.config)}
    problem = {item.name: getattr(build.problem, item.name) for item in fields(build.problem)}
    return {
        "kernel": build.kernel,
        "launch": launch.kernel,
        "target": build.target.name,
        "device": device.slug,
        "problem": problem,
        "config": config,
        "registers": launch.registers,
        "scalar_registers": launch.scalar_registers,
        "spill_bytes": launch.spill_bytes,
        "static_shared_bytes": launch.static_shared_bytes,
        "dynamic_shared_bytes": launch.dynamic_shared_bytes,
        "shared_bytes": launch.shared_bytes,
        "tensor_memory_columns": launch.tensor_memory_columns,
        "threads": launch.threads,
        "blocks_per_unit": occupancy.blocks,
        "warps_per_unit": occupancy.warps,
        "occupancy": occupancy.share,
        "occupancy_limit": occupancy.limit,
        "instructions": launch.instructions,
        "per_pass": launch.loop_instructions,
        "matrix_operations_per_pass": launch.loop_operations,
        "cycles_per_pass": dict(slots.cycles),
        "limiter": slots.limiter,
    }


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    """Columns of the table: the resources, then a warp's instructions in one pass by unit."""
    several = len({row["launch"] for row in rows}) > 1
    columns: list[Column] = [text("launch", "launch")] if several else []
    columns += [text("target", "target"), text("device", "device", rank=4)]
    columns.append(Column("config", _config, number=False, fold=16, rank=5))
    columns += [_integer("registers", "registers", 1), _spills()]
    columns.append(Column("shared", lambda row: row["shared_bytes"], binary, rank=1))
    columns += [_integer("threads", "threads", 3), _integer("blocks", "blocks_per_unit", 3)]
    columns.append(Column("occupancy", "occupancy", "{:.1%}", rank=1))
    columns.append(text("limited by", "occupancy_limit", rank=2))
    columns += [_per_pass(unit) for unit in _units(rows)]
    columns.append(Column("cycles/pass", _busiest, ratio, rank=2))
    columns.append(text("limiter", "limiter"))
    return columns


def _integer(header: str, key: str, rank: int) -> Column:
    return Column(header, lambda row: row[key], str, rank=rank)


def _spills() -> Column:
    """Spilled registers, coloured because each costs memory traffic."""
    return Column(
        "spilled",
        lambda row: row["spill_bytes"],
        lambda spilled: f"{spilled:,} B",
        rank=1,
        style=lambda row: "red" if row["spill_bytes"] else "",
    )


def _units(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Units that any row uses in its loop, or in its whole listing if it has no loop."""
    units = rows[0]["instructions"]
    return [unit for unit in units if any(_counts(row)[unit] for row in rows)]


def _counts(row: Mapping[str, Any]) -> Mapping[str, int]:
    looped = any(row["per_pass"].values())
    counts: Mapping[str, int] = row["per_pass"] if looped else row["instructions"]
    return counts


def _per_pass(unit: str) -> Column:
    return Column(unit, lambda row: _counts(row)[unit], str, rank=6)


def _busiest(row: Mapping[str, Any]) -> float:
    cycles: Mapping[str, float] = row["cycles_per_pass"]
    return cycles.get(row["limiter"], math.nan)


def _config(row: Mapping[str, Any]) -> str:
    """The config's fields that are set, in the order of its definition."""
    settings = ((k, v) for k, v in row["config"].items() if v not in (None, False))
    return " ".join(f"{name}={value}" for name, value in settings)


app = command(compile, settings=PASS_ON)
