"""Parses numbers in tables: 1,234.5 and 1.234,5, 16k, 1e3, 42 %; and detects decimal commas.

A comma between digits is a decimal mark or separates thousands. One cell may be ambiguous, so
`decimal_comma` decides from all cells of a table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.table import cells

if TYPE_CHECKING:
    import pandas as pd

# Unambiguous decimal marks: a mark followed by other than three digits, a mark after more than
# three digits, and the second kind of mark in a number.
_FRACTION = r"(?:\d+{0}(?:\d{{1,2}}|\d{{4,}})|\d{{4,}}{0}\d+|\d{{1,3}}(?:{1}\d{{3}})+{0}\d+)"
_COMMAS = re.compile(rf"[+-]?{_FRACTION.format(',', '[.]')}(?:[eE][+-]?\d+)?", re.ASCII)
_POINTS = re.compile(rf"[+-]?{_FRACTION.format('[.]', ',')}(?:[eE][+-]?\d+)?", re.ASCII)
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:([,.'\u00a0\u202f _])\d{3})(?:\1\d{3})*", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_SCALED = re.compile(r"(\d{1,12})\s?([kKM])i?", re.ASCII)
_BINARY = {"k": 2**10, "K": 2**10, "M": 2**20}
_LONGEST = 40  # characters of a number


def decimal_comma(texts: Iterable[str], likely: bool) -> bool:
    """Whether a table's decimal mark is the comma; `likely` is returned if all cells are
    ambiguous."""
    commas = points = 0
    for text in texts:
        word = text.strip()
        if len(word) > _LONGEST or not ("," in word or "." in word):
            continue
        commas += _COMMAS.fullmatch(word) is not None
        points += _POINTS.fullmatch(word) is not None
    return commas > points if commas != points else likely and not points


def number(text: str, comma: bool = False, scaled: bool = False) -> float | None:
    """The number in a cell; None for any other text.

    With `scaled`, 16k is 16,384 and 1M is 2^20, as on the command line.
    """
    word = text.strip()
    if len(word) > _LONGEST:
        return None
    match = _SCALED.fullmatch(word) if scaled else None
    if match:
        return float(int(match[1]) * _BINARY[match[2]])
    mark, group = (",", ".") if comma else (".", ",")
    groups = _GROUPED.fullmatch(word.split(mark)[0])
    if groups and groups[1] != mark:
        word = word.replace(groups[1], "")
    elif group in word:
        return None
    word = word.replace(mark, ".")
    value = float(word) if _NUMBER.fullmatch(word) else math.inf
    return value if math.isfinite(value) else None


def numbers(
    column: pd.Series[Any], comma: bool, scaled: bool = False
) -> tuple[pd.Series[Any], Any]:
    """A column's numbers, missing for empty and invalid cells; and which cells are invalid."""
    import pandas as pd

    if column.dtype.kind in "iub":
        return column, np.zeros(len(column), dtype=bool)
    if column.dtype.kind == "f":
        return column.astype("float64"), np.zeros(len(column), dtype=bool)
    texts = cells.text(column)
    empty = (texts == "").to_numpy(bool)
    if not comma:
        floats = pd.to_numeric(texts.mask(empty, None), errors="coerce")
        if not (floats.isna().to_numpy(bool) & ~empty).any():
            return floats, np.zeros(len(column), dtype=bool)
    words = {word: number(word, comma, scaled) for word in texts.unique()}
    values = texts.map(words).astype("float64")
    return values, values.isna().to_numpy(bool) & ~empty
