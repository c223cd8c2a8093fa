"""Corrections of published runs whose tables name a wrong device or kernel, or leave one out."""

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
    """A correction of some rows of a source."""

    source: str
    """The source."""
    evidence: str
    """The evidence for the correction."""
    device: str = ""
    """Rows that name this device; empty: any."""
    implementation: str = ""
    """Rows whose whole implementation matches this regular expression; empty: any."""
    phase: str = ""
    """Rows of this phase of attention; empty: any."""
    board: str = ""
    """The device on which they really ran; empty: as stated."""
    release: str = ""
    """The implementation that they really ran; empty: as stated."""
    variant: str = ""
    """The variant that they really ran; empty: as stated."""
    harness: str = ""
    """The harness that really timed them; empty: as stated."""

    def meant(self, table: pd.DataFrame) -> np.ndarray:
        """The rows of a tidy measured-run table that it corrects, as booleans."""
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
        """The line of a report in which `rows` rows are corrected."""
        implementation = "no kernel" if self.implementation == "$" else self.implementation
        claim = " on ".join(part for part in (implementation, self.device) if part)
        run = " on ".join(
            part for part in (self.release or self.variant or self.harness, self.board) if part
        )
        reason = self.evidence.split(":")[0]
        return f"{rows} rows of {self.source} name {claim} and are predicted for {run}: {reason}"


@lru_cache(maxsize=1)
def corrections() -> tuple[Correction, ...]:
    """All of `provenance.yaml`."""
    text = files("perfmodel.table").joinpath("provenance.yaml").read_text(encoding="utf-8")
    rows: list[Correction] = []
    for entry in yaml.safe_load(text):
        sources = entry.pop("sources")
        rows += [Correction(source=source, **entry) for source in sources]
    return tuple(rows)


def as_ran(table: pd.DataFrame) -> pd.DataFrame:
    """A tidy measured-run table with all corrections applied."""
    columns = {name: table[name].to_numpy(dtype=object).copy() for name in _CORRECTED}
    for item in corrections():
        changes = (item.board, item.release, item.variant, item.harness)
        for name, value in zip(_CORRECTED, changes, strict=True):
            if value:
                columns[name][item.meant(table)] = value
    return table.assign(**columns)


def notes(table: pd.DataFrame) -> list[str]:
    """A line for each correction that applies to some rows."""
    return [item.note(rows) for item in corrections() if (rows := int(item.meant(table).sum()))]
