"""Predictions against measured runs: every row predicted or explained, errors by group, a gate.

    table = predict_table(read_table("runs.csv"))      # predicted_us, low_us, high_us, reason ...
    report(table, by=["op", "device"])                 # n, MAPE, median |ln ratio|, bias ...

Rows of one kind (device, operation, types, circumstances) are predicted in one call on arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Problem, Rowwise
from perfmodel.algorithms.attention import Direction
from perfmodel.errors import PerfmodelError, TableError
from perfmodel.evidence.provenance import as_ran
from perfmodel.evidence.records import SIZES_OF, tidy
from perfmodel.hardware import Device, load
from perfmodel.predict import predict_arrays
from perfmodel.timing.operator import unknowns
from perfmodel.timing.physical import floor_seconds
from perfmodel.timing.runs import UNKNOWN, harnesses

if TYPE_CHECKING:
    import pandas as pd

    from perfmodel.timing.constants import Constants

Sizes = Mapping[str, np.ndarray]
Columns = dict[str, np.ndarray]

TIMES = ("predicted_us", "low_us", "high_us", "floor_us")
TRAFFIC = ("predicted_hbm_bytes", "predicted_l2_bytes", "predicted_shared_bytes")
ADDED = (*TIMES, *TRAFFIC, "limiter", "assumed", "reason")
LEFT_OUT = ("timer_floor", "noisy", "busy", "suspect", "failed")
"""Flags whose rows are not scored unless asked: they measure something else than the kernel."""

CHUNK = 32768  # rows in one call, so that memory does not grow with the table
# What an attention row may say in its variant, joined by +.
ATTENTION_VARIANTS = ("padding_mask", "dropout", "keys_only")
_SAMPLE = 8  # rows tried one by one before a whole group is refused with one reason
_CLOCK_MARGIN = 1.02  # boards run a little above the clock that a peak is rated at
_MICRO = 1e6
ALL = "all"
_LIKELY_MATRIX = "likely a wrong type, FLOP count or shape, or sparsity"
_LIKELY_MEMORY = "likely data held in cache, or fewer bytes than the row says"

# What a row needs to be one kind with its neighbours: everything but sizes.
_KIND = (
    "device", "op", "variant", "implementation", "harness", "includes", "dtype", "kv_dtype",
    "direction", "causal",
)  # fmt: skip


@dataclass(frozen=True)
class _Kind:
    """What all rows of a group share."""

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
    windowed: bool
    constants: Constants | None

    @property
    def timed(self) -> str:
        """The harness; device time where the row names none, and where it is one of nobody's."""
        if not self.harness:
            return "kernel"
        return self.harness if self.harness in harnesses() else UNKNOWN

    def assumed(self) -> str:
        """What is taken for names of the row that nothing is known of."""
        found = unknowns(self.op, self.implementation or None, self.timed, self.device)
        named = f"harness {self.harness!r}: " if self.timed == UNKNOWN else ""
        return named + "; ".join(found.values())

    def options(self) -> dict[str, Any]:
        """The circumstances, as `predict_arrays` takes them."""
        return {
            "implementation": self.implementation or None,
            "harness": self.timed,
            "includes": tuple(part for part in self.includes.split("+") if part),
            "constants": self.constants,
        }

    def problems(self, sizes: Sizes) -> list[Problem]:
        """The problems that one row of the group runs, one after another."""
        if self.op == "attention":
            return [self._attention(sizes)]
        if self.op == "gemm":
            return self._matmuls(sizes)
        shape: dict[str, Any] = {"rows": sizes["rows"], "cols": sizes["cols"]}
        if self.op == "pointwise":
            shape |= {"inputs": sizes["inputs"], "outputs": sizes["outputs"]}
        kind: dict[str, Any] = {"variant": self.variant, "dtype": self.dtype}
        ways: tuple[Direction, ...] = (
            ("fwd", "bwd") if self.direction == "fwdbwd" else (self.direction,)
        )
        return [Rowwise(self.op, **shape, **kind, direction=way) for way in ways]

    def _attention(self, sizes: Sizes) -> Attention:
        names = SIZES_OF["attention"]
        optional = ["head_dim_v"] if "head_dim_v" in sizes else []
        optional += ["window"] if self.windowed else []
        given: dict[str, Any] = {name: sizes[name] for name in (*names, *optional)}
        return Attention(
            **given,
            causal=bool(self.causal),
            dtype=self.dtype,
            kv_dtype=self.kv_dtype or None,
            direction=self.direction,
            **{name: name in self.variant.split("+") for name in ATTENTION_VARIANTS},
        )

    def _matmuls(self, sizes: Sizes) -> list[Problem]:
        """C = A·B; its backward pass is two matmuls: dA = dC·Bᵀ and dB = Aᵀ·dC."""
        m, n, k, batch = (sizes[name] for name in ("m", "n", "k", "batch"))
        forward = Matmul(m, n, k, batch, self.dtype)
        sides = ((m, k, n), (k, n, m))
        backward = [Matmul(*side, batch, self.dtype, gradient=True) for side in sides]
        parts = {"fwd": [forward], "bwd": backward, "fwdbwd": [forward, *backward]}
        return list(parts[self.direction])


