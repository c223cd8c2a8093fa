"""Boards that published runs were made on, where their tables name another one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
import yaml

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Correction:
    """Rows of `source` that name `device` ran on `board`; `evidence` says who says so."""

    source: str
    device: str
    board: str
    evidence: str


@lru_cache(maxsize=1)
def corrections() -> tuple[Correction, ...]:
    """All of `boards.yaml`."""
    text = files("perfmodel.evidence").joinpath("boards.yaml").read_text(encoding="utf-8")
    return tuple(Correction(**entry) for entry in yaml.safe_load(text))


def boards(table: pd.DataFrame) -> np.ndarray:
    """The device of every row of a tidy measured-run table as the model is to take it."""
    found = table["device"].to_numpy(dtype=object).copy()
    for item in corrections():
        found[_meant(table, item)] = item.board
    return found


def notes(table: pd.DataFrame) -> list[str]:
    """A line for each correction that some rows meet."""
    return [
        f"{rows} rows of {item.source} name {item.device} and are predicted for {item.board}: "
        f"{item.evidence.split(':')[0]}"
        for item in corrections()
        if (rows := int(_meant(table, item).sum()))
    ]


def _meant(table: pd.DataFrame, item: Correction) -> np.ndarray:
    return ((table["source"] == item.source) & (table["device"] == item.device)).to_numpy(bool)
