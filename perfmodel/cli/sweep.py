"""`perfmodel sweep OPERATOR`: a grid of cases to Parquet, and queries on it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

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
from perfmodel.cli.arguments import TimedKernel
from perfmodel.cli.build import command
from perfmodel.cli.cases import Cases
from perfmodel.cli.drawing import Drawing
from perfmodel.cli.operatorgroup import OperatorGroup
from perfmodel.cli.output import Format, Shown, chosen_format, emit, say
from perfmodel.errors import OutputError, ProblemError, UnknownName, needs
from perfmodel.fieldoption import FieldOption
from perfmodel.render import SUFFIXES
from perfmodel.render.sweeps import report

_QUESTION = "Question"
"""Heading of the options of a query."""


@dataclass(frozen=True)
class Question:
    """A query on a sweep."""

    best: Annotated[bool, FieldOption(_QUESTION)] = False
    """Show the row with the least --by, for each combination of --per."""
    by: Annotated[str, FieldOption(_QUESTION, "QUANTITY")] = "time_us"
    """Quantity that --best minimises: a column or an expression, such as "time_us / batch"."""
    pareto: Annotated[str | None, FieldOption(_QUESTION, "X,Y")] = None
    """Pareto front: rows that no other row beats in all of these: time,bytes."""
    per: Annotated[str | None, FieldOption(_QUESTION, "COLUMNS")] = None
    """Columns, with commas: one answer for each combination of their values."""
    where: Annotated[str | None, FieldOption(_QUESTION, "CONDITION")] = None
    """Only these rows: "time_us < 100 and batch > 8"."""
    limit: Annotated[int, FieldOption(_QUESTION, "N", least=0)] = 50
    """Maximum rows shown for --where alone; 0 shows all."""
    chart: Annotated[str | None, FieldOption(_QUESTION, "FILE")] = None
    """Chart of a --pareto front of two quantities (.svg, .pdf, .png)."""

    @property
    def asked(self) -> bool:
        """Whether there is any query."""
        return self.best or self.pareto is not None or self.where is not None


@dataclass(frozen=True)
class Asked(TimedKernel):
    """What `sweep` is asked for."""

    output: Annotated[str | None, FieldOption("Output", "PATH", ("--output", "-o"))] = None
    """Folder for the Parquet files; or, with --best, --pareto or --where, a file for the answer
    (.json, .csv, .md, .txt)."""
    format: Format = None
    """Output format."""
    dask: Annotated[str | None, FieldOption(None, "ADDRESS")] = None
    """Run on this Dask scheduler: tcp://host:8786."""
    chunk: int = CHUNK
    """Cases in one file."""
    yes: bool = False
    """Allow more than 50 million cases."""


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


def sweep(cases: Cases, asked: Asked, question: Question, drawing: Drawing) -> None:
    """Predict all cases on all devices, into a folder or in answer to a question."""
    output, query = asked.output, question.asked
    answer = output if query and output and Path(output).suffix in SUFFIXES else None
    output = None if answer else output
    chosen_format(asked.format, answer)
    if output is None and not query:
        raise ProblemError(
            "nothing to do: name a folder with --output, or add --best, --pareto or --where"
        )
    if output is None and asked.dask is not None:
        raise ProblemError("--dask writes files: name a folder that its workers see with --output")
    plan = _plan(cases, asked)
    identity = _identity(plan.grid.varying, plan)
    answered, sample = _question(question, _kinds(plan), drawing)
    if output is not None:
        _say_written(run(plan, output, dask=asked.dask, progress=_progress()), output)
    if query:
        reply = answered(parts(output) if output is not None else tables(plan, _progress()))
        layout = Told(plan.grid.operator.name, identity, asked.format, answer)
        _show(reply, question, layout, sample, drawing)


def _plan(cases: Cases, asked: Asked) -> Sweep:
    """The sweep. Raises `ProblemError` for one of too many cases."""
    schedules, devices = asked.schedules(cases.operator), asked.devices()
    if not asked.yes:
        total = cases.count * len(devices) * len(schedules)
        check_cases(total, instead="narrow a range, or add --yes")
    kernel = asked.named(cases.operator)
    needs("pyarrow", "sweep")
    grid = Grid(cases.operator, cases.sizes, cases.kinds, cases.follows, schedules)
    plan = Sweep(grid, tuple(devices), implementation=kernel, chunk=asked.chunk, **asked.request())
    plan.check(yes=asked.yes)
    return plan


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
    question: Question, kinds: dict[str, str], drawing: Drawing
) -> tuple[Callable[[Any], Answer], Sample | None]:
    """The query as a function of the tables, and for a chart a sample of the rows that it has seen.

    Raises errors before any table is made.
    """
    if question.best and question.pareto is not None:
        raise ProblemError("--best and --pareto are two questions; ask one at a time")
    drawing.check(question.chart)
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


def _show(
    answer: Answer, question: Question, layout: Told, sample: Sample | None, drawing: Drawing
) -> None:
    texts = [question.by] if question.best else (question.pareto or "").split(",")
    view = report(answer, layout.operator, layout.identity, [text for text in texts if text])
    emit(view, layout.format, layout.output)
    if question.chart is not None and sample is not None:
        from perfmodel.render.pareto import Front, pareto_chart

        x, y = (full_name(name.strip()) for name in texts)
        front = Front(layout.operator, x, y, answer.rows, sample.rows, answer.matched)
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
    "rows": """\b
    perfmodel sweep {name} -d h100-sxm,b200 --rows 1k:64k:x2 --cols 256:8k:256 --output sweep
    perfmodel sweep {name} -d h100-sxm,b200 --cols 256:8k:256 --best --per device -o best.csv
    """,
    "declared": """\b
    perfmodel sweep {name} -d h100-sxm,b200 --output sweep
    perfmodel sweep {name} -d h100-sxm,b200 --schedule auto,unfused --best --per device
    """,
}


def ask(
    folder: Annotated[
        str,
        FieldOption(metavar="FOLDER", help="Folder that a sweep has written.", argument=True),
    ],
    question: Question,
    shown: Shown,
    drawing: Drawing,
) -> None:
    """Query a finished sweep: --best, --pareto or --where.

    \b
    perfmodel sweep ask sweep --best --per device,seq_q
    perfmodel sweep ask sweep --pareto time,memory --where "device == h100-sxm"
    """
    if not question.asked:
        raise ProblemError("no question is given; add --best, --pareto or --where")
    needs("pyarrow", "sweep")
    manifest = read_manifest(folder)
    tables = parts(folder)
    first = next(tables)
    query, sample = _question(question, stored_kinds(first.schema), drawing)
    answer = query(chain([first], tables))
    layout = Told(manifest["operator"], _stored_identity(manifest), shown.format, shown.output)
    _show(answer, question, layout, sample, drawing)


def _stored_identity(manifest: dict[str, Any]) -> list[str]:
    grid = manifest["grid"]
    varying = {"schedule": grid["schedules"], **grid["kinds"], **grid["sizes"]}
    return ["device", *(name for name, values in varying.items() if len(values) > 1)]


app = OperatorGroup(
    sweep,
    _EXAMPLES,
    """Predict a whole grid of cases into Parquet files, and query it.

Sizes take lists (8,16,32) and ranges (1:64, 256:65536:256, 512:16k:x2; 1k = 1024), devices and
types take lists; the grid is their product. Run an interrupted sweep again with the same
options to continue it.""",
    {"ask": (command(ask, "ask"), "Query a finished sweep: --best, --pareto or --where.")},
)
