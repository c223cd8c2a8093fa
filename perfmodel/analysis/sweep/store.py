"""A sweep's folder: manifest.json and device=<slug>/part-<number>.parquet.

A part is written to a temporary file and renamed, so it is either complete or absent. A killed
sweep leaves at most a hidden temporary file, which is removed when its part is written again. The
manifest identifies the folder's sweep and is written before the first part. A lock prevents a
second concurrent run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from perfmodel.analysis.sweep.chunk import chunk_table
from perfmodel.analysis.sweep.manifest import MANIFEST, check_columns, read_manifest
from perfmodel.analysis.sweep.plan import Part, Sweep
from perfmodel.errors import OutputError, TableError, needs, reason
from perfmodel.replacing import replacing

if TYPE_CHECKING:
    import pyarrow as pa

_LOCK = ".lock"
# Errors from damaged files besides pyarrow's own: ValueError for text that is not UTF-8, and
# RuntimeError from the Parquet reader's checks.
_UNREADABLE = (OSError, ValueError, RuntimeError)


@contextmanager
def opened(sweep: Sweep, folder: Path) -> Iterator[list[int]]:
    """Lock `folder` for `sweep`, creating it if needed; yields the parts still to be written.
    Raises `OutputError` where the folder holds another sweep, or anything else, or cannot be
    written, and where another run is writing to it."""
    needs("pyarrow", "a sweep")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        fault = f"cannot make the folder {folder}: {reason(error)}"
        raise OutputError(f"{fault}; choose another") from None
    _claim(sweep, folder)
    with _lock(folder):
        _claim(sweep, folder)
        if not (folder / MANIFEST).exists():
            with replacing(folder / MANIFEST) as partial:
                partial.write_text(json.dumps(sweep.manifest(), indent=1) + "\n", encoding="utf-8")
        yield [i for i in range(sweep.parts) if not is_whole(folder, sweep.part(i))]


def _claim(sweep: Sweep, folder: Path) -> None:
    """Raise `OutputError` unless the folder is empty or holds this sweep."""
    if not (folder / MANIFEST).exists():
        others = [item.name for item in folder.iterdir() if not item.name.startswith(".")]
        if others:
            fault = f"{folder} holds other files ({sorted(others)[0]})"
            raise OutputError(f"{fault}; name a new or an empty folder")
        return
    try:
        old = read_manifest(folder)
    except TableError as error:
        raise OutputError(str(error)) from None
    new = json.loads(json.dumps(sweep.manifest()))
    if old != new:
        pairs = ((name, old.get(name, ...), new.get(name, ...)) for name in {**new, **old})
        field = next(name for name, a, b in pairs if a != b)
        raise OutputError(
            f"{folder} holds another sweep: its {field} differs; name another folder, or the "
            "options that it was made with"
        )


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Lock the folder until the end; the system releases the lock if the process dies."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield
        return
    try:
        file = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o666)
    except OSError as error:
        fault = f"cannot write to {folder}: {reason(error)}"
        raise OutputError(f"{fault}; choose another folder") from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            fault = "another run is writing to it"
            raise OutputError(f"{folder} is in use: {fault}; wait for its end") from None
        yield
    finally:
        os.close(file)


def is_whole(folder: Path, part: Part) -> bool:
    """Whether the file of `part` exists with all its rows."""
    return _rows(folder / part.path) == part.stop - part.start


def _rows(path: Path) -> int | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows: int = pq.read_metadata(path).num_rows
    except (*_UNREADABLE, pa.ArrowException):
        return None
    return rows


def write_part(sweep: Sweep, folder: Path, i: int) -> int:
    """Predict the i-th part and write its file; returns its number of rows.

    The bytes depend only on the sweep and the part, so it does not matter which process writes
    them, or whether two do. Raises `OutputError` for a folder that cannot be written.
    """
    import pyarrow.parquet as pq

    part = sweep.part(i)
    table = chunk_table(sweep, part)
    path = folder / part.path
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        fault = f"cannot make the folder {path.parent}: {reason(error)}"
        raise OutputError(f"{fault}; choose another") from None
    with replacing(path) as partial:
        pq.write_table(
            table,
            partial,
            compression="lz4",
            use_dictionary=[field.name for field in table.schema if _is_coded(field.type)],
            row_group_size=max(table.num_rows, 1),
        )
    return part.stop - part.start


def _is_coded(kind: pa.DataType) -> bool:
    """Whether a column is dictionary-encoded: text is; numbers are smaller and faster without."""
    import pyarrow as pa

    return bool(pa.types.is_dictionary(kind))


def parts(folder: str | Path) -> Iterator[pa.Table]:
    """The tables of a sweep's folder in the order of its grid, with `device` as first column.

    Raises `TableError` if the folder holds no sweep or an unfinished one, or files that are damaged
    or from another sweep.
    """
    needs("pyarrow", "a sweep")
    folder = Path(folder)
    manifest = read_manifest(folder)
    slugs = [device["slug"] for device in manifest["devices"]]
    points, chunk = manifest["points"] // len(slugs), manifest["chunk"]
    schema: pa.Schema | None = None
    for slug in slugs:
        for number in range(manifest["parts"] // len(slugs)):
            path = folder / Part.place(slug, number)
            try:
                table = _read(path, min(chunk, points - number * chunk))
            except FileNotFoundError:
                fault = f"{path.name} of {slug} is missing; run the same sweep again to finish it"
                raise TableError(f"{folder} is not finished: {fault}") from None
            if schema is None:
                check_columns(table.schema, manifest, path)
                schema = table.schema
            elif not table.schema.equals(schema):
                raise _error(path, "its columns are not those of the other files")
            yield with_device(table, slug)


def _read(path: Path, rows: int) -> pa.Table:
    """The table in one file, fully validated; a `FileNotFoundError` is passed on.

    Raises `TableError` for a damaged file and for other than `rows` rows.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(path).read()
        table.validate(full=True)
    except FileNotFoundError:
        raise
    except (*_UNREADABLE, pa.ArrowException) as error:
        raise _error(path, str(error)) from None
    if table.num_rows != rows:
        raise _error(path, f"{table.num_rows} rows instead of {rows}")
    return table


def _error(path: Path, text: str) -> TableError:
    reason = " ".join(text.split())[:160]
    return TableError(
        f"{path}: not a sound Parquet file ({reason}); delete it and run the same sweep again"
    )


def with_device(table: pa.Table, slug: str) -> pa.Table:
    """`table` with the device's name as its first column."""
    import numpy as np
    import pyarrow as pa

    codes = pa.array(np.zeros(table.num_rows, dtype=np.int32))
    return table.add_column(0, "device", pa.DictionaryArray.from_arrays(codes, pa.array([slug])))


def unpredicted(folder: Path, sweep: Sweep) -> int:
    """Number of rows without a time in a finished sweep, from the Parquet files' statistics."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = 0
    for i in range(sweep.parts):
        path = folder / sweep.part(i).path
        try:
            metadata = pq.read_metadata(path)
            column = metadata.schema.names.index("reason")
            groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        except (*_UNREADABLE, pa.ArrowException) as error:
            raise _error(path, str(error)) from None
        for rows in groups:
            statistics = rows.column(column).statistics
            if statistics is None or not statistics.has_null_count:
                raise _error(path, "it counts no reasons")
            count += rows.num_rows - statistics.null_count
    return count
