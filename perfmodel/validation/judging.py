"""Errors of a predicted table, one line for each group of rows, and pass/fail limits on them.

    report(table, by=["op", "device"])                 # n, MAPE, median |ln ratio|, bias ...
    report(runs, by=["source"], fields=Fields(measured="latency_us", predicted="predicted", ...))

It works for any kind of table: `Fields` names the columns of measurements and predictions.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfmodel.errors import TableError

if TYPE_CHECKING:
    import pandas as pd

ALL = "all"
NOISE = "noise_ln"
"""The column of the noise of repeated measurements (`perfmodel.validation.noise`)."""
LEFT_OUT = ("timer_floor", "noisy", "busy", "suspect", "failed")
"""Flags whose rows are not scored by default, since they do not measure the kernel alone."""


@dataclass(frozen=True)
class Fields:
    """Names of the columns of a predicted table that are used for errors."""

    measured: str
    """The measurement."""
    predicted: str
    """The prediction in the same unit; missing if there is none."""
    low: str
    """Lower end of the prediction's range."""
    high: str
    """Upper end of the prediction's range."""
    known: tuple[str, ...]
    """Columns of what was known of a row; see `by_knowledge`."""
    left_out: tuple[str, ...] | None = None
    """Flags whose rows are not scored by default; None: any flag."""

    def flagged(self, table: pd.DataFrame) -> pd.Series[bool]:
        """Whether each row is flagged as not to be scored."""
        flags = table["flag"]
        return flags != "" if self.left_out is None else flags.isin(self.left_out)


OPERATORS = Fields(
    "measured_us",
    "predicted_us",
    "low_us",
    "high_us",
    ("known_device", "known_implementation", "known_harness"),
    LEFT_OUT,
)
"""Columns of a predicted measured-run table."""


def report(
    table: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    include_flags: bool = False,
    fields: Fields = OPERATORS,
) -> pd.DataFrame:
    """Errors of a predicted table, one line per group of `by` columns and one for all rows.

    `n` rows are scored; `unpredicted` and `flagged` rows are only counted. Errors are fractions:
    `mape` is the mean of |predicted/measured − 1|, `median_abs_ln` and `p90_abs_ln` are of
    |ln(predicted/measured)|, `bias` is the geometric mean of predicted/measured, `spearman` the
    rank correlation, and `coverage` the share of measurements from low to high.

    For rows with known noise, `noise_ln` is its median and `within_noise` the share of rows whose
    error is not larger. Raises `TableError` for a missing `by` column.
    """
    import pandas as pd

    for name in by:
        if name not in table.columns:
            raise TableError(f"no column {name!r} to group by; there is {', '.join(table.columns)}")
    groups = errors(table, by, include_flags=include_flags, fields=fields) if by else []
    groups.append(dict.fromkeys(by, ALL) | _errors(table, include_flags, fields))
    return pd.DataFrame(groups).drop(columns="width_ln")


def errors(
    table: pd.DataFrame,
    by: Sequence[str],
    *,
    include_flags: bool = False,
    fields: Fields = OPERATORS,
) -> list[dict[str, Any]]:
    """A line of `report` for each group of `by` columns, with `width_ln`, the median ln of high
    over low."""
    columns = [name for name in table if name in (*by, *_error_columns(fields))]
    groups = table[columns].groupby(list(by), sort=True, dropna=False, observed=True)
    return [
        dict(zip(by, key, strict=True)) | _errors(group, include_flags, fields)
        for key, group in groups
    ]


def scored(
    table: pd.DataFrame,
    *,
    include_flags: bool = False,
    fields: Fields = OPERATORS,
    columns: Iterable[str] | None = None,
) -> pd.DataFrame:
    """The rows that are scored: predicted, and not flagged; of all columns, or of `columns` and
    those that errors are computed from."""
    keep = table[fields.predicted].notna()
    if not include_flags:
        keep &= ~fields.flagged(table)
    if columns is not None:
        names = {*columns, *_error_columns(fields)}
        table = table[[name for name in table if name in names]]
    return table if keep.all() else table[keep]


def _error_columns(fields: Fields) -> tuple[str, ...]:
    """The columns that errors are computed from."""
    return fields.measured, fields.predicted, fields.low, fields.high, "flag", NOISE


