"""`perfmodel roofline OPERATOR`: rooflines of devices with predicted and measured kernels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Annotated, Any

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.algorithms.problem import describe, length, single
from perfmodel.algorithms.sizes import check_cases
from perfmodel.cli import spellings
from perfmodel.cli.arguments import CHART, Kernels
from perfmodel.cli.drawing import Drawing
from perfmodel.cli.operatorgroup import OperatorGroup
from perfmodel.cli.output import say
from perfmodel.cli.progress import status
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.hardware import load
from perfmodel.operators.grid import Grid
from perfmodel.predict import predict, predict_arrays
from perfmodel.prediction import Prediction
from perfmodel.render.problem import shared, spoken
from perfmodel.render.roofline import MOST, roofline_chart
from perfmodel.render.roofs import LEVELS, LINKS, Kernel, roofs

_UNSTATED = ("output_dtype", "kv_dtype", "head_dim_v")
"""Values of a problem that tables of measured runs need not state."""


@dataclass(frozen=True)
class Asked(Kernels):
    """What `roofline` is asked for."""

    measured: Annotated[list[str] | None, FieldOption(None, "TABLE")] = None
    """Table of measured runs of these cases, drawn as filled marks; repeats."""
    level: Annotated[str | None, FieldOption(None, "LEVELS")] = None
    """Memory levels, with commas: hbm,llc,l2,shared [default: all, and the links that are
    crossed]."""
    roof: Annotated[
        str | None, FieldOption(None, "TYPES", names="perfmodel.algorithms.matmul:types")
    ] = None
    """Types whose matrix peaks are drawn as roofs, with commas [default: the types of the
    cases]."""


@dataclass(frozen=True)
class Rooflines(Drawing):
    """A chart that must be named."""

    chart: Annotated[str, replace(CHART, spellings=("--output", "-o", "--chart"))] = field(
        kw_only=True
    )
    """Chart to write (.svg, .pdf, .png)."""


def roofline(grid: Grid, asked: Asked, drawing: Rooflines) -> None:
    """Draw the devices' rooflines with every case in every schedule."""
    schedules, kernels = asked.schedules(grid.operator), asked.implementations(grid.operator)
    marks = len(grid) * len(schedules) * len(kernels)
    check_cases(marks, MOST, "the marks of a chart; draw several")
    if asked.measured and asked.mesh:
        raise ProblemError("--measured works for one device; drop it, or --mesh")
    labels = _Labels(grid, several=(len(schedules) > 1, len(kernels) > 1))
    points, note = [], ""
    problems = list(grid.problems())
    with status("predicting") as report:
        for device, schedule, kernel in product(asked.device, schedules, kernels):
            report(device.slug)
            way: dict[str, Any] = {"schedule": schedule, "implementation": kernel}
            for problem in problems:
                answers = predict_arrays(problem, device, **asked.request(), **way)
                each = (answers.one(i) for i in range(len(answers)))
                points += [labels.mark(one, problem, schedule, kernel) for one in each]
        if asked.measured:
            dots, note = _measured(asked, problems, schedules, labels)
            points += dots
        report("drawing")
        links = [name for name in LINKS if any(name in each.intensity for each in points)]
        levels = tuple(map(spellings.level, spellings.names(asked.level))) or (*LEVELS, *links)
        types = spellings.names(asked.roof) or tuple(
            dict.fromkeys(each.compute_type for each in problems if each.multiplied())
        )
        lines = [roofs(item, types, levels) for item in asked.device]
        fields = shared(describe(problems[0], 0), grid.varying, grid.follows)
        title = spoken(grid.operator.name, fields)
        chart = roofline_chart(lines, points, title=title, note=note, page=drawing.page)
    drawing.draw(lambda _page: chart)
    if note:
        say(note)


