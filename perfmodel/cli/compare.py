"""`perfmodel compare TABLE...`: predict measured runs and report the errors."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any

import click

from perfmodel.cli import completing, known, tablehints
from perfmodel.cli.arguments import Chart, Learned, NoLearned
from perfmodel.cli.build import command
from perfmodel.cli.drawing import Drawing
from perfmodel.cli.output import PANEL, chosen_format, emit, say, write
from perfmodel.cli.progress import waiting
from perfmodel.errors import ProblemError, TableError
from perfmodel.fieldoption import FieldOption
from perfmodel.render import Report, gates, markdown, runrows
from perfmodel.render.report import fixed, integer, percent, text
from perfmodel.validation.kinds import KINDS, Kind, load

if TYPE_CHECKING:
    import pandas as pd

    from perfmodel.evidence.tables.reading import Reading
    from perfmodel.render.chart import Chart as Drawn
    from perfmodel.validation.judging import Verdict

_SHOWN = 5  # reasons printed in full; the rest are only counted
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)(%?)")


_GATE = "Gate"
"""Heading of the options that make the exit code depend on errors."""


@dataclass(frozen=True)
class Tables:
    """What `compare` compares: tables of runs, or nothing where only columns are asked for."""

    tables: Annotated[list[str] | None, FieldOption(None, "TABLE...", argument=True)] = None
    """Tables of measured runs: CSV (comma, semicolon or tab), JSON lines, Parquet or Excel, also as
    .gz; - reads standard input."""
    kind: Annotated[str, FieldOption(None, "KIND", single=True, names=tuple(KINDS))] = "operator"
    """Kind of the tables' rows."""
    template: Annotated[str | None, FieldOption(None, "NAME", complete=completing.templates)] = None
    """Print an empty table to fill in, and stop: for an operator, training, collective or
    serving."""
    columns: Annotated[str | None, FieldOption(None, "KIND", single=True, names=tuple(KINDS))] = (
        None
    )
    """Print what each column of a kind of table means, and stop."""


@dataclass(frozen=True)
class Asked:
    """What `compare` is asked for."""

    by: Annotated[str, FieldOption(None, "COLUMNS")] = ""
    """Columns to group the report by, with commas: op,device."""
    where: Annotated[list[str] | None, FieldOption(None, "COLUMN=VALUE")] = None
    """Only rows with this value; repeat for several conditions, all of which must hold."""
    include_flags: bool = False
    """Also score rows flagged timer_floor, noisy, busy or suspect."""
    max_error: Annotated[str | None, FieldOption(_GATE, "PERCENT")] = None
    """Exit code 1 if the MAPE (mean absolute percentage error) of any line is above this: 20% or
    0.2."""
    baseline: Annotated[str | None, FieldOption(_GATE, "FILE")] = None
    """An earlier --output: exit code 1 if the MAPE of any line is above its value there."""
    worse: Annotated[str, FieldOption(_GATE, "PERCENT")] = "0%"
    """With --baseline: allowed increase of the MAPE, in percentage points: 1%."""
    learned: Learned = None
    """File of corrections."""
    no_learned: NoLearned = False
    """Whether nothing is corrected."""
    explain: bool = False
    """Describe in words which groups of rows have similar errors."""
    rows: bool = False
    """Also show the rows: measured, predicted, ratio, range, verdict."""
    chart: Chart = None
    """Chart of predicted against measured time (.svg, .pdf, .png)."""
    format: Annotated[
        str | None, FieldOption(PANEL, "FORMAT", ("--format", "-f"), complete=completing.gates)
    ] = None
    """Output format: table, json, csv, markdown, junit or github."""
    output: Annotated[str | None, FieldOption(PANEL, "FILE", ("--output", "-o"))] = None
    """Write every row with its prediction (.csv, .csv.gz, .parquet)."""


def compare(tables: Tables, hints: tablehints.TableHints, asked: Asked, drawing: Drawing) -> None:
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
    if tables.template is not None:
        tablehints.print_template(tables.template)
        return
    if tables.columns is not None:
        emit(tablehints.reference(tables.columns), asked.format, asked.output)
        return
    limit, allowed = _fraction("--max-error", asked.max_error), _fraction("--worse", asked.worse)
    drawing.check(asked.chart)
    _check_outputs(asked.format, asked.output)
    kind = _kind(tables.kind, asked)
    run = _compared(kind, tables, hints, asked)
    base = None if asked.baseline is None else run.grouped(_baseline(kind, asked))
    outcomes: list[Verdict] = []
    if limit is not None or base is not None:
        outcomes = run.verdicts(limit, base, allowed or 0.0)
    misses = [f"{item.group}: {item.miss}" for item in outcomes if item.miss]
    messages = _write_files(run, asked, drawing)
    gate = {"max_error": limit, "baseline": asked.baseline, "passed": not misses, "misses": misses}
    view = run.report(gate if limit is not None or base is not None else None)
    if asked.format in gates.FORMATS:
        source = tablehints.named(tables.tables)[0]
        _write_for_ci(str(asked.format), view, outcomes or run.verdicts(), source)
    else:
        runs = partial(runrows.report, run.table, kind.fields, run.reading.case)
        _emit(view, runs(micro=kind.micros) if asked.rows else None, asked.format)
    for line in (*messages, *(f"gate failed: {miss}" for miss in misses)):
        say(line)
    if misses:
        raise click.exceptions.Exit(1)


