"""Reads files into a table of a layout: every row is read, or reported with its fault.

A bad cell invalidates its row, not the table. Missing columns are an error; one message names all
of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.errors import ProblemError, TableError
from perfmodel.table import cells, checks, files, measurements, values
from perfmodel.table.draft import Draft
from perfmodel.table.hints import Hints
from perfmodel.table.layout import Layout
from perfmodel.table.matching import Match, match, missing
from perfmodel.table.sheet import Sheet

if TYPE_CHECKING:
    import pandas as pd

_NO_CASE = ("flag",)
"""Columns about the measurement rather than the case."""


@dataclass(frozen=True)
class Reading:
    """The contents of one or more files."""

    table: pd.DataFrame
    """Every row, in the layout's columns and types; the measurement of a bad row is missing."""
    faults: pd.Series[str]
    """The fault of each row, with file and line; empty for a good row."""
    case: tuple[str, ...]
    """The columns that identify a case: all but those of the measurement."""
    notes: tuple[str, ...] = ()
    """Which heading was read as which column, and what was left out."""
    headings: Mapping[str, str] = field(default_factory=dict)
    """The column that each heading of the files was read as."""

    def column(self, name: str) -> str:
        """The column of the table that a user calls `name`: a column's own name, or a heading."""
        return name if name in self.table.columns else self.headings.get(name, name)

    def matching(self, conditions: Sequence[str]) -> pd.DataFrame:
        """Rows that meet all of `column=value`; alternative values are separated by commas.

        Raises `ProblemError` for another form, `TableError` for an unknown column, or where no row
        is left.
        """
        table = self.table
        for condition in conditions:
            name, equals, value = condition.partition("=")
            if not equals:
                raise ProblemError(
                    f"--where {condition!r} is not COLUMN=VALUE; write device=h100-sxm"
                )
            name = self.column(name)
            if name not in table.columns:
                raise TableError(
                    f"--where: no column {name!r}; there is {', '.join(table.columns)}"
                )
            values = [item.strip().lower() for item in value.split(",")]
            table = table[table[name].astype("str").str.lower().isin(values)]
        if table.empty:
            suffix = " left after --where" if conditions else ""
            raise TableError(f"the table has no rows{suffix}; nothing to compare")
        return table

    def strict(self) -> pd.DataFrame:
        """The table; raises `TableError` if a row has a fault."""
        texts = self.faults[self.faults != ""]
        if len(texts):
            suffix = f" (and {len(texts) - 1} more rows)" if len(texts) > 1 else ""
            raise TableError(f"{texts.iloc[0]}{suffix}; mend the table")
        return self.table


def read(
    paths: str | Path | Iterable[str | Path], layout: Layout, hints: Hints | None = None
) -> Reading:
    """The rows of one or more files; `-` is standard input.

    Raises `TableError`, one line, for a file that is missing, damaged or cut short, for missing
    columns, and if no row is good; `UnknownName` for a hint with an unknown heading or column.
    """
    import pandas as pd

    sources = [paths] if isinstance(paths, str | Path) else list(paths)
    if not sources:
        raise TableError("no table given; name a .csv, .csv.gz or .parquet file, or - for stdin")
    readings = [of_sheet(files.read(str(path)), layout, hints or Hints()) for path in sources]
    if len(readings) == 1:
        return readings[0]
    return Reading(
        cells.joined([r.table for r in readings]).reset_index(drop=True),
        pd.concat([r.faults for r in readings], ignore_index=True),
        tuple(dict.fromkeys(name for r in readings for name in r.case)),
        tuple(dict.fromkeys(note for r in readings for note in r.notes)),
        {theirs: ours for r in readings for theirs, ours in r.headings.items()},
    )


