"""`perfmodel whatif OPERATOR`: elasticities, and what a change of the hardware would do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from perfmodel.algorithms.sizes import check_cases
from perfmodel.analysis.whatif import parse_changes, whatif
from perfmodel.cli.arguments import KERNEL, TimedKernel
from perfmodel.cli.drawing import Drawing
from perfmodel.cli.leftout import possible
from perfmodel.cli.operatorgroup import OperatorGroup
from perfmodel.cli.output import Shown
from perfmodel.cli.progress import waiting
from perfmodel.fieldoption import FieldOption
from perfmodel.operators.grid import Grid
from perfmodel.render import tornado

MOST = 10_000
"""Limit on cases over all devices; each has a line for each hardware number."""


@dataclass(frozen=True)
class Asked(TimedKernel):
    """What `whatif` is asked for."""

    change: Annotated[list[str] | None, FieldOption(None, "CHANGE", ("--change", "-c"))] = None
    """A change of the hardware or type: "HBM x2", "SRAM +50%", "SM 160", "clock 2 GHz", fp8;
    repeats."""
    schedule: Annotated[str, FieldOption(KERNEL, "NAME", single=True)] = "auto"
    """Schedule: {schedules}."""


Tornado = Annotated[Drawing, {"chart": "Tornado chart (.svg, .pdf, .png); for one device."}]


def what_if(grid: Grid, asked: Asked, shown: Shown, drawing: Tornado) -> None:
    """Elasticities of all cases, and what the changes would do."""
    check_cases(len(grid) * len(asked.device), MOST, "narrow a range, or use perfmodel sweep")
    changes = parse_changes(asked.change or [])
    (schedule,), (kernel,) = asked.schedules(grid.operator), asked.implementations(grid.operator)
    options = {"schedule": schedule, "implementation": kernel, **asked.request()}
    with waiting("predicting changes"):
        answers = possible(
            (item.slug, partial(whatif, problem, item, changes, **options))
            for item in asked.device
            for problem in grid.problems()
        )
    shown.emit(tornado.report(answers, grid.varying, grid.follows))
    drawing.draw(partial(tornado.tornado_chart, answers))


_EXAMPLES = {
    "attention": """\b
    perfmodel whatif attention -d h100-sxm --seq 8192 --causal --change "HBM x2" --change fp8
    perfmodel whatif attention -d b200 --seq-q 1 --seq-kv 1k:64k:x4 --chart tornado.svg
    """,
    "gemm": """\b
    perfmodel whatif gemm -d h100-sxm -m 16 -c "L2 +50%" -c "clock -10%" -c "SM 160"
    perfmodel whatif gemm -d h100-sxm -m 1,64,4k --chart tornado.svg
    """,
    "": """\b
    perfmodel whatif {name} -d h100-sxm{sizes} --change "HBM 4.8 TB/s"
    perfmodel whatif {name} -d a100,h100 -c "L2 +50%" -c "launch /2"
    """,
}


app = OperatorGroup(
    what_if,
    _EXAMPLES,
    """Show elasticities: per cent of time for a per cent of each hardware number, and of changes.

A change multiplies a number ("HBM x2", "L2 /2", "SRAM +50%"), sets it ("SM 160", "clock 2 GHz")
or changes the type (fp8). Changes are predicted one by one, and all together.""",
)