@dataclass(frozen=True)
class _Compared:
    """Predicted rows of tables."""

    kind: Kind
    """Kind of the tables."""
    reading: Reading
    """What was read."""
    table: pd.DataFrame
    """The selected rows with their predictions."""
    asked: Asked
    """The options."""
    by: list[str]
    """Columns of the table that its lines are grouped by."""

    def grouped(self, table: pd.DataFrame) -> pd.DataFrame:
        """The errors of a table, a line a group."""
        from perfmodel.validation.judging import report

        flags = self.asked.include_flags
        return report(table, by=self.by, include_flags=flags, fields=self.kind.fields)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """The errors of these rows."""
        return self.grouped(self.table)

    def verdicts(self, *limits: Any) -> list[Verdict]:
        """Whether each line passes."""
        from perfmodel.validation.judging import verdicts

        return verdicts(self.summary, *limits)

    def report(self, gate: dict[str, Any] | None) -> Report:
        """The report: how columns were read, rows that lack, and what is said of the errors."""
        from perfmodel.validation.judging import counted, plain_lines
        from perfmodel.validation.noise import remark

        texts = self.reading.faults.loc[self.table.index]
        faults = texts[texts != ""].tolist()
        counts = {
            line: n for line, n in counted(self.table["reason"]).items() if line not in faults
        }
        noise = remark(self.table, self.kind.fields, include_flags=self.asked.include_flags)
        remarks, explained = self.kind.remarks(self.table, self.by), self._explained()
        head: dict[str, Any] = {"rows": len(self.table), "unpredicted": counts, **remarks.head}
        head |= {} if gate is None else {"gate": gate}
        head |= {"read": list(self.reading.notes), "unread": faults}
        head |= {} if explained is None else {"explained": explained}
        unread = [f"not read: {line}" for line in faults[:_SHOWN]]
        if len(faults) > _SHOWN:
            unread.append(f"not read: {len(faults) - _SHOWN} more rows (--format json lists all)")
        refused = [f"{n} rows not predicted: {reason}" for reason, n in counts.items()][:_SHOWN]
        notes = [*self.reading.notes, *unread, *filter(None, [noise]), *refused, *remarks.notes]
        if explained is not None:
            lines = explained or ["no group of rows misses alike"]
            notes += [f"explained: {line}" for line in lines]
        return Report(
            "report",
            plain_lines(self.summary),
            [*(text(name, name) for name in self.by), *COLUMNS,
             *(NOISE if _NOISE in self.summary else ())],
            title=f"{len(self.table)} measured {'run' if len(self.table) == 1 else 'runs'}",
            head=head,
            notes=notes,
        )  # fmt: skip

    def _explained(self) -> list[str] | None:
        """The residuals in words; None where they are not asked for."""
        if not self.asked.explain:
            return None
        return self.kind.explain(self.table) if self.kind.explain is not None else []


def _compared(kind: Kind, tables: Tables, hints: tablehints.TableHints, asked: Asked) -> _Compared:
    """The rows that are asked for, read and predicted."""
    from perfmodel.evidence.tables.reading import read
    from perfmodel.validation.noise import judged

    with waiting("reading tables"):
        reading = read(tablehints.named(tables.tables), kind.layout, hints.hints())
    names = dict.fromkeys(name.strip() for name in asked.by.split(",") if name.strip())
    by = [reading.column(name) for name in names]
    selection = _matching_rows(reading, asked.where or [])
    with waiting(f"predicting {len(selection):,} rows"):
        predicted = kind.predicted(selection, reading.faults)
        predicted = judged(predicted, kind.fields, reading.case)
        run = _Compared(kind, reading, predicted, asked, by)
        _ = run.summary
    return run


def _write_files(run: _Compared, asked: Asked, drawing: Drawing) -> list[str]:
    """Write the rows and the chart that are asked for; returns messages."""
    from perfmodel.evidence.records.records import write_table

    figure = _chart(run, drawing) if asked.chart else None
    messages = []
    if asked.output is not None:
        write_table(run.table, asked.output)
        messages.append(f"wrote {asked.output}")
    return messages if figure is None else messages + drawing.write(figure, str(asked.chart))


