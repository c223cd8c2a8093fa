"""What published runs were made with, where their tables name something else or leave it out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
import yaml

if TYPE_CHECKING:
    import pandas as pd

# Columns of a table that a correction may replace.
_CORRECTED = ("device", "implementation")


@dataclass(frozen=True)
class Correction:
    """Rows of `source` that name `device`, and `implementation` where given, ran otherwise.

    They ran on `board`, or as `release`, an implementation of its own; `evidence` says who says so.
    """

    source: str
    device: str
    evidence: str
    implementation: str = ""
    board: str = ""
    release: str = ""

    def meant(self, table: pd.DataFrame) -> np.ndarray:
        """The rows of a tidy measured-run table that it speaks of."""
        rows = (table["source"] == self.source) & (table["device"] == self.device)
        if self.implementation:
            rows = rows & (table["implementation"] == self.implementation)
        return rows.to_numpy(bool)

    def note(self, rows: int) -> str:
        """What to tell the reader of a report in which so many rows are meant."""
        named = f"{self.implementation} on {self.device}" if self.implementation else self.device
        ran = " on ".join(part for part in (self.release, self.board) if part)
        why = self.evidence.split(":")[0]
        return f"{rows} rows of {self.source} name {named} and are predicted for {ran}: {why}"


@lru_cache(maxsize=1)
def corrections() -> tuple[Correction, ...]:
    """All of `provenance.yaml`."""
    text = files("perfmodel.evidence").joinpath("provenance.yaml").read_text(encoding="utf-8")
    found: list[Correction] = []
    for entry in yaml.safe_load(text):
        sources = entry.pop("sources")
        found += [Correction(source=source, **entry) for source in sources]
    return tuple(found)


def as_ran(table: pd.DataFrame) -> pd.DataFrame:
    """A tidy measured-run table with the devices and implementations that the model is to take."""
    found = {name: table[name].to_numpy(dtype=object).copy() for name in _CORRECTED}
    for item in corrections():
        for name, value in zip(_CORRECTED, (item.board, item.release), strict=True):
            if value:
                found[name][item.meant(table)] = value
    return table.assign(**found)


def notes(table: pd.DataFrame) -> list[str]:
    """A line for each correction that some rows meet."""
    return [item.note(rows) for item in corrections() if (rows := int(item.meant(table).sum()))]