@dataclass(frozen=True)
class _Labels:
    """What distinguishes the kernels of a chart."""

    grid: Grid
    """The cases."""
    several: tuple[bool, bool]
    """Whether several schedules are drawn, and several implementations."""

    @cached_property
    def axis(self) -> str | None:
        """The size along which kernels are joined by a line: the one with the most values."""
        counts = {name: len(values) for name, values in self.grid.sizes.items() if len(values) > 1}
        return max(counts, key=lambda name: counts[name], default=None)

    def mark(
        self, prediction: Prediction, problem: Problem, schedule: str, kernel: str | None
    ) -> Kernel:
        """A mark at the predicted time, labelled by what varies besides the axis."""
        pairs = zip((schedule, kernel), self.several, strict=True)
        parts = [name for name, several in pairs if several and name]
        for name in self.grid.varying:
            if name != self.axis:
                value = str(prediction.problem.get(name))
                parts.append(value if name == "dtype" else f"{name} = {value}")
        if not parts and self.axis is None:
            parts = [prediction.implementation or prediction.algorithm]
        axis, at = self.axis or "", ""
        if self.axis is not None:
            at = str(prediction.problem.get(axis))
        if axis in self.grid.follows.values():  # `seq` if queries and keys have the same
            axis = axis.removesuffix("_q")
        fields = {"dtype": problem.compute_type, "at": at, "of": axis}
        return Kernel.of_prediction(prediction, ", ".join(parts), **fields)


def _measured(
    asked: Asked, problems: Sequence[Problem], schedules: Sequence[str], labels: _Labels
) -> tuple[list[Kernel], str]:
    """Filled marks: measured rows of the cases drawn, at the intensity predicted for them, one for
    each implementation at its median time; and a note on the rows of other cases."""
    from perfmodel.table.records import read_table
    from perfmodel.validation import compare

    def key(problem: Problem) -> tuple[Any, ...]:
        fields = describe(problem, 0).items()
        return tuple((name, value) for name, value in fields if name not in _UNSTATED)

    def slug(name: str) -> str:
        try:
            return load(name).slug
        except PerfmodelError:
            return name

    paths = asked.measured or []
    table = read_table(paths)
    devices = {device.slug: device for device in asked.device}
    rows = table.assign(device=table["device"].map(slug))
    rows = rows[rows["device"].isin([*devices])].reset_index(drop=True)
    drawn = {key(case): case for each in problems for case in _singles(each)}
    runs: dict[Any, list[float]] = defaultdict(list)
    for index, cases in compare.problems(rows):
        for i, problem in zip(index.tolist(), _singles(cases), strict=True):
            if key(problem) in drawn:
                device, implementation = rows["device"].iloc[i], str(rows["implementation"].iloc[i])
                runs[device, key(problem), implementation].append(rows["measured_us"].iloc[i])
    dots, used = [], 0
    for (device, case, implementation), times in runs.items():
        problem = drawn[case]
        answer = predict(problem, devices[device], implementation=implementation or None)
        for schedule in schedules:
            if schedule == "auto" or answer.schedule.startswith(schedule):
                rate = answer.work / (float(np.median(times)) * 1e-6)
                mark = labels.mark(answer, problem, schedule, implementation)
                dots.append(mark.ran(rate, implementation))
                used += len(times)
    if not dots:
        raise ProblemError(
            f"no row of {', '.join(paths)} is one of these cases on these devices; "
            "drop --measured or change the sizes, types or schedules"
        )
    rest = len(table) - used
    note = (
        f"{rest:,} of {len(table):,} measured rows are not drawn: they are of other sizes, types, "
        "schedules or devices."
    )
    return dots, note if rest else ""


def _singles(problem: Problem) -> list[Problem]:
    """The problems of arrays, each alone."""
    return [single(problem, i) for i in range(length(problem))]


_EXAMPLES = {
    name: f"""\b
    perfmodel roofline {{name}} --device a100-sxm4-80gb,h100-sxm {more}-o roofline.svg
    perfmodel roofline {{name}} -d mi300x --level hbm,l2 --size 7x4.5 --chart roofline.pdf
    """
    for name, more in (
        ("attention", "\\\n        --schedule standard,tiled --seq 1k,8k --dtype fp16 "),
        ("", ""),
    )
}


app = OperatorGroup(
    roofline,
    _EXAMPLES,
    """Draw hierarchical rooflines: predicted kernels hollow, measured ones filled.

Colour, line and shape show the memory level. Every kernel has one mark per level, at its
intensity there, with its share of the lowest roof above it.""",
)
