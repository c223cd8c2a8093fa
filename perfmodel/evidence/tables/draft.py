"""A table while it is read: cells under our names for columns, and what went wrong so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.errors import UnknownName
from perfmodel.evidence.records import cells
from perfmodel.evidence.tables.layout import Layout
from perfmodel.evidence.tables.matching import Match, Timed
from perfmodel.evidence.tables.numerals import decimal_comma
from perfmodel.evidence.tables.sheet import Sheet
from perfmodel.evidence.tables.vocabulary import Unit, normal, vocabulary

if TYPE_CHECKING:
    import pandas as pd

READING = " (read as measured)"
"""Ends the name that a measured column has until it is read."""


class Draft:
    """One sheet on its way to being a table of a layout."""

    def __init__(self, sheet: Sheet, layout: Layout, matched: Match) -> None:
        self.sheet, self.layout, self.matched = sheet, layout, matched
        self.frame: pd.DataFrame = sheet.frame
        self.rows = np.arange(len(sheet.frame))
        """The row of the sheet that each row of the frame comes from."""
        self.faults: dict[int, str] = {}
        self.notes: list[str] = list(sheet.notes)
        self.measured = matched.measured
        self.comma = decimal_comma(self._texts(), sheet.comma)
        for row, said in sheet.faults.items():
            self.fault(row, said)

    def _texts(self) -> list[str]:
        """Every text of the sheet that may be a number, each once a column."""
        frame = self.sheet.frame
        found: list[str] = []
        for name in frame.columns:
            if frame[name].dtype.kind not in "iufb":
                found += [text for text in cells.text(frame[name]).unique() if text[:1] in _STARTS]
        return found

    def place(self, row: int) -> str:
        """File and line of a row of the frame."""
        return self.sheet.place(int(self.rows[row]))

    def fault(self, row: int, said: str) -> None:
        """Say what is wrong with a row; the first of several things stands."""
        self.faults.setdefault(int(row), said)

    def name_columns(self) -> None:
        """Give the columns our names, and note which ones had another."""
        matched = self.matched
        names = {one.heading: column for column, one in matched.columns.items()}
        if self.measured is not None:
            # A measurement of no one unit, whose metric another column names, is read as it is.
            mark = "" if self.layout.unit is None else READING
            names[self.measured.heading] = self.layout.measured + mark
        taken = set(names.values())
        free = {
            heading: f"{heading} (as given)"
            for heading in self.sheet.headings
            if heading in taken and heading not in names
        }
        self.frame = self.frame.rename(columns={**names, **free})
        ours = {one.heading: column for column, one in matched.columns.items()}
        renamed = [
            f"{heading} as {ours[heading]}"
            for heading in self.sheet.headings
            if heading in ours and normal(heading) != normal(ours[heading])
        ]
        if renamed:
            self.notes.append(f"read {', '.join(renamed)}")

    def state(self, stated: Mapping[str, str]) -> None:
        """Fill what the user says of all rows into the cells that say nothing."""
        for column, value in stated.items():
            if column not in self.layout.columns():
                raise UnknownName("column to set", column, self.layout.columns())
            if column in self.frame:
                said = cells.text(self.frame[column])
                self.frame = self.frame.assign(**{column: said.mask(said == "", value)})
            else:
                self.frame = self.frame.assign(**{column: value})

    def unpivot(self) -> None:
        """Measurements beside each other as rows below each other, named by their headings."""
        import pandas as pd

        wide = self.matched.wide
        if not wide:
            return
        column = self._varying(wide)
        others = [one.heading for one in wide]
        measured = self.layout.measured + READING
        parts = []
        for one in wide:
            part = self.frame.drop(columns=[name for name in others if name != one.heading])
            part = part.rename(columns={one.heading: measured})
            parts.append(part.assign(**{column: one.measure.other}))
        order = np.arange(len(self.frame) * len(wide)).reshape(len(wide), -1).T.ravel()
        whole = pd.concat(parts, ignore_index=True).iloc[order]
        filled = (cells.text(whole[measured]) != "").to_numpy(bool)
        rows = np.repeat(self.rows, len(wide))[filled]
        faults = {int(i): said for i, said in self.faults.items()}
        self.frame, self.rows = whole[filled].reset_index(drop=True), rows
        self.faults = {i: faults[int(row)] for i, row in enumerate(rows) if int(row) in faults}
        self.measured = wide[0]
        self.notes.append(f"read {', '.join(others)} as a row each, by {column}")
        if not filled.all():
            self.notes.append(f"{int((~filled).sum())} empty cells of these are no runs")

    def _varying(self, wide: tuple[Timed, ...]) -> str:
        """What differs between measurements beside each other: the direction, or what ran."""
        known, columns = vocabulary().values["direction"], self.layout.columns()
        if "direction" in columns and all(one.measure.other.lower() in known for one in wide):
            return "direction"
        return next((name for name in _WHO if name in columns), columns[0])

    def unit_of(self, heading: str) -> tuple[str, Unit | None]:
        """The unit that a row below the headings gives a column, and what it is."""
        said = self.sheet.units.get(heading, "")
        return said, vocabulary().units.get(said.lower())

    def said(self) -> tuple[str, ...]:
        """The notes."""
        return tuple(self.notes)


_STARTS = tuple("0123456789+-.")
_WHO = ("implementation", "library", "engine", "stack")
