"""`perfmodel roofline OPERATOR`: rooflines of devices with predicted and measured kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.algorithms.problem import describe, length, pick
from perfmodel.algorithms.sizes import check_cases
from perfmodel.cli import completing, known, spellings
from perfmodel.cli.arguments import Kernels
from perfmodel.cli.cases import Cases
from perfmodel.cli.drawing import Drawing
from perfmodel.cli.operatorgroup import OperatorGroup
from perfmodel.cli.output import say
from perfmodel.cli.progress import status
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.hardware import Device, load
from perfmodel.predict import predict_arrays
from perfmodel.prediction import Prediction
from perfmodel.render.problem import spoken
from perfmodel.render.roofline import MOST, roofline_chart
from perfmodel.render.roofs import LEVELS, LINKS, Kernel, roofs

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Asked(Kernels):
    """What `roofline` is asked for."""

    output: Annotated[str, FieldOption("Chart", "FILE", ("--output", "-o", "--chart"))] = field(
        kw_only=True
    )
    """Chart to write (.svg, .pdf, .png)."""
    measured: Annotated[list[str] | None, FieldOption(None, "TABLE")] = None
    """Table of measured runs of these cases, drawn as filled marks; repeats."""
    level: Annotated[str | None, FieldOption(None, "LEVELS")] = None
    """Memory levels, with commas: hbm,llc,l2,shared [default: all, and the links that are
    crossed]."""
    roof: Annotated[str | None, FieldOption(None, "TYPES", complete=completing.types)] = None
    """Types whose matrix peaks are drawn as roofs, with commas [default: the types of the
    cases]."""
    size: Annotated[str | None, FieldOption("Chart", "WxH")] = None
    """Inches, such as 6x4.5."""


def roofline(cases: Cases, asked: Asked, drawing: Drawing) -> None:
    """Draw the devices' rooflines with every case in every schedule."""
    drawing.check(asked.output)
    width, height = _inches(asked.size)
    page = replace(drawing.page, width=drawing.page.width or width, height=height)
    schedules = asked.schedules(cases.operator)
    kernels = asked.implementations(cases.operator)
    marks = cases.count * len(schedules) * len(kernels)
    check_cases(marks, MOST, "the marks of a chart; draw several")
    if asked.measured and asked.mesh:
        raise ProblemError("--measured works for one device; drop it, or --mesh")
    devices = asked.devices()
    types = known.names(asked.roof) or _types(cases)
    note = ""
    with status("predicting") as report:
        points = []
        for item, name, kernel in product(devices, schedules, kernels):
            report(item.slug)
            ways = {**asked.request(), "schedule": name, "implementation": kernel}
            prefix = _prefix(name, kernel, len(schedules), len(kernels))
            points += _predictions(cases, item, ways, prefix)
        if asked.measured:
            runs, note = _measured(asked.measured, cases, devices, schedules, kernels)
            points += runs
        report("drawing")
        levels = tuple(map(spellings.level, known.names(asked.level))) or (*LEVELS, *_links(points))
        lines = [roofs(item, types, levels) for item in devices]
        chart = roofline_chart(lines, points, title=_title(cases), note=note, page=page)
    drawing.save(chart, asked.output)
    if note:
        say(note)


def _title(cases: Cases) -> str:
    """The problem, without sizes that vary between the cases."""
    _, groups = next(cases.first().chunks())
    varying = cases.varying()
    hidden = {*varying, *(name for name, other in cases.follows.items() if other in varying)}
    fixed = {name: value for name, value in describe(groups[0][0], 0).items() if name not in hidden}
    return spoken(cases.operator.name, fixed)


def _links(kernels: list[Kernel]) -> list[str]:
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
    problems = (problem for _, groups in cases.chunks() for problem, _ in groups)
    return tuple(dict.fromkeys(p.compute_type for p in problems if p.multiplied()))


def _predictions(
    cases: Cases, device: Device, options: Mapping[str, Any], prefix: Sequence[str]
) -> list[Kernel]:
    """Hollow marks, one set per case."""
    kernels = []
    for _, groups in cases.chunks():
        for problem, _places in groups:
            answer = predict_arrays(problem, device, **options)
            words = _Words(prefix, cases, problem.compute_type)
            kernels += [words.kernel(answer.one(i)) for i in range(len(answer))]
    return kernels