def of_sheet(sheet: Sheet, layout: Layout, hints: Hints) -> Reading:
    """The rows of one sheet; raises as `read` does."""
    if layout.adapted is not None:
        sheet = layout.adapted(sheet)
    layout = layout.of(sheet, hints.stated, hints.mapping)
    match = _match(sheet, layout, hints)
    draft = Draft(sheet, layout, match)
    draft.name_columns()
    draft.state(hints.stated)
    draft.unpivot()
    values.read(draft)
    frame = draft.frame
    draft.frame, notes = layout.completed(frame)
    draft.notes += notes
    problem = measurements.problem(draft, hints.unit)
    gaps = layout.lacking(draft.frame)
    if problem == measurements.NONE:
        gaps.append(layout.measured)
    if gaps:
        _check_profile(sheet)
        suffix = "" if problem in ("", measurements.NONE) else f"; and {problem}"
        example = layout.example(draft.frame)
        raise missing(sheet.where, gaps, layout.measured, sheet.headings, example, suffix)
    if problem:
        raise TableError(f"{sheet.where}: {problem}")
    measurements.read(draft, hints.unit, hints.flops)
    draft.notes += checks.rate_beside_time(draft)
    return _reading(draft, frame)


def _check_profile(sheet: Sheet) -> None:
    """Raise `TableError` for a profiler's own table, with the command that reads it."""
    from perfmodel.profile import formats

    form = formats.named(sheet.headings)
    if form is not None:
        raise TableError(
            f"{sheet.where}: {form.name}, a profile and no table of runs; read it by "
            f"{form.reader} {sheet.where} --device NAME"
        )


def _match(sheet: Sheet, layout: Layout, hints: Hints) -> Match:
    def tells(heading: str, column: str) -> bool:
        return values.tells(sheet.frame[heading], column, layout)

    def denies(heading: str, column: str) -> bool:
        return values.denies(sheet.frame[heading], column, layout)

    columns, measured = layout.columns(), layout.measured
    if layout.unit is None:  # not a time, so it is matched as any other column
        columns, measured = (*columns, layout.measured), ""
    pairing = match(sheet.headings, columns, measured, hints.mapping, tells, denies)
    for heading in pairing.headings():
        if heading in sheet.twice:
            raise TableError(f"{sheet.where}: column {heading!r} appears twice; rename or drop one")
    return pairing


def _reading(draft: Draft, source: pd.DataFrame) -> Reading:
    """The table with its column types: good rows are checked once more, bad ones have no
    measurement. `source` has the columns before others were filled in from them."""
    import pandas as pd

    layout, frame, place = draft.layout, draft.frame, draft.sheet.where
    texts = np.full(len(frame), "", dtype=object)
    for row, fault in draft.faults.items():
        texts[row] = f"{draft.place(row)}: {fault}"
    faults = pd.Series(texts, index=frame.index, dtype="str")
    case = tuple(name for name in layout.columns() if name not in _NO_CASE)
    headings = _headings(draft, source)
    mask = (faults != "").to_numpy(bool)
    if len(frame) and mask.all():
        suffix = f"; so it is with all {len(frame)} rows" if len(frame) > 1 else ""
        raise TableError(f"{faults.iloc[0]}{suffix}; mend the table")
    if not mask.any():
        return Reading(layout.typed(frame, place), faults, case, draft.said(), headings)
    # A bad row gets a placeholder measurement while its other cells are converted.
    frame = frame.assign(**{layout.measured: frame[layout.measured].mask(mask, 1.0)})
    table = layout.typed(frame, place)
    table.loc[mask, layout.measured] = float("nan")
    return Reading(table, faults, case, draft.said(), headings)


def _headings(draft: Draft, source: pd.DataFrame) -> dict[str, str]:
    """The column that each heading was read as; of `seq`, which sets several, the first of them."""
    frame = draft.frame
    extras = [name for name in frame if name not in source]
    spread = {
        str(name): str(column)
        for name in source
        if name not in frame
        for column in [each for each in extras if frame[each].equals(source[name])][:1]
    }
    columns = {match.heading: column for column, match in draft.matched.columns.items()}
    return spread | {theirs: spread.get(ours, ours) for theirs, ours in columns.items()}
