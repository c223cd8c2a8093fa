"""The kind `operator`: the measured-run table, one operator a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perfmodel.evidence.records.operatorlayout import OPERATORS as LAYOUT
from perfmodel.evidence.records.provenance import notes as ran_otherwise
from perfmodel.evidence.replay.traffic import traffic_report
from perfmodel.validation import diagnosis
from perfmodel.validation.compare import diagnoses, predict_table
from perfmodel.validation.judging import OPERATORS, assumptions, by_knowledge, plain_lines
from perfmodel.validation.kinds.kind import Kind, Remarks
from perfmodel.validation.units import wrong_units

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 5  # assumptions and diagnoses that are printed; the rest is counted


def _remarks(table: pd.DataFrame, by: Sequence[str]) -> Remarks:
    """Assumptions, what was known, rows that beat the floor, and errors of counted traffic."""
    floors, assumed, groups = diagnoses(table), assumptions(table), by_knowledge(table)
    head: dict[str, Any] = {"assumed": assumed, "diagnoses": floors, "known": groups}
    traffic = plain_lines(traffic_report(table, by))
    if traffic:
        head["traffic"] = traffic
    units = wrong_units(table, OPERATORS)
    head["wrong_units"] = [unit.text for unit in units]
    notes = [f"wrong unit: {unit.text}: {len(unit.rows)} rows" for unit in units]
    notes += [f"{count} rows assumed: {text}" for text, count in assumed.items()][:_SHOWN]
    notes += [_knowledge_line(line) for line in groups]
    notes += ran_otherwise(table)
    notes += [f"below the floor: {line}" for line in floors[:_SHOWN]]
    notes += [
        f"{line['level']} bytes, {line['n']} rows: MAPE {line['mape']:.1%}, bias {line['bias']:.2f}"
        for line in traffic
    ]
    if len(floors) > _SHOWN:
        notes.append(f"below the floor: {len(floors) - _SHOWN} more rows (--format json lists all)")
    return Remarks(head, notes)


def _knowledge_line(line: Mapping[str, Any]) -> str:
    """One line: what was known of some rows, their errors and the coverage of their ranges."""
    return (
        f"known: device {line['device']}, implementation {line['implementation']}, harness "
        f"{line['harness']}: {line['n']} rows, median |ln| {line['median_abs_ln']:.2f}, "
        f"{line['coverage']:.0%} in ranges of {line['width_ln']:.2f} in ln"
    )


def _explanations(table: pd.DataFrame) -> list[str]:
    return [item.line() for item in diagnosis.explain(table)]


KIND = Kind(
    fields=OPERATORS,
    group="op",
    layout=LAYOUT,
    predict=predict_table,
    example={},
    remarks=_remarks,
    explain=_explanations,
)
