"""Columns of a table as text, numbers, whole numbers or booleans; other cells raise an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from perfmodel.errors import TableError
from perfmodel.plaintext import quoted

if TYPE_CHECKING:
    import pandas as pd

_EMPTY = ("", "nan", "NaN", "NA", "<NA>", "None", "null")
_SHORT = 1000
"""Rows below which a column is looked at cell by cell: 15 us of two rows, of which pandas takes
2.3 ms."""
_TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def text(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column as text; a missing cell is empty. A column of such text is returned uncopied."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        categories = text(pd.Series(column.cat.categories)).array
        texts = categories.take(column.cat.codes.to_numpy(), allow_fill=True).fillna("")
        return pd.Series(texts, index=column.index, name=column.name)
    if len(column) < _SHORT and column.dtype == "str" and all(map(_is_text, column.tolist())):
        return column
    texts = column.astype("str").str.strip()
    texts = texts.mask(column.isna() | texts.isin(_EMPTY), "")
    return column if texts.equals(column) else texts


def _is_text(cell: Any) -> bool:
    """Whether `text` leaves a cell as it is."""
    return cell == "" or (isinstance(cell, str) and cell == cell.strip() and cell not in _EMPTY)


def words(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column as text, each distinct text once in memory: a category, its texts in order."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        names = column.cat.categories
        plain = names.is_monotonic_increasing and text(names.to_series()).equals(names.to_series())
        if plain and not column.hasnans:
            return column
        if plain:
            return column.cat.set_categories(names.union([""])).fillna("")
    return text(column).astype("category")


def reader(column: pd.Series[Any]) -> Callable[[pd.Series[Any]], pd.Series[Any]]:
    """`words` if a column is a category, else `text`: a table's texts are as those of one."""
    import pandas as pd

    return words if isinstance(column.dtype, pd.CategoricalDtype) else text


def joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Tables one below the other; a column that is a category of texts in each remains one."""
    import pandas as pd

    types: dict[Any, Any] = {}
    for name in tables[0].select_dtypes("category"):
        columns = [table[name] for table in tables if name in table]
        if all(isinstance(column.dtype, pd.CategoricalDtype) for column in columns):
            categories = pd.concat([column.cat.categories.to_series() for column in columns])
            if pd.api.types.is_string_dtype(categories):
                types[name] = pd.CategoricalDtype(categories.drop_duplicates().sort_values())
    return pd.concat(
        [
            table.astype({name: dtype for name, dtype in types.items() if name in table})
            for table in tables
        ]
    )


def numbers(table: pd.DataFrame, name: str, where: str) -> pd.Series[Any]:
    """A column as numbers, missing where it is empty; raises `TableError` for anything else."""
    import pandas as pd

    column = table[name]
    if column.dtype.kind == "f":
        return column.astype("float64")  # half precision could not be compared with large numbers
    if column.dtype.kind in "iub":
        return column
    texts = text(column)
    values = pd.to_numeric(texts.mask(texts == "", None), errors="coerce")
    refuse(values.isna() & (texts != ""), texts, f"{where}: {name}", "is not a number")
    return values


def whole(table: pd.DataFrame, name: str, where: str) -> pd.Series[Any]:
    """A column as nullable integers, all missing if there is no such column.

    Raises `TableError` for a cell that is not a whole number.
    """
    import pandas as pd

    if name not in table.columns:
        return pd.Series(pd.NA, index=table.index, dtype="Int64")
    values = numbers(table, name, where)
    if values.dtype.kind in "fu":
        valid = values.isna() | ((values % 1 == 0) & (values.abs() < 2**62))
        refuse(~valid, values, f"{where}: {name}", "is not a whole number below 2^62")
    return values.astype("Int64")


def truth(table: pd.DataFrame, name: str, where: str) -> pd.Series[Any]:
    """A column as nullable booleans, all missing if there is no such column.

    Raises `TableError` for any other cell.
    """
    import pandas as pd

    if name not in table.columns:
        return pd.Series(pd.NA, index=table.index, dtype="boolean")
    texts = text(table[name]).str.lower()
    values = texts.map(_TRUTH)
    refuse(values.isna() & (texts != ""), texts, f"{where}: {name}", "is neither True nor False")
    return values.astype("boolean")


def refuse(bad: pd.Series[bool], values: pd.Series[Any], where: str, said: str) -> None:
    """Raise `TableError` for the first bad value, naming its row and counting the others."""
    count = int(bad.sum())
    if count:
        row = int(bad.to_numpy().argmax())
        value = values.iloc[row]
        cell = "(empty)" if value == "" else quoted(str(value))
        suffix = f" (and {count - 1} more rows)" if count > 1 else ""
        raise TableError(f"{where} in row {row + 1}, {cell}, {said}{suffix}; mend the table")
