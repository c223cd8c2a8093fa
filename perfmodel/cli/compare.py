"""`perfmodel compare TABLE...`: predict measured runs and report the errors."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perfmodel.cli import completing, known, tablehints
from perfmodel.cli.drawing import Drawing, with_drawing
from perfmodel.cli.output import chosen_format, emit, say, write
from perfmodel.cli.progress import waiting
from perfmodel.errors import ProblemError, TableError
from perfmodel.render import Report, gates, markdown, runrows
from perfmodel.render.report import fixed, integer, percent, text
from perfmodel.validation.kinds import KINDS, Kind, load

if TYPE_CHECKING:
    import pandas as pd

    from perfmodel.evidence.tables.reading import Reading
    from perfmodel.render.chart import Chart as Drawn
    from perfmodel.validation.judging import Verdict

Explain = Annotated[
    bool,
    typer.Option("--explain", help="Describe in words which groups of rows have similar errors."),
]

app = typer.Typer(rich_markup_mode=None, add_completion=False)
_SHOWN = 5  # reasons printed in full; the rest are only counted
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)(%?)")


Tables = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TABLE...",
        help="Tables of measured runs: CSV (comma, semicolon or tab), JSON lines, Parquet or"
        " Excel, also as .gz; - reads standard input.",
    ),
]
By = Annotated[
    str,
    typer.Option(
        "--by", metavar="COLUMNS", help="Columns to group the report by, with commas: op,device."
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="COLUMN=VALUE",
        help="Only rows with this value; repeat for several conditions, all of which must hold.",
    ),
]
IncludeFlags = Annotated[
    bool,
    typer.Option(
        "--include-flags", help="Also score rows flagged timer_floor, noisy, busy or suspect."
    ),
]
MaxError = Annotated[
    str | None,
    typer.Option(
        "--max-error",
        rich_help_panel="Gate",
        metavar="PERCENT",
        help="Exit code 1 if the MAPE (mean absolute percentage error) of any line is above "
        "this: 20% or 0.2.",
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        rich_help_panel="Gate",
        metavar="FILE",
        help="An earlier --output: exit code 1 if the MAPE of any line is above its value there.",
    ),
]
Worse = Annotated[
    str,
    typer.Option(
        "--worse",
        rich_help_panel="Gate",
        metavar="PERCENT",
        help="With --baseline: allowed increase of the MAPE, in percentage points: 1%.",
    ),
]
GateFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        rich_help_panel="Output",
        metavar="FORMAT",
        help="table, json, csv, markdown, junit or github.",
        autocompletion=completing.gates,
    ),
]
Chart = Annotated[
    str | None,
    typer.Option(
        "--chart",
        metavar="FILE",
        help="Chart of predicted against measured time (.svg, .pdf, .png).",
    ),
]
Rows = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        rich_help_panel="Output",
        metavar="FILE",
        help="Write every row with its prediction (.csv, .csv.gz, .parquet).",
    ),
]
RunRows = Annotated[
    bool,
    typer.Option("--rows", help="Also show the rows: measured, predicted, ratio, range, verdict."),
]

Which = Annotated[
    str,
    typer.Option(
        "--kind",
        metavar="KIND",
        help=f"Kind of the tables' rows: {', '.join(KINDS)}.",
        autocompletion=completing.of_list(lambda: KINDS),
    ),
]


@app.command()
@with_drawing
def compare(
    tables: Tables = None,
    kind: Which = "operator",
    mapping: tablehints.Mapping = None,
    stated: tablehints.Stated = None,
    unit: tablehints.Unit = None,
    flops: tablehints.Flops = "causal",
    template: tablehints.Template = None,
    meanings: tablehints.Reference = None,
    by: By = "",
    where: Where = None,
    include_flags: IncludeFlags = False,
    max_error: MaxError = None,
    baseline: Baseline = None,
    worse: Worse = "0%",
    explain: Explain = False,
    rows: RunRows = False,
    chart: Chart = None,
    format: GateFormat = None,
    output: Rows = None,
    *,
    drawing: Drawing,
) -> None:
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
    if template is not None:
        tablehints.print_template(template)
        return
    if meanings is not None:
        emit(tablehints.reference(meanings), format, output)
        return
    limit, allowed = _fraction("--max-error", max_error), _fraction("--worse", worse)
    columns = list(dict.fromkeys(name.strip() for name in by.split(",") if name.strip()))
    drawing.check(chart)
    _check_outputs(format, output)
    chosen = load(known.one("--kind", kind))
    _check_kind(chosen, kind, explain=explain, chart=chart)
    from perfmodel.evidence.records.records import write_table
    from perfmodel.evidence.tables.reading import read
    from perfmodel.validation.judging import report, verdicts
    from perfmodel.validation.noise import judged as held_beside_noise
    from perfmodel.validation.noise import remark

    hints = tablehints.hints(mapping, stated, unit, flops)
    with waiting("reading tables"):
        reading = read(tablehints.named(tables), chosen.layout, hints)
    columns = [reading.column(name) for name in columns]
    grouped = partial(report, by=columns, include_flags=include_flags, fields=chosen.fields)
    selection = _matching_rows(reading, where or [])
    with waiting(f"predicting {len(selection):,} rows"):
        predicted = chosen.predicted(selection, reading.faults)
        predicted = held_beside_noise(predicted, chosen.fields, reading.case)
        summary = grouped(predicted)
    base = None if baseline is None else grouped(_baseline(chosen, baseline, where or []))
    gated = limit is not None or base is not None
    outcomes = verdicts(summary, limit, base, allowed or 0.0) if gated else []
    misses = [f"{item.group}: {item.miss}" for item in outcomes if item.miss]
    messages: list[str] = []
    figure = _chart(chosen, predicted, columns, include_flags, drawing) if chart else None
    if output is not None:
        write_table(predicted, output)
        messages.append(f"wrote {output}")
    if figure is not None:
        messages += drawing.write(figure, str(chart))
    gate = {"max_error": limit, "baseline": baseline, "passed": not misses, "misses": misses}
    view = _report(chosen, summary, predicted, columns, gate if gated else None)
    noise = remark(predicted, chosen.fields, include_flags=include_flags)
    view = replace(view, notes=[*filter(None, [noise]), *view.notes])
    view = _add_reading(view, reading, selection.index)
    view = _add_residuals(chosen, view, predicted) if explain else view
    if format in gates.FORMATS:
        source = tablehints.named(tables)[0]
        _write_for_ci(str(format), view, outcomes or verdicts(summary), source)
    else:
        runs = partial(runrows.report, predicted, chosen.fields, reading.case)
        _emit(view, runs(micro=chosen.micros) if rows else None, format)
    for line in messages:
        say(line)
    for miss in misses:
        say(f"gate failed: {miss}")
    if misses:
        raise typer.Exit(1)


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


def _check_kind(kind: Kind, name: str, *, explain: bool, chart: str | None) -> None:
    """Raise errors for options that a kind of table does not support."""
    if explain and kind.explain is None:
        raise ProblemError(
            f"--explain does not work for {name} tables; drop it, or group with --by"
        )
    if chart is not None and not kind.micros:
        raise ProblemError(
            f"--chart draws microseconds, and {name} tables have other units too; drop it"
        )


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


def _baseline(kind: Kind, path: str, conditions: list[str]) -> pd.DataFrame:
    """The rows of an earlier `--output`; raises `TableError` for a table without predictions."""
    from perfmodel.evidence.tables.reading import read
    from perfmodel.validation.judging import NOISE

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
    return _matching_rows(replace(reading, table=table), conditions)


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


def _chart(
    kind: Kind, table: pd.DataFrame, by: list[str], include_flags: bool, drawing: Drawing
) -> Drawn:
    """The chart, drawn before anything is written. Raises `TableError` where no row is left."""
    from perfmodel.render.scatter import scatter_chart
    from perfmodel.validation.judging import scored

    rows = scored(table, include_flags=include_flags, fields=kind.fields)
    if rows.empty:
        raise TableError("no row is left to draw; none could be predicted and scored")
    fields = kind.fields
    group = by[0] if by else kind.group
    return scatter_chart(rows, group, fields.measured, fields.predicted, drawing.page)


def _report(
    kind: Kind,
    summary: pd.DataFrame,
    table: pd.DataFrame,
    by: list[str],
    gate: dict[str, Any] | None,
) -> Report:
    from perfmodel.validation.judging import counted, plain_lines

    counts, remarks = counted(table["reason"]), kind.remarks(table, by)
    head: dict[str, Any] = {"rows": len(table), "unpredicted": counts, **remarks.head}
    if gate is not None:
        head["gate"] = gate
    notes = [f"{count} rows not predicted: {reason}" for reason, count in counts.items()][:_SHOWN]
    return Report(
        "report",
        plain_lines(summary),
        [*(text(name, name) for name in by), *COLUMNS, *(NOISE if _NOISE in summary else ())],
        title=f"{len(table)} measured {'run' if len(table) == 1 else 'runs'}",
        head=head,
        notes=[*notes, *remarks.notes],
    )


def _add_reading(report: Report, reading: Reading, rows: pd.Index[Any]) -> Report:
    """The report, with notes on how columns were read and which rows could not be read."""
    texts = reading.faults.loc[rows]
    faults = texts[texts != ""].tolist()
    head = {**report.head, "read": list(reading.notes), "unread": faults}
    unpredicted = {line: n for line, n in report.head["unpredicted"].items() if line not in faults}
    notes = [note for note in report.notes if not any(line in note for line in faults)]
    unread = [f"not read: {line}" for line in faults[:_SHOWN]]
    if len(faults) > _SHOWN:
        unread.append(f"not read: {len(faults) - _SHOWN} more rows (--format json lists all)")
    return replace(
        report,
        head={**head, "unpredicted": unpredicted},
        notes=[*reading.notes, *unread, *notes],
    )


def _add_residuals(kind: Kind, report: Report, table: pd.DataFrame) -> Report:
    """The report, with its residuals described in words."""
    lines = kind.explain(table) if kind.explain is not None else []
    notes = [f"explained: {line}" for line in lines] or ["explained: no group of rows misses alike"]
    head = {**report.head, "explained": lines}
    return replace(report, head=head, notes=[*report.notes, *notes])


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
