"""`perfmodel map ALGORITHM`: fusion, loop nest and tiles for least time or least traffic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from perfmodel.cli import completing, declared, known, spellings
from perfmodel.cli.drawing import Drawing, with_drawing
from perfmodel.cli.output import Format, Output, chosen_format, emit
from perfmodel.cli.progress import status
from perfmodel.errors import ProblemError, UnknownName

if TYPE_CHECKING:
    from perfmodel.algorithms.declaration import Case
    from perfmodel.hardware import Device
    from perfmodel.operators.declared import Fastest
    from perfmodel.render.report import Report

OBJECTIVES = ("time", "bytes")
LEVELS = ("shared", "L2")

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("map", context_settings=declared.PASS_ON)
@with_drawing
def map_(
    context: typer.Context,
    algorithm: declared.Algorithm = None,
    device: Annotated[
        list[str] | None,
        typer.Option(
            "--device",
            "--gpu",
            "-d",
            metavar="NAMES",
            help="Devices: a100,h100 or repeated (perfmodel hardware list).",
            autocompletion=completing.devices,
        ),
    ] = None,
    objective: Annotated[
        str,
        typer.Option(
            "--objective",
            metavar="NAME",
            help="What to minimise: time, or bytes into a memory level.",
            autocompletion=completing.of_list(lambda: OBJECTIVES),
        ),
    ] = "time",
    level: Annotated[
        str,
        typer.Option(
            "--level",
            metavar="NAME",
            help="With --objective bytes, the level: shared or L2.",
            autocompletion=completing.of_list(lambda: LEVELS),
        ),
    ] = "shared",
    capacity: Annotated[
        str | None,
        typer.Option(
            "--capacity",
            metavar="SIZE",
            help='With --objective bytes, a capacity in place of a level: "25 MiB".',
        ),
    ] = None,
    dtype: declared.Dtype = "bf16",
    trace: Annotated[
        bool,
        typer.Option("--trace", help="Show the candidates that each kernel's search considered."),
    ] = False,
    chart: Annotated[
        str | None,
        typer.Option(
            "--chart",
            metavar="FILE",
            help="Chart of least traffic against capacity (.svg, .pdf, .png); for one device.",
        ),
    ] = None,
    format: Format = None,
    output: Output = None,
    *,
    drawing: Drawing,
) -> None:
    """Search fusions, loop nests and tiles of an algorithm for the best on a device.

    \b
    perfmodel map attention --device h100-sxm --seq 8192 --trace
    perfmodel map mlp --objective bytes --capacity "25 MiB"
    perfmodel map attention --device h100-sxm --chart slope.svg
    """
    from perfmodel.cli.output import to_stdout

    if algorithm is None:
        to_stdout(iter([declared.listing()]))
        return
    form = chosen_format(format, output)
    drawing.check(chart)
    if objective not in OBJECTIVES:
        raise UnknownName("objective", objective, OBJECTIVES)
    from perfmodel.algorithms import library

    case = declared.case(
        library.load(spellings.operator(algorithm, library.names())), context.args, dtype
    )
    targets: list[Device | None] = list(known.devices(device)) if device else [None]
    if len(targets) > 1 and (form in ("json", "csv") or chart is not None):
        raise ProblemError("a chart, JSON and CSV take one device; run the command for each")
    if chart is not None:
        _draw(case, targets[0], chart, drawing)
    if objective == "time":
        with status("searching schedules"):
            reports = [_fastest(case, _require_device(target), full=trace) for target in targets]
    else:
        reports = [_least(case, _capacity(target, level, capacity)) for target in targets]
    emit(reports[0], format, output, *reports[1:])


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
