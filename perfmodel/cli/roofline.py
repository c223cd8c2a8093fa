"""`perfmodel roofline OPERATOR`: rooflines of devices with predicted and measured kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from perfmodel.algorithms import Problem
from perfmodel.algorithms.problem import describe, length, pick
from perfmodel.algorithms.sizes import check_cases
from perfmodel.cli import known
from perfmodel.cli.cases import Cases
from perfmodel.cli.operatorgroup import operator_group
from perfmodel.cli.output import say
from perfmodel.cli.predict import Devices, Implementations, Mesh, Schedule, Stored
from perfmodel.cli.progress import status
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.operators import Operator
from perfmodel.predict import predict_arrays
from perfmodel.prediction import Prediction
from perfmodel.render.figure import chart_suffix, save
from perfmodel.render.foot import MARKERS
from perfmodel.render.roofline import roofline_chart
from perfmodel.render.roofs import Kernel, roofs

if TYPE_CHECKING:
    import pandas as pd


Picture = Annotated[
    str,
    typer.Option(
        "--output", "-o", "--chart", metavar="FILE", help="The chart, as .svg, .pdf or .png."
    ),
]
Measured = Annotated[
    list[str] | None,
    typer.Option(
        "--measured", metavar="TABLE", help="Measured runs of these cases, drawn filled; repeats."
    ),
]
Level = Annotated[
    str, typer.Option("--level", metavar="LEVELS", help="Memory levels: hbm,llc,l2,shared.")
]
RoofTypes = Annotated[
    str | None,
    typer.Option("--roof", metavar="TYPES", help="Matrix ceilings [default: the types used]."),
]
Size = Annotated[str | None, typer.Option("--size", metavar="WxH", help="Inches, such as 6x4.5.")]


def roofline(
    cases: Cases,
    device: Devices,
    output: Picture,
    schedule: Schedule = "auto",
    implementation: Implementations = None,
    mesh: Mesh = None,
    stored: Stored = None,
    measured: Measured = None,
    level: Level = "hbm,llc,l2,shared",
    roof: RoofTypes = None,
    size: Size = None,
) -> None:
    """Draw the devices' rooflines with every case in every schedule."""
    chart_suffix(output)
    inches = _inches(size)
    schedules = known.schedules(cases.operator, schedule)
    kernels = known.named_implementations(cases.operator, implementation)
    marks = cases.count * len(schedules) * len(kernels)
    check_cases(marks, len(MARKERS), "the marks of a chart; draw several")
    how = {
        "mesh": known.mesh(mesh),
        "stored": known.storing(stored),
    }
    if measured and mesh:
        raise ProblemError("--measured is of one device; drop it, or --mesh")
    devices = known.devices(device)
    types = known.names(roof) or _types(cases)
    levels = known.names(level)
    lines = [roofs(item, types, levels) for item in devices]
    with status("predicting") as report:
        drawn = []
        for item, name, kernel in product(devices, schedules, kernels):
            report(item.slug)
            ways = {**how, "schedule": name, "implementation": kernel}
            apart = _apart(name, kernel, len(schedules), len(kernels))
            drawn += _predicted(cases, item, ways, apart)
        if measured:
            drawn += _measured(measured, cases, devices, schedules, kernels)
        report("drawing")
        save(roofline_chart(lines, drawn, size=inches), output)
    say(f"wrote {output}")


def _inches(size: str | None) -> tuple[float, float] | None:
    if size is None:
        return None
    try:
        width, height = (float(part) for part in size.lower().split("x"))
    except ValueError:
        raise ProblemError(f"--size {size!r} is not WIDTHxHEIGHT in inches; write 6x4.5") from None
    if not (1 <= width <= 60 and 1 <= height <= 60):
        raise ProblemError(f"--size {size!r} is not between 1 and 60 inches; write 6x4.5")
    return width, height


def _types(cases: Cases) -> tuple[str, ...]:
    """Types whose matrix rates the cases run at."""
    problems = (problem for _, found in cases.chunks() for problem, _ in found)
    found = dict.fromkeys(one.compute_type for one in problems if one.multiplied())
    return tuple(found)


def _predicted(
    cases: Cases, device: Device, how: Mapping[str, Any], apart: Sequence[str]
) -> list[Kernel]:
    """One hollow mark set per case."""
    found = []
    for _, groups in cases.chunks():
        for problem, _places in groups:
            answer = predict_arrays(problem, device, **how)
            found += [_kernel(answer.one(i), cases, apart) for i in range(len(answer))]
    return found


