"""`perfmodel sweep OPERATOR`: a grid of cases to Parquet, and queries on it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from perfmodel.algorithms.sizes import check_cases
from perfmodel.analysis.sweep import (
    CHUNK,
    Answer,
    Grid,
    Sweep,
    best,
    matching,
    pareto,
    parts,
    read_manifest,
)
from perfmodel.analysis.sweep.answers import full_name
from perfmodel.analysis.sweep.expressions import condition, quantity
from perfmodel.analysis.sweep.manifest import stored_kinds
from perfmodel.analysis.sweep.runner import Meter, Progress, Written, run, tables
from perfmodel.analysis.sweep.sample import Sample
from perfmodel.cli import known
from perfmodel.cli.cases import Cases
from perfmodel.cli.drawing import Drawing, with_drawing
from perfmodel.cli.operatorgroup import operator_group
from perfmodel.cli.output import Format, Output, chosen_format, emit, say
from perfmodel.cli.predict import Devices, Harness, Implementation, Mesh, Place, Schedule, Stored
from perfmodel.errors import OutputError, ProblemError, UnknownName, needs
from perfmodel.operators import Operator
from perfmodel.render import SUFFIXES
from perfmodel.render.sweeps import report

Best = Annotated[
    bool,
    typer.Option("--best", help="Show the row with the least --by, for each combination of --per."),
]
By = Annotated[
    str,
    typer.Option(
        "--by",
        metavar="QUANTITY",
        help='Quantity that --best minimises: a column or an expression, such as "time_us / '
        'batch".',
    ),
]
Pareto = Annotated[
    str | None,
    typer.Option(
        "--pareto",
        metavar="X,Y",
        help="Pareto front: rows that no other row beats in all of these: time,bytes.",
    ),
]
Per = Annotated[
    str | None,
    typer.Option(
        "--per",
        metavar="COLUMNS",
        help="Columns, with commas: one answer for each combination of their values.",
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        "--where", metavar="CONDITION", help='Only these rows: "time_us < 100 and batch > 8".'
    ),
]
Limit = Annotated[
    int,
    typer.Option(
        "--limit", metavar="N", min=0, help="Maximum rows shown for --where alone; 0 shows all."
    ),
]
Folder = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="Folder for the Parquet files; or, with --best, --pareto or --where, a file for"
        " the answer (.json, .csv, .md, .txt).",
    ),
]
Dask = Annotated[
    str | None,
    typer.Option("--dask", metavar="ADDRESS", help="Run on this Dask scheduler: tcp://host:8786."),
]
Chunk = Annotated[int, typer.Option("--chunk", metavar="N", min=1, help="Cases in one file.")]
Yes = Annotated[bool, typer.Option("--yes", help="Allow more than 50 million cases.")]
Chart = Annotated[
    str | None,
    typer.Option(
        "--chart",
        metavar="FILE",
        help="Chart of a --pareto front of two quantities (.svg, .pdf, .png).",
    ),
]


@dataclass(frozen=True)
class Question:
    """A query on a sweep; fields are the options of the same names."""

    best: bool
    """`--best`."""
    by: str
    """`--by`."""
    pareto: str | None
    """`--pareto`."""
    per: str | None
    """`--per`."""
    where: str | None
    """`--where`."""
    limit: int
    """`--limit`."""
    chart: str | None
    """`--chart`."""
    drawing: Drawing
    """Layout of the chart."""

    @property
    def asked(self) -> bool:
        """Whether there is any query."""
        return self.best or self.pareto is not None or self.where is not None


@dataclass(frozen=True)
class Told:
    """How an answer is printed."""

    operator: str
    """The operator that was swept."""
    identity: list[str]
    """Columns that distinguish its rows."""
    format: str | None
    """`--format`."""
    output: str | None
    """`--output`."""


@with_drawing
def sweep(
    cases: Cases,
    device: Devices,
    schedule: Schedule = "auto",
    implementation: Implementation = None,
    harness: Harness = "kernel",
    place: Place = None,
    mesh: Mesh = None,
    stored: Stored = None,
    output: Folder = None,
    best: Best = False,
    by: By = "time_us",
    pareto: Pareto = None,
    per: Per = None,
    where: Where = None,
    limit: Limit = 50,
    chart: Chart = None,
    dask: Dask = None,
    chunk: Chunk = CHUNK,
    yes: Yes = False,
    format: Format = None,
    *,
    drawing: Drawing,
) -> None:
    """Predict all cases on all devices, into a folder or in answer to a question."""
    question = Question(best, by, pareto, per, where, limit, chart, drawing)
    answer = output if question.asked and output and Path(output).suffix in SUFFIXES else None
    output = None if answer else output
    chosen_format(format, answer)
    if output is None and not question.asked:
        raise ProblemError(
            "nothing to do: name a folder with --output, or add --best, --pareto or --where"
        )
    if output is None and dask is not None:
        raise ProblemError("--dask writes files: name a folder that its workers see with --output")
    schedules = known.schedules(cases.operator, schedule)
    devices = known.devices(device)
    if not yes:
        total = cases.count * len(devices) * len(schedules)
        check_cases(total, instead="narrow a range, or add --yes")
    implementation = known.implementation(cases.operator, implementation)
    harness = known.harness(harness)
    needs("pyarrow", "sweep")
    grid = Grid(cases.operator, cases.sizes, cases.kinds, cases.follows, schedules)
    plan = Sweep(
        grid,
        tuple(devices),
        implementation,
        harness,
        chunk,
        place=known.placing(place),
        mesh=known.mesh(mesh),
        stored=known.storing(stored),
    )
    plan.check(yes=yes)
    identity = _identity(grid.varying, plan)
    query, sample = _question(question, _kinds(plan))
    if output is not None:
        _say_written(run(plan, output, dask=dask, progress=_progress()), output)
    if question.asked:
        reply = query(parts(output) if output is not None else tables(plan, _progress()))
        layout = Told(grid.operator.name, identity, format, answer)
        _show(reply, question, layout, sample)


def _kinds(plan: Sweep) -> dict[str, str]:
    from perfmodel.analysis.sweep.chunk import column_kinds

    return column_kinds(plan)


def _identity(varying: Iterable[str], plan: Sweep) -> list[str]:
    """The columns that distinguish rows."""
    schedules = ["schedule"] if len(plan.grid.schedules) > 1 else []
    return ["device", *schedules, *varying]


def _progress() -> Progress:
    """Progress on standard error: an overwritten line on a terminal, a line every 10 s
    elsewhere."""
    if not sys.stderr.isatty():
        return Meter(say, interval=10.0)

    def overwrite(line: str) -> None:
        end = "\n" if line.startswith("100%") else ""
        print(f"\r\x1b[K{line}", end=end, file=sys.stderr, flush=True)

    return Meter(overwrite, interval=0.5)


def _say_written(written: Written, output: str) -> None:
    missing = (
        f", {written.unpredicted:,} without a time (see reason)" if written.unpredicted else ""
    )
    fresh = f" ({written.fresh:,} new)" if written.fresh < written.points else ""
    files = f"{written.files:,} file{'' if written.files == 1 else 's'}"
    say(f"{output}: {written.points:,} rows in {files}{fresh}{missing}")


def _question(
    question: Question, kinds: dict[str, str]
) -> tuple[Callable[[Any], Answer], Sample | None]:
    """The query as a function of the tables, and for a chart a sample of the rows that it has seen.

    Raises errors before any table is made.
    """
    if question.best and question.pareto is not None:
        raise ProblemError("--best and --pareto are two questions; ask one at a time")
    question.drawing.check(question.chart)
    if question.chart is not None:
        _check_chart(question, kinds)
    test = condition(question.where, kinds) if question.where is not None else None
    per = known.names(question.per)
    for name in per:
        if name not in kinds:
            raise UnknownName("column", name, kinds)
    if question.best:
        by = quantity(question.by, kinds)
        return lambda chunks: best(chunks, by, per, test), None
    if question.pareto is not None:
        axes = [quantity(text, kinds) for text in question.pareto.split(",")]
        if len(axes) < 2:
            raise ProblemError("a Pareto front needs two quantities or more; write time,bytes")
        columns = [full_name(name.strip()) for name in question.pareto.split(",")]
        sample = Sample(["device", *columns]) if question.chart is not None else None
        return lambda chunks: pareto(chunks, axes, per, test, sample), sample
    return lambda chunks: matching(chunks, test, question.limit or None), None


def _check_chart(question: Question, kinds: dict[str, str]) -> None:
    if question.pareto is None or question.pareto.count(",") != 1:
        raise OutputError("--chart draws a Pareto front of two; ask for one: --pareto time,bytes")
    for name in question.pareto.split(","):
        if kinds.get(full_name(name.strip())) != "number":
            raise OutputError(
                f"--chart draws columns, and {name.strip()!r} is none; name two columns"
            )


def _show(answer: Answer, question: Question, layout: Told, sample: Sample | None) -> None:
    texts = [question.by] if question.best else (question.pareto or "").split(",")
    view = report(answer, layout.operator, layout.identity, [text for text in texts if text])
    emit(view, layout.format, layout.output)
    if question.chart is not None and sample is not None:
        from perfmodel.render.pareto import Front, pareto_chart

        x, y = (full_name(name.strip()) for name in texts)
        front = Front(layout.operator, x, y, answer.rows, sample.rows, answer.matched)
        drawing = question.drawing
        drawing.save(pareto_chart(front, layout.identity, drawing.page), question.chart)


_EXAMPLES = {
    "attention": """\b
    perfmodel sweep attention -d h100-sxm,b200 --seq 512:64k:x2 --batch 1:64 --output sweep
    perfmodel sweep attention -d a100 -d h100 --seq-q 1 --seq-kv 1k:128k:x2 --batch 1:64 \\
        --best --by "time_us / batch" --per device,seq_kv
    """,
    "gemm": """\b
    perfmodel sweep gemm -d h100-sxm -m 1:256 -n 1k:16k:x2 -k 4096 --dtype bf16,fp8 -o sweep
    perfmodel sweep gemm -d h100-sxm -m 1k:8k:1k --pareto time,bytes --where "time_us < 100"
    """,
}
_ROWS = """\b
    perfmodel sweep {name} -d h100-sxm,b200 --rows 1k:64k:x2 --cols 256:8k:256 --output sweep
    perfmodel sweep {name} -d h100-sxm,b200 --cols 256:8k:256 --best --per device -o best.csv
    """
_DECLARED = """\b
    perfmodel sweep {name} -d h100-sxm,b200 --output sweep
    perfmodel sweep {name} -d h100-sxm,b200 --schedule auto,unfused --best --per device
    """


def _examples(operator: Operator) -> str:
    template = _ROWS if "rows" in operator.needed else _DECLARED
    return _EXAMPLES.get(operator.name, template.format(name=operator.name))


@with_drawing
def ask(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="Folder that a sweep has written.")
    ],
    best: Best = False,
    by: By = "time_us",
    pareto: Pareto = None,
    per: Per = None,
    where: Where = None,
    limit: Limit = 50,
    chart: Chart = None,
    format: Format = None,
    output: Output = None,
    *,
    drawing: Drawing,
) -> None:
    """Query a finished sweep: --best, --pareto or --where.

    \b
    perfmodel sweep ask sweep --best --per device,seq_q
    perfmodel sweep ask sweep --pareto time,memory --where "device == h100-sxm"
    """
    chosen_format(format, output)
    question = Question(best, by, pareto, per, where, limit, chart, drawing)
    if not question.asked:
        raise ProblemError("no question is given; add --best, --pareto or --where")
    needs("pyarrow", "sweep")
    manifest = read_manifest(folder)
    tables = parts(folder)
    first = next(tables)
    query, sample = _question(question, stored_kinds(first.schema))
    answer = query(chain([first], tables))
    layout = Told(manifest["operator"], _stored_identity(manifest), format, output)
    _show(answer, question, layout, sample)


def _stored_identity(manifest: dict[str, Any]) -> list[str]:
    grid = manifest["grid"]
    varying = {"schedule": grid["schedules"], **grid["kinds"], **grid["sizes"]}
    return ["device", *(name for name, values in varying.items() if len(values) > 1)]


_ask = typer.Typer(rich_markup_mode=None, add_completion=False)
_ask.command("ask")(ask)
app = typer.Typer(
    cls=operator_group(
        sweep, _examples, {"ask": (_ask, "Query a finished sweep: --best, --pareto or --where.")}
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@app.callback()
def _sweep() -> None:
    """Predict a whole grid of cases into Parquet files, and query it.

    Sizes take lists (8,16,32) and ranges (1:64, 256:65536:256, 512:16k:x2; 1k = 1024), devices and
    types take lists; the grid is their product. Run an interrupted sweep again with the same
    options to continue it.
    """
