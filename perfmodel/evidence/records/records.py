"""The measured-run table: reading, checking and writing it, and the runs cited from papers.

One row is one timed case: what ran, where, under which circumstances, and its microseconds. CSV,
CSV.gz and Parquet hold the same columns; an empty cell means that the column does not apply. Rows
are numbered from 1, the header not counted, over all files in the order given. In CSV, text that a
spreadsheet would run as a formula has an apostrophe before it, which reading takes off again.

pandas is loaded when a table is, never before: predicting does not need it.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfmodel.errors import MissingExtra, OutputError, TableError, needs, reason
from perfmodel.evidence.records import cells
from perfmodel.plaintext import csv_cell, csv_text

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
"""Microseconds that a measurement may have: from a picosecond to thirty years."""

# Kinds of cells that a column may have as they are; others are put in writing.
_PLAIN = ("string", "empty", "boolean", "integer", "floating", "mixed-integer-float")


def read_table(paths: str | Path | Iterable[str | Path]) -> pd.DataFrame:
    """The rows of one or more tables; `-` reads CSV from standard input.

    Raises `TableError`, one line, for a file that is missing, damaged or cut short, for a needed
    column that is not there, and for a value that cannot be what its column holds.
    """
    return read_files(paths, tidy)


def read_files(
    paths: str | Path | Iterable[str | Path], typed: Callable[[pd.DataFrame, str], pd.DataFrame]
) -> pd.DataFrame:
    """The rows of one or more tables, each checked by `typed(table, name of its file)`."""
    import pandas as pd

    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    if not listed:
        raise TableError("no table given; name a .csv, .csv.gz or .parquet file, or - for stdin")
    tables = [typed(_read(str(path)), _where(str(path))) for path in listed]
    return tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)


def tidy(table: pd.DataFrame, where: str = "table") -> pd.DataFrame:
    """`table` with every column that the format defines, in the type that it defines.

    Text is empty where it does not apply, sizes are nullable integers, `causal` is nullable truth,
    `measured_us` is float64. Other columns stay as they are. Raises `TableError`.
    """
    import pandas as pd

    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise TableError(f"{where}: column {twice[0]!r} appears twice; rename or drop one")
    for name in NEEDED:
        if name not in table.columns:
            has = ", ".join(str(column) for column in table.columns[:40])
            raise TableError(f"{where}: no column {name!r}, which every table needs; it has: {has}")
    own = _own_sizes(table, where)
    found: dict[str, Any] = {}
    for name in TEXT:
        found[name] = cells.text(table[name]) if name in table.columns else ""
    for name in (*SIZES, *own):
        if name in table.columns or name != "head_dim_v":
            found[name] = cells.whole(table, name, where)
    found["causal"] = cells.truth(table, "causal", where)
    found["measured_us"] = _measured(table, where)
    order = [name for name in (*COLUMNS, "head_dim_v", *own) if name in found]
    rest = {str(name): table[name] for name in table.columns if name not in found}
    return pd.DataFrame({**{name: found[name] for name in order}, **rest}, index=table.index)


def published() -> pd.DataFrame:
    """Runs that papers report, as a measured-run table; `source` names paper, table or figure."""
    from importlib import resources

    text = resources.files("perfmodel.evidence.records").joinpath("published.csv").read_bytes()
    return tidy(_parse_csv(text, "published.csv"), "published.csv")


def write_table(table: pd.DataFrame, path: str | Path) -> None:
    """Write `table` whole or not at all; the suffix (.csv, .csv.gz, .parquet) says how.

    Raises `OutputError` for another suffix and for a path that cannot be written.
    """
    import gzip

    name = str(path)
    table_suffix(name)
    with replacing(path) as partial:
        if name.endswith(".parquet"):
            _needs_pyarrow(name, OutputError)
            table.to_parquet(partial, index=False)
        else:
            text = _guarded(table).to_csv(index=False, lineterminator="\n")
            data = text.encode("utf-8", "replace")
            partial.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)


def _guarded(table: pd.DataFrame) -> pd.DataFrame:
    """`table` with its names and texts as cells that a spreadsheet does not run; numbers stay."""

    def guarded(value: Any) -> Any:
        return csv_cell(value) if isinstance(value, str) else value

    texts = {
        name: table[name].map(guarded)
        for name in table.columns
        if table[name].dtype.kind not in "iufb"
    }
    return table.assign(**texts).rename(columns=guarded)


def table_suffix(path: str) -> str:
    """The suffix that says how a table is written; raises `OutputError` for another one."""
    for suffix in SUFFIXES:
        if path.endswith(suffix):
            return suffix
    raise OutputError(f"{path}: a table is written as {' or '.join(SUFFIXES)}; change the name")


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary file in the folder of `path` that takes its place once all went well.

    Raises `OutputError` where the folder or the file cannot be written; nothing is left behind.
    """
    from tempfile import NamedTemporaryFile

    target = Path(path)
    try:
        if target.is_dir():
            raise OutputError(f"cannot write {target}: it is a folder; name a file in it")
        with NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            partial = Path(file.name)
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise OutputError(_unwritable(target, error)) from None
    try:
        yield partial
        partial.chmod(0o666 & ~_umask())
        partial.replace(target)
    except OSError as error:
        raise OutputError(_unwritable(target, error)) from None
    finally:
        partial.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _unwritable(target: Path, error: OSError | ValueError) -> str:
    return f"cannot write {target}: {reason(error)}; choose another path"


