"""`perfmodel compare TABLE...`: predict measured runs and report the errors."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import click

from perfmodel.cli import ranges, spellings
from perfmodel.cli.arguments import Corrected, TableFile
from perfmodel.cli.build import command
from perfmodel.cli.drawing import Drawing
from perfmodel.cli.output import PANEL, Printed, Shown, say, to_stdout, write
from perfmodel.cli.progress import waiting
from perfmodel.errors import ProblemError, TableError
from perfmodel.fieldoption import FieldOption
from perfmodel.render import RENDERERS, Report, errors, gates, runrows
from perfmodel.table.hints import Hints
from perfmodel.validation.kinds import KINDS, Kind, load

if TYPE_CHECKING:
    import pandas as pd

    from perfmodel.render.page import Page
    from perfmodel.table.reading import Reading

_SHOWN = 5  # reasons printed in full; the rest are only counted
_GATE = "Gate"
"""Heading of the options that make the exit code depend on errors."""


def _share(option: str, text: str) -> float:
    """A limit such as "20%" or "0.2" as a fraction."""
    fault = "is not a percentage; write 20% or 0.2"
    (share,) = ranges.numbers(spellings.one(option, text), option, lambda part: part >= 0.0, fault)
    return share


def _templates() -> Iterable[str]:
    from perfmodel import operators

    return (*operators.names(), *(kind for kind in KINDS if kind != "operator"))


def _formats() -> Iterable[str]:
    return (*RENDERERS, *gates.FORMATS)


@dataclass(frozen=True)
class Tables:
    """What `compare` compares: tables of runs, or nothing where only columns are asked for."""

    tables: Annotated[list[str] | None, FieldOption(None, "TABLE...", argument=True)] = None
    """Tables of measured runs: CSV (comma, semicolon or tab), JSON lines, Parquet or Excel, also as
    .gz; - reads standard input."""
    kind: Annotated[str, FieldOption(None, "KIND", single=True, names=tuple(KINDS))] = "operator"
    """Kind of the tables' rows."""
    template: Annotated[str | None, FieldOption(None, "NAME", names=_templates)] = None
    """Print an empty table to fill in, and stop: for an operator, training, collective or
    serving."""
    columns: Annotated[str | None, FieldOption(None, "KIND", single=True, names=tuple(KINDS))] = (
        None
    )
    """Print what each column of a kind of table means, and stop."""


@dataclass(frozen=True)
class Asked(Corrected):
    """What `compare` is asked for."""

    by: Annotated[str, FieldOption(None, "COLUMNS")] = ""
    """Columns to group the report by, with commas: op,device."""
    where: Annotated[list[str] | None, FieldOption(None, "COLUMN=VALUE")] = None
    """Only rows with this value; repeat for several conditions, all of which must hold."""
    include_flags: bool = False
    """Also score rows flagged timer_floor, noisy, busy or suspect."""
    max_error: Annotated[
        float | None, FieldOption(_GATE, "PERCENT", read=partial(_share, "--max-error"))
    ] = None
    """Exit code 1 if the MAPE (mean absolute percentage error) of any line is above this: 20% or
    0.2."""
    baseline: Annotated[str | None, FieldOption(_GATE, "FILE")] = None
    """An earlier --output: exit code 1 if the MAPE of any line is above its value there."""
    worse: Annotated[float, FieldOption(_GATE, "PERCENT", read=partial(_share, "--worse"))] = 0.0
    """With --baseline: allowed increase of the MAPE, in percentage points: 1%."""
    explain: bool = False
    """Describe in words which groups of rows have similar errors."""
    rows: bool = False
    """Also show the rows: measured, predicted, ratio, range, verdict."""
    format: Annotated[
        str | None, FieldOption(PANEL, "FORMAT", ("--format", "-f"), names=_formats)
    ] = None
    """Output format: table, json, csv, markdown, junit or github."""
    output: TableFile = None
    """Write every row with its prediction (.csv, .csv.gz, .parquet)."""


