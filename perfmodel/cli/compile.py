"""`perfmodel compile KERNEL`: resources and instructions of a kernel's binary, for any GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perfmodel.cli import completing, known
from perfmodel.cli.kerneloptions import Kernel, configured, loaded, problems
from perfmodel.cli.output import Format, Output, chosen_format, emit
from perfmodel.cli.progress import counted
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device, load
from perfmodel.render.report import Column, Report, binary, percent, ratio, text

if TYPE_CHECKING:
    from perfmodel.evidence.compiled.compiled import CompiledKernel, CompiledLaunch
    from perfmodel.evidence.compiled.targets import Target
    from perfmodel.evidence.kernel import BundledKernel

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def compile(
    context: typer.Context,
    kernel: Kernel,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            metavar="NAMES",
            help="Compile for these: sm_80, sm_89, sm_90, sm_100, sm_120, gfx942, "
            "with commas or repeated.",
            autocompletion=completing.targets,
        ),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(
            "--device",
            "--gpu",
            "-d",
            metavar="NAMES",
            help="Devices to compute occupancy for: a100,h100 or repeated (perfmodel "
            "hardware list).",
            autocompletion=completing.devices,
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            "-c",
            metavar="KEY=VALUE",
            help="Set a field of the config: bm=128; repeats.",
        ),
    ] = None,
    format: Format = None,
    output: Output = None,
) -> None:
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
    chosen_format(format, output)
    from perfmodel.evidence.compiled.targets import target as named

    targets = [named(name) for text in target or () for name in known.names(text)]
    chosen = loaded(kernel)
    by_target = dict(_devices(chosen, targets, known.devices(device or ())))
    with counted("compiling") as tell:
        rows = [
            row
            for problem in problems(chosen, context.args)
            for made in _compiled(chosen, problem, config or [], [*by_target], tell)
            for row in _rows(made, by_target[made.target])
        ]
    title = f"{chosen.name}: {chosen.summary}"
    emit(Report("compiled", rows, _columns(rows), title=title), format, output)


def _devices(
    kernel: BundledKernel, targets: Sequence[Target], devices: Sequence[Device]
) -> list[tuple[Target, list[Device]]]:
    """Each target with its devices: those named, else one representative device.

    Where nothing is named, the targets are all that the kernel is written for.
    """
    from perfmodel.evidence.compiled.targets import TARGETS, target_of

    own = [(target_of(device), device) for device in devices]
    every = [found for found in TARGETS.values() if kernel.takes(found.name)]
    wanted = list(targets) or list(dict.fromkeys(found for found, _ in own)) or every
    for found, device in own:
        if found not in wanted:
            raise ProblemError(f"{device.slug} runs {found.name}; add --target {found.name}")
    named = {item.name: [device for found, device in own if found == item] for item in wanted}
    return [(item, named[item.name] or [load(item.device)]) for item in dict.fromkeys(wanted)]


def _compiled(
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
    chosen = configured(kernel.configs[0], settings)
    made = []
    requests = [Request(kernel, problem, chosen, target) for target in targets]
    for _, found in compile_all(requests, tell):
        if not isinstance(found, CompiledKernel):
            raise found
        made.append(found)
    return made


def _rows(made: CompiledKernel, devices: Sequence[Device]) -> Iterator[dict[str, Any]]:
    """The values of every launch on every device."""
    for launch in made.launches:
        for device in devices:
            yield _row(made, launch, device)


def _row(made: CompiledKernel, launch: CompiledLaunch, device: Device) -> dict[str, Any]:
    where, slots = launch.occupancy(device), launch.issue_slots(device)
    plain = {item.name: getattr(made.config, item.name) for item in fields(made.config)}
    problem = {item.name: getattr(made.problem, item.name) for item in fields(made.problem)}
    return {
        "kernel": made.kernel,
        "launch": launch.kernel,
        "target": made.target.name,
        "device": device.slug,
        "problem": problem,
        "config": plain,
        "registers": launch.registers,
        "scalar_registers": launch.scalar_registers,
        "spill_bytes": launch.spill_bytes,
        "static_shared_bytes": launch.static_shared_bytes,
        "dynamic_shared_bytes": launch.dynamic_shared_bytes,
        "shared_bytes": launch.shared_bytes,
        "tensor_memory_columns": launch.tensor_memory_columns,
        "threads": launch.threads,
        "blocks_per_unit": where.blocks,
        "warps_per_unit": where.warps,
        "occupancy": where.share,
        "occupancy_limit": where.limit,
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
    columns += [_whole("registers", "registers", 1), _spilled()]
    columns.append(Column("shared", lambda row: row["shared_bytes"], binary, rank=1))
    columns += [_whole("threads", "threads", 3), _whole("blocks", "blocks_per_unit", 3)]
    columns.append(percent("occupancy", "occupancy", rank=1))
    columns.append(text("limited by", "occupancy_limit", rank=2))
    columns += [_per_pass(unit) for unit in _units(rows)]
    columns.append(Column("cycles/pass", _busiest, ratio, rank=2))
    columns.append(text("limiter", "limiter"))
    return columns


def _whole(header: str, key: str, rank: int) -> Column:
    return Column(header, lambda row: row[key], str, rank=rank)


def _spilled() -> Column:
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
    every = rows[0]["instructions"]
    return [unit for unit in every if any(_counts(row)[unit] for row in rows)]


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
    kept = ((k, v) for k, v in row["config"].items() if v not in (None, False))
    return " ".join(f"{name}={value}" for name, value in kept)
