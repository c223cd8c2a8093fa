"""`perfmodel whatif OPERATOR`: elasticities, and what a change of the hardware would do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any

import typer

from perfmodel.algorithms.sizes import check_cases
from perfmodel.analysis.whatif import parse_changes, whatif
from perfmodel.cli import completing, known
from perfmodel.cli.cases import Cases
from perfmodel.cli.drawing import Drawing, with_drawing
from perfmodel.cli.leftout import possible
from perfmodel.cli.operatorgroup import operator_group
from perfmodel.cli.output import Format, Output, chosen_format, emit
from perfmodel.cli.predict import Devices, Harness, Implementation, Mesh, Place, Stored
from perfmodel.cli.progress import waiting
from perfmodel.operators import Operator
from perfmodel.render import tornado

MOST = 10_000
"""Limit on cases over all devices; each has a line for each hardware number."""


Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--change",
        "-c",
        metavar="CHANGE",
        help='A change of the hardware or type: "HBM x2", "SRAM +50%", "SM 160", "clock 2 '
        'GHz", fp8; repeats.',
    ),
]
Chart = Annotated[
    str | None,
    typer.Option(
        "--chart", metavar="FILE", help="Tornado chart (.svg, .pdf, .png); for one device."
    ),
]


@with_drawing
def what_if(
    cases: Cases,
    device: Devices,
    change: Changes = None,
    schedule: Annotated[
        str,
        typer.Option(
            "--schedule",
            metavar="NAME",
            help="Schedule: {schedules}.",
            autocompletion=completing.schedules,
        ),
    ] = "auto",
    implementation: Implementation = None,
    harness: Harness = "kernel",
    place: Place = None,
    mesh: Mesh = None,
    stored: Stored = None,
    chart: Chart = None,
    format: Format = None,
    output: Output = None,
    *,
    drawing: Drawing,
) -> None:
    """Elasticities of all cases, and what the changes would do."""
    chosen_format(format, output)
    drawing.check(chart)
    check_cases(cases.count * len(device), MOST, "narrow a range, or use perfmodel sweep")
    changes = parse_changes(change or [])
    (schedule,) = known.schedules(cases.operator, known.one("--schedule", schedule))
    options: dict[str, Any] = {
        "schedule": schedule,
        "implementation": known.implementation(cases.operator, implementation),
        "harness": known.harness(harness),
        "place": known.placing(place),
        "mesh": known.mesh(mesh),
        "stored": known.storing(stored),
    }
    devices = known.devices(device)
    with waiting("predicting changes"):
        answers = possible(
            (item.slug, partial(whatif, problem, item, changes, **options))
            for item in devices
            for problem in _problems(cases)
        )
    emit(tornado.report(answers, cases.varying(), cases.follows), format, output)
    if chart is not None:
        drawing.save(tornado.tornado_chart(answers, drawing.page), chart)


def _problems(cases: Cases) -> Iterator[Any]:
    """All cases, as the arrays that one call predicts."""
    for _, groups in cases.chunks():
        for problem, _ in groups:
            yield problem


_EXAMPLES = {
    "attention": """\b
    perfmodel whatif attention -d h100-sxm --seq 8192 --causal --change "HBM x2" --change fp8
    perfmodel whatif attention -d b200 --seq-q 1 --seq-kv 1k:64k:x4 --chart tornado.svg
    """,
    "gemm": """\b
    perfmodel whatif gemm -d h100-sxm -m 16 -c "L2 +50%" -c "clock -10%" -c "SM 160"
    perfmodel whatif gemm -d h100-sxm -m 1,64,4k --chart tornado.svg
    """,
}
_ROWS = """\b
    perfmodel whatif {name} -d h100-sxm --rows 4096 --cols 4096 --change "HBM 4.8 TB/s"
    perfmodel whatif {name} -d a100,h100 --cols 1k,16k -c "launch /2"
    """
_DECLARED = """\b
    perfmodel whatif {name} -d h100-sxm --change "HBM x2"
    perfmodel whatif {name} -d a100,h100 -c "L2 +50%" -c "clock -10%"
    """


def _examples(operator: Operator) -> str:
    template = _ROWS if "rows" in operator.needed else _DECLARED
    return _EXAMPLES.get(operator.name, template.format(name=operator.name))


app = typer.Typer(
    cls=operator_group(what_if, _examples),
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@app.callback()
def _whatif() -> None:
    """Show elasticities: per cent of time for a per cent of each hardware number, and of changes.

    A change multiplies a number ("HBM x2", "L2 /2", "SRAM +50%"), sets it ("SM 160", "clock 2 GHz")
    or changes the type (fp8). Changes are predicted one by one, and all together.
    """
