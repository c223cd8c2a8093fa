"""`perfmodel roofline OPERATOR`: rooflines of devices with predicted and measured kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from perfmodel.algorithms import Problem
from perfmodel.algorithms.problem import describe, length, pick
from perfmodel.algorithms.sizes import check_cases
from perfmodel.cli import completing, known, spellings
from perfmodel.cli.cases import Cases
from perfmodel.cli.drawing import Drawing, with_drawing
from perfmodel.cli.operatorgroup import operator_group
from perfmodel.cli.output import say
from perfmodel.cli.predict import Devices, Implementations, Mesh, Schedule, Stored
from perfmodel.cli.progress import status
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.hardware import Device, load
from perfmodel.operators import Operator
from perfmodel.predict import predict_arrays
from perfmodel.prediction import Prediction
from perfmodel.render.problem import spoken
from perfmodel.render.roofline import MOST, roofline_chart
from perfmodel.render.roofs import LEVELS, LINKS, Kernel, roofs

if TYPE_CHECKING:
    import pandas as pd


Picture = Annotated[
    str,
    typer.Option(
        "--output", "-o", "--chart", metavar="FILE", help="Chart to write (.svg, .pdf, .png)."
    ),
]
Measured = Annotated[
    list[str] | None,
    typer.Option(
        "--measured",
        metavar="TABLE",
        help="Table of measured runs of these cases, drawn as filled marks; repeats.",
    ),
]
Level = Annotated[
    str | None,
    typer.Option(
        "--level",
        metavar="LEVELS",
        help="Memory levels, with commas: hbm,llc,l2,shared [default: all, and the links "
        "that are crossed].",
    ),
]
RoofTypes = Annotated[
    str | None,
    typer.Option(
        "--roof",
        metavar="TYPES",
        help="Types whose matrix peaks are drawn as roofs, with commas [default: the types "
        "of the cases].",
        autocompletion=completing.types,
    ),
]
Size = Annotated[str | None, typer.Option("--size", metavar="WxH", help="Inches, such as 6x4.5.")]


@with_drawing
def roofline(
    cases: Cases,
    device: Devices,
    output: Picture,
    schedule: Schedule = "auto",
    implementation: Implementations = None,
    mesh: Mesh = None,
    stored: Stored = None,
    measured: Measured = None,
    level: Level = None,
    roof: RoofTypes = None,
    size: Size = None,
    *,
    drawing: Drawing,
) -> None:
    """Draw the devices' rooflines with every case in every schedule."""
    drawing.check(output)
    width, height = _inches(size)
    page = replace(drawing.page, width=drawing.page.width or width, height=height)
    schedules = known.schedules(cases.operator, schedule)
    kernels = known.named_implementations(cases.operator, implementation)
    marks = cases.count * len(schedules) * len(kernels)
    check_cases(marks, MOST, "the marks of a chart; draw several")
    how = {
        "mesh": known.mesh(mesh),
        "stored": known.storing(stored),
    }
    if measured and mesh:
        raise ProblemError("--measured works for one device; drop it, or --mesh")
    devices = known.devices(device)
    types = known.names(roof) or _types(cases)
    note = ""
    with status("predicting") as report:
        drawn = []
        for item, name, kernel in product(devices, schedules, kernels):
            report(item.slug)
            ways = {**how, "schedule": name, "implementation": kernel}
            apart = _apart(name, kernel, len(schedules), len(kernels))
            drawn += _predicted(cases, item, ways, apart)
        if measured:
            marks_of, note = _measured(measured, cases, devices, schedules, kernels)
            drawn += marks_of
        report("drawing")
        levels = tuple(map(spellings.level, known.names(level))) or (*LEVELS, *_crossed(drawn))
        lines = [roofs(item, types, levels) for item in devices]
        chart = roofline_chart(lines, drawn, title=_title(cases), note=note, page=page)
    drawing.save(chart, output)
    if note:
        say(note)


def _title(cases: Cases) -> str:
    """The problem, without sizes that vary between the cases."""
    _, groups = next(cases.first().chunks())
    varying = cases.varying()
    hidden = {*varying, *(name for name, other in cases.follows.items() if other in varying)}
    said = {name: value for name, value in describe(groups[0][0], 0).items() if name not in hidden}
    return spoken(cases.operator.name, said)


def _crossed(kernels: list[Kernel]) -> list[str]:
    """Links that a kernel's bytes cross."""
    return [name for name in LINKS if any(name in kernel.intensity for kernel in kernels)]


def _inches(size: str | None) -> tuple[float, float] | tuple[None, None]:
    if size is None:
        return None, None
    try:
        width, height = (float(part) for part in size.lower().split("x"))
    except ValueError:
        raise ProblemError(f"--size {size!r} is not WIDTHxHEIGHT in inches; write 6x4.5") from None
    if not (1 <= width <= 60 and 1 <= height <= 60):
        raise ProblemError(f"--size {size!r} is not between 1 and 60 inches; write 6x4.5")
    return width, height


def _types(cases: Cases) -> tuple[str, ...]:
    """Types whose matrix peaks apply to the cases."""
    problems = (problem for _, found in cases.chunks() for problem, _ in found)
    found = dict.fromkeys(one.compute_type for one in problems if one.multiplied())
    return tuple(found)


def _predicted(
    cases: Cases, device: Device, how: Mapping[str, Any], apart: Sequence[str]
) -> list[Kernel]:
    """Hollow marks, one set per case."""
    found = []
    for _, groups in cases.chunks():
        for problem, _places in groups:
            answer = predict_arrays(problem, device, **how)
            words = _Words(apart, cases, problem.compute_type)
            found += [words.kernel(answer.one(i)) for i in range(len(answer))]
    return found


