"""`perfmodel predict OPERATOR`: one case or a sweep, on one device or several."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from perfmodel.algorithms import Problem
from perfmodel.algorithms.problem import single
from perfmodel.algorithms.sizes import check_cases
from perfmodel.cli import known
from perfmodel.cli.cases import Cases
from perfmodel.cli.operatorgroup import operator_group
from perfmodel.cli.output import Format, Output, chosen_format, emit
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device, load
from perfmodel.operators import Operator
from perfmodel.predict import predict_arrays
from perfmodel.prediction import Prediction
from perfmodel.render import predictions

# The most cases, all devices and schedules together: what is printed in a quarter of a minute.
MOST = 200_000

Devices = Annotated[
    list[str],
    typer.Option(
        "--device", "--gpu", "-d", metavar="NAME", help="Slug, alias or spec file; repeats."
    ),
]
Schedule = Annotated[
    str,
    typer.Option(
        "--schedule",
        metavar="NAME",
        help="auto; attention: standard, tiled, tiled-1, tiled-2, tiled-3, split-kv; "
        "gemm: tiled, split-k. Lists too.",
    ),
]
Implementation = Annotated[
    str | None,
    typer.Option(
        "--implementation", metavar="NAME", help="The kernel that runs: flash3, cudnn, ..."
    ),
]
Harness = Annotated[
    str,
    typer.Option(
        "--harness",
        metavar="NAME",
        help="How it would be timed: kernel, profiler, cuda_graph, cuda_events_eager, wall_clock.",
    ),
]
Place = Annotated[
    list[str] | None,
    typer.Option(
        "--place",
        metavar="OPERAND=LEVEL",
        help="Where an operand lies: kv=host, weights=peer; levels host, peer, network; repeats.",
    ),
]
Mesh = Annotated[
    list[str] | None,
    typer.Option(
        "--mesh",
        metavar="AXIS=RANKS@LINK",
        help="Split an axis over devices: k=2@nvlink, heads=8@peer; repeats, outermost first.",
    ),
]
Stored = Annotated[
    list[str] | None,
    typer.Option(
        "--stored",
        metavar="TENSOR=AXIS",
        help="With --mesh: the axis that a tensor's shards lie along, or whole; repeats.",
    ),
]


def predict(
    cases: Cases,
    device: Devices,
    schedule: Schedule = "auto",
    implementation: Implementation = None,
    harness: Harness = "kernel",
    place: Place = None,
    mesh: Mesh = None,
    stored: Stored = None,
    terms: Annotated[
        bool,
        typer.Option(
            "--terms", help="Show every term, tile, wave and assumption (JSON and CSV always do)."
        ),
    ] = False,
    compiled: Annotated[
        bool,
        typer.Option("--compiled", help="Use the registers and shared memory of the real binary."),
    ] = False,
    format: Format = None,
    output: Output = None,
) -> None:
    """Predict all cases on all devices and show them."""
    wanted = chosen_format(format, output)  # complain before any work is done
    schedules = known.schedules(cases.operator, schedule)
    total = cases.count * len(device) * len(schedules)
    check_cases(total, MOST, "narrow a range, or write files with perfmodel sweep")
    options = {
        "implementation": known.implementation(cases.operator, implementation),
        "harness": known.harness(harness),
        "place": known.placing(place),
        "mesh": known.mesh(mesh),
        "stored": known.storing(stored),
        "compiled": compiled,
    }
    if compiled and mesh:
        raise ProblemError("--compiled is of one device; drop it, or --mesh")
    devices = [load(name) for name in device]
    first = list(_rows(cases.first(), devices, schedules, options))
    rows = first if len(first) == total else _rows(cases, devices, schedules, options)
    # Data have every term anyway, as numbers.
    show = (
        predictions.terms
        if terms and wanted in ("table", "markdown", "latex")
        else predictions.report
    )
    examples = first if rows is first else [_with_tile(row, cases.operator) for row in first]
    emit(show(rows, examples, cases.varying(), cases.follows), format, output)


def _with_tile(row: dict[str, Any], operator: Operator) -> dict[str, Any]:
    """A row that has every dimension of a tile, as rows that are still to come may have them."""
    return {**row, "tile": {**dict.fromkeys(operator.searched), **row["tile"]}}


def _rows(
    cases: Cases, devices: list[Device], schedules: tuple[Any, ...], options: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Predictions in the order device, schedule, kind, sizes; a chunk at a time."""
    compiled, options = options["compiled"], {k: v for k, v in options.items() if k != "compiled"}
    for device in devices:
        for schedule in schedules:
            for count, groups in cases.chunks():
                found: list[dict[str, Any]] = [{}] * count
                for problem, places in groups:
                    answer = predict_arrays(problem, device, schedule=schedule, **options)
                    for i, place in enumerate(places):
                        one = answer.one(i)
                        found[place] = (
                            _compiled(problem, i, device, one) if compiled else one
                        ).as_dict()
                yield from found


def _compiled(problem: Problem, i: int, device: Device, found: Prediction) -> Prediction:
    """The i-th prediction with its nearest bundled kernel's binary in place of the assumptions."""
    from perfmodel.evidence.compiled.compiledeffect import compiled_prediction

    return compiled_prediction(single(problem, i), device, found)


_EXAMPLES = {
    "attention": """\b
    perfmodel predict attention --device h100-sxm --batch 4 --heads 32 --kv-heads 8 \\
        --seq 4096 --head-dim 128 --causal --dtype bf16
    perfmodel predict attention -d a100 -d h100 --schedule standard,tiled --seq 512:16k:x2
    perfmodel predict attention -d h200-sxm --seq-q 1 --seq-kv 1k:128k:x2 --format csv
    perfmodel predict attention -d h100-sxm --seq-q 1 --seq-kv 32k --batch 8 --place kv=host
    """,
    "gemm": """\b
    perfmodel predict gemm --device a100-sxm4-80gb -m 4096 -n 4096 -k 4096 --dtype fp16
    perfmodel predict gemm -d h100-sxm -m 4k -k 8k --mesh k=2@nvlink
    perfmodel predict gemm -d h100-sxm -m 1:64 -n 4096 -k 4096 --dtype fp8,bf16 -o sweep.csv
    """,
    "pointwise": """\b
    perfmodel predict pointwise -d h100-sxm --variant silu_mul --inputs 2 --rows 1k:16k:x2
    """,
}
_ROWS = """\b
    perfmodel predict {name} --device h100-sxm --rows 4096 --cols 1k:16k:x2
    """
_DECLARED = """\b
    perfmodel predict {name} --device h100-sxm --schedule auto,unfused
    """


def _examples(operator: Operator) -> str:
    any_ = _ROWS if "rows" in operator.needed else _DECLARED
    return _EXAMPLES.get(operator.name, any_.format(name=operator.name))


app = typer.Typer(
    cls=operator_group(predict, _examples),
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@app.callback()
def _predict() -> None:
    """Predict the time of an operator on a device, with every resource's share of it.

    Sizes take lists (8,16,32) and ranges (1:64, 256:65536:256, 512:16k:x2; 1k = 1024); several
    lists give their product.
    """