Scatter = Annotated[
    Drawing, {"chart": "Chart of predicted against measured time (.svg, .pdf, .png)."}
]


def compare(tables: Tables, hints: Hints, asked: Asked, drawing: Scatter) -> None:
    """Predict every row of tables of measured runs and report the errors.

    Columns may have other names and units (docs/tables.md); notes under the report list how they
    were read. Rows that cannot be read or predicted are counted and explained, never dropped.

    \b
        perfmodel compare --template attention > runs.csv
        perfmodel compare --columns operator
        perfmodel compare runs.csv --by op,device --rows
        perfmodel compare bench.csv --map Runtime=measured_us --unit ms --set device=h100-sxm
        perfmodel compare a.csv.gz b.parquet --where device=h100-sxm --max-error 20%
        perfmodel compare runs.csv --output predicted.csv --chart scatter.svg
        perfmodel compare runs.csv --by device --baseline predicted.csv --format github
    """
    if tables.template is not None or tables.columns is not None:
        _describe(tables, asked.format)
        return
    kind = load(tables.kind)
    if asked.explain and kind.explain is None:
        raise ProblemError(
            f"--explain does not work for {tables.kind} tables; drop it, or group with --by"
        )
    if drawing.chart is not None and not kind.micros:
        raise ProblemError(
            f"--chart draws microseconds, and {tables.kind} tables have other units too; drop it"
        )
    for_ci = gates.FORMATS.get(asked.format or "")
    printer = Printed(None if for_ci else asked.format)
    from perfmodel.table.reading import read
    from perfmodel.table.records import write_table
    from perfmodel.validation import judging
    from perfmodel.validation.noise import judged

    paths = named(tables.tables)
    with waiting("reading tables"):
        reading = read(paths, kind.layout, hints)
    by = [*dict.fromkeys(name.strip() for name in asked.by.split(",") if name.strip())]
    by = [reading.column(name) for name in by]
    selection = reading.matching(asked.where or [])
    grouped = partial(judging.report, by=by, include_flags=asked.include_flags, fields=kind.fields)
    with waiting(f"predicting {len(selection):,} rows"):
        table = judged(kind.predicted(selection, reading.faults), kind.fields, reading.case)
        summary = grouped(table)
    base = None if asked.baseline is None else grouped(_baseline(kind, asked))
    outcomes, gate = judging.verdicts(summary), dict[str, Any]()
    if asked.max_error is not None or base is not None:
        outcomes = judging.verdicts(summary, asked.max_error, base, asked.worse)
        gate = {"max_error": asked.max_error, "baseline": asked.baseline}
    misses = [f"{item.group}: {item.miss}" for item in outcomes if item.miss] if gate else []
    gate |= {"passed": not misses, "misses": misses} if gate else {}
    drawing.draw(partial(_chart, kind, table, by, asked.include_flags))
    if asked.output is not None:
        write_table(table, asked.output)
        say(f"wrote {asked.output}")
    report = _report(kind, reading, table, summary, by, asked)
    report = replace(report, head={**report.head, **({"gate": gate} if gate else {})})
    runs = runrows.report(table, kind.fields, reading.case, micro=kind.micros)
    if for_ci is not None:
        # On GitHub the table is appended to the job summary, the file of GITHUB_STEP_SUMMARY.
        path = os.environ.get("GITHUB_STEP_SUMMARY") if asked.format == "github" else None
        if path:
            with open(path, "a", encoding="utf-8") as file:
                file.writelines(RENDERERS["markdown"](report))
        write(for_ci(report, outcomes, paths[0]), None)
    elif asked.rows and printer.form == "json":
        printer.emit(replace(report, head={**report.head, runs.name: runs.rows}))
    elif asked.rows:
        printer.emit(*([runs] if printer.form == "csv" else [runs, report]))
    else:
        printer.emit(report)
    for miss in misses:
        say(f"gate failed: {miss}")
    if misses:
        raise click.exceptions.Exit(1)


