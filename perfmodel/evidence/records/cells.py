"""Columns of a table as text, numbers, whole numbers or booleans; other cells raise an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from perfmodel.errors import TableError
from perfmodel.plaintext import quoted

if TYPE_CHECKING:
    import pandas as pd

_EMPTY = ("", "nan", "NaN", "NA", "<NA>", "None", "null")
_TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def text(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column as text; a missing cell is empty. A column of such text is returned uncopied."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        known = text(pd.Series(column.cat.categories)).array
        said = known.take(column.cat.codes.to_numpy(), allow_fill=True).fillna("")
        return pd.Series(said, index=column.index, name=column.name)
    said = column.astype("str").str.strip()
    said = said.mask(column.isna() | said.isin(_EMPTY), "")
    return column if said.equals(column) else said


def words(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column as text, each distinct text once in memory: a category, its texts in order."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        known = column.cat.categories
        plain = known.is_monotonic_increasing and text(known.to_series()).equals(known.to_series())
        if plain and not column.hasnans:
            return column
        if plain:
            return column.cat.set_categories(known.union([""])).fillna("")
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
            distinct = pd.concat([column.cat.categories.to_series() for column in columns])
            if pd.api.types.is_string_dtype(distinct):
                types[name] = pd.CategoricalDtype(distinct.drop_duplicates().sort_values())
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
    said = text(column)
    found = pd.to_numeric(said.mask(said == "", None), errors="coerce")
    refuse(found.isna() & (said != ""), said, f"{where}: {name}", "is not a number")
    return found


def whole(table: pd.DataFrame, name: str, where: str) -> pd.Series[Any]:
    """A column as nullable integers, all missing if there is no such column.

    Raises `TableError` for a cell that is not a whole number.
    """
    import pandas as pd

    if name not in table.columns:
        return pd.Series(pd.NA, index=table.index, dtype="Int64")
    found = numbers(table, name, where)
    if found.dtype.kind in "fu":
        good = found.isna() | ((found % 1 == 0) & (found.abs() < 2**62))
        refuse(~good, found, f"{where}: {name}", "is not a whole number below 2^62")
    return found.astype("Int64")


def truth(table: pd.DataFrame, name: str, where: str) -> pd.Series[Any]:
    """A column as nullable booleans, all missing if there is no such column.

    Raises `TableError` for any other cell.
    """
    import pandas as pd

    if name not in table.columns:
        return pd.Series(pd.NA, index=table.index, dtype="boolean")
    said = text(table[name]).str.lower()
    found = said.map(_TRUTH)
    refuse(found.isna() & (said != ""), said, f"{where}: {name}", "is neither True nor False")
    return found.astype("boolean")


def refuse(bad: pd.Series[bool], values: pd.Series[Any], where: str, said: str) -> None:
    """Raise `TableError` for the first bad value, naming its row and counting the others."""
    count = int(bad.sum())
    if count:
        row = int(bad.to_numpy().argmax())
        value = values.iloc[row]
        shown = "(empty)" if value == "" else quoted(str(value))
        more = f" (and {count - 1} more rows)" if count > 1 else ""
        raise TableError(f"{where} in row {row + 1}, {shown}, {said}{more}; mend the table")