def _where(path: str) -> str:
    return "standard input" if path == "-" else path


def _read(path: str) -> pd.DataFrame:
    where = _where(path)
    data = _bytes(path)
    if not data:
        raise TableError(f"{where}: the file is empty; a table starts with a line of column names")
    if path.endswith((".parquet", ".pq")) or data[:4] == b"PAR1":
        return _parse_parquet(data, where)
    if path.endswith(".gz") or data[:2] == b"\x1f\x8b":
        data = _decompress(data, where)
    return _parse_csv(data, where)


def _bytes(path: str) -> bytes:
    try:
        if path != "-":
            return Path(path).read_bytes()
        if sys.stdin is None:
            raise TableError("standard input is closed; name a file")
        return sys.stdin.buffer.read()
    except (OSError, ValueError) as error:
        said = f"{_where(path)}: cannot be read: {reason(error)}"
        raise TableError(f"{said}; check the path") from None


def _decompress(data: bytes, where: str) -> bytes:
    import gzip
    import zlib

    try:
        return gzip.decompress(data)
    except EOFError:
        raise TableError(f"{where}: the gzip file is cut short; fetch or write it again") from None
    except (OSError, zlib.error) as error:
        raise TableError(
            f"{where}: not a sound gzip file ({error}); fetch or write it again"
        ) from None


def _parse_csv(data: bytes, where: str) -> pd.DataFrame:
    import csv

    import pandas as pd

    if b"\x00" in data:
        raise TableError(f"{where}: binary data, not CSV; give a .csv, .csv.gz or .parquet table")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        said = f"not UTF-8 text (byte {error.start})"
        raise TableError(f"{where}: {said}; give a .csv, .csv.gz or .parquet table") from None
    try:
        header, *rows = [row for row in csv.reader(io.StringIO(text), strict=True) if row]
    except ValueError:
        raise TableError(f"{where}: no line of column names; a table starts with one") from None
    except csv.Error as error:
        raise TableError(f"{where}: not sound CSV ({error}); mend or write it again") from None
    header = [csv_text(name.strip()) for name in header]
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise TableError(f"{where}: column {twice!r} appears twice; rename or drop one")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise TableError(
                f"{where}: row {number} has {len(row)} cells where the header has {len(header)}; "
                "the file may be cut short, fetch or write it again"
            )
    columns: Any = zip(*rows, strict=True) if rows else [()] * len(header)
    series = {
        name: pd.Series([csv_text(cell) for cell in cells], dtype="str")
        for name, cells in zip(header, columns, strict=True)
    }
    return pd.DataFrame(series)


def _parse_parquet(data: bytes, where: str) -> pd.DataFrame:
    _needs_pyarrow(where, TableError)
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(io.BytesIO(data)).read()
        table.validate(full=True)
        found: pd.DataFrame = table.to_pandas(ignore_metadata=True)
    # Damaged files fail in the checks of the reader (RuntimeError), in text that is not UTF-8
    # (ValueError) and in types that have no counterpart (TypeError), not only in pyarrow's own way.
    except (pa.ArrowException, OSError, ValueError, RuntimeError, TypeError) as error:
        text = str(error)
        said = " ".join((text.partition(": ")[2] or text).split(". ")[0].split())
        raise TableError(
            f"{where}: not a sound Parquet file ({said[:160]}); fetch or write it again"
        ) from None
    return _flat(found)


def _needs_pyarrow(where: str, kind: type[TableError | OutputError]) -> None:
    try:
        needs("pyarrow", f"{where}: Parquet")
    except MissingExtra as error:
        raise kind(f"{error}, or use .csv.gz") from None


def _flat(table: pd.DataFrame) -> pd.DataFrame:
    """`table` with lists, mappings and bytes in its cells as text, and names of columns as text.

    Parquet holds such cells; as text they are what any other text that does not fit is.
    """
    import pandas as pd

    table = table.rename(columns=str)
    nested = {
        str(name): column.map(_spelt)
        for name, column in table.items()
        if column.dtype == object and pd.api.types.infer_dtype(column) not in _PLAIN
    }
    return table.assign(**nested) if nested else table


def _spelt(value: Any) -> Any:
    """A cell that is no plain value, in writing."""
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _own_sizes(table: pd.DataFrame, where: str) -> tuple[str, ...]:
    """Columns that operators of the table have beside `SIZES`: parameters of declared algorithms.

    Raises `TableError` where there is no column of a size that a row must state.
    """
    from perfmodel.operators import find

    found: dict[str, None] = {}
    for op in cells.text(table["op"]).unique():
        operator = find(op)
        if operator is None:
            continue
        for name in operator.needed:
            if name not in table.columns:
                raise TableError(f"{where}: no column {name!r}, which {op} rows need")
        found |= dict.fromkeys(operator.measured_sizes)
    return tuple(name for name in found if name not in SIZES and name in table.columns)


def _measured(table: pd.DataFrame, where: str) -> pd.Series[Any]:
    numbers = cells.numbers(table, "measured_us", where).astype("float64")
    good = (numbers >= LEAST_US) & (numbers <= MOST_US)
    if "flag" in table.columns:  # a case that failed keeps its row and has no time
        good |= numbers.isna() & (cells.text(table["flag"]) == "failed")
    said = cells.text(table["measured_us"])
    wanted = "is not a positive number of microseconds, 1e-6 to 1e15"
    cells.refuse(~good, said, f"{where}: measured_us", wanted)
    return numbers