def named(tables: list[str] | None) -> list[str]:
    """The tables. Raises `ProblemError` where none is named."""
    if not tables:
        raise ProblemError(
            "no table named; give a file or - for stdin (perfmodel compare --template gemm "
            "prints one to fill in)"
        )
    return tables


def _describe(tables: Tables, format: str | None) -> None:
    """Print an empty table, or what the columns of one mean."""
    if tables.template is not None:
        from perfmodel.table.template import template

        name = tables.template.strip()
        own = load(name).example if name in KINDS else {}
        to_stdout(iter([load(name).template if own else template(name)]))
    elif tables.columns is not None:
        from perfmodel.table.reference import columns

        kind = tables.columns
        meanings, title = columns(load(kind).layout, kind), f"columns of {kind} tables"
        Shown(format).emit(Report.of("columns", meanings, title=title, head={"kind": kind}))


def _report(
    kind: Kind,
    reading: Reading,
    table: pd.DataFrame,
    summary: pd.DataFrame,
    by: list[str],
    asked: Asked,
) -> Report:
    """The report: how columns were read, rows that lack, and what is said of the errors."""
    from perfmodel.validation.judging import counted
    from perfmodel.validation.noise import remark

    texts = reading.faults.loc[table.index]
    faults = texts[texts != ""].tolist()
    counts = {line: n for line, n in counted(table["reason"]).items() if line not in faults}
    remarks = kind.remarks(table, by)
    head: dict[str, Any] = {"rows": len(table), "unpredicted": counts, **remarks.head}
    head |= {"read": list(reading.notes), "unread": faults}
    notes = [*reading.notes, *(f"not read: {line}" for line in faults[:_SHOWN])]
    if len(faults) > _SHOWN:
        notes.append(f"not read: {len(faults) - _SHOWN} more rows (--format json lists all)")
    noise = remark(table, kind.fields, include_flags=asked.include_flags)
    notes += [noise] if noise else []
    notes += [f"{n} rows not predicted: {reason}" for reason, n in counts.items()][:_SHOWN]
    notes += remarks.notes
    if asked.explain and kind.explain is not None:
        head["explained"] = kind.explain(table)
        lines = head["explained"] or ["no group of rows misses alike"]
        notes += [f"explained: {line}" for line in lines]
    title = f"{len(table)} measured {'run' if len(table) == 1 else 'runs'}"
    return errors.report(summary, by, title, head=head, notes=notes)


def _baseline(kind: Kind, asked: Asked) -> pd.DataFrame:
    """The rows of an earlier `--output`; raises `TableError` for a table without predictions."""
    from perfmodel.table.reading import read
    from perfmodel.validation.judging import NOISE as ADDED

    path = str(asked.baseline)
    reading = read(path, kind.layout)
    table, fields = reading.strict(), kind.fields
    missing = [name for name in (fields.predicted, fields.low) if name not in table]
    if missing:
        raise TableError(
            f"{path}: no column {missing[0]!r}; a baseline is written by compare --output"
        )
    numbers = [fields.predicted, fields.low, fields.high]
    try:
        table[numbers] = table[numbers].astype(float)
    except ValueError:
        raise TableError(f"{path}: {', '.join(numbers)} are no numbers; write it anew") from None
    table = table.drop(columns=ADDED, errors="ignore")
    return replace(reading, table=table).matching(asked.where or [])


def _chart(kind: Kind, table: pd.DataFrame, by: list[str], include_flags: bool, page: Page) -> Any:
    """The chart, drawn before anything is written. Raises `TableError` where no row is left."""
    from perfmodel.render.scatter import scatter_chart
    from perfmodel.validation.judging import scored

    fields = kind.fields
    rows = scored(table, include_flags=include_flags, fields=fields)
    if rows.empty:
        raise TableError("no row is left to draw; none could be predicted and scored")
    group = by[0] if by else kind.group
    return scatter_chart(rows, group, fields.measured, fields.predicted, page)


app = command(compare)
