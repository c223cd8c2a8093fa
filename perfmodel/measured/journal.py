"""A measured-run table that grows by whole rows and survives being killed at any moment.

The file is the table itself, a CSV. A row is one line, written with one call and synced before the
next case starts; its newline commits it. When a file is opened again, a last line without newline
is dropped. Damaged earlier lines are moved to `<file>.damaged` and reported. All other rows are
kept. One process writes at a time.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from perfmodel.errors import OutputError, TableError, reason
from perfmodel.replacing import remove_abandoned, replacing

Row = Mapping[str, str]
Announce = Callable[[str, Row], None]
"""Is told of each case before it runs: the name of its table, and the cells that identify it."""
Key = tuple[str, ...]
_SUFFIX = ".csv"


def unannounced(table: str, identity: Row) -> None:
    """An `Announce` that tells nobody."""


class Journal:
    """An append-only table with `columns`; rows with the same cells in `key` are the same case.

    `said` has a line for each repair on opening. Use it as a context manager.
    """

    def __init__(self, path: str | Path, columns: Sequence[str], key: Sequence[str]) -> None:
        self.path = Path(path)
        self.columns = tuple(columns)
        self.said: list[str] = []
        self._key = tuple(key)
        self._done: dict[Key, dict[str, str]] = {}
        self._descriptor = -1

    def open(self, *, resume: bool) -> Journal:
        """Create the file, or with `resume` continue an existing one.

        Raises `OutputError` if the file exists already (without `resume`), cannot be written or is
        being written by another process, and `TableError` if it has other columns.
        """
        if self.path.suffix != _SUFFIX:
            raise OutputError(f"{self.path}: rows are appended one by one; name a .csv file")
        is_new = not self.path.exists()
        try:
            remove_abandoned(self.path)
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            message = f"cannot write {self.path}: {reason(error)}"
            raise OutputError(f"{message}; choose another path") from None
        try:
            self._lock()
            try:
                self._begin(resume)
            except OutputError:
                if is_new:  # a full disk leaves no empty table
                    self.path.unlink(missing_ok=True)
                raise
        except BaseException:
            self.close()
            raise
        return self

    def __enter__(self) -> Journal:
        """The open journal."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __len__(self) -> int:
        return len(self._done)

    def rows(self) -> list[dict[str, str]]:
        """Every finished row."""
        return list(self._done.values())

    def has(self, row: Row) -> bool:
        """Whether this case is finished."""
        return self.key(row) in self._done

    def row(self, row: Row) -> dict[str, str]:
        """The finished row of the same case; raises `KeyError` where there is none."""
        return self._done[self.key(row)]

    def key(self, row: Row) -> Key:
        """The cells that identify a case."""
        return tuple(row.get(name, "") for name in self._key)

    def append(self, row: Row) -> None:
        """Write one row and sync it to disk; raises `OutputError` if that fails."""
        cells = {name: _one_line(row.get(name, "")) for name in self.columns}
        line = _line([cells[name] for name in self.columns])
        try:
            _write_all(self._descriptor, line.encode())
            os.fsync(self._descriptor)
        except OSError as error:
            message = f"cannot write {self.path}: {reason(error)}"
            raise OutputError(f"{message}; free some space") from None
        self._done[self.key(cells)] = cells

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # no such locks on this system; nothing else is lost
            return
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise OutputError(
                f"{self.path}: another measurement is writing it; wait, or choose another path"
            ) from None

    def _begin(self, resume: bool) -> None:
        data = self._contents()
        header = _line(self.columns).encode()
        if header.startswith(data):  # nothing, or a header that may be cut short
            self._replace(header)
            return
        if not resume:
            raise OutputError(
                f"{self.path} is there already; add --resume to go on with it, or choose another"
            )
        self._recover(data)

    def _contents(self) -> bytes:
        with open(self._descriptor, "rb", closefd=False) as file:
            file.seek(0)
            return file.read()

    def _recover(self, data: bytes) -> None:
        """Read the finished rows; drop an incomplete last line and move damaged lines aside."""
        lines = data.split(b"\n")
        fragment = lines.pop()  # empty where the last line is whole
        names = _cells(lines[0]) if lines else None
        if names != list(self.columns):
            raise TableError(
                f"{self.path}:1: not a table of this measurement (other columns); "
                "choose another path, or remove the file"
            )
        if fragment:
            self.said.append(f"{self.path}:{len(lines) + 1}: dropped a line that was cut short")
        survivors, rejects = [lines[0]], []
        for number, line in enumerate(lines[1:], start=2):
            cells = _cells(line)
            problem = self._problem(cells)
            if problem or cells is None:
                rejects.append(line)
                self.said.append(f"{self.path}:{number}: {problem}; put aside, measured again")
                continue
            row = dict(zip(self.columns, cells, strict=True))
            if self.key(row) in self._done:
                self.said.append(f"{self.path}:{number}: a case that is there already; put aside")
                rejects.append(line)
                continue
            self._done[self.key(row)] = row
            survivors.append(line)
        if rejects:
            self._put_aside(rejects)
        if rejects or fragment:
            self._replace(b"\n".join(survivors) + b"\n")

    def _problem(self, cells: list[str] | None) -> str:
        """Why a line is no row; empty where it is one."""
        if cells is None:
            return "not a line of text"
        if len(cells) != len(self.columns):
            return f"{len(cells)} cells where the header has {len(self.columns)}"
        row = dict(zip(self.columns, cells, strict=True))
        if not all(text.isprintable() for text in cells):
            return "unprintable characters"
        if not row.get("op", "x") or not row.get("device", "x"):
            return "no device or operation"
        time = row.get("measured_us", "1")
        if not time and row.get("flag") == "failed":
            return ""
        try:
            sound = 0 < float(time) < float("inf")
        except ValueError:
            sound = False
        return "" if sound else f"measured_us {time!r} is not a positive number"

    def _put_aside(self, lines: list[bytes]) -> None:
        aside = self.path.with_name(f"{self.path.name}.damaged")
        try:
            with aside.open("ab") as file:
                file.write(b"\n".join(lines) + b"\n")
        except OSError as error:
            raise OutputError(f"cannot write {aside}: {reason(error)}; free some space") from None

    def _replace(self, data: bytes) -> None:
        """Replace the file atomically: a kill leaves either the old or the new contents."""
        with replacing(self.path) as partial, partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        self.close()
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND)
        self._lock()


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _line(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _cells(line: bytes) -> list[str] | None:
    """The cells of a line; None where it is not text or not CSV."""
    try:
        rows = list(csv.reader([line.decode("utf-8")], strict=True))
    except (UnicodeDecodeError, csv.Error):
        return None
    return rows[0] if len(rows) == 1 else None
