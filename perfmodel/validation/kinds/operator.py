"""The kind `operator`: the measured-run table, one operator a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from perfmodel.table.operatorlayout import OPERATORS as LAYOUT
from perfmodel.table.provenance import notes as ran_otherwise
from perfmodel.validation import diagnosis
from perfmodel.validation.compare import TRAFFIC, diagnoses, predict_table
from perfmodel.validation.judging import OPERATORS, Fields, plain_lines, report
from perfmodel.validation.kinds.kind import SHOWN, Kind, Remarks
from perfmodel.validation.units import wrong_units

if TYPE_CHECKING:
    import pandas as pd


def traffic_report(table: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Errors of predicted bytes at each level that was counted: a line per level and group.

    The report has n, MAPE, median |ln|, and bias (geometric mean of predicted over counted). It is
    empty if no level was both counted and predicted.
    """
    import pandas as pd

    parts = []
    for predicted in TRAFFIC:
        level = predicted.split("_")[1]
        counted = f"{level}_bytes_measured"
        if not {predicted, counted} <= set(table.columns):
            continue
        columns: Any = {n: pd.to_numeric(table[n], errors="coerce") for n in (predicted, counted)}
        rows = table.assign(**columns)
        rows = rows[(rows[predicted] > 0) & rows[counted].between(1, float("inf"), "left")]
        if len(rows):
            fields = Fields(counted, predicted, predicted, predicted, ())
            lines = report(rows, by, include_flags=True, fields=fields)
            parts.append(lines.assign(level=level))
    names = ["level", *by, "n", "mape", "median_abs_ln", "p90_abs_ln", "bias"]
    return pd.concat(parts, ignore_index=True)[names] if parts else pd.DataFrame(columns=names)


def _further(table: pd.DataFrame, by: Sequence[str], remarks: Remarks) -> Remarks:
    """Wrong units, corrected rows, rows that beat the floor, and errors of counted traffic."""
    floors, units = diagnoses(table), wrong_units(table, OPERATORS)
    head: dict[str, Any] = {**remarks.head, "diagnoses": floors}
    traffic = plain_lines(traffic_report(table, by))
    if traffic:
        head["traffic"] = traffic
    head["wrong_units"] = [unit.text for unit in units]
    notes = [f"wrong unit: {unit.text}: {len(unit.rows)} rows" for unit in units]
    notes += remarks.notes
    notes += ran_otherwise(table)
    notes += [f"below the floor: {line}" for line in floors[:SHOWN]]
    notes += [
        f"{line['level']} bytes, {line['n']} rows: MAPE {line['mape']:.1%}, bias {line['bias']:.2f}"
        for line in traffic
    ]
    if len(floors) > SHOWN:
        notes.append(f"below the floor: {len(floors) - SHOWN} more rows (--format json lists all)")
    return Remarks(head, notes)


def _explanations(table: pd.DataFrame) -> list[str]:
    return [item.line() for item in diagnosis.explain(table)]


KIND = Kind(
    fields=OPERATORS,
    group="op",
    layout=LAYOUT,
    predict=predict_table,
    example={},
    knowledge="known: device {device}, implementation {implementation}, harness {harness}",
    further=_further,
    explain=_explanations,
)
