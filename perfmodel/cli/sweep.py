"""`perfmodel sweep OPERATOR`: a grid of cases to Parquet, and queries on it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from perfmodel.algorithms.sizes import check_cases
from perfmodel.analysis.sweep import CHUNK, Answer, Sweep, best, matching, pareto, parts
from perfmodel.analysis.sweep.answers import full_name
from perfmodel.analysis.sweep.expressions import condition, quantity
from perfmodel.analysis.sweep.manifest import read_manifest, stored_kinds
from perfmodel.analysis.sweep.runner import Meter, run, tables
from perfmodel.analysis.sweep.sample import Sample
from perfmodel.cli import spellings
from perfmodel.cli.arguments import TimedKernel
from perfmodel.cli.build import command
from perfmodel.cli.drawing import Drawing
from perfmodel.cli.operatorgroup import OperatorGroup
from perfmodel.cli.output import Format, Shown, say
from perfmodel.errors import OutputError, ProblemError, needs
from perfmodel.fieldoption import FieldOption
from perfmodel.operators.grid import Grid
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

    @property
    def asked(self) -> bool:
        """Whether there is any query."""
        return self.best or self.pareto is not None or self.where is not None

    @property
    def quantities(self) -> list[str]:
        """What is minimised."""
        return [self.by] if self.best else [text for text in (self.pareto or "").split(",") if text]


Pareto = Annotated[
    Drawing, {"chart": "Chart of a --pareto front of two quantities (.svg, .pdf, .png)."}
]


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


def sweep(grid: Grid, asked: Asked, question: Question, drawing: Pareto) -> None:
    """Predict all cases on all devices, into a folder or in answer to a question."""
    is_file = question.asked and asked.output and Path(asked.output).suffix in SUFFIXES
    folder = None if is_file else asked.output
    printer = Shown(asked.format, asked.output if is_file else None)
    if folder is None and not question.asked:
        raise ProblemError(
            "nothing to do: name a folder with --output, or add --best, --pareto or --where"
        )
    if folder is None and asked.dask is not None:
        raise ProblemError("--dask writes files: name a folder that its workers see with --output")
    grid = replace(grid, schedules=asked.schedules(grid.operator))
    if not asked.yes:
        check_cases(len(grid) * len(asked.device), instead="narrow a range, or add --yes")
    (kernel,) = asked.implementations(grid.operator)
    needs("pyarrow", "sweep")
    from perfmodel.analysis.sweep.chunk import column_kinds

    devices = tuple(asked.device)
    plan = Sweep(grid, devices, implementation=kernel, chunk=asked.chunk, **asked.request())
    plan.check(yes=asked.yes)
    query = _Query(question, column_kinds(plan), drawing)
    terminal = sys.stderr.isatty()
    meter = Meter(_overwrite, interval=0.5) if terminal else Meter(say, interval=10.0)
    if folder is not None:
        written = run(plan, folder, dask=asked.dask, progress=meter)
        missing = f", {written.unpredicted:,} without a time (see reason)"
        fresh = f" ({written.fresh:,} new)" if written.fresh < written.points else ""
        files = f"{written.files:,} file{'' if written.files == 1 else 's'}"
        rows = f"{folder}: {written.points:,} rows in {files}{fresh}"
        say(f"{rows}{missing if written.unpredicted else ''}")
    if question.asked:
        schedule = ["schedule"] if len(grid.schedules) > 1 else []
        chunks = tables(plan, meter) if folder is None else parts(folder)
        query.show(chunks, grid.operator.name, ["device", *schedule, *grid.varying], printer)


def ask(
    folder: Annotated[
        str,
        FieldOption(metavar="FOLDER", help="Folder that a sweep has written.", argument=True),
    ],
    question: Question,
    shown: Shown,
    drawing: Pareto,
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
    chunks = parts(folder)
    first = next(chunks)
    query = _Query(question, stored_kinds(first.schema), drawing)
    stored = manifest["grid"]
    values = {"schedule": stored["schedules"], **stored["kinds"], **stored["sizes"]}
    identity = ["device", *(name for name, each in values.items() if len(each) > 1)]
    query.show(chain([first], chunks), manifest["operator"], identity, shown)


def _overwrite(line: str) -> None:
    """Progress on a terminal: one line that is overwritten."""
    end = "\n" if line.startswith("100%") else ""
    print(f"\r\x1b[K{line}", end=end, file=sys.stderr, flush=True)


class _Query:
    """A question on columns of these kinds, checked before any table is made."""

    def __init__(self, question: Question, kinds: dict[str, str], drawing: Drawing) -> None:
        """Raises `PerfmodelError` for a question that cannot be answered or drawn."""
        if question.best and question.pareto is not None:
            raise ProblemError("--best and --pareto are two questions; ask one at a time")
        self._question, self._drawing = question, drawing
        names = [full_name(name.strip()) for name in (question.pareto or "").split(",")]
        if drawing.chart is not None and (question.pareto is None or len(names) != 2):
            raise OutputError(
                "--chart draws a Pareto front of two; ask for one: --pareto time,bytes"
            )
        for name in names if drawing.chart is not None else ():
            if kinds.get(name) != "number":
                raise OutputError(f"--chart draws columns, and {name!r} is none; name two columns")
        test = condition(question.where, kinds) if question.where is not None else None
        per = [spellings.named("column", name, kinds) for name in spellings.names(question.per)]
        axes = [quantity(text, kinds) for text in question.quantities]
        self._sample = None if drawing.chart is None else Sample(["device", *names])
        self._names = names
        self._answer: Callable[[Any], Answer]
        if question.best:
            self._answer = lambda chunks: best(chunks, axes[0], per, test)
        elif question.pareto is not None:
            if len(axes) < 2:
                raise ProblemError("a Pareto front needs two quantities or more; write time,bytes")
            self._answer = lambda chunks: pareto(chunks, axes, per, test, self._sample)
        else:
            self._answer = lambda chunks: matching(chunks, test, question.limit or None)

    def show(self, chunks: Any, operator: str, identity: list[str], shown: Shown) -> None:
        """Ask the tables, and show and draw the answer; `identity` distinguishes rows."""
        answer = replace(self._answer(chunks), operator=operator)
        shown.emit(report(answer, identity, self._question.quantities))
        if self._sample is not None:
            from perfmodel.render.pareto import pareto_chart

            x, y = self._names
            self._drawing.draw(
                partial(pareto_chart, operator, (x, y), answer.rows, self._sample.rows,
                        answer.matched, identity)
            )  # fmt: skip


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
    "": """\b
    perfmodel sweep {name} -d h100-sxm,b200{sizes} --output sweep
    perfmodel sweep {name} -d h100-sxm,b200{sizes} --best --per device -o best.csv
    """,
}


app = OperatorGroup(
    sweep,
    _EXAMPLES,
    """Predict a whole grid of cases into Parquet files, and query it.

Sizes take lists (8,16,32) and ranges (1:64, 256:65536:256, 512:16k:x2; 1k = 1024), devices and
types take lists; the grid is their product. Run an interrupted sweep again with the same
options to continue it.""",
    {"ask": (command(ask, "ask"), "Query a finished sweep: --best, --pareto or --where.")},
)