def predict_table(table: pd.DataFrame, *, constants: Constants | None = None) -> pd.DataFrame:
    """`table` with predicted_us, low_us, high_us, floor_us, bytes per level, limiter, what was
    assumed for names that nothing is known of, and reason.

    A row that cannot be predicted keeps its place: its times are missing and `reason` says why.
    Published runs of another board or release than their table names are predicted for that one.
    `floor_us` is what no kernel can beat: compulsory bytes beyond the last cache at peak bandwidth,
    operations at dense peak. Raises `TableError` for a table that is not a measured-run table.
    """
    failed = table["reason"].astype("str") if "reason" in table.columns else None
    table = tidy(table.drop(columns=[name for name in ADDED if name in table.columns]))
    sizes = _sizes(table)
    added: Columns = {name: np.full(len(table), np.nan) for name in (*TIMES, *TRAFFIC)}
    added["limiter"] = np.full(len(table), "", dtype=object)
    added["assumed"] = np.full(len(table), "", dtype=object)
    added["reason"] = _obstacles(table, sizes)
    for i in np.flatnonzero(table["measured_us"].isna()):
        added["reason"][i] = f"not measured: {failed.iloc[i] if failed is not None else 'failed'}"
    ran = as_ran(table)
    for names, index in _groups(ran, sizes, added["reason"] == ""):
        try:
            kind = _Kind(load(names.pop("device")), **names, constants=constants)
        except PerfmodelError as error:
            added["reason"][index] = str(error)
            continue
        for start in range(0, len(index), CHUNK):
            _predict_rows(kind, sizes, index[start : start + CHUNK], added)
    return table.assign(**added)


def _sizes(table: pd.DataFrame) -> Columns:
    """Sizes as whole numbers, 0 where there is none, defaults filled in."""
    needed = dict.fromkeys(name for names in SIZES_OF.values() for name in names)
    filled = {name: table[name].fillna(0) for name in (*needed, "window")}
    filled |= {name: table[name].fillna(1) for name in ("inputs", "outputs")}
    filled["batch"] = table["batch"].fillna((table["op"] == "gemm").astype("Int64"))
    if "head_dim_v" in table.columns:
        filled["head_dim_v"] = table["head_dim_v"].fillna(filled["head_dim"])
    return {name: column.to_numpy(np.int64) for name, column in filled.items()}


def _obstacles(table: pd.DataFrame, sizes: Columns) -> np.ndarray:
    """Why a row cannot even be asked about; empty where it can."""
    reason = np.full(len(table), "", dtype=object)
    ops = table["op"].to_numpy(object)

    def refuse(rows: np.ndarray, say: Callable[[int], str]) -> None:
        for i in np.flatnonzero(rows & (reason == "")).tolist():
            reason[i] = say(i)

    known = ", ".join(SIZES_OF)
    unknown = ~table["op"].isin(list(SIZES_OF)).to_numpy()
    refuse(unknown, lambda i: f"no model of operation {ops[i]!r}; known: {known}")
    directions = table["direction"].to_numpy(object)
    other = ~table["direction"].isin(["", "fwd", "bwd", "fwdbwd"]).to_numpy()
    refuse(other, lambda i: f"unknown direction {directions[i]!r}; known: fwd, bwd, fwdbwd")
    for op, names in SIZES_OF.items():
        mine = ops == op
        for name in (*names, *(("batch",) if op == "gemm" else ())):
            missing = table[name].isna().to_numpy() & (name in names)
            refuse(mine & missing, lambda i, name=name: f"{ops[i]} row without {name}")  # type: ignore[misc]
            below = mine & (sizes[name] < 1)
            refuse(below, lambda i, name=name: f"{name} is {sizes[name][i]}, below 1")  # type: ignore[misc]
    queries, keys = sizes["heads_q"], np.maximum(sizes["heads_kv"], 1)
    uneven = (ops == "attention") & (queries % keys != 0)
    refuse(uneven, lambda i: f"{queries[i]} heads are not a multiple of {keys[i]} kv-heads")
    return reason


def _groups(
    table: pd.DataFrame, sizes: Columns, usable: np.ndarray
) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    """Rows that one call can predict: one kind, windowed or not, decode or prefill."""
    attention = (table["op"] == "attention").to_numpy()
    keys = table[list(_KIND)].assign(
        direction=table["direction"].mask(table["direction"] == "", "fwd"),
        causal=table["causal"].fillna(False).astype(bool),
        windowed=attention & (sizes["window"] > 0),
        decode=attention & (sizes["seq_q"] == 1),
    )
    rows = np.flatnonzero(usable)
    grouped = keys.iloc[rows].groupby([*_KIND, "windowed", "decode"], sort=False)
    found: Any = grouped.indices
    for key, members in found.items():
        yield dict(zip((*_KIND, "windowed"), key, strict=False)), rows[members]


