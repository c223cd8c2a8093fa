"""`perfmodel predict OPERATOR`: one case or a sweep, on one device or several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

from perfmodel.algorithms.sizes import check_cases
from perfmodel.cli import completing, known
from perfmodel.cli.cases import CHUNK, Cases
from perfmodel.cli.leftout import tell
from perfmodel.cli.operatorgroup import operator_group
from perfmodel.cli.output import Format, Output, chosen_format, emit
from perfmodel.cli.predicted import Predicted, Way, one_by_one, predicted
from perfmodel.cli.progress import counted, waiting
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.operators import Operator
from perfmodel.render import PEOPLE, Report, predictions
from perfmodel.render.refused import Refused

# Limit on cases, over all devices and schedules: what is printed in 15 seconds.
MOST = 200_000
EXPLAINED = 64
"""Limit on the cases that the sentences under a table describe."""

Devices = Annotated[
    list[str],
    typer.Option(
        "--device",
        "--gpu",
        "-d",
        metavar="NAMES",
        help="Devices: slugs, aliases or spec files, as a100,h100 or repeated "
        "(perfmodel hardware list).",
        autocompletion=completing.devices,
    ),
]
Schedule = Annotated[
    str,
    typer.Option(
        "--schedule",
        metavar="NAMES",
        help="Schedules, with commas: {schedules} (perfmodel list schedules).",
        autocompletion=completing.schedules,
    ),
]
Implementation = Annotated[
    str | None,
    typer.Option(
        "--implementation",
        metavar="NAME",
        help="Library kernel: {implementations} (perfmodel list implementations).",
        autocompletion=completing.implementations,
    ),
]
Implementations = Annotated[
    str | None,
    typer.Option(
        "--implementation",
        metavar="NAMES",
        help="Library kernels, with commas: {implementations} (perfmodel list implementations).",
        autocompletion=completing.implementations,
    ),
]
Harness = Annotated[
    str,
    typer.Option(
        "--harness",
        metavar="NAME",
        help="Benchmark harness whose overhead is included: kernel (none), paper, profiler, "
        "do_bench, cuda_graph, cuda_events_eager or wall_clock.",
        autocompletion=completing.harnesses,
    ),
]
Place = Annotated[
    list[str] | None,
    typer.Option(
        "--place",
        metavar="OPERAND=LEVEL",
        help="Memory that holds an operand: kv=host, weights=peer; levels are host, peer and"
        " network; repeats.",
    ),
]
Mesh = Annotated[
    list[str] | None,
    typer.Option(
        "--mesh",
        metavar="AXIS=RANKS@LINK",
        help="Split an axis over devices joined by a link: k=2@nvlink, heads=8@peer; "
        "repeats, outermost first.",
    ),
]
Stored = Annotated[
    list[str] | None,
    typer.Option(
        "--stored",
        metavar="TENSOR=AXIS",
        help="With --mesh: the axis along which a tensor is sharded, or whole: C=n, "
        "kv=whole; repeats.",
    ),
]
Tile = Annotated[
    list[str] | None,
    typer.Option(
        "--tile",
        metavar="DIM=SIZE,...",
        help="Use this tile in place of the library's: m=128,n=256,k=64,warps=8,stages=3 for"
        " gemm, rows=128,keys=64 for attention; repeats.",
    ),
]


def predict(
    cases: Cases,
    device: Devices,
    schedule: Schedule = "auto",
    implementation: Implementations = None,
    harness: Harness = "kernel",
    place: Place = None,
    mesh: Mesh = None,
    stored: Stored = None,
    tile: Tile = None,
    terms: Annotated[
        bool,
        typer.Option(
            "--terms", help="Show every term, tile and wave (JSON and CSV always have them)."
        ),
    ] = False,
    compiled: Annotated[
        bool,
        typer.Option(
            "--compiled",
            help="Take registers and shared memory from the bundled kernel's compiled binary.",
        ),
    ] = False,
    format: Format = None,
    output: Output = None,
) -> None:
    """Predict all cases on all devices and show them."""
    form = chosen_format(format, output)  # check before any work is done
    schedules = known.schedules(cases.operator, schedule)
    kernels = known.named_implementations(cases.operator, implementation)
    rest = {
        "harness": known.harness(harness),
        "place": known.placing(place),
        "mesh": known.mesh(mesh),
        "stored": known.storing(stored),
    }
    if compiled and mesh:
        raise ProblemError("--compiled works for one device; drop it, or --mesh")
    if compiled and tile:
        raise ProblemError("--compiled uses the bundled kernels' tiles; drop it, or --tile")
    ways = [
        Way(spec, {"schedule": name, "implementation": kernel, "tile": dims, **rest}, compiled)
        for spec in known.devices(device)
        for kernel in kernels
        for name in schedules
        for dims in known.tiles(cases.operator, tile) or [{}]
    ]
    total = cases.count * len(ways)
    check_cases(total, MOST, "narrow a range, or write files with perfmodel sweep")
    reports = _reports(cases, ways, people=form in PEOPLE, terms=terms)
    emit(reports[0], format, output, *reports[1:])


def _reports(cases: Cases, ways: Sequence[Way], *, people: bool, terms: bool) -> list[Report]:
    """The predictions. The table explains a few cases in words, and lists every term if `terms`."""
    total, varying, follows = cases.count * len(ways), cases.varying(), cases.follows
    tile = tuple(dict.fromkeys(name for way in ways for name in way.how["tile"]))
    few = total <= EXPLAINED
    with waiting("predicting"):
        first, refused = _first(cases if few else cases.first(), ways, few=few)
        examples = [p.row for p in first]
    if not few:
        examples = [_tile_row(row, cases.operator) for row in examples]

    def rows() -> Iterator[dict[str, Any]]:
        if few:
            return iter(examples)
        return _progress_rows((p.row for p in predicted(cases, ways)), total)

    with waiting("explaining"):
        why = _why(first, varying) if people and few else []
    tell(refused)
    if not (people and terms):
        return [predictions.report(rows(), examples, varying, follows, why, tile)]
    summary = replace(predictions.report(rows(), examples, varying, follows, (), tile), notes=())
    return [summary, predictions.terms(rows(), examples, varying, why)]


def _first(cases: Cases, ways: Sequence[Way], *, few: bool) -> tuple[list[Predicted], Refused]:
    """The cases predicted together; of `few` cases also those beside impossible ones."""
    try:
        return list(predicted(cases, ways)), ()
    except PerfmodelError:
        if not few or cases.count * len(ways) == 1:
            raise
        return one_by_one(cases, ways)


def _progress_rows(rows: Iterator[dict[str, Any]], total: int) -> Iterator[dict[str, Any]]:
    """The rows; on a terminal with a progress bar."""
    with counted("predicting") as tell:
        for done, row in enumerate(rows):
            if done % CHUNK == 0:
                tell(done, total)
            yield row


def _why(examples: Sequence[Predicted], varying: Sequence[str]) -> list[str]:
    """The sentences under the table; one for each case if there are few."""
    from perfmodel.analysis.why import why
    from perfmodel.render.why import ONE_BY_ONE, told

    rows = [p.row for p in examples]
    few = len(examples) <= ONE_BY_ONE
    reasons = [why(p.problem, p.way.device, p.prediction, **p.way.how) for p in examples if few]
    return told(rows, predictions.labels(rows, varying), reasons)


def _tile_row(row: dict[str, Any], operator: Operator) -> dict[str, Any]:
    """A row with every dimension of a tile, so that all rows have equal columns."""
    return {**row, "tile": {**dict.fromkeys(operator.searched), **row["tile"]}}


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
    perfmodel predict gemm -d h100-sxm --implementation triton --tile m=128,n=256,k=64,warps=8
    perfmodel predict gemm -d h100-sxm -m 1:64 -n 4096 -k 4096 --dtype fp8,bf16 -o sweep.csv
    """,
    "pointwise": """\b
    perfmodel predict pointwise -d h100-sxm --variant silu_mul --inputs 2 --rows 1k:16k:x2
    perfmodel predict pointwise -d a100,h100,mi300x --variant add,gelu --cols 8k
    """,
}
_ROWS = """\b
    perfmodel predict {name} --device h100-sxm --rows 4096 --cols 1k:16k:x2
    perfmodel predict {name} -d a100,h100,mi300x --rows 4k --cols 8k --terms
    """
_DECLARED = """\b
    perfmodel predict {name} --device h100-sxm --schedule auto,unfused
    perfmodel predict {name} -d a100,h100,mi300x --dtype bf16,fp8 --format csv
    """


def _examples(operator: Operator) -> str:
    template = _ROWS if "rows" in operator.needed else _DECLARED
    return _EXAMPLES.get(operator.name, template.format(name=operator.name))


app = typer.Typer(
    cls=operator_group(predict, _examples),
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@app.callback()
def _predict() -> None:
    """Predict the time of an operator on a device, with every resource's share of it."""
