"""`perfmodel compare TABLE...`: predict measured runs and report the errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perfmodel.cli.drawing import Drawing, with_drawing
from perfmodel.cli.output import Format, chosen_format, emit, say
from perfmodel.errors import ProblemError, TableError
from perfmodel.render import Report
from perfmodel.render.report import fixed, integer, percent, text

if TYPE_CHECKING:
    import pandas as pd

    from perfmodel.render.chart import Chart as Drawn

Explain = Annotated[
    bool, typer.Option("--explain", help="Say in words what the errors look like, and where.")
]

app = typer.Typer(rich_markup_mode=None, add_completion=False)
_SHOWN = 5  # reasons and diagnoses printed in full; the rest is counted
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


@app.command()
@with_drawing
def compare(
    tables: Tables,
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
    """Predict every row of measured-run tables and report the errors.

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
    from perfmodel.evidence.records.records import read_table, write_table
    from perfmodel.validation.compare import gate, predict_table, report

    predicted = predict_table(_filtered(read_table(tables), where or []))
    summary = report(predicted, columns, include_flags=include_flags)
    misses = gate(summary, limit) if limit is not None else []
    drawn = _drawn(predicted, columns, include_flags, drawing) if chart is not None else None
    if output is not None:
        write_table(predicted, output)
    shown = _report(summary, predicted, columns, limit, misses)
    emit(_explained(shown, predicted) if explain else shown, format, None)
    if output is not None:
        say(f"wrote {output}")
    if drawn is not None:
        drawing.save(drawn, str(chart))
    for miss in misses:
        say(f"gate failed: {miss}")
    if misses:
        raise typer.Exit(1)


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


def _drawn(table: pd.DataFrame, by: list[str], include_flags: bool, drawing: Drawing) -> Drawn:
    """The chart, drawn before anything is written; raises `TableError` where no row is left."""
    from perfmodel.render.scatter import scatter_chart
    from perfmodel.validation.compare import scored

    kept = scored(table, include_flags=include_flags)
    if kept.empty:
        raise TableError("no row is left to draw; none could be predicted and scored")
    return scatter_chart(kept, by[0] if by else "op", drawing.page)


def _report(
    summary: pd.DataFrame,
    table: pd.DataFrame,
    by: list[str],
    limit: float | None,
    misses: list[str],
) -> Report:
    from perfmodel.evidence.importers.counters import traffic_report
    from perfmodel.evidence.records.provenance import notes as ran_otherwise
    from perfmodel.validation.compare import assumptions, by_knowledge, diagnoses, reasons

    why, beaten, assumed = reasons(table), diagnoses(table), assumptions(table)
    known = by_knowledge(table)
    head: dict[str, Any] = {
        "rows": len(table), "unpredicted": why, "assumed": assumed, "diagnoses": beaten,
        "known": known,
    }  # fmt: skip
    traffic = lines(traffic_report(table, by))
    if traffic:
        head["traffic"] = traffic
    if limit is not None:
        head["gate"] = {"max_error": limit, "passed": not misses, "misses": misses}
    notes = [f"{count} rows not predicted: {said}" for said, count in why.items()][:_SHOWN]
    notes += [f"{count} rows assumed: {said}" for said, count in assumed.items()][:_SHOWN]
    notes += [_known(line) for line in known]
    notes += ran_otherwise(table)
    notes += [f"below the floor: {line}" for line in beaten[:_SHOWN]]
    notes += [
        f"{line['level']} bytes, {line['n']} rows: MAPE {line['mape']:.1%}, bias {line['bias']:.2f}"
        for line in traffic
    ]
    if len(beaten) > _SHOWN:
        notes.append(f"below the floor: {len(beaten) - _SHOWN} more rows (--format json lists all)")
    return Report(
        "report",
        lines(summary),
        [*(text(name, name) for name in by), *COLUMNS],
        title=f"{len(table)} measured runs",
        head=head,
        notes=notes,
    )


def _known(line: Mapping[str, Any]) -> str:
    """What was known of some rows, and how well their ranges hold."""
    return (
        f"known: device {line['device']}, implementation {line['implementation']}, harness "
        f"{line['harness']}: {line['n']} rows, median |ln| {line['median_abs_ln']:.2f}, "
        f"{line['coverage']:.0%} in ranges of {line['width_ln']:.2f} in ln"
    )


def _explained(shown: Report, table: pd.DataFrame) -> Report:
    """The report with what its residuals look like, in words."""
    from perfmodel.validation.diagnosis import explain

    said = [item.line() for item in explain(table)]
    notes = [f"explained: {line}" for line in said] or ["explained: no group of rows misses alike"]
    head = {**shown.head, "explained": said}
    return replace(shown, head=head, notes=[*shown.notes, *notes])


def lines(summary: pd.DataFrame) -> list[dict[str, Any]]:
    """A report's lines as plain values."""
    found = summary.astype(object).to_dict("records")
    return [{str(name): _plain(value) for name, value in line.items()} for line in found]


def _plain(value: Any) -> Any:
    """A cell as JSON knows it: numbers of numpy and missing values included."""
    if hasattr(value, "item"):
        return value.item()
    return None if value != value else value if isinstance(value, int | float | str) else str(value)


COLUMNS = (
    integer("n", "n"),
    integer("unpredicted", "unpredicted"),
    integer("flagged", "flagged"),
    percent("MAPE", "mape"),
    fixed("median |ln|", "median_abs_ln"),
    fixed("p90 |ln|", "p90_abs_ln"),
    fixed("bias", "bias"),
    fixed("Spearman", "spearman"),
    percent("in range", "coverage"),
)