def _predict_rows(kind: _Kind, sizes: Columns, index: np.ndarray, added: Columns) -> None:
    """Fill the rows `index`; where the model refuses, find out which rows it refuses."""
    try:
        found = _ask(kind, {name: values[index] for name, values in sizes.items()})
    except PerfmodelError as error:
        if len(index) == 1 or _all_refused(kind, sizes, index, str(error)):
            added["reason"][index] = str(error)
            return
        for half in np.array_split(index, 2):
            _predict_rows(kind, sizes, half, added)
        return
    for name, values in found.items():
        added[name][index] = values


def _all_refused(kind: _Kind, sizes: Columns, index: np.ndarray, said: str) -> bool:
    """Whether rows spread over the group are each refused in the same words."""
    for i in index[np.linspace(0, len(index) - 1, _SAMPLE).astype(int)]:
        try:
            _ask(kind, {name: values[[i]] for name, values in sizes.items()})
        except PerfmodelError as error:
            if str(error) == said:
                continue
        return False
    return True


def _ask(kind: _Kind, sizes: Sizes) -> Columns:
    """Microseconds, range, limiter and floor of one group; parts of a backward pass add up."""
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
        "assumed": np.full(len(longest), kind.assumed(), dtype=object),
    }


def report(
    table: pd.DataFrame, by: Sequence[str] = (), *, include_flags: bool = False
) -> pd.DataFrame:
    """Errors of a predicted table, one line per group of `by` columns and one for all of it.

    `n` rows are scored; `unpredicted` and `flagged` ones are counted beside them. Errors are
    fractions: `mape` the mean of |predicted/measured - 1|, `median_abs_ln` and `p90_abs_ln` of
    |ln(predicted/measured)|, `bias` the geometric mean of predicted/measured, `spearman` the rank
    correlation, `coverage` the share of measurements inside low to high. Raises `TableError` for a
    `by` column that is not there.
    """
    import pandas as pd

    for name in by:
        if name not in table.columns:
            raise TableError(f"no column {name!r} to group by; there is {', '.join(table.columns)}")
    lines = []
    if by:
        for key, group in table.groupby(list(by), sort=True, dropna=False):
            lines.append(dict(zip(by, key, strict=True)) | _errors(group, include_flags))
    lines.append(dict.fromkeys(by, ALL) | _errors(table, include_flags))
    return pd.DataFrame(lines)


def scored(table: pd.DataFrame, *, include_flags: bool = False) -> pd.DataFrame:
    """The rows that count: predicted, and not flagged as measuring something else."""
    keep = table["predicted_us"].notna()
    return table[keep if include_flags else keep & ~_flagged(table)]


def _flagged(table: pd.DataFrame) -> pd.Series[bool]:
    return table["flag"].isin(LEFT_OUT)


def _errors(group: pd.DataFrame, include_flags: bool) -> dict[str, Any]:
    kept = scored(group, include_flags=include_flags)
    flagged = 0 if include_flags else int(_flagged(group).sum())
    unpredicted = len(group) - len(kept) - flagged
    counts = {"n": len(kept), "unpredicted": unpredicted, "flagged": flagged}
    measured, predicted = kept["measured_us"], kept["predicted_us"]
    ratio = predicted / measured
    logs = ratio.map(math.log)
    inside = (kept["low_us"] <= measured) & (measured <= kept["high_us"])
    ranks = predicted.rank(), measured.rank()
    varied = all(rank.nunique() > 1 for rank in ranks)
    return counts | {
        "mape": float((ratio - 1).abs().mean()),
        "median_abs_ln": float(logs.abs().median()),
        "p90_abs_ln": float(logs.abs().quantile(0.9)),
        "bias": math.exp(logs.mean()),
        "spearman": float(ranks[0].corr(ranks[1])) if varied else float("nan"),
        "coverage": float(inside.mean()),
    }


def gate(summary: pd.DataFrame, max_error: float) -> list[str]:
    """Why a report misses `max_error` (a fraction) on its MAPE: a line per group; empty = passed.

    Every line of the report must hold, and a group that has rows of which none could be predicted
    fails.
    """
    names = list(summary.columns)[: list(summary.columns).index("n")]
    misses = []
    for line in summary.to_dict("records"):
        group = " ".join(str(line[name]) or "-" for name in names) or ALL
        if line["n"] == 0 and line["unpredicted"]:
            misses.append(f"{group}: none of {line['unpredicted']} rows could be predicted")
        elif line["n"] and not line["mape"] <= max_error:
            misses.append(f"{group}: MAPE {line['mape']:.1%} is above {max_error:.1%}")
    if not summary["n"].sum() and not misses:
        misses.append("no row is left to score")
    return misses


def assumptions(table: pd.DataFrame) -> dict[str, int]:
    """What was assumed for names that nothing is known of, with the numbers of rows."""
    found = table["assumed"][table["assumed"] != ""].value_counts()
    return {str(said): int(count) for said, count in found.items()}


def reasons(table: pd.DataFrame) -> dict[str, int]:
    """Why rows could not be predicted, with their numbers, the most frequent first."""
    found = table["reason"][table["reason"] != ""].value_counts()
    return {str(reason): int(count) for reason, count in found.items()}


def beats_floor(table: pd.DataFrame) -> np.ndarray:
    """Whether each measurement, unless flagged, is faster than its device can be."""
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
