"""`perfmodel compile KERNEL`: resources and instructions of a kernel's binary, for any GPU."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import click

from perfmodel.cli import kerneloptions, spellings
from perfmodel.cli.arguments import SomeDevices
from perfmodel.cli.build import PASS_ON, command
from perfmodel.cli.kerneloptions import problems
from perfmodel.cli.progress import progress
from perfmodel.errors import ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.hardware import Device, load
from perfmodel.render.report import Column, Report, binary, ratio, text

if TYPE_CHECKING:
    from perfmodel.proof.compiled.compiled import CompiledKernel, CompiledLaunch


@dataclass(frozen=True)
class Asked(kerneloptions.Asked):
    """What `compile` is asked for."""

    target: Annotated[
        list[str] | None,
        FieldOption(
            None, "NAMES", ("--target", "-t"), names="perfmodel.proof.compiled.targets:TARGETS"
        ),
    ] = None
    """Compile for these: sm_80, sm_89, sm_90, sm_100, sm_120, gfx942, with commas or repeated."""
    device: SomeDevices = ()
    """Devices to compute occupancy for: a100,h100 or repeated (perfmodel hardware list)."""


def compile(context: click.Context, asked: Asked) -> Report:
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
    from perfmodel.proof.compiled.compiled import Request, compile_all, first_fitting
    from perfmodel.proof.compiled.targets import TARGETS, target, target_of

    targets = [target(name) for text in asked.target or () for name in spellings.names(text)]
    program = asked.loaded()
    pairs = [(target_of(device), device) for device in asked.device]
    targets = targets or [each for each, _ in pairs]
    targets = targets or [each for each in TARGETS.values() if program.takes(each.name)]
    devices: dict[Any, list[Device]] = {each: [] for each in targets}
    for each, device in pairs:
        if each not in devices:
            raise ProblemError(f"{device.slug} runs {each.name}; add --target {each.name}")
        devices[each].append(device)
    builds: list[CompiledKernel] = []
    with progress("compiling") as tell:
        for problem in problems(program, context.args):
            if not asked.config:
                builds += first_fitting(program, problem, [*devices], tell)
                continue
            config = asked.configured(program.configs[0])
            requests = [Request(program, problem, config, each) for each in devices]
            for _, outcome in compile_all(requests, tell):
                if isinstance(outcome, Exception):
                    raise outcome
                builds.append(outcome)
    rows = [
        _row(build, launch, device)
        for build in builds
        for launch in build.launches
        for device in devices[build.target] or [load(build.target.device)]
    ]
    title = f"{program.name}: {program.summary}"
    return Report("compiled", rows, _columns(rows), title=title)


def _row(build: CompiledKernel, launch: CompiledLaunch, device: Device) -> dict[str, Any]:
    """The values of a launch on a device."""
    occupancy, slots = launch.occupancy(device), launch.issue_slots(device)
    resources = (
        "registers", "scalar_registers", "spill_bytes", "static_shared_bytes",
        "dynamic_shared_bytes", "shared_bytes", "tensor_memory_columns", "threads",
    )  # fmt: skip
    return {
        "kernel": build.kernel,
        "launch": launch.kernel,
        "target": build.target.name,
        "device": device.slug,
        "problem": asdict(build.problem),
        "config": asdict(build.config),
        **{name: getattr(launch, name) for name in resources},
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

    def config(row: Mapping[str, Any]) -> str:
        settings = ((k, v) for k, v in row["config"].items() if v not in (None, False))
        return " ".join(f"{name}={value}" for name, value in settings)

    def counts(row: Mapping[str, Any]) -> Mapping[str, int]:
        """Instructions in the loop, or in the whole listing if it has no loop."""
        loop: Mapping[str, int] = row["per_pass"]
        return loop if any(loop.values()) else row["instructions"]

    def unit(name: str) -> Column:
        return Column(name, lambda row: counts(row)[name], str, rank=6)

    return [
        *([text("launch", "launch")] if len({row["launch"] for row in rows}) > 1 else []),
        text("target", "target"),
        text("device", "device", rank=4),
        Column("config", config, number=False, fold=16, rank=5),
        Column("registers", "registers", rank=1),
        Column("spilled", lambda row: row["spill_bytes"], "{:,} B".format, rank=1,
               style=lambda row: "red" if row["spill_bytes"] else ""),
        Column("shared", "shared_bytes", binary, rank=1),
        Column("threads", "threads", rank=3),
        Column("blocks", "blocks_per_unit", rank=3),
        Column("occupancy", "occupancy", "{:.1%}", rank=1),
        text("limited by", "occupancy_limit", rank=2),
        *(unit(name) for name in rows[0]["instructions"] if any(counts(r)[name] for r in rows)),
        Column("cycles/pass", lambda row: row["cycles_per_pass"].get(row["limiter"], math.nan),
               ratio, rank=2),
        text("limiter", "limiter"),
    ]  # fmt: skip


app = command(compile, settings=PASS_ON)
