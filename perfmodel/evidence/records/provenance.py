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
_CORRECTED = ("device", "implementation", "variant", "harness")


@dataclass(frozen=True)
class Correction:
    """Rows of a source that ran otherwise than they say."""

    source: str
    """The source."""
    evidence: str
    """Who says so."""
    device: str = ""
    """Rows that name this device; empty: any."""
    implementation: str = ""
    """Rows whose whole implementation matches this regular expression; empty: any."""
    phase: str = ""
    """Rows of this phase of attention; empty: any."""
    board: str = ""
    """The device that they ran on."""
    release: str = ""
    """The implementation that they ran, one of its own."""
    variant: str = ""
    """The variant that they ran."""
    harness: str = ""
    """How they were timed."""

    def meant(self, table: pd.DataFrame) -> np.ndarray:
        """The rows of a tidy measured-run table that it speaks of."""
        rows = table["source"] == self.source
        if self.device:
            rows = rows & (table["device"] == self.device)
        if self.phase:
            decode = (table["seq_q"] == 1).fillna(False)
            rows = rows & (table["op"] == "attention") & (decode == (self.phase == "decode"))
        if self.implementation:
            rows = rows & table["implementation"].str.fullmatch(self.implementation)
        return rows.to_numpy(bool)

    def note(self, rows: int) -> str:
        """What to tell the reader of a report in which so many rows are meant."""
        implementation = "no kernel" if self.implementation == "$" else self.implementation
        named = " on ".join(part for part in (implementation, self.device) if part)
        ran = " on ".join(
            part for part in (self.release or self.variant or self.harness, self.board) if part
        )
        why = self.evidence.split(":")[0]
        return f"{rows} rows of {self.source} name {named} and are predicted for {ran}: {why}"


@lru_cache(maxsize=1)
def corrections() -> tuple[Correction, ...]:
    """All of `provenance.yaml`."""
    text = (
        files("perfmodel.evidence.records").joinpath("provenance.yaml").read_text(encoding="utf-8")
    )
    found: list[Correction] = []
    for entry in yaml.safe_load(text):
        sources = entry.pop("sources")
        found += [Correction(source=source, **entry) for source in sources]
    return tuple(found)


def as_ran(table: pd.DataFrame) -> pd.DataFrame:
    """A tidy measured-run table with what the model is to take for what its rows say."""
    found = {name: table[name].to_numpy(dtype=object).copy() for name in _CORRECTED}
    for item in corrections():
        changes = (item.board, item.release, item.variant, item.harness)
        for name, value in zip(_CORRECTED, changes, strict=True):
            if value:
                found[name][item.meant(table)] = value
    return table.assign(**found)


def notes(table: pd.DataFrame) -> list[str]:
    """A line for each correction that some rows meet."""
    return [item.note(rows) for item in corrections() if (rows := int(item.meant(table).sum()))]
