"""Reads Parquet and Excel as sheets; both need an optional package."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.documents import most_unpacked, too_large
from perfmodel.errors import MissingExtra, TableError, needs
from perfmodel.table.sheet import Sheet

if TYPE_CHECKING:
    import pandas as pd

# Column types that are kept as they are; other cells become text.
_PLAIN = ("string", "empty", "boolean", "integer", "floating", "mixed-integer-float")


def parquet(data: bytes, where: str) -> Sheet:
    """A Parquet table; raises `TableError` if it is damaged or pyarrow is not installed."""
    try:
        needs("pyarrow", f"{where}: Parquet")
    except MissingExtra as error:
        raise TableError(f"{error}, or use .csv.gz") from None
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(io.BytesIO(data)).read()
        table.validate(full=True)
        frame: pd.DataFrame = table.to_pandas(
            ignore_metadata=True,
            split_blocks=True,
            self_destruct=True,
            strings_to_categorical=True,
        )
    # A damaged file may raise not only pyarrow's errors, but also RuntimeError (the reader's
    # checks), ValueError (text that is not UTF-8) and TypeError (types without a counterpart).
    except (pa.ArrowException, OSError, ValueError, RuntimeError, TypeError) as error:
        text = str(error)
        cause = " ".join((text.partition(": ")[2] or text).split(". ")[0].split())
        raise TableError(
            f"{where}: not a sound Parquet file ({cause[:160]}); fetch or write it again"
        ) from None
    return _sheet(frame, where, first=1)


def excel(data: bytes, where: str) -> Sheet:
    """The first non-empty sheet of an Excel or OpenDocument file."""
    import pandas as pd

    _check_unpacked(data, where)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about unknown styles
            sheets = pd.read_excel(io.BytesIO(data), sheet_name=None, dtype=object)
    except ImportError as error:
        package = str(error.name or "openpyxl")
        raise TableError(
            f"{where}: Excel needs {package}, which is not installed; pip install {package}, or "
            "save the sheet as CSV"
        ) from None
    except Exception as error:  # the engines' parsers raise errors of many classes
        text = " ".join(str(error).split())
        raise TableError(f"{where}: not a sound Excel file ({text[:120]}); save it again") from None
    tables = {name: sheet for name, sheet in sheets.items() if not sheet.empty}
    if not tables:
        raise TableError(f"{where}: no sheet holds rows; a table starts with a row of names")
    name, frame = next(iter(tables.items()))
    rest = [str(s) for s in tables if s != name]
    suffix = f"; left out {', '.join(rest)}" if rest else ""
    notes = (f"{where}: sheet {str(name)!r} read{suffix}",) if len(sheets) > 1 else ()
    return _sheet(frame, where, first=2, notes=notes)


def _check_unpacked(data: bytes, place: str) -> None:
    """Refuse a sheet whose archive unpacks to more than a compressed file may."""
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked_bytes = sum(item.file_size for item in archive.infolist())
    except (zipfile.BadZipFile, ValueError, OSError):  # the older .xls, or damaged: read below
        return
    if unpacked_bytes > most_unpacked(len(data)):
        raise too_large(place, len(data))


def _sheet(frame: pd.DataFrame, place: str, first: int, notes: tuple[str, ...] = ()) -> Sheet:
    """The table with column names, and cells that are lists, mappings or bytes, as text."""
    import pandas as pd

    table = frame.rename(columns=str).reset_index(drop=True)
    repeats = table.columns[table.columns.duplicated()]
    if len(repeats):
        raise TableError(f"{place}: column {repeats[0]!r} appears twice; rename or drop one")
    columns: dict[str, pd.Series[Any]] = {}
    for name, column in table.items():
        is_category = isinstance(column.dtype, pd.CategoricalDtype)
        cells = column.cat.categories if is_category else column
        if cells.dtype == object and pd.api.types.infer_dtype(cells) not in _PLAIN:
            columns[str(name)] = column.astype(object).map(_cell_text)
        elif is_category:
            columns[str(name)] = column.cat.reorder_categories(cells.sort_values())
    table = table.assign(**columns)
    return Sheet(place, table, np.arange(first, first + len(table)), lined=False, notes=notes)


def _cell_text(value: Any) -> Any:
    """A cell that is not a plain value, as text."""
    return value if value is None or isinstance(value, str | int | float) else str(value)
