"""What a page shows: predicted cases, measured runs, and tables of everything else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perfmodel.errors import ProblemError

MOST = 5000
"""Cases, and measured runs, that one page holds; more would not be drawn in a second."""

_KINDS = (
    ("_us", "time"),
    ("seconds", "time"),
    ("_bytes", "bytes"),
    ("bytes_", "bytes"),
    ("flops_per_s", "flops_per_s"),
    ("flops", "flops"),
    ("share", "percent"),
    ("coverage", "percent"),
    ("mape", "percent"),
)
"""What a column's values are, by a part of its name."""


@dataclass(frozen=True)
class Column:
    """One column of a table on the page."""

    key: str
    header: str
    kind: str
    """text, number, percent, time (microseconds), bytes, flops or flops_per_s."""

    def as_dict(self) -> dict[str, str]:
        """The column in the page's data."""
        return {"key": self.key, "header": self.header, "kind": self.kind}


@dataclass(frozen=True)
class Table:
    """A table of plain values."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """The table in the page's data."""
        return {
            "title": self.title,
            "columns": [column.as_dict() for column in self.columns],
            "rows": [dict(row) for row in self.rows],
        }


@dataclass
class Results:
    """Gathers what the readers find, in the order of the files."""

    cases: list[dict[str, Any]] = field(default_factory=list)
    """Predictions as in the JSON Schema, with `source` and perhaps `label`; some lack terms."""
    runs: list[dict[str, Any]] = field(default_factory=list)
    """Measured runs with their predictions, as `compare --output` writes them."""
    tables: list[Table] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    """What a reader has to say in the summary."""
    effects: dict[str, dict[str, list[float | None]]] = field(default_factory=dict)
    """By a case's key, what-ifs: a hardware number to microseconds with it halved and doubled."""
    quantities: dict[str, str] = field(default_factory=dict)
    """Hardware numbers of the what-ifs, and what to call them."""

    def add_case(self, row: Mapping[str, Any], source: str, label: str = "") -> None:
        """Add a prediction. Raises `ProblemError` beyond `MOST`."""
        _room(self.cases, "predictions")
        self.cases.append({**row, "source": source, "label": label})

    def add_run(self, row: Mapping[str, Any]) -> None:
        """Add a measured run with its prediction. Raises `ProblemError` beyond `MOST`."""
        _room(self.runs, "measured runs")
        self.runs.append(dict(row))

    def add_table(self, title: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add a table whose columns are the plain members of its rows."""
        found = [_plain(row) for row in rows]
        keys = dict.fromkeys(key for row in found for key in row)
        columns = [column(key, (row.get(key) for row in found)) for key in keys]
        self.tables.append(Table(title, columns, found))

    @property
    def devices(self) -> list[str]:
        """Devices of cases and runs, each once."""
        rows = (*self.cases, *self.runs)
        return list(dict.fromkeys(str(row["device"]) for row in rows if row.get("device")))

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.cases or self.runs or self.tables)


def case_key(device: Any, problem: Mapping[str, Any]) -> str:
    """What a case and its what-ifs have in common: the device and what is computed."""
    sizes = ", ".join(f"{name}={problem[name]}" for name in sorted(problem) if name != "op")
    return f"{device}: {sizes}"


def column(key: str, values: Iterable[Any]) -> Column:
    """A column named and formatted by its key: `time_us` is "time", in units of time."""
    numeric = all(isinstance(value, int | float) for value in values if value is not None)
    kind = next((kind for part, kind in _KINDS if part in key), "number") if numeric else "text"
    header = key.removesuffix("_us").removesuffix("_bytes").replace("_", " ")
    return Column(key, header, kind)


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Members that stand in a cell."""
    return {key: value for key, value in row.items() if not isinstance(value, dict | list)}


def _room(rows: Sequence[Any], what: str) -> None:
    if len(rows) >= MOST:
        raise ProblemError(f"a page holds {MOST:,} {what} at most; choose some of them")
