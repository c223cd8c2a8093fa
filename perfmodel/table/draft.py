"""A table while it is read: its cells under our column names, and the faults found so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.errors import UnknownName
from perfmodel.table import cells
from perfmodel.table.layout import Layout
from perfmodel.table.matching import Match, Timed
from perfmodel.table.numerals import decimal_comma
from perfmodel.table.sheet import Sheet
from perfmodel.table.vocabulary import Unit, normal, vocabulary

if TYPE_CHECKING:
    import pandas as pd

READING = " (read as measured)"
"""Suffix of a measured column's name until it is read."""


class Draft:
    """One sheet that is being read into a table of a layout."""

    def __init__(self, sheet: Sheet, layout: Layout, matched: Match) -> None:
        self.sheet, self.layout, self.matched = sheet, layout, matched
        self.frame: pd.DataFrame = sheet.frame
        self.rows = np.arange(len(sheet.frame))
        """The row of the sheet that each row of the frame comes from."""
        self.faults: dict[int, str] = {}
        self.notes: list[str] = list(sheet.notes)
        self.measured = matched.measured
        self.comma = decimal_comma(self._texts(), sheet.comma)
        for row, text in sheet.faults.items():
            self.fault(row, text)

    def _texts(self) -> list[str]:
        """Every distinct text of each column that may be a number."""
        frame = self.sheet.frame
        texts: list[str] = []
        for name in frame.columns:
            if frame[name].dtype.kind not in "iufb":
                texts += [text for text in cells.text(frame[name]).unique() if text[:1] in _STARTS]
        return texts

    def place(self, row: int) -> str:
        """File and line of a row of the frame."""
        return self.sheet.place(int(self.rows[row]))

    def fault(self, row: int, said: str) -> None:
        """Record a row's fault; only its first fault is kept."""
        self.faults.setdefault(int(row), said)

    def name_columns(self) -> None:
        """Rename the columns to our names, and note the renamed ones."""
        match = self.matched
        names = {entry.heading: column for column, entry in match.columns.items()}
        if self.measured is not None:
            # A measurement without a fixed unit, whose metric is in another column, is read as it
            # is.
            mark = "" if self.layout.unit is None else READING
            names[self.measured.heading] = self.layout.measured + mark
        targets = {*names.values(), self.layout.measured}
        free = {
            heading: f"{heading} (as given)"
            for heading in self.sheet.headings
            if heading in targets and heading not in names
        }
        self.frame = self.frame.rename(columns={**names, **free})
        ours = {entry.heading: column for column, entry in match.columns.items()}
        notes = [
            f"{heading} as {ours[heading]}"
            for heading in self.sheet.headings
            if heading in ours and normal(heading) != normal(ours[heading])
        ]
        if notes:
            self.notes.append(f"read {', '.join(notes)}")

    def state(self, stated: Mapping[str, str]) -> None:
        """Fill empty cells with the values that the user gave for all rows."""
        for column, value in stated.items():
            if column not in self.layout.columns():
                raise UnknownName("column to set", column, self.layout.columns())
            if column in self.frame:
                texts = cells.text(self.frame[column])
                self.frame = self.frame.assign(**{column: texts.mask(texts == "", value)})
            else:
                self.frame = self.frame.assign(**{column: value})

    def unpivot(self) -> None:
        """Turn several measured columns into one row each, named by the column's heading."""
        import pandas as pd

        wide = self.matched.wide
        if not wide:
            return
        column = self._varying(wide)
        headings = [entry.heading for entry in wide]
        measured = self.layout.measured + READING
        parts = []
        for entry in wide:
            part = self.frame.drop(columns=[name for name in headings if name != entry.heading])
            part = part.rename(columns={entry.heading: measured})
            parts.append(part.assign(**{column: entry.measure.other}))
        order = np.arange(len(self.frame) * len(wide)).reshape(len(wide), -1).T.ravel()
        table = pd.concat(parts, ignore_index=True).iloc[order]
        mask = (cells.text(table[measured]) != "").to_numpy(bool)
        rows = np.repeat(self.rows, len(wide))[mask]
        faults = {int(i): text for i, text in self.faults.items()}
        self.frame, self.rows = table[mask].reset_index(drop=True), rows
        self.faults = {i: faults[int(row)] for i, row in enumerate(rows) if int(row) in faults}
        self.measured = wide[0]
        self.notes.append(f"read {', '.join(headings)} as a row each, by {column}")
        if not mask.all():
            self.notes.append(f"{int((~mask).sum())} empty cells of these are no runs")

    def _varying(self, wide: tuple[Timed, ...]) -> str:
        """The column in which measured columns differ: direction or implementation."""
        directions, columns = vocabulary().values["direction"], self.layout.columns()
        if "direction" in columns and all(t.measure.other.lower() in directions for t in wide):
            return "direction"
        return next((name for name in _WHO if name in columns), columns[0])

    def unit_of(self, heading: str) -> tuple[str, Unit | None]:
        """The unit of a column from the row of units, as text and as a `Unit`."""
        text = self.sheet.units.get(heading, "")
        return text, vocabulary().units.get(text.lower())

    def said(self) -> tuple[str, ...]:
        """The notes."""
        return tuple(self.notes)


_STARTS = tuple("0123456789+-.")
_WHO = ("implementation", "library", "engine", "stack")
