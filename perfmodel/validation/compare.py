"""Adds predictions to measured runs: every row has a prediction or a reason why not.

    table = predict_table(read_table("runs.csv"))      # predicted_us, low_us, high_us, reason ...

Rows of one kind (device, operator, types, harness) are predicted in one call on arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.algorithms.attention import DIRECTIONS, Direction
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import Device, load
from perfmodel.learned.active import corrected_by
from perfmodel.operators import Operator, find, names
from perfmodel.operators import load as load_operator
from perfmodel.operators.library import unknowns
from perfmodel.predict import predict_arrays
from perfmodel.prediction import Predictions
from perfmodel.table import cells
from perfmodel.table.provenance import as_ran
from perfmodel.table.records import tidy
from perfmodel.timing.physical import floor_seconds
from perfmodel.timing.runs import UNKNOWN, harnesses
from perfmodel.validation.judging import LEFT_OUT, OPERATORS

if TYPE_CHECKING:
    import pandas as pd

    from perfmodel.timing.constants import Constants

Sizes = Mapping[str, np.ndarray]
Columns = dict[str, Any]

TIMES = ("predicted_us", "low_us", "high_us", "floor_us")
TRAFFIC = ("predicted_hbm_bytes", "predicted_l2_bytes", "predicted_shared_bytes")
KNOWN = OPERATORS.known
"""What is known of each row (`perfmodel.timing.knowledge`)."""
TEXTS = ("limiter", "kernel", *KNOWN, "assumed")
ADDED = (*TIMES, *TRAFFIC, *TEXTS, "reason")

CHUNK = 32768  # rows in one call, which limits memory
BLOCK = 2**18  # rows whose sizes and groups are in memory at once
_SAMPLE = 8  # rows tried one by one before a whole group gets one reason
_CLOCK_MARGIN = 1.02  # boards run slightly above the clock of the rated peak
_MICRO = 1e6
_LIKELY_MATRIX = "likely a wrong type, FLOP count or shape, or sparsity"
_LIKELY_MEMORY = "likely data held in cache, or fewer bytes than the row says"

# Columns that rows of one kind share: everything but sizes.
_KIND = (
    "device", "op", "variant", "implementation", "harness", "includes", "dtype", "kv_dtype",
    "direction", "causal",
)  # fmt: skip


@dataclass(frozen=True)
class _Kind:
    """The values that all rows of a group share."""

    device: Device
    op: str
    variant: str
    implementation: str
    harness: str
    includes: str
    dtype: str
    kv_dtype: str
    direction: Direction
    causal: bool
    constants: Constants | None

    @property
    def timed(self) -> str:
        """The harness; device time if the row names none, `UNKNOWN` if its name is not known."""
        if not self.harness:
            return "kernel"
        return self.harness if self.harness in harnesses() else UNKNOWN

    def assumed(self) -> str:
        """The assumptions made for unknown names in the row."""
        notes = unknowns(self.op, self.implementation or None, self.timed, self.device)
        prefix = f"harness {self.harness!r}: " if self.timed == UNKNOWN else ""
        return prefix + "; ".join(notes.values())

    def options(self) -> dict[str, Any]:
        """Keyword arguments for `predict_arrays`."""
        return {
            "implementation": self.implementation or None,
            "harness": self.timed,
            "includes": tuple(part for part in self.includes.split("+") if part),
            "constants": self.constants,
        }

    def problems(self, sizes: Sizes) -> list[Problem]:
        """The problems that one row of the group runs, one after another."""
        row = {
            "variant": self.variant,
            "dtype": self.dtype,
            "kv_dtype": self.kv_dtype,
            "direction": self.direction,
            "causal": self.causal,
        }
        return load_operator(self.op).measured(row, sizes)


def predict_table(
    table: pd.DataFrame,
    *,
    constants: Constants | None = None,
    device: Callable[[str], Device] = load,
    learned: bool = True,
) -> pd.DataFrame:
    """`table` with predicted_us, low_us, high_us, floor_us, bytes per level, limiter, the kernel,
    what is known of device, implementation and harness, the assumptions for unknown names, and
    reason.

    A row that cannot be predicted is kept, with missing times and the reason in `reason`. Published
    runs whose table names a wrong board or release are predicted for the real one. `device` makes a
    device from its name; without `learned` the model stands alone. `floor_us` is the time that no
    kernel can beat: compulsory bytes beyond the last cache at peak bandwidth, or operations at the
    dense peak.

    Texts are categories if `op` is one. Raises `TableError` for a table that is not a measured-run
    table.
    """
    import pandas as pd

    causes = table["reason"].astype("str") if "reason" in table.columns else None
    table = tidy(table.drop(columns=[name for name in ADDED if name in table.columns]))
    columns: Columns = {name: np.full(len(table), np.nan) for name in (*TIMES, *TRAFFIC)}
    columns |= {name: np.full(len(table), "", dtype=object) for name in (*TEXTS, "reason")}
    for i in np.flatnonzero(table["measured_us"].isna()):
        columns["reason"][i] = f"not measured: {causes.iloc[i] if causes is not None else 'failed'}"
    for start in range(0, len(table), BLOCK):
        rows = slice(start, start + BLOCK)
        views = {name: values[rows] for name, values in columns.items()}
        with nullcontext() if learned else corrected_by(None):
            _predict_block(table.iloc[rows], views, constants, device)
    if isinstance(table["op"].dtype, pd.CategoricalDtype):
        for name in (*TEXTS, "reason"):
            columns[name] = pd.Categorical(columns[name])
    return table.assign(**columns)


def problems(table: pd.DataFrame) -> Iterator[tuple[np.ndarray, Problem]]:
    """(places, their problems as arrays) of the rows of a predicted table whose run is a single
    problem, kind by kind."""
    sizes = _sizes(table)
    for values, index in _groups(as_ran(table), sizes, np.ones(len(table), dtype=bool)):
        kind = _Kind(load(values.pop("device")), **values, constants=None)
        parts = kind.problems({name: each[index] for name, each in sizes.items()})
        if len(parts) == 1:
            yield index, parts[0]


def _predict_block(
    table: pd.DataFrame,
    columns: Columns,
    constants: Constants | None,
    device: Callable[[str], Device],
) -> None:
    """Fill the `columns` of some rows, which are views into those of the whole table."""
    sizes = _sizes(table)
    obstacles = _obstacles(table, sizes)
    open_rows = columns["reason"] == ""
    columns["reason"][open_rows] = obstacles[open_rows]
    for values, index in _groups(as_ran(table), sizes, columns["reason"] == ""):
        try:
            kind = _Kind(device(values.pop("device")), **values, constants=constants)
        except PerfmodelError as error:
            columns["reason"][index] = str(error)
            continue
        for start in range(0, len(index), CHUNK):
            _predict_rows(kind, sizes, index[start : start + CHUNK], columns)


def _sizes(table: pd.DataFrame) -> Columns:
    """Sizes as integers with defaults filled in; 0 for a missing size or number."""
    import pandas as pd

    names = dict.fromkeys(
        name for operator in _operators(table).values() for name in operator.measured_sizes
    )
    columns = {name: table[name].fillna(0) for name in names if name in table.columns}
    columns["window"] = table["window"].fillna(0)
    columns |= {name: table[name].fillna(1) for name in ("inputs", "outputs")}
    columns["batch"] = table["batch"].fillna((table["op"] == "gemm").astype("Int64"))
    if "head_dim_v" in table.columns:
        columns["head_dim_v"] = table["head_dim_v"].fillna(table["head_dim"].fillna(0))
    shares = dict.fromkeys(
        name for operator in _operators(table).values() for name in operator.measured_shares
    )
    numbers = {
        name: pd.to_numeric(table[name]).fillna(0.0).to_numpy(np.float64)
        for name in shares
        if name in table.columns
    }
    return {name: column.to_numpy(np.int64) for name, column in columns.items()} | numbers


def _operators(table: pd.DataFrame) -> dict[str, Operator]:
    """The known operators of a table by name."""
    operators = {op: find(op) for op in table["op"].unique()}
    return {op: operator for op, operator in operators.items() if operator is not None}


def _obstacles(table: pd.DataFrame, sizes: Columns) -> np.ndarray:
    """Why a row is not a valid problem; empty if it is."""
    reason = np.full(len(table), "", dtype=object)
    ops = table["op"].to_numpy(object)

    def refuse(rows: np.ndarray, text: Callable[[int], str]) -> None:
        for i in np.flatnonzero(rows & (reason == "")).tolist():
            reason[i] = text(i)

    operators = _operators(table)
    unknown = ~table["op"].isin(list(operators)).to_numpy()
    choices = ", ".join(names()) if unknown.any() else ""
    refuse(unknown, lambda i: f"no model of operation {ops[i]!r}; known: {choices}")
    directions = table["direction"].to_numpy(object)
    stray = ~table["direction"].isin(["", *DIRECTIONS]).to_numpy()
    refuse(stray, lambda i: f"unknown direction {directions[i]!r}; known: {', '.join(DIRECTIONS)}")
    for op, operator in operators.items():
        mask = ops == op
        for name in operator.measured_sizes:
            if name not in sizes:
                continue
            gaps = table[name].isna().to_numpy() & (name in operator.needed)
            refuse(mask & gaps, lambda i, name=name: f"{ops[i]} row without {name}")  # type: ignore[misc]
            small = mask & (sizes[name] < operator.least(name))
            refuse(small, lambda i, name=name: f"{name} is {sizes[name][i]}, below 1")  # type: ignore[misc]
        for item in operator.multiples:
            first, second = sizes[item.size], np.maximum(sizes[item.of], 1)
            refuse(
                mask & (first % second != 0),
                lambda i, item=item: item.said(sizes[item.size][i], sizes[item.of][i]),  # type: ignore[misc]
            )
    return reason


def _groups(
    table: pd.DataFrame, sizes: Columns, usable: np.ndarray
) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    """Groups of rows that one call can predict: of one kind, and equal in what their operator
    requires."""
    classes = np.zeros(len(table), dtype=np.int64)
    for op, operator in _operators(table).items():
        mask = (table["op"] == op).to_numpy()
        codes = operator.same_call({name: values[mask] for name, values in sizes.items()})
        classes[mask] = 0 if codes is None else codes
    keys = table[list(_KIND)].assign(
        direction=cells.text(table["direction"]).replace("", "fwd"),
        causal=table["causal"].fillna(False).astype(bool),
        alike=classes,
    )
    rows = np.flatnonzero(usable)
    groups = keys.iloc[rows].groupby([*_KIND, "alike"], sort=False, observed=True)
    indices: Any = groups.indices
    for key, members in indices.items():
        yield dict(zip(_KIND, key, strict=False)), rows[members]


def _predict_rows(kind: _Kind, sizes: Columns, index: np.ndarray, columns: Columns) -> None:
    """Fill the rows `index`; if the model raises an error, find the rows that cause it."""
    try:
        outputs = _predict(kind, {name: values[index] for name, values in sizes.items()})
    except PerfmodelError as error:
        if len(index) == 1 or _all_refused(kind, sizes, index, str(error)):
            columns["reason"][index] = str(error)
            return
        for half in np.array_split(index, 2):
            _predict_rows(kind, sizes, half, columns)
        return
    for name, values in outputs.items():
        columns[name][index] = values


def _all_refused(kind: _Kind, sizes: Columns, index: np.ndarray, message: str) -> bool:
    """Whether sample rows across the group all raise the same error."""
    for i in index[np.linspace(0, len(index) - 1, _SAMPLE).astype(int)]:
        try:
            _predict(kind, {name: values[[i]] for name, values in sizes.items()})
        except PerfmodelError as error:
            if str(error) == message:
                continue
        return False
    return True


def _predict(kind: _Kind, sizes: Sizes) -> Columns:
    """Microseconds, range, limiter and floor of one group; parts of a backward pass are added."""
    problems = kind.problems(sizes)
    parts = [predict_arrays(problem, kind.device, **kind.options()) for problem in problems]
    longest = np.argmax([part.seconds for part in parts], axis=0)
    limiters = np.array([part.limiter for part in parts], dtype=object)
    floors = [
        floor_seconds(q, kind.device, p.flops["matrix"])
        for q, p in zip(problems, parts, strict=True)
    ]
    return {
        "predicted_us": sum(part.seconds for part in parts) * _MICRO,
        "low_us": sum(part.low_seconds for part in parts) * _MICRO,
        "high_us": sum(part.high_seconds for part in parts) * _MICRO,
        "floor_us": sum(floors) * _MICRO,
        **{
            f"predicted_{level}_bytes": sum(part.bytes[level] for part in parts)
            for level in ("hbm", "l2", "shared")
        },
        "limiter": limiters[longest, np.arange(len(longest))],
        **_basis(parts[0]),
        "assumed": np.full(len(longest), kind.assumed(), dtype=object),
    }


def _basis(predictions: Predictions) -> Columns:
    """The kernel of each row, and what is known of the row."""
    kernels, facts = ([kind[part] for kind in predictions.kinds] for part in (1, 3))
    levels = {name: [getattr(k, name.removeprefix("known_")) for k in facts] for name in KNOWN}
    return {
        name: np.array(values, dtype=object)[predictions.kind]
        for name, values in {"kernel": kernels, **levels}.items()
    }


def beats_floor(table: pd.DataFrame) -> np.ndarray:
    """Whether each unflagged measurement is faster than its device's floor."""
    faster = table["measured_us"] * _CLOCK_MARGIN < table["floor_us"]
    return np.asarray(faster & ~table["flag"].isin((*LEFT_OUT, "l2_resident")), dtype=bool)


def diagnoses(table: pd.DataFrame) -> list[str]:
    """A line for each unflagged measurement that beats the physical floor of its device."""
    lines = []
    for i in np.flatnonzero(beats_floor(table)):
        row = table.iloc[i]
        times = row["floor_us"] / row["measured_us"]
        matrix = row["op"] == "gemm" or (row["op"] == "attention" and row["seq_q"] > 1)
        lines.append(
            f"row {i + 1} ({row['op']} {row['dtype']}, {row['implementation'] or 'kernel'}) beats "
            f"the floor of {row['device']} by {times:.2f}x: "
            f"{_LIKELY_MATRIX if matrix else _LIKELY_MEMORY}"
        )
    return lines