def _emit(report: Report, runs: Report | None, format: str | None) -> None:
    """Write the report, with its rows where they are wanted: in JSON beside the lines, in CSV in
    their place."""
    if runs is None:
        emit(report, format, None)
    elif format == "json":
        emit(replace(report, head={**report.head, runs.name: runs.rows}), format, None)
    elif format == "csv":
        emit(runs, format, None)
    else:
        emit(runs, format, None, report)


def _kind(name: str, asked: Asked) -> Kind:
    """The kind of tables. Raises errors for options that it does not support."""
    kind = load(known.one("--kind", name))
    if asked.explain and kind.explain is None:
        raise ProblemError(
            f"--explain does not work for {name} tables; drop it, or group with --by"
        )
    if asked.chart is not None and not kind.micros:
        raise ProblemError(
            f"--chart draws microseconds, and {name} tables have other units too; drop it"
        )
    return kind


def _check_outputs(format: str | None, output: str | None) -> None:
    """Check file names before any work is done."""
    if format not in gates.FORMATS:
        chosen_format(format, None)
    if output is not None:
        from perfmodel.evidence.records.records import table_suffix

        table_suffix(output)


def _write_for_ci(format: str, report: Report, outcomes: list[Verdict], source: str) -> None:
    """Write a gated report in a format that CI systems read.

    On GitHub the table is appended to the job summary, the file named by GITHUB_STEP_SUMMARY.
    """
    summary = os.environ.get("GITHUB_STEP_SUMMARY") if format == "github" else None
    if summary:
        with open(summary, "a", encoding="utf-8") as file:
            file.writelines(markdown.render(report))
    write(gates.FORMATS[format](report, outcomes, source), None)


def _baseline(kind: Kind, asked: Asked) -> pd.DataFrame:
    """The rows of an earlier `--output`; raises `TableError` for a table without predictions."""
    from perfmodel.evidence.tables.reading import read
    from perfmodel.validation.judging import NOISE

    path = str(asked.baseline)
    reading = read(path, kind.layout)
    table = reading.strict()
    missing = [name for name in (kind.fields.predicted, kind.fields.low) if name not in table]
    if missing:
        raise TableError(
            f"{path}: no column {missing[0]!r}; a baseline is written by compare --output"
        )
    numbers = [kind.fields.predicted, kind.fields.low, kind.fields.high]
    try:
        table[numbers] = table[numbers].astype(float)
    except ValueError:
        raise TableError(f"{path}: {', '.join(numbers)} are no numbers; write it anew") from None
    table = table.drop(columns=NOISE, errors="ignore")
    return _matching_rows(replace(reading, table=table), asked.where or [])


def _fraction(option: str, text: str | None) -> float | None:
    """A limit such as "20%" or "0.2" as a fraction."""
    if text is None:
        return None
    match = _PERCENT.fullmatch(text.strip())
    if match is None:
        raise ProblemError(f"{option} {text!r} is not a percentage; write 20% or 0.2")
    return float(match[1]) / (100 if match[2] else 1)


def _matching_rows(reading: Reading, conditions: list[str]) -> pd.DataFrame:
    """Rows that meet all of `column=value`; alternative values are separated by commas."""
    table = reading.table
    for condition in conditions:
        name, equals, value = condition.partition("=")
        if not equals:
            raise ProblemError(f"--where {condition!r} is not COLUMN=VALUE; write device=h100-sxm")
        name = reading.column(name)
        if name not in table.columns:
            raise TableError(f"--where: no column {name!r}; there is {', '.join(table.columns)}")
        values = [item.strip().lower() for item in value.split(",")]
        table = table[table[name].astype("str").str.lower().isin(values)]
    if table.empty:
        suffix = " left after --where" if conditions else ""
        raise TableError(f"the table has no rows{suffix}; nothing to compare")
    return table


def _chart(run: _Compared, drawing: Drawing) -> Drawn:
    """The chart, drawn before anything is written. Raises `TableError` where no row is left."""
    from perfmodel.render.scatter import scatter_chart
    from perfmodel.validation.judging import scored

    fields = run.kind.fields
    rows = scored(run.table, include_flags=run.asked.include_flags, fields=fields)
    if rows.empty:
        raise TableError("no row is left to draw; none could be predicted and scored")
    group = run.by[0] if run.by else run.kind.group
    return scatter_chart(rows, group, fields.measured, fields.predicted, drawing.page)


_NOISE = "within_noise"
NOISE = (percent("noise", "noise_ln"), percent("in noise", _NOISE))
COLUMNS = (
    integer("n", "n"),
    integer("unpredicted", "unpredicted", rank=4),
    integer("flagged", "flagged", rank=5),
    percent("MAPE", "mape"),
    fixed("median |ln|", "median_abs_ln", rank=1),
    fixed("p90 |ln|", "p90_abs_ln", rank=2),
    fixed("bias", "bias"),
    fixed("Spearman", "spearman", rank=3),
    percent("in range", "coverage"),
)

app = command(compare)
