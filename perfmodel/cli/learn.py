"""`perfmodel learn`: corrections from measured runs, and which runs are worth measuring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from perfmodel.cli.arguments import OneDevice
from perfmodel.cli.build import command
from perfmodel.cli.compare import named
from perfmodel.cli.output import PANEL, Format, Printed, Shown, say
from perfmodel.errors import ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.render.report import Column, Report, text
from perfmodel.table.hints import Hints

if TYPE_CHECKING:
    import pandas as pd

_PLAN = "Runs to measure"


@dataclass(frozen=True)
class Asked:
    """What `learn` is asked for."""

    tables: Annotated[list[str] | None, FieldOption(None, "TABLE...", argument=True)] = None
    """Tables of measured runs, as `perfmodel compare` reads them. With --plan: of runs to choose
    from."""
    curve: bool = False
    """Show how good some of the runs are for the rest of them, and write nothing."""
    plan: Annotated[int | None, FieldOption(_PLAN)] = None
    """Show the N runs that teach most about all others, as a table to fill in."""
    device: OneDevice | None = None
    """With --plan: the device to measure on; without tables, the cases of `measure` are chosen
    from."""
    op: Annotated[str | None, FieldOption(_PLAN, "NAME", names="perfmodel.operators:names")] = None
    """With --plan: only this operator."""
    format: Format = None
    """Output format."""
    output: Annotated[str | None, FieldOption(PANEL, "FILE", ("--output", "-o"))] = None
    """Write the corrections (.yaml); with --curve or --plan the table."""


def learn(asked: Asked, hints: Hints) -> None:
    """Learn corrections of the model from measured runs, for predictions with --learned.

    For each framework, family of operators and architecture: a start, a factor, and the residuals
    of the nearest runs. From about ten runs of a group on it pays; groups that get no better are
    left alone.

    \b
        perfmodel learn runs.csv --output mine.yaml
        perfmodel predict gemm -d h200 -m 4096 -n 4096 -k 4096 --learned mine.yaml
        perfmodel learn runs.csv --curve
        perfmodel learn --plan 10 -d h100-sxm --op gemm --format csv
    """
    from perfmodel.validation import learn as learning
    from perfmodel.validation import learnplan
    from perfmodel.validation.judging import plain_lines

    if asked.plan is not None:
        printer = Shown(asked.format, asked.output)
        candidates = None if not asked.tables else _table(asked.tables, hints)
        runs = learnplan.planned(candidates, asked.plan, asked.device, asked.op)
        columns = [text(name, name) for name in runs.columns]
        title, notes = "runs worth measuring", [learnplan.NOTE]
        printer.emit(Report("runs", plain_lines(runs), columns, title, notes=notes))
        return
    if not asked.tables:
        raise ProblemError("learn needs a table of measured runs; name one, or ask for --plan N")
    if asked.curve:
        printer = Shown(asked.format, asked.output)
        rows = list(learning.curve(_table(asked.tables, hints)))
        notes = ["medians of |ln(measured / predicted)| of the runs that were not learned from"]
        printer.emit(Report("curve", rows, _CURVE, notes=notes))
        return
    printed, path = Printed(asked.format), asked.output
    if path is None or not path.endswith((".yaml", ".yml")):
        raise ProblemError("learn writes a YAML file; add --output mine.yaml, or ask for --curve")
    learned = learning.learn(_table(asked.tables, hints), ", ".join(asked.tables))
    learning.save(learned, path)
    note = "left out: each run predicted from the others; medians of |ln(measured / predicted)|"
    printed.emit(Report.of("corrections", learned.groups, notes=[note]))
    say(f"wrote {path}: {len(learned.groups)} corrections; use them with --learned {path}")


def _table(paths: list[str], hints: Hints) -> pd.DataFrame:
    from perfmodel.table.reading import read
    from perfmodel.validation.kinds import load

    return read(named(paths), load("operator").layout, hints).table


_CURVE = [
    text("device", "device"),
    text("framework", "framework"),
    text("family", "family"),
    Column("runs", "rows"),
    Column("learned from", "learned"),
    Column("model off", "model", "{:.1%}"),
    Column("corrected", "corrected", "{:.1%}"),
    Column("p90", "model_p90", "{:.1%}"),
    Column("corrected p90", "corrected_p90", "{:.1%}"),
    Column("in range", "covered", "{:.1%}"),
    Column("width", "width", "{:.2f}"),
]

app = command(learn)
