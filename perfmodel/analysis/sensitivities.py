"""What-ifs for existing predictions (JSON): each problem is predicted again with changed hardware.

A prediction's JSON does not hold all arguments it was made with. If the new prediction differs
(another harness or placement, an older model), the row gets no answer rather than one for another
case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from perfmodel import operators
from perfmodel.analysis.whatif import WhatIf, whatif
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import load

Row = Mapping[str, Any]

SAME = 0.01
"""Largest relative difference between the new time and that of the prediction."""


def sensitivities(rows: Sequence[Row]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Indices into `rows` (predictions as JSON) with the what-ifs of each, as in `perfmodel
    whatif`.

    Rows that cannot be predicted again, or give another time, are left out.
    """
    for places in _size_groups(rows):
        first = rows[places[0]]
        try:
            outcome = _ask(first, [rows[i] for i in places])
        except (
            PerfmodelError,
            TypeError,
            KeyError,
        ):  # not a valid problem of this operator
            continue
        answers: dict[int, list[dict[str, Any]]] = {}
        count = len(outcome.sensitivities) + len(outcome.effects)
        for number, row in enumerate(outcome.rows()):
            answers.setdefault(number // count, []).append(row)
        for number, i in enumerate(places):
            matches = abs(answers[number][0]["time_us"] / rows[i]["time_us"] - 1) <= SAME
            if matches:
                yield from ((i, row) for row in answers[number])


def _size_groups(rows: Sequence[Row]) -> list[list[int]]:
    """Groups of indices of rows that differ in their sizes only, for one call each."""
    groups: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        if not row.get("algorithm") or not row.get("terms_us"):
            continue
        kinds = {name: value for name, value in row["problem"].items() if not _is_size(value)}
        names = sorted(row["problem"])
        key = (row["device"], row["algorithm"], row.get("schedule"), row.get("implementation"))
        groups.setdefault(repr((key, sorted(kinds.items(), key=str), names)), []).append(i)
    return list(groups.values())


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _ask(first: Row, rows: Sequence[Row]) -> WhatIf:
    """The what-ifs of rows that differ in sizes only, as one array of problems."""
    fields = {
        name: np.array([row["problem"][name] for row in rows]) if _is_size(value) else value
        for name, value in first["problem"].items()
        if name != "op"
    }
    operator = operators.load(first["algorithm"])
    problem = operator.problem(**{**operator.fixed, **fields})
    schedule = next(
        (name for name in (first["schedule"], "auto") if name in operator.schedules), "auto"
    )
    return whatif(
        problem, load(first["device"]), schedule=schedule, implementation=first["implementation"]
    )