def _apart(schedule: str, kernel: str | None, schedules: int, kernels: int) -> list[str]:
    """The words that tell kernels of one case apart, where several are drawn."""
    return [*([schedule] if schedules > 1 else []), *([kernel] if kernel and kernels > 1 else [])]


def _kernel(one: Prediction, cases: Cases, apart: Sequence[str]) -> Kernel:
    label = _label(one, cases, apart)
    rate = one.flops_per_second
    return Kernel(label, one.device, rate, one.intensity, matrix=one.flops["matrix"] > 0)


def _label(one: Prediction, cases: Cases, apart: Sequence[str]) -> str:
    """What tells this kernel from the others on the chart."""
    both = {other: name.removesuffix("_kv") for name, other in cases.follows.items()}
    parts = [f"{both.get(name, name)} = {one.problem.get(name)}" for name in cases.varying()]
    return ", ".join([*apart, *parts] or [f"{one.algorithm} ({one.schedule})"])


def _measured(
    paths: list[str],
    cases: Cases,
    devices: list[Device],
    schedules: tuple[str, ...],
    kernels: tuple[str | None, ...],
) -> list[Kernel]:
    """Filled marks: measured rows of the cases drawn, at the intensity predicted for them."""
    from perfmodel.evidence.records.records import read_table

    table = read_table(paths)
    found = []
    for device in devices:
        mine = table[table["device"].isin((device.slug, *device.aliases))]
        for _, groups in cases.chunks():
            for problem, _places in groups:
                for rows, i in _matches(mine, problem):
                    found += _filled(rows, i, problem, device, cases, schedules, len(kernels))
    if not found:
        raise ProblemError(
            f"no row of {', '.join(paths)} is one of these cases on these devices; "
            "drop --measured or change the sizes, types or schedules"
        )
    return found


def _matches(table: pd.DataFrame, problem: Problem) -> list[tuple[pd.DataFrame, int]]:
    """Rows that ran the i-th problem, for every i."""
    found = []
    for i in range(length(problem)):
        wanted = {"op": problem.operator, **describe(problem, i)}
        rows = table
        for name, value in wanted.items():
            if name in ("output_dtype", "kv_dtype", "head_dim_v") or name not in rows.columns:
                continue
            column = rows[name].fillna(1) if name == "batch" else rows[name]
            rows = rows[(column == value).fillna(False).astype(bool)]
        if len(rows):
            found.append((rows, i))
    return found


def _filled(
    rows: pd.DataFrame,
    i: int,
    problem: Problem,
    device: Device,
    cases: Cases,
    schedules: tuple[str, ...],
    kernels: int,
) -> list[Kernel]:
    """One kernel per implementation measured, at its median time, if its schedule was asked for."""
    one = pick(problem, np.array([i]))
    found = []
    for implementation, times in rows.groupby("implementation")["measured_us"]:
        answer = predict_arrays(one, device, implementation=str(implementation) or None)
        like = answer.one(0)
        for schedule in schedules:
            if schedule == "auto" or like.schedule.startswith(schedule):
                rate = like.flops_per_second * like.seconds / (float(times.median()) * 1e-6)
                apart = _apart(schedule, str(implementation), len(schedules), kernels)
                label = _label(like, cases, apart)
                matrix = like.flops["matrix"] > 0
                found.append(Kernel(label, device.slug, rate, like.intensity, True, matrix))
    return found


_EXAMPLE = """\b
    perfmodel roofline {name} --device a100-sxm4-80gb,h100-sxm {more}-o roofline.svg
    perfmodel roofline {name} -d mi300x --level hbm,l2 --size 7x4.5 --chart roofline.pdf
"""
_MORE = {"attention": "\\\n        --schedule standard,tiled --seq 1k,8k --dtype fp16 "}


def _examples(operator: Operator) -> str:
    return _EXAMPLE.format(name=operator.name, more=_MORE.get(operator.name, ""))


app = typer.Typer(
    cls=operator_group(roofline, _examples),
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@app.callback()
def _roofline() -> None:
    """Draw hierarchical rooflines: predicted kernels hollow, measured ones filled.

    Colour is the memory level, marker the kernel; every kernel stands once per level at its own
    intensity.
    """