@dataclass(frozen=True)
class _Words:
    """The words in the labels of one call's kernels."""

    apart: Sequence[str]
    """Schedule and implementation, if several are drawn."""
    cases: Cases
    dtype: str
    """Type of the matrix unit's operands."""

    def kernel(self, one: Prediction) -> Kernel:
        """A mark at the predicted time."""
        special = one.flops["special"]
        return Kernel(
            label=self._label(one),
            device=one.device,
            flops_per_s=one.flops_per_second,
            intensity=one.intensity,
            matrix=one.flops["matrix"] > 0,
            dtype=self.dtype,
            at=self._size(one),
            of=self._named,
            low_flops_per_s=one.work / one.high_seconds,
            high_flops_per_s=one.work / one.low_seconds,
            flops_per_special=one.work / special if special else None,
        )

    @property
    def _along(self) -> str | None:
        """The size along which kernels are joined by a line: the one with the most values."""
        counts = {
            name: len(values) for name, values in self.cases.values.items() if len(values) > 1
        }
        return max(counts, key=lambda name: counts[name], default=None)

    @property
    def _named(self) -> str:
        """Name of that size: `seq` if queries and keys have the same."""
        along = self._along or ""
        both = {other for name, other in self.cases.follows.items()}
        return along.removesuffix("_q") if along in both else along

    def _label(self, one: Prediction) -> str:
        """The label that distinguishes this kernel on the chart, without that size."""
        rest = [name for name in self.cases.varying() if name != self._along]
        parts = [_said(name, one.problem.get(name)) for name in rest]
        alone = not (self.apart or parts or self._along)
        return ", ".join([*self.apart, *parts]) or (
            one.implementation or one.algorithm if alone else ""
        )

    def _size(self, one: Prediction) -> str:
        return "" if self._along is None else str(one.problem.get(self._along))


def _said(name: str, value: Any) -> str:
    """A varying field: a type alone, anything else with its name."""
    return str(value) if name == "dtype" else f"{name} = {value}"


def _apart(schedule: str, kernel: str | None, schedules: int, kernels: int) -> list[str]:
    """The words that distinguish kernels of one case, if several are drawn."""
    return [*([schedule] if schedules > 1 else []), *([kernel] if kernel and kernels > 1 else [])]


def _measured(
    paths: list[str],
    cases: Cases,
    devices: list[Device],
    schedules: tuple[str, ...],
    kernels: tuple[str | None, ...],
) -> tuple[list[Kernel], str]:
    """Filled marks: measured rows of the cases drawn, at the intensity predicted for them; and a
    note on the rows of other cases."""
    from perfmodel.evidence.records.records import read_table

    table = read_table(paths)
    slugs = {name: _slug(name) for name in table["device"].unique()}
    found = []
    used: set[Any] = set()
    for device in devices:
        named = table["device"].isin((device.slug, *device.aliases))
        mine = table[named | (table["device"].map(slugs) == device.slug)]
        for _, groups in cases.chunks():
            for problem, _places in groups:
                for rows, i in _matches(mine, problem):
                    one = pick(problem, np.array([i]))
                    marks = _filled(rows, one, device, cases, schedules, len(kernels))
                    found += marks
                    used |= set(rows.index) if marks else set()
    if not found:
        raise ProblemError(
            f"no row of {', '.join(paths)} is one of these cases on these devices; "
            "drop --measured or change the sizes, types or schedules"
        )
    rest = len(table) - len(used)
    note = (
        f"{rest:,} of {len(table):,} measured rows are not drawn: they are of other sizes, types, "
        "schedules or devices."
    )
    return found, note if rest else ""


def _slug(name: str) -> str:
    """The shipped device that a table calls `name`, or else `name` itself."""
    try:
        return load(name).slug
    except PerfmodelError:
        return name


# Meaning of a row's empty cell, and of a field that a problem lacks.
_USUAL = {"batch": 1, "direction": "fwd", "causal": False, "window": 0, "inputs": 1, "outputs": 1}


def _matches(table: pd.DataFrame, problem: Problem) -> list[tuple[pd.DataFrame, int]]:
    """Rows that measured the i-th problem, for every i."""
    cells = table.copy(deep=False)
    for name, usual in _USUAL.items():
        cells[name] = cells[name].mask(cells[name].isna() | (cells[name] == ""), usual)
    found = []
    for i in range(length(problem)):
        wanted = {"window": 0, "op": problem.operator, **describe(problem, i)}
        same = np.ones(len(table), dtype=bool)
        for name, value in wanted.items():
            if name not in ("output_dtype", "kv_dtype", "head_dim_v") and name in cells.columns:
                same &= (cells[name] == value).fillna(False).to_numpy(bool)
        rows = table[same]
        if len(rows):
            found.append((rows, i))
    return found


def _filled(
    rows: pd.DataFrame,
    one: Problem,
    device: Device,
    cases: Cases,
    schedules: tuple[str, ...],
    kernels: int,
) -> list[Kernel]:
    """One kernel per implementation measured, at its median time, if its schedule was asked for."""
    found = []
    for implementation, times in rows.groupby("implementation")["measured_us"]:
        answer = predict_arrays(one, device, implementation=str(implementation) or None)
        like = answer.one(0)
        for schedule in schedules:
            if schedule == "auto" or like.schedule.startswith(schedule):
                rate = like.work / (float(times.median()) * 1e-6)
                apart = _apart(schedule, str(implementation), len(schedules), kernels)
                words = _Words(apart, cases, one.compute_type)
                found.append(words.kernel(like).ran(rate, str(implementation)))
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

    Colour, line and shape show the memory level. Every kernel has one mark per level, at its
    intensity there, with its share of the lowest roof above it.
    """
