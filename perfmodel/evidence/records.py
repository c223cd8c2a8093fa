"""The measured-run table: reading, checking and writing it, and the runs cited from papers.

One row is one timed case: what ran, where, under which circumstances, and its microseconds. CSV,
CSV.gz and Parquet hold the same columns; an empty cell means that the column does not apply. Rows
are numbered from 1, the header not counted, over all files in the order given.

pandas is loaded when a table is, never before: predicting does not need it.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfmodel.errors import OutputError, TableError

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
_ROWWISE = ("rows", "cols")
SIZES_OF = {
    "gemm": ("m", "n", "k"),
    "attention": ("batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "head_dim"),
    "softmax": _ROWWISE,
    "layernorm": _ROWWISE,
    "rmsnorm": _ROWWISE,
    "pointwise": _ROWWISE,
    "quantise": _ROWWISE,
}
"""Sizes that each operation cannot do without; the other columns have defaults."""

SUFFIXES = (".csv", ".csv.gz", ".parquet")
_EMPTY = ("", "nan", "NaN", "NA", "<NA>", "None", "null")
_TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def read_table(paths: str | Path | Iterable[str | Path]) -> pd.DataFrame:
    """The rows of one or more tables; `-` reads CSV from standard input.

    Raises `TableError`, one line, for a file that is missing, damaged or cut short, for a needed
    column that is not there, and for a value that cannot be what its column holds.
    """
    import pandas as pd

    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    if not listed:
        raise TableError("no table given; name a .csv, .csv.gz or .parquet file, or - for stdin")
    tables = [tidy(_read(str(path)), _where(str(path))) for path in listed]
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
    _check_sizes_present(table, where)
    found: dict[str, Any] = {}
    for name in TEXT:
        found[name] = _text(table[name]) if name in table.columns else ""
    for name in SIZES:
        if name in table.columns or name != "head_dim_v":
            found[name] = _whole(table, name, where)
    found["causal"] = _truth(table, where)
    found["measured_us"] = _measured(table, where)
    order = [name for name in (*COLUMNS, "head_dim_v") if name in found]
    rest = {str(name): table[name] for name in table.columns if name not in found}
    return pd.DataFrame({**{name: found[name] for name in order}, **rest}, index=table.index)


def published() -> pd.DataFrame:
    """Runs that papers report, as a measured-run table; `source` names paper, table or figure."""
    from importlib import resources

    text = resources.files("perfmodel.evidence").joinpath("published.csv").read_bytes()
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
            data = table.to_csv(index=False, lineterminator="\n").encode()
            partial.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)


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
    except OSError as error:
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


def _unwritable(target: Path, error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    return f"cannot write {target}: {reason}; choose another path"


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
    if path == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise TableError(f"{path}: cannot be read: {reason}; check the path") from None


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
    header = [name.strip() for name in header]
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
        name: pd.Series(cells, dtype="str") for name, cells in zip(header, columns, strict=True)
    }
    return pd.DataFrame(series)


def _parse_parquet(data: bytes, where: str) -> pd.DataFrame:
    _needs_pyarrow(where, TableError)
    import pandas as pd
    import pyarrow

    try:
        return pd.read_parquet(io.BytesIO(data))
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        said = str(error)
        reason = " ".join((said.partition(": ")[2] or said).split(". ")[0].split())
        raise TableError(
            f"{where}: not a sound Parquet file ({reason}); fetch or write it again"
        ) from None


def _needs_pyarrow(where: str, kind: type[TableError | OutputError]) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise kind(
            f"{where}: Parquet needs pyarrow; pip install 'perfmodel[parquet]', or use .csv.gz"
        ) from None


def _check_sizes_present(table: pd.DataFrame, where: str) -> None:
    """Raise where an operation of the table has no column for a size that it needs."""
    for op in table["op"].dropna().unique():
        for name in SIZES_OF.get(str(op), ()):
            if name not in table.columns:
                raise TableError(f"{where}: no column {name!r}, which {op} rows need")


def _text(column: pd.Series[Any]) -> pd.Series[Any]:
    text = column.astype("str").str.strip()
    return text.mask(column.isna() | text.isin(_EMPTY), "")


def _numbers(table: pd.DataFrame, name: str, where: str) -> pd.Series[Any]:
    """A column as numbers, missing where it is empty."""
    import pandas as pd

    column = table[name]
    if column.dtype.kind in "iufb":
        return column
    text = _text(column)
    numbers = pd.to_numeric(text.mask(text == "", None), errors="coerce")
    _refuse(numbers.isna() & (text != ""), text, f"{where}: {name}", "is not a number")
    return numbers


def _whole(table: pd.DataFrame, name: str, where: str) -> pd.Series[Any]:
    import pandas as pd

    if name not in table.columns:
        return pd.Series(pd.NA, index=table.index, dtype="Int64")
    numbers = _numbers(table, name, where)
    if numbers.dtype.kind == "f":
        whole = numbers.isna() | ((numbers % 1 == 0) & (numbers.abs() < 2**62))
        _refuse(~whole, numbers, f"{where}: {name}", "is not a whole number")
    return numbers.astype("Int64")


def _truth(table: pd.DataFrame, where: str) -> pd.Series[Any]:
    import pandas as pd

    if "causal" not in table.columns:
        return pd.Series(pd.NA, index=table.index, dtype="boolean")
    text = _text(table["causal"]).str.lower()
    truth = text.map(_TRUTH)
    _refuse(truth.isna() & (text != ""), text, f"{where}: causal", "is neither True nor False")
    return truth.astype("boolean")


def _measured(table: pd.DataFrame, where: str) -> pd.Series[Any]:
    numbers = _numbers(table, "measured_us", where).astype("float64")
    good = (numbers > 0) & (numbers < float("inf"))
    if "flag" in table.columns:  # a case that failed keeps its row and has no time
        good |= numbers.isna() & (_text(table["flag"]) == "failed")
    said = _text(table["measured_us"])
    _refuse(~good, said, f"{where}: measured_us", "is not a positive number of microseconds")
    return numbers


def _refuse(bad: pd.Series[bool], values: pd.Series[Any], where: str, said: str) -> None:
    """Raise for the first bad value, naming its row and counting the others."""
    count = int(bad.sum())
    if count:
        row = int(bad.to_numpy().argmax())
        value = values.iloc[row]
        shown = "(empty)" if value == "" else repr(str(value))
        more = f" (and {count - 1} more rows)" if count > 1 else ""
        raise TableError(f"{where} in row {row + 1}, {shown}, {said}{more}; mend the table")
