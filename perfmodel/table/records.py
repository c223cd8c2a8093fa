"""The measured-run table: reading, checking and writing it, and the runs cited from papers.

One row is one timed case: what ran, the device, how it was timed, and its microseconds. CSV, CSV.gz
and Parquet hold the same columns; an empty cell means that the column does not apply. Rows are
numbered from 1, the header not counted, over all files in the order given. In CSV, text that a
spreadsheet would run as a formula is written with an apostrophe before it, which reading removes.

pandas is imported only when a table is read or written: predicting does not need it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfmodel.errors import MissingExtra, OutputError, TableError, needs
from perfmodel.plaintext import csv_cell
from perfmodel.replacing import replacing
from perfmodel.table import cells

if TYPE_CHECKING:
    import pandas as pd

TEXT = (
    "source", "device", "op", "variant", "implementation", "harness", "includes", "dtype",
    "kv_dtype", "direction", "phase", "flag",
)  # fmt: skip
SIZES = (
    "batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "head_dim", "head_dim_v", "window",
    "m", "n", "k", "rows", "cols", "inputs", "outputs",
)  # fmt: skip
COLUMNS = (
    "source", "device", "op", "variant", "implementation", "harness", "includes", "dtype",
    "kv_dtype", "direction", "phase", "batch", "heads_q", "heads_kv", "seq_q", "seq_kv",
    "head_dim", "causal", "window", "m", "n", "k", "rows", "cols", "inputs", "outputs",
    "measured_us", "flag",
)  # fmt: skip
NEEDED = ("device", "op", "dtype", "measured_us")
SUFFIXES = (".csv", ".csv.gz", ".parquet")
LEAST_US, MOST_US = 1e-6, 1e15
"""Range of valid measurements in microseconds: from a picosecond to thirty years."""


def read_table(paths: str | Path | Iterable[str | Path]) -> pd.DataFrame:
    """The rows of one or more tables; `-` reads standard input.

    Raises `TableError`, one line, for a file that is missing, damaged or cut short, for needed
    columns that are not there, and for a value that cannot be what its column holds.
    """
    from perfmodel.table.operatorlayout import OPERATORS
    from perfmodel.table.reading import read

    table = read(paths, OPERATORS).strict()
    return table.astype(dict.fromkeys(table.select_dtypes("category"), "str"))


def tidy(table: pd.DataFrame, where: str = "table") -> pd.DataFrame:
    """`table` with every column that the format defines, in the type that it defines.

    Text is empty where it does not apply, and categories if `op` is one. Sizes are nullable
    integers, `causal` is a nullable boolean and `measured_us` is float64. Other columns are kept
    unchanged. Raises `TableError`.
    """
    import pandas as pd

    repeats = table.columns[table.columns.duplicated()]
    if len(repeats):
        raise TableError(f"{where}: column {repeats[0]!r} appears twice; rename or drop one")
    for name in NEEDED:
        if name not in table.columns:
            row = ", ".join(str(column) for column in table.columns[:40])
            raise TableError(f"{where}: no column {name!r}, which every table needs; it has: {row}")
    extras = _extra_sizes(table, where)
    columns: dict[str, Any] = {}
    as_text, none = cells.reader(table["op"]), pd.Series("", index=table.index, dtype="str")
    for name in TEXT:
        columns[name] = as_text(table.get(name, none))
    for name in (*SIZES, *extras):
        if name in table.columns or name != "head_dim_v":
            columns[name] = cells.whole(table, name, where)
    columns["causal"] = cells.truth(table, "causal", where)
    columns["measured_us"] = _times(table, where)
    order = [name for name in (*COLUMNS, "head_dim_v", *extras) if name in columns]
    rest = {str(name): table[name] for name in table.columns if name not in columns}
    return pd.DataFrame(
        {**{name: columns[name] for name in order}, **rest}, index=table.index, copy=False
    )


def published() -> pd.DataFrame:
    """Runs that papers report, as a measured-run table; `source` names paper, table or figure."""
    return read_table(Path(__file__).with_name("published.csv"))


def write_table(table: pd.DataFrame, path: str | Path) -> None:
    """Write `table` whole or not at all; the suffix (.csv, .csv.gz, .parquet) says how.

    Raises `OutputError` for another suffix and for a path that cannot be written.
    """
    import gzip

    name = str(path)
    table_suffix(name)
    with replacing(path) as partial:
        if name.endswith(".parquet"):
            needs_pyarrow(name)
            texts = dict.fromkeys(table.select_dtypes("category"), "str")
            table.astype(texts).to_parquet(partial, index=False)
        else:
            text = _quoted_cells(table).to_csv(index=False, lineterminator="\n")
            data = text.encode("utf-8", "replace")
            partial.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)


def _quoted_cells(table: pd.DataFrame) -> pd.DataFrame:
    """`table` with headings and texts quoted so that a spreadsheet does not run them as
    formulas."""

    def quote(value: Any) -> Any:
        return csv_cell(value) if isinstance(value, str) else value

    texts = {
        name: table[name].map(quote)
        for name in table.columns
        if table[name].dtype.kind not in "iufb"
    }
    return table.assign(**texts).rename(columns=quote)


def table_suffix(path: str) -> str:
    """The suffix that says how a table is written; raises `OutputError` for another one."""
    for suffix in SUFFIXES:
        if path.endswith(suffix):
            return suffix
    raise OutputError(f"{path}: a table is written as {' or '.join(SUFFIXES)}; change the name")


def needs_pyarrow(where: str) -> None:
    """Raise `OutputError` where Parquet cannot be written."""
    try:
        needs("pyarrow", f"{where}: Parquet")
    except MissingExtra as error:
        raise OutputError(f"{error}, or use .csv.gz") from None


def _extra_sizes(table: pd.DataFrame, place: str) -> tuple[str, ...]:
    """Columns of the table's operators beyond `SIZES`: parameters of declared algorithms.

    Raises `TableError` if the column of a required size is missing.
    """
    from perfmodel.operators import find

    sizes: dict[str, None] = {}
    for op in cells.text(table["op"]).unique():
        operator = find(op)
        if operator is None:
            continue
        for name in operator.needed:
            if name not in table.columns:
                raise TableError(f"{place}: no column {name!r}, which {op} rows need")
        sizes |= dict.fromkeys(operator.measured_sizes)
    return tuple(name for name in sizes if name not in SIZES and name in table.columns)


def _times(table: pd.DataFrame, place: str) -> pd.Series[Any]:
    numbers = cells.numbers(table, "measured_us", place).astype("float64")
    valid = (numbers >= LEAST_US) & (numbers <= MOST_US)
    if "flag" in table.columns:  # a case that failed keeps its row and has no time
        valid |= numbers.isna() & (cells.text(table["flag"]) == "failed")
    texts = cells.text(table["measured_us"])
    rule = "is not a positive number of microseconds, 1e-6 to 1e15"
    cells.refuse(~valid, texts, f"{place}: measured_us", rule)
    return numbers
