"""Converts cells: words to our spelling, whole numbers, numbers, booleans; or a fault of the
row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.evidence.records import cells
from perfmodel.evidence.tables import windows
from perfmodel.evidence.tables.numerals import number, numbers
from perfmodel.evidence.tables.vocabulary import normal, vocabulary
from perfmodel.plaintext import quoted

if TYPE_CHECKING:
    import pandas as pd

    from perfmodel.evidence.tables.draft import Draft
    from perfmodel.evidence.tables.layout import Layout

_MOST = 2**62
_TRUTH = "causal"
"""The column of columns.yaml whose words are used for every boolean column."""


def tells(column: pd.Series[Any], name: str, layout: Layout) -> bool:
    """Whether cells show that a column is `name`: all are its known words, or whole numbers."""
    said = [text for text in cells.text(column).unique() if text]
    if not said:
        return False
    if name in layout.whole or name in layout.numbers:
        found = [number(text, scaled=True) for text in said]
        return all(value is not None and value % 1 == 0 for value in found)
    known = vocabulary().values.get(name, {})
    return all(normal(text) in known for text in said)


def denies(column: pd.Series[Any], name: str, layout: Layout) -> bool:
    """Whether cells show that a column is not `name`: numbers in a needed column of names."""
    if name not in layout.needed or name not in layout.text:
        return False
    said = [text for text in cells.text(column).unique() if text]
    return bool(said) and all(text.isascii() and text.isdigit() for text in said)


def read(draft: Draft) -> None:
    """Convert the columns of a layout to their types; an invalid cell is a fault."""
    layout = draft.layout
    found: dict[str, Any] = {}
    for name in draft.frame.columns:
        if name in layout.truth:
            found[name] = _truth(draft, name)
        elif name in layout.whole and name != "window":
            found[name] = _whole(draft, name)
        elif name in layout.numbers:
            found[name] = _number(draft, name)
        elif name in layout.text:
            found[name] = _words(draft, name)
    draft.frame = draft.frame.assign(**found)
    if "window" in layout.whole and "window" in draft.frame:
        draft.frame = draft.frame.assign(**_windows(draft))


def refuse(draft: Draft, name: str, bad: np.ndarray, wanted: str) -> None:
    """Record a fault for each row whose cell is invalid."""
    rows = np.flatnonzero(bad).tolist()
    if rows:
        said = cells.text(draft.frame[name])
        heading = _heading(draft, name)
        for row in rows:
            cell = said.iloc[row]
            draft.fault(row, f"{heading} is {quoted(cell, 40) if cell else 'empty'}, {wanted}")


def _heading(draft: Draft, name: str) -> str:
    """A column's heading in the file."""
    one = draft.matched.columns.get(name)
    return one.heading if one is not None else name


def _words(draft: Draft, name: str) -> pd.Series[Any]:
    said = cells.words(draft.frame[name])
    if name not in vocabulary().values:
        return said
    return cells.words(said.map({w: vocabulary().value(name, w) for w in said.cat.categories}))


def _whole(draft: Draft, name: str) -> pd.Series[Any]:
    column = draft.frame[name]
    found, bad = numbers(column, draft.comma, scaled=True)
    unit = draft.matched.columns[name].unit if name in draft.matched.columns else None
    said, below = draft.unit_of(_heading(draft, name))
    unit = below if unit is None and said else unit
    if unit is not None and unit.kind == "bytes":
        found = (found * unit.factor).round()
    if found.dtype.kind in "fu":
        values = found.to_numpy(np.float64)
        whole = np.isnan(values) | ((np.abs(values) < _MOST) & (np.rint(values) == values))
        refused = bad | ~whole
        refuse(draft, name, refused, "not a whole number below 2^62")
        found = found.mask(refused) if refused.any() else found
    return found


def _windows(draft: Draft) -> dict[str, Any]:
    """The windows in keys, 0 where all are seen; and the mask, where a window closes it."""
    import pandas as pd

    texts = cells.text(draft.frame["window"])
    causal = cells.text(draft.frame.get("causal", texts.mask(texts != "", "")))
    masked = (causal.str.lower() == "true").to_numpy(bool)
    beside = "left" in normal(_heading(draft, "window"))
    known = {
        (text, mask): windows.parsed(text, beside=beside, causal=mask)
        for text in texts.unique()
        for mask in (False, True)
    }
    read = [known[cell] for cell in zip(texts, masked.tolist(), strict=True)]
    refuse(draft, "window", np.array([each is None for each in read]), windows.WANTED)
    keys = pd.Series(
        [each.keys if each else 0 for each in read], index=texts.index, dtype="float64"
    )
    closed = np.array([each is not None and each.closed for each in read])
    columns: dict[str, Any] = {"window": keys.mask(texts == "")}
    return columns | ({"causal": causal.mask(closed, "True")} if closed.any() else {})


def _number(draft: Draft, name: str) -> pd.Series[Any]:
    found, bad = numbers(draft.frame[name], draft.comma)
    refuse(draft, name, bad, "not a number")
    return found


def _truth(draft: Draft, name: str) -> pd.Series[Any]:
    column = draft.frame[name]
    if column.dtype.kind == "b" or str(column.dtype) == "boolean":
        return column
    known = vocabulary().values[_TRUTH]
    said = cells.text(column)
    words = {word: known.get(normal(word), "") for word in said.unique()}
    found = said.map(words).astype("str")
    refuse(draft, name, ((found == "") & (said != "")).to_numpy(bool), "neither yes nor no")
    return found