@dataclass(frozen=True)
class _Words:
    """The words in the labels of one call's kernels."""

    apart: Sequence[str]
    """Schedule and implementation, if several are drawn."""
    cases: Cases
    dtype: str
    """Type of the matrix unit's operands."""

    def kernel(self, prediction: Prediction) -> Kernel:
        """A mark at the predicted time."""
        return Kernel.of_prediction(
            prediction,
            self._label(prediction),
            dtype=self.dtype,
            at=self._size(prediction),
            of=self._axis_name,
        )

    @property
    def _axis(self) -> str | None:
        """The size along which kernels are joined by a line: the one with the most values."""
        counts = {
            name: len(values) for name, values in self.cases.values.items() if len(values) > 1
        }
        return max(counts, key=lambda name: counts[name], default=None)

    @property
    def _axis_name(self) -> str:
        """Name of that size: `seq` if queries and keys have the same."""
        name = self._axis or ""
        sources = {other for name, other in self.cases.follows.items()}
        return name.removesuffix("_q") if name in sources else name

    def _label(self, prediction: Prediction) -> str:
        """The label that distinguishes this kernel on the chart, without that size."""
        rest = [name for name in self.cases.varying() if name != self._axis]
        parts = [_field(name, prediction.problem.get(name)) for name in rest]
        single = not (self.apart or parts or self._axis)
        return ", ".join([*self.apart, *parts]) or (
            prediction.implementation or prediction.algorithm if single else ""
        )

    def _size(self, prediction: Prediction) -> str:
        return "" if self._axis is None else str(prediction.problem.get(self._axis))


def _field(name: str, value: Any) -> str:
    """A varying field: a type alone, anything else with its name."""
    return str(value) if name == "dtype" else f"{name} = {value}"


def _prefix(schedule: str, kernel: str | None, schedules: int, kernels: int) -> list[str]:
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
    dots = []
    indices: set[Any] = set()
    for device in devices:
        mask = table["device"].isin((device.slug, *device.aliases))
        group = table[mask | (table["device"].map(slugs) == device.slug)]
        for _, groups in cases.chunks():
            for problem, _places in groups:
                for rows, i in _matches(group, problem):
                    case = pick(problem, np.array([i]))
                    marks = _measured_kernels(rows, case, device, cases, schedules, len(kernels))
                    dots += marks
                    indices |= set(rows.index) if marks else set()
    if not dots:
        raise ProblemError(
            f"no row of {', '.join(paths)} is one of these cases on these devices; "
            "drop --measured or change the sizes, types or schedules"
        )
    rest = len(table) - len(indices)
    note = (
        f"{rest:,} of {len(table):,} measured rows are not drawn: they are of other sizes, types, "
        "schedules or devices."
    )
    return dots, note if rest else ""


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
    matches = []
    for i in range(length(problem)):
        fields = {"window": 0, "op": problem.operator, **describe(problem, i)}
        mask = np.ones(len(table), dtype=bool)
        for name, value in fields.items():
            if name not in ("output_dtype", "kv_dtype", "head_dim_v") and name in cells.columns:
                mask &= (cells[name] == value).fillna(False).to_numpy(bool)
        rows = table[mask]
        if len(rows):
            matches.append((rows, i))
    return matches


def _measured_kernels(
    rows: pd.DataFrame,
    problem: Problem,
    device: Device,
    cases: Cases,
    schedules: tuple[str, ...],
    kernels: int,
) -> list[Kernel]:
    """One kernel per implementation measured, at its median time, if its schedule was asked for."""
    marks = []
    for implementation, times in rows.groupby("implementation")["measured_us"]:
        answer = predict_arrays(problem, device, implementation=str(implementation) or None)
        prediction = answer.one(0)
        for schedule in schedules:
            if schedule == "auto" or prediction.schedule.startswith(schedule):
                rate = prediction.work / (float(times.median()) * 1e-6)
                prefix = _prefix(schedule, str(implementation), len(schedules), kernels)
                words = _Words(prefix, cases, problem.compute_type)
                marks.append(words.kernel(prediction).ran(rate, str(implementation)))
    return marks


_EXAMPLES = {
    name: f"""\b
    perfmodel roofline {{name}} --device a100-sxm4-80gb,h100-sxm {more}-o roofline.svg
    perfmodel roofline {{name}} -d mi300x --level hbm,l2 --size 7x4.5 --chart roofline.pdf
    """
    for name, more in (
        ("attention", "\\\n        --schedule standard,tiled --seq 1k,8k --dtype fp16 "),
        ("rows", ""),
        ("declared", ""),
    )
}


app = OperatorGroup(
    roofline,
    _EXAMPLES,
    """Draw hierarchical rooflines: predicted kernels hollow, measured ones filled.

Colour, line and shape show the memory level. Every kernel has one mark per level, at its
intensity there, with its share of the lowest roof above it.""",
)
