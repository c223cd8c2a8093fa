"""`perfmodel predict OPERATOR`: one case or a sweep, on one device or several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

from perfmodel.algorithms.sizes import check_cases
from perfmodel.cli import known
from perfmodel.cli.cases import Cases
from perfmodel.cli.operatorgroup import operator_group
from perfmodel.cli.output import Format, Output, chosen_format, emit
from perfmodel.cli.predicted import Predicted, Way, predicted
from perfmodel.errors import ProblemError
from perfmodel.operators import Operator
from perfmodel.render import predictions

# The most cases, all devices and schedules together: what is printed in a quarter of a minute.
MOST = 200_000
EXPLAINED = 64
"""The most cases that sentences under the table speak of."""

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
Implementations = Annotated[
    str | None,
    typer.Option(
        "--implementation",
        metavar="NAMES",
        help="The kernels that run, with commas: flash2,flash3,cudnn "
        "(perfmodel list implementations).",
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
    implementation: Implementations = None,
    harness: Harness = "kernel",
    place: Place = None,
    mesh: Mesh = None,
    stored: Stored = None,
    terms: Annotated[
        bool,
        typer.Option(
            "--terms", help="Show every term, tile and wave (JSON and CSV always have them)."
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
    kernels = known.named_implementations(cases.operator, implementation)
    how = {
        "harness": known.harness(harness),
        "place": known.placing(place),
        "mesh": known.mesh(mesh),
        "stored": known.storing(stored),
    }
    if compiled and mesh:
        raise ProblemError("--compiled is of one device; drop it, or --mesh")
    ways = [
        Way(found, {"schedule": name, "implementation": kernel, **how}, compiled)
        for found in known.devices(device)
        for kernel in kernels
        for name in schedules
    ]
    total = cases.count * len(ways)
    check_cases(total, MOST, "narrow a range, or write files with perfmodel sweep")
    first = list(predicted(cases.first(), ways))
    all_found = first if len(first) == total else predicted(cases, ways)
    if total <= EXPLAINED:
        all_found = list(all_found)
    rows = [one.row for one in all_found] if isinstance(all_found, list) else _rows(all_found)
    examples = rows if all_found is first else [_with_tile(one, cases.operator) for one in first]
    varying, people = cases.varying(), wanted in ("table", "markdown")
    why = _why(all_found, varying) if people and isinstance(all_found, list) else []
    if terms and people:
        every = rows if isinstance(rows, list) else _rows(predicted(cases, ways))
        below = predictions.terms(every, examples, varying, why)
        shown = predictions.report(rows, examples, varying, cases.follows)
        emit(replace(shown, notes=()), format, output, below)
    else:
        emit(predictions.report(rows, examples, varying, cases.follows, why), format, output)


def _why(found: Sequence[Predicted], varying: Sequence[str]) -> list[str]:
    """The sentences under the table: of each case where they are few."""
    from perfmodel.analysis.why import why
    from perfmodel.render.why import ONE_BY_ONE, told

    rows = [one.row for one in found]
    few = len(found) <= ONE_BY_ONE
    reasons = [
        why(one.problem, one.way.device, one.prediction, **one.way.how) for one in found if few
    ]
    return told(rows, lambda row: predictions.label(row, varying), reasons)


def _rows(found: Iterable[Predicted]) -> Iterator[dict[str, Any]]:
    for one in found:
        yield one.row


def _with_tile(found: Predicted, operator: Operator) -> dict[str, Any]:
    """A row that has every dimension of a tile, as rows that are still to come may have them."""
    return {**found.row, "tile": {**dict.fromkeys(operator.searched), **found.row["tile"]}}


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
