"""`perfmodel map ALGORITHM`: fusion, loop nest and tiles for least time or least traffic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import click

from perfmodel.cli import completing, declared, known
from perfmodel.cli.arguments import Chart, SomeDevices
from perfmodel.cli.build import PASS_ON, command
from perfmodel.cli.drawing import Drawing
from perfmodel.cli.output import Shown, to_stdout
from perfmodel.cli.progress import status
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.fieldoption import FieldOption

if TYPE_CHECKING:
    from perfmodel.algorithms.declaration import Case
    from perfmodel.hardware import Device
    from perfmodel.operators.declared import Fastest
    from perfmodel.render.report import Report

OBJECTIVES = ("time", "bytes")
LEVELS = ("shared", "L2")


@dataclass(frozen=True)
class Asked(declared.Asked):
    """What `map` is asked for."""

    device: SomeDevices = None
    """Devices: a100,h100 or repeated (perfmodel hardware list)."""
    objective: Annotated[
        str, FieldOption(None, "NAME", complete=completing.of_list("perfmodel.cli.map_:OBJECTIVES"))
    ] = "time"
    """What to minimise: time, or bytes into a memory level."""
    level: Annotated[
        str, FieldOption(None, "NAME", complete=completing.of_list("perfmodel.cli.map_:LEVELS"))
    ] = "shared"
    """With --objective bytes, the level: shared or L2."""
    capacity: Annotated[str | None, FieldOption(None, "SIZE")] = None
    """With --objective bytes, a capacity in place of a level: "25 MiB"."""
    trace: bool = False
    """Show the candidates that each kernel's search considered."""
    chart: Chart = None
    """Chart of least traffic against capacity (.svg, .pdf, .png); for one device."""


def map_(context: click.Context, asked: Asked, shown: Shown, drawing: Drawing) -> None:
    """Search fusions, loop nests and tiles of an algorithm for the best on a device.

    \b
    perfmodel map attention --device h100-sxm --seq 8192 --trace
    perfmodel map mlp --objective bytes --capacity "25 MiB"
    perfmodel map attention --device h100-sxm --chart slope.svg
    """
    if asked.algorithm is None:
        to_stdout(iter([declared.listing()]))
        return
    drawing.check(asked.chart)
    if asked.objective not in OBJECTIVES:
        raise UnknownName("objective", asked.objective, OBJECTIVES)
    case = declared.case(asked.declaration(), context.args, asked.dtype)
    targets: list[Device | None] = list(known.devices(asked.device)) if asked.device else [None]
    if len(targets) > 1 and (shown.form in ("json", "csv") or asked.chart is not None):
        raise ProblemError("a chart, JSON and CSV take one device; run the command for each")
    if asked.chart is not None:
        _draw(case, targets[0], asked.chart, drawing)
    if asked.objective == "time":
        with status("searching schedules"):
            shown.emit(
                *(_fastest(case, _require_device(each), full=asked.trace) for each in targets)
            )
    else:
        sizes = [_capacity(target, asked.level, asked.capacity) for target in targets]
        shown.emit(*(_least(case, size) for size in sizes))


def _require_device(device: Device | None) -> Device:
    if device is None:
        raise ProblemError("the fastest schedule needs a device: --device NAME")
    return device


def _title(case: Case) -> str:
    sizes = " ".join(f"{name}={value}" for name, value in case.parameters.items())
    return f"{case.algorithm.name}: {sizes} dtype={case.dtype}"


def _fastest(case: Case, device: Device, *, full: bool) -> Report:
    from perfmodel.napkin import trace
    from perfmodel.operators.declared import fastest
    from perfmodel.render.report import Column, Report, micros, quantity, text
    from perfmodel.timing.constants import default

    best = fastest(case, device, default())
    schedule = best.found
    rows, names = trace.rows(schedule), {level.name: level.short for level in device.levels()}
    columns = [
        text("kernel", "kernel", fold=16),
        text("blocks", "blocks", fold=12),
        text("stream", "stream", fold=12),
        Column("time", lambda row: row["time_us"], micros),
        Column("limiter", lambda row: names.get(row["limiter"], row["limiter"]), number=False),
        Column(names["hbm"], lambda row: row["hbm_bytes"], quantity("B"), rank=1),
        Column("L2", lambda row: row["l2_bytes"], quantity("B"), rank=2),
        Column("threads", lambda row: row["threads"], str, rank=3),
        Column("buffers", lambda row: row["stages"], str, rank=4),
    ]
    head = {"device": device.slug, "algorithm": case.algorithm.name, "time_us": best.seconds * 1e6}
    notes = [*trace.sentences(schedule, full=full), *_library(best)]
    return Report(
        "kernels",
        rows,
        columns,
        title=f"{_title(case)} on {device.slug}",
        head={**head, "trace": notes},
        notes=notes,
        examples=rows,
    )


def _library(best: Fastest) -> Iterator[str]:
    """Which schedule libraries have: the one found, or a faster one."""
    from perfmodel.units import seconds

    if best.library is None:
        yield "no library's kernel of this algorithm is known"
        return
    library = best.library
    name, time = library.implementation, seconds(best.library_seconds)
    tile = " ".join(f"{axis}={size[0]:g}" for axis, size in library.tile.items())
    own_time = seconds(best.found.seconds)
    if best.of_library:
        yield f"fastest: the library kernel {name} ({tile}), {time}; that schedule takes {own_time}"
    else:
        yield f"the library kernel {name} ({tile}) takes {time}; no library has that schedule"


def _least(case: Case, capacity_bytes: float) -> Report:
    from perfmodel.napkin import trace
    from perfmodel.render.report import Column, Report, binary, quantity, text

    plan = trace.least_bytes(case, capacity_bytes)
    rows = trace.least_rows(plan)
    columns = [
        text("kernel", "kernel", fold=16),
        text("blocks", "blocks", fold=12),
        text("stream", "stream", fold=12),
        Column("moved", lambda row: row["moved_bytes"], quantity("B")),
        Column("held", lambda row: row["held_bytes"], binary),
    ]
    notes = list(trace.least_sentences(plan))
    head = {
        "algorithm": case.algorithm.name,
        "capacity_bytes": capacity_bytes,
        "moved_bytes": plan.moved_bytes,
        "fused_over_unfused": plan.ratio,
        "trace": notes,
    }
    return Report("kernels", rows, columns, _title(case), head=head, notes=notes, examples=rows)


def _capacity(device: Device | None, level: str, capacity: str | None) -> float:
    from perfmodel.units import parse

    if capacity is not None:
        return parse(capacity, "capacity")
    if device is None:
        raise ProblemError('least bytes need a capacity ("25 MiB") or a device with its levels')
    capacities = {"shared": device.shared_max_per_block_bytes, "l2": device.l2_capacity_bytes}
    if level.lower() not in capacities:
        raise UnknownName("level", level, LEVELS)
    value = capacities[level.lower()]
    if value is None:
        raise ProblemError(f"{device.slug} states no capacity of its {level}; give --capacity")
    return float(value)


def _draw(case: Case, device: Device | None, path: str, drawing: Drawing) -> None:
    from perfmodel.napkin.skislope import ski_slopes
    from perfmodel.render.problem import spoken
    from perfmodel.render.skislope import figure

    title = spoken(case.algorithm.name, {"dtype": case.dtype, **case.parameters})
    drawing.save(figure(ski_slopes(case, device), title=title, page=drawing.page), path)


app = command(map_, settings=PASS_ON)
