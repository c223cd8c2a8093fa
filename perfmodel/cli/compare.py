"""`perfmodel compare TABLE...`: predict measured runs and report the errors."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perfmodel.cli import known
from perfmodel.cli.drawing import Drawing, with_drawing
from perfmodel.cli.output import Format, chosen_format, emit, say
from perfmodel.errors import ProblemError, TableError
from perfmodel.render import Report
from perfmodel.render.report import fixed, integer, percent, text
from perfmodel.validation.kinds import KINDS, Kind, load

if TYPE_CHECKING:
    import pandas as pd

    from perfmodel.render.chart import Chart as Drawn

Explain = Annotated[
    bool, typer.Option("--explain", help="Say in words what the errors look like, and where.")
]

app = typer.Typer(rich_markup_mode=None, add_completion=False)
_SHOWN = 5  # reasons printed in full; the rest is counted
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)(%?)")


Tables = Annotated[
    list[str],
    typer.Argument(metavar="TABLE...", help=".csv, .csv.gz or .parquet files; - reads stdin."),
]
By = Annotated[str, typer.Option("--by", metavar="COLUMNS", help="Report by these: op,device.")]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="COLUMN=VALUE", help="Only these rows; repeats (and)."),
]
IncludeFlags = Annotated[
    bool,
    typer.Option("--include-flags", help="Score rows flagged timer_floor, noisy, busy or suspect."),
]
MaxError = Annotated[
    str | None,
    typer.Option(
        "--max-error",
        metavar="PERCENT",
        help="Exit with 1 if the MAPE of any line of the report is above this: 20%.",
    ),
]
Chart = Annotated[
    str | None,
    typer.Option(
        "--chart", metavar="FILE", help="Predicted against measured, as .svg, .pdf or .png."
    ),
]
Rows = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="Every row with its prediction."),
]


Which = Annotated[
    str, typer.Option("--kind", metavar="KIND", help=f"What a row is of: {', '.join(KINDS)}.")
]


@app.command()
@with_drawing
def compare(
    tables: Tables,
    kind: Which = "operator",
    by: By = "",
    where: Where = None,
    include_flags: IncludeFlags = False,
    max_error: MaxError = None,
    explain: Explain = False,
    chart: Chart = None,
    format: Format = None,
    output: Rows = None,
    *,
    drawing: Drawing,
) -> None:
    """Predict every row of tables of measured runs and report the errors.

    Rows that cannot be predicted are counted and explained, never dropped.

    \b
        perfmodel compare runs.csv --by op,device
        perfmodel compare a.csv.gz b.parquet --where device=h100-sxm --max-error 20%
        perfmodel compare runs.csv --output predicted.csv --chart scatter.svg
    """
    limit = _fraction(max_error)
    columns = list(dict.fromkeys(name.strip() for name in by.split(",") if name.strip()))
    drawing.check(chart)
    _check_outputs(format, output)
    chosen = load(known.one("--kind", kind))
    _check_kind(chosen, kind, explain=explain, chart=chart)
    from perfmodel.evidence.records.records import write_table
    from perfmodel.validation.judging import gate, report

    predicted = chosen.predict(_filtered(chosen.read(tables), where or []))
    summary = report(predicted, columns, include_flags=include_flags, fields=chosen.fields)
    misses = gate(summary, limit) if limit is not None else []
    said: list[str] = []
    drawn = _drawn(chosen, predicted, columns, include_flags, drawing) if chart else None
    if output is not None:
        write_table(predicted, output)
        said.append(f"wrote {output}")
    if drawn is not None:
        said += drawing.write(drawn, str(chart))
    shown = _report(chosen, summary, predicted, columns, limit, misses)
    emit(_explained(chosen, shown, predicted) if explain else shown, format, None)
    for line in said:
        say(line)
    for miss in misses:
        say(f"gate failed: {miss}")
    if misses:
        raise typer.Exit(1)


def _check_kind(kind: Kind, name: str, *, explain: bool, chart: str | None) -> None:
    """Complain of options that a kind of table does not take."""
    if explain and kind.explain is None:
        raise ProblemError(f"--explain is not of {name} tables; drop it, or read --by columns")
    if chart is not None and not kind.micros:
        raise ProblemError(
            f"--chart draws microseconds, and {name} tables measure more than that; drop it"
        )


def _check_outputs(format: str | None, output: str | None) -> None:
    """Complain about names of files before any work is done."""
    chosen_format(format, None)
    if output is not None:
        from perfmodel.evidence.records.records import table_suffix

        table_suffix(output)


def _fraction(text: str | None) -> float | None:
    """A limit such as "20%" or "0.2" as a fraction."""
    if text is None:
        return None
    match = _PERCENT.fullmatch(text.strip())
    if match is None:
        raise ProblemError(f"--max-error {text!r} is not a percentage; write 20% or 0.2")
    return float(match[1]) / (100 if match[2] else 1)


def _filtered(table: pd.DataFrame, conditions: list[str]) -> pd.DataFrame:
    """Rows that meet all of `column=value`; several values stand with commas between them."""
    for condition in conditions:
        name, equals, value = condition.partition("=")
        if not equals:
            raise ProblemError(f"--where {condition!r} is not COLUMN=VALUE; write device=h100-sxm")
        if name not in table.columns:
            raise TableError(f"--where: no column {name!r}; there is {', '.join(table.columns)}")
        wanted = [item.strip().lower() for item in value.split(",")]
        table = table[table[name].astype("str").str.lower().isin(wanted)]
    if table.empty:
        left = " left after --where" if conditions else ""
        raise TableError(f"the table has no rows{left}; nothing to compare")
    return table.reset_index(drop=True)


def _drawn(
    kind: Kind, table: pd.DataFrame, by: list[str], include_flags: bool, drawing: Drawing
) -> Drawn:
    """The chart, drawn before anything is written; raises `TableError` where no row is left."""
    from perfmodel.render.scatter import scatter_chart
    from perfmodel.validation.judging import scored

    kept = scored(table, include_flags=include_flags, fields=kind.fields)
    if kept.empty:
        raise TableError("no row is left to draw; none could be predicted and scored")
    fields = kind.fields
    by_what = by[0] if by else kind.group
    return scatter_chart(kept, by_what, fields.measured, fields.predicted, drawing.page)


def _report(
    kind: Kind,
    summary: pd.DataFrame,
    table: pd.DataFrame,
    by: list[str],
    limit: float | None,
    misses: list[str],
) -> Report:
    from perfmodel.validation.judging import plain_lines, reasons

    why, remarks = reasons(table), kind.remarks(table, by)
    head: dict[str, Any] = {"rows": len(table), "unpredicted": why, **remarks.head}
    if limit is not None:
        head["gate"] = {"max_error": limit, "passed": not misses, "misses": misses}
    notes = [f"{count} rows not predicted: {said}" for said, count in why.items()][:_SHOWN]
    return Report(
        "report",
        plain_lines(summary),
        [*(text(name, name) for name in by), *COLUMNS],
        title=f"{len(table)} measured runs",
        head=head,
        notes=[*notes, *remarks.notes],
    )


def _explained(kind: Kind, shown: Report, table: pd.DataFrame) -> Report:
    """The report with what its residuals look like, in words."""
    said = kind.explain(table) if kind.explain is not None else []
    notes = [f"explained: {line}" for line in said] or ["explained: no group of rows misses alike"]
    head = {**shown.head, "explained": said}
    return replace(shown, head=head, notes=[*shown.notes, *notes])


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