def _errors(group: pd.DataFrame, include_flags: bool, fields: Fields) -> dict[str, Any]:
    rows = scored(group, include_flags=include_flags, fields=fields, columns=())
    flagged = 0 if include_flags else int(fields.flagged(group).sum())
    unpredicted = len(group) - len(rows) - flagged
    counts = {"n": len(rows), "unpredicted": unpredicted, "flagged": flagged}
    measured, predicted = rows[fields.measured], rows[fields.predicted]
    ratio = predicted / measured
    logs = ratio.map(math.log)
    hits = (rows[fields.low] <= measured) & (measured <= rows[fields.high])
    ranks = predicted.rank(), measured.rank()
    varies = all(rank.nunique() > 1 for rank in ranks)
    return counts | {
        "mape": float((ratio - 1).abs().mean()),
        "median_abs_ln": float(logs.abs().median()),
        "p90_abs_ln": float(logs.abs().quantile(0.9)),
        "bias": math.exp(logs.mean()),
        "spearman": float(ranks[0].corr(ranks[1])) if varies else float("nan"),
        "coverage": float(hits.mean()),
        "width_ln": float((rows[fields.high] / rows[fields.low]).map(math.log).median()),
        **_noise_scores(rows, logs),
    }


def _noise_scores(rows: pd.DataFrame, logs: pd.Series[float]) -> dict[str, float]:
    """The median noise of rows with known noise, and the share of them with a smaller error."""
    if NOISE not in rows.columns or not rows[NOISE].notna().any():
        return {}
    noise = rows[NOISE].dropna()
    hits = logs[noise.index].abs() <= noise
    return {"noise_ln": float(noise.median()), "within_noise": float(hits.mean())}


def by_knowledge(
    table: pd.DataFrame, *, include_flags: bool = False, fields: Fields = OPERATORS
) -> list[dict[str, Any]]:
    """Rows, errors, coverage and width (median ln of high over low) by what was known of them."""
    rows = scored(table, include_flags=include_flags, fields=fields)
    figures = ("n", "median_abs_ln", "p90_abs_ln", "coverage", "width_ln")
    return [
        {name.removeprefix("known_"): line[name] for name in (*fields.known, *figures)}
        for line in errors(rows, fields.known, include_flags=include_flags, fields=fields)
    ]


@dataclass(frozen=True)
class Verdict:
    """The verdict on one line of a report."""

    group: str
    """The line's group: the values of its columns, or `all`."""
    miss: str = ""
    """Why it fails; empty if it passes."""


def verdicts(
    summary: pd.DataFrame,
    max_error: float | None = None,
    before: pd.DataFrame | None = None,
    worse: float = 0.0,
) -> list[Verdict]:
    """The verdict on each line of a report, and a failure if no row is scored.

    A line's MAPE may not exceed `max_error` (a fraction), nor the MAPE of the same line in the
    earlier report `before` by more than `worse` (a fraction). A group without any predicted row
    fails. A group that is not in the earlier report is not compared with it.
    """
    columns = list(summary.columns)
    names = columns[: columns.index("n")]
    lines = before.to_dict("records") if before is not None else []
    earlier = {_group(line, names): line["mape"] for line in lines if line["n"]}
    results = []
    for line in summary.to_dict("records"):
        group = _group(line, names)
        limit = earlier.get(group, math.inf) + worse
        results.append(Verdict(group, _miss(line, max_error, limit)))
    if not summary["n"].sum() and not any(item.miss for item in results):
        results.append(Verdict(ALL, "no row is left to score"))
    return results


def _miss(line: Mapping[Hashable, Any], max_error: float | None, limit: float) -> str:
    """Why a line of a report fails; empty if it passes."""
    if line["n"] == 0 and line["unpredicted"]:
        return f"none of {line['unpredicted']} rows could be predicted"
    if line["n"] and max_error is not None and not line["mape"] <= max_error:
        return f"MAPE {line['mape']:.1%} is above {max_error:.1%}"
    if line["n"] and not line["mape"] <= limit:
        return f"MAPE {line['mape']:.2%} is above {limit:.2%}, which the baseline allows"
    return ""


def _group(line: Mapping[Hashable, Any], names: Sequence[str]) -> str:
    return " ".join(str(line[name]) or "-" for name in names) or ALL


def gate(summary: pd.DataFrame, max_error: float) -> list[str]:
    """The groups whose MAPE exceeds `max_error` (a fraction), one line each; empty if all pass.

    See `verdicts`.
    """
    return [f"{v.group}: {v.miss}" for v in verdicts(summary, max_error) if v.miss]


def counted(texts: pd.Series[Any]) -> dict[str, int]:
    """How many rows have each text, most frequent first; rows without one do not count."""
    counts = texts[texts != ""].astype("str").value_counts()
    return {str(text): int(count) for text, count in counts.items()}


def plain_lines(summary: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as plain values, None where one is missing."""
    records = summary.astype(object).to_dict("records")
    return [{str(name): _json_value(value) for name, value in line.items()} for line in records]


def _json_value(value: Any) -> Any:
    """A cell as a JSON value; converts numpy numbers and missing values."""
    if hasattr(value, "item"):
        return value.item()
    return None if value != value else value if isinstance(value, int | float | str) else str(value)
