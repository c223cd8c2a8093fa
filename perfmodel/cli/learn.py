"""`perfmodel learn`: corrections from measured runs, and which runs are worth measuring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from perfmodel.cli import completing, known, tablehints
from perfmodel.cli.build import command
from perfmodel.cli.output import PANEL, Format, chosen_format, emit, say
from perfmodel.errors import ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.render.report import Column, Report, text

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
    plan: Annotated[int | None, FieldOption(_PLAN, "N", least=1)] = None
    """Show the N runs that teach most about all others, as a table to fill in."""
    device: Annotated[
        str | None,
        FieldOption(_PLAN, "NAME", ("--device", "--gpu", "-d"), complete=completing.devices),
    ] = None
    """With --plan: the device to measure on; without tables, the cases of `measure` are chosen
    from."""
    op: Annotated[str | None, FieldOption(_PLAN, "NAME", complete=completing.operators)] = None
    """With --plan: only this operator."""
    format: Format = None
    """Output format."""
    output: Annotated[str | None, FieldOption(PANEL, "FILE", ("--output", "-o"))] = None
    """Write the corrections (.yaml); with --curve or --plan the table."""


def learn(asked: Asked, hints: tablehints.TableHints) -> None:
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
    if asked.plan is not None:
        emit(_plan(asked, hints), asked.format, asked.output)
        return
    if not asked.tables:
        raise ProblemError("learn needs a table of measured runs; name one, or ask for --plan N")
    from perfmodel.validation import learn as learning

    if asked.curve:
        rows = list(learning.curve(_table(asked.tables, hints)))
        emit(_curve_report(rows), asked.format, asked.output)
        return
    path = asked.output
    if path is None or not path.endswith((".yaml", ".yml")):
        raise ProblemError("learn writes a YAML file; add --output mine.yaml, or ask for --curve")
    chosen_format(asked.format, None)
    learned = learning.learn(_table(asked.tables, hints), ", ".join(asked.tables))
    learning.save(learned, path)
    emit(_report(learned.groups), asked.format, None)
    say(f"wrote {path}: {len(learned.groups)} corrections; use them with --learned {path}")


def _table(paths: list[str], hints: tablehints.TableHints) -> pd.DataFrame:
    from perfmodel.evidence.tables.reading import read
    from perfmodel.validation.kinds import KINDS, load

    reading = read(tablehints.named(paths), load(next(iter(KINDS))).layout, hints.hints())
    return reading.table


def _plan(asked: Asked, hints: tablehints.TableHints) -> Report:
    from pandas import isna

    from perfmodel.validation import learnplan

    assert asked.plan is not None
    device = None if asked.device is None else known.devices([asked.device])[0]
    candidates = None if not asked.tables else _table(asked.tables, hints)
    chosen = learnplan.planned(candidates, asked.plan, device, asked.op)
    rows: list[dict[str, Any]] = [
        {str(name): None if isna(value) else value for name, value in row.items()}
        for row in chosen.to_dict("records")
    ]
    columns = [text(name, name) for name in chosen.columns]
    return Report("runs", rows, columns, "runs worth measuring", notes=[learnplan.NOTE])


_GROUP = [text("framework", "framework"), text("family", "family"),
          text("architecture", "architecture")]  # fmt: skip


def _report(groups: Any) -> Report:
    columns = [
        *_GROUP,
        Column("runs", "rows"),
        Column("start us", "start_us", "{:.2f}"),
        Column("factor", "factor", "{:.3f}"),
        Column("model off", "before", "{:.1%}"),
        Column("left out", "after", "{:.1%}"),
    ]
    names = ("framework", "family", "architecture", "rows", "start_us", "factor", "before", "after")
    rows = [{name: getattr(group, name) for name in names} for group in groups]
    note = "left out: each run predicted from the others; medians of |ln(measured / predicted)|"
    return Report("corrections", rows, columns, notes=[note])


def _curve_report(rows: list[dict[str, Any]]) -> Report:
    columns: list[Column] = [
        text("device", "device"),
        *_GROUP[:2],
        Column("runs", "rows"),
        Column("learned from", "learned"),
        Column("model off", "model", "{:.1%}"),
        Column("corrected", "corrected", "{:.1%}"),
        Column("p90", "model_p90", "{:.1%}"),
        Column("corrected p90", "corrected_p90", "{:.1%}"),
        Column("in range", "covered", "{:.1%}"),
        Column("width", "width", "{:.2f}"),
    ]
    notes = ["medians of |ln(measured / predicted)| of the runs that were not learned from"]
    return Report("curve", rows, columns, notes=notes)


app = command(learn)
