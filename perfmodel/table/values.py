"""Converts cells: words to our spelling, whole numbers, numbers, booleans; or a fault of the
row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.plaintext import quoted
from perfmodel.table import cells, windows
from perfmodel.table.numerals import number, numbers
from perfmodel.table.vocabulary import normal, vocabulary

if TYPE_CHECKING:
    import pandas as pd

    from perfmodel.table.draft import Draft
    from perfmodel.table.layout import Layout

_MOST = 2**62
_TRUTH = "causal"
"""The column of columns.yaml whose words are used for every boolean column."""


def tells(column: pd.Series[Any], name: str, layout: Layout) -> bool:
    """Whether cells show that a column is `name`: all are its known words, or whole numbers."""
    texts = [text for text in cells.text(column).unique() if text]
    if not texts:
        return False
    if name in layout.whole or name in layout.numbers:
        values = [number(text, scaled=True) for text in texts]
        return all(value is not None and value % 1 == 0 for value in values)
    words = vocabulary().values.get(name, {})
    return all(normal(text) in words for text in texts)


def denies(column: pd.Series[Any], name: str, layout: Layout) -> bool:
    """Whether cells show that a column is not `name`: numbers in a needed column of names."""
    if name not in layout.needed or name not in layout.text:
        return False
    texts = [text for text in cells.text(column).unique() if text]
    return bool(texts) and all(text.isascii() and text.isdigit() for text in texts)


def read(draft: Draft) -> None:
    """Convert the columns of a layout to their types; an invalid cell is a fault."""
    layout = draft.layout
    columns: dict[str, Any] = {}
    for name in draft.frame.columns:
        if name in layout.truth:
            columns[name] = _truth(draft, name)
        elif name in layout.whole and name != "window":
            columns[name] = _integers(draft, name)
        elif name in layout.numbers:
            columns[name] = _number(draft, name)
        elif name in layout.text:
            columns[name] = _words(draft, name)
    draft.frame = draft.frame.assign(**columns)
    if "window" in layout.whole and "window" in draft.frame:
        draft.frame = draft.frame.assign(**_windows(draft))


def refuse(draft: Draft, name: str, bad: np.ndarray, wanted: str) -> None:
    """Record a fault for each row whose cell is invalid."""
    rows = np.flatnonzero(bad).tolist()
    if rows:
        texts = cells.text(draft.frame[name])
        heading = _heading(draft, name)
        for row in rows:
            cell = texts.iloc[row]
            draft.fault(row, f"{heading} is {quoted(cell, 40) if cell else 'empty'}, {wanted}")


def _heading(draft: Draft, name: str) -> str:
    """A column's heading in the file."""
    entry = draft.matched.columns.get(name)
    return entry.heading if entry is not None else name


def _words(draft: Draft, name: str) -> pd.Series[Any]:
    texts = cells.words(draft.frame[name])
    if name not in vocabulary().values:
        return texts
    return cells.words(texts.map({w: vocabulary().value(name, w) for w in texts.cat.categories}))


def _integers(draft: Draft, name: str) -> pd.Series[Any]:
    column = draft.frame[name]
    counts, bad = numbers(column, draft.comma, scaled=True)
    unit = draft.matched.columns[name].unit if name in draft.matched.columns else None
    text, row_unit = draft.unit_of(_heading(draft, name))
    unit = row_unit if unit is None and text else unit
    if unit is not None and unit.kind == "bytes":
        counts = (counts * unit.factor).round()
    if counts.dtype.kind in "fu":
        values = counts.to_numpy(np.float64)
        is_whole = np.isnan(values) | ((np.abs(values) < _MOST) & (np.rint(values) == values))
        mask = bad | ~is_whole
        refuse(draft, name, mask, "not a whole number below 2^62")
        counts = counts.mask(mask) if mask.any() else counts
    return counts


def _windows(draft: Draft) -> dict[str, Any]:
    """The windows in keys, 0 where all are seen; and the mask, where a window closes it."""
    import pandas as pd

    texts = cells.text(draft.frame["window"])
    causal = cells.text(draft.frame.get("causal", texts.mask(texts != "", "")))
    masked = (causal.str.lower() == "true").to_numpy(bool)
    has_left = "left" in normal(_heading(draft, "window"))
    table = {
        (text, mask): windows.parsed(text, beside=has_left, causal=mask)
        for text in texts.unique()
        for mask in (False, True)
    }
    parses = [table[cell] for cell in zip(texts, masked.tolist(), strict=True)]
    refuse(draft, "window", np.array([w is None for w in parses]), windows.WANTED)
    keys = pd.Series([w.keys if w else 0 for w in parses], index=texts.index, dtype="float64")
    closes = np.array([w is not None and w.closed for w in parses])
    columns: dict[str, Any] = {"window": keys.mask(texts == "")}
    return columns | ({"causal": causal.mask(closes, "True")} if closes.any() else {})


def _number(draft: Draft, name: str) -> pd.Series[Any]:
    values, bad = numbers(draft.frame[name], draft.comma)
    refuse(draft, name, bad, "not a number")
    return values


def _truth(draft: Draft, name: str) -> pd.Series[Any]:
    column = draft.frame[name]
    if column.dtype.kind == "b" or str(column.dtype) == "boolean":
        return column
    terms = vocabulary().values[_TRUTH]
    texts = cells.text(column)
    words = {word: terms.get(normal(word), "") for word in texts.unique()}
    truths = texts.map(words).astype("str")
    refuse(draft, name, ((truths == "") & (texts != "")).to_numpy(bool), "neither yes nor no")
    return truths
