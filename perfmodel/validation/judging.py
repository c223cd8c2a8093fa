"""Errors of a predicted table, one line a group of rows, and a gate on them.

    report(table, by=["op", "device"])                 # n, MAPE, median |ln ratio|, bias ...
    report(runs, by=["source"], fields=Fields(measured="latency_us", predicted="predicted", ...))

What a table is of does not matter here: `Fields` says which of its columns hold what.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfmodel.errors import TableError

if TYPE_CHECKING:
    import pandas as pd

ALL = "all"
NOISE = "noise_ln"
"""The column of how far repeated measurements of a row lie apart (`perfmodel.validation.noise`)."""
LEFT_OUT = ("timer_floor", "noisy", "busy", "suspect", "failed")
"""Flags whose rows are not scored unless asked: they measure something else than the kernel."""


@dataclass(frozen=True)
class Fields:
    """The columns of a predicted table that its errors are made of."""

    measured: str
    """What was measured."""
    predicted: str
    """What the model says, in the same unit; missing where it says nothing."""
    low: str
    """Lower end of the prediction's range."""
    high: str
    """Upper end of the prediction's range."""
    known: tuple[str, ...]
    """What was known of a row, a column each; see `by_knowledge`."""
    left_out: tuple[str, ...] | None = None
    """Flags whose rows are not scored unless asked; None: any flag."""

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
    """Errors of a predicted table, one line per group of `by` columns and one for all of it.

    `n` rows are scored; `unpredicted` and `flagged` ones are counted beside them. Errors are
    fractions: `mape` the mean of |predicted/measured - 1|, `median_abs_ln` and `p90_abs_ln` of
    |ln(predicted/measured)|, `bias` the geometric mean of predicted/measured, `spearman` the rank
    correlation, `coverage` the share of measurements inside low to high; and where rows have it,
    the median `noise_ln` with `within_noise`, the share of them that miss by no more. Raises
    `TableError` for a `by` column that is not there.
    """
    import pandas as pd

    for name in by:
        if name not in table.columns:
            raise TableError(f"no column {name!r} to group by; there is {', '.join(table.columns)}")
    lines = []
    if by:
        for key, group in table.groupby(list(by), sort=True, dropna=False):
            lines.append(dict(zip(by, key, strict=True)) | _errors(group, include_flags, fields))
    lines.append(dict.fromkeys(by, ALL) | _errors(table, include_flags, fields))
    return pd.DataFrame(lines)


def scored(
    table: pd.DataFrame, *, include_flags: bool = False, fields: Fields = OPERATORS
) -> pd.DataFrame:
    """The rows that count: predicted, and not flagged as measuring something else."""
    keep = table[fields.predicted].notna()
    return table[keep if include_flags else keep & ~fields.flagged(table)]


def _errors(group: pd.DataFrame, include_flags: bool, fields: Fields) -> dict[str, Any]:
    kept = scored(group, include_flags=include_flags, fields=fields)
    flagged = 0 if include_flags else int(fields.flagged(group).sum())
    unpredicted = len(group) - len(kept) - flagged
    counts = {"n": len(kept), "unpredicted": unpredicted, "flagged": flagged}
    measured, predicted = kept[fields.measured], kept[fields.predicted]
    ratio = predicted / measured
    logs = ratio.map(math.log)
    inside = (kept[fields.low] <= measured) & (measured <= kept[fields.high])
    ranks = predicted.rank(), measured.rank()
    varied = all(rank.nunique() > 1 for rank in ranks)
    return counts | {
        "mape": float((ratio - 1).abs().mean()),
        "median_abs_ln": float(logs.abs().median()),
        "p90_abs_ln": float(logs.abs().quantile(0.9)),
        "bias": math.exp(logs.mean()),
        "spearman": float(ranks[0].corr(ranks[1])) if varied else float("nan"),
        "coverage": float(inside.mean()),
        **_beside_noise(kept, logs),
    }


def _beside_noise(kept: pd.DataFrame, logs: pd.Series[float]) -> dict[str, float]:
    """The median noise of rows of which it is known, and the share of them that miss by less."""
    if NOISE not in kept.columns or not kept[NOISE].notna().any():
        return {}
    noise = kept[NOISE].dropna()
    within = logs[noise.index].abs() <= noise
    return {"noise_ln": float(noise.median()), "within_noise": float(within.mean())}


def by_knowledge(
    table: pd.DataFrame, *, include_flags: bool = False, fields: Fields = OPERATORS
) -> list[dict[str, Any]]:
    """Rows, errors, coverage and width (median ln of high over low) by what was known of them."""
    kept = scored(table, include_flags=include_flags, fields=fields)
    kept = kept.assign(width=(kept[fields.high] / kept[fields.low]).map(math.log))
    found = []
    for key, group in kept.groupby(list(fields.known), sort=True):
        said = _errors(group, include_flags, fields)
        names = (name.removeprefix("known_") for name in fields.known)
        levels = dict(zip(names, key, strict=True))
        errors = {name: said[name] for name in ("n", "median_abs_ln", "p90_abs_ln", "coverage")}
        found.append({**levels, **errors, "width_ln": float(group["width"].median())})
    return found


@dataclass(frozen=True)
class Verdict:
    """Whether a line of a report holds its gate."""

    group: str
    """What the line is of: the values of its columns, or `all`."""
    miss: str = ""
    """Why it fails; empty where it holds."""


def verdicts(
    summary: pd.DataFrame,
    max_error: float | None = None,
    before: pd.DataFrame | None = None,
    worse: float = 0.0,
) -> list[Verdict]:
    """Whether each line of a report holds, and one more where no row is left to score.

    Its MAPE may not be above `max_error` (a fraction), nor more than `worse` (a fraction) above
    that of the same line of `before`, an earlier report. A group that has rows of which none could
    be predicted fails; one that the earlier report does not have has nothing to be worse than.
    """
    names = _grouped_by(summary)
    lines = before.to_dict("records") if before is not None else []
    earlier = {_group(line, names): line["mape"] for line in lines if line["n"]}
    found = []
    for line in summary.to_dict("records"):
        group = _group(line, names)
        was = earlier.get(group, math.inf) + worse
        found.append(Verdict(group, _miss(line, max_error, was)))
    if not summary["n"].sum() and not any(item.miss for item in found):
        found.append(Verdict(ALL, "no row is left to score"))
    return found


def _miss(line: Mapping[Hashable, Any], max_error: float | None, was: float) -> str:
    """Why a line of a report fails; empty where it holds."""
    if line["n"] == 0 and line["unpredicted"]:
        return f"none of {line['unpredicted']} rows could be predicted"
    if line["n"] and max_error is not None and not line["mape"] <= max_error:
        return f"MAPE {line['mape']:.1%} is above {max_error:.1%}"
    if line["n"] and not line["mape"] <= was:
        return f"MAPE {line['mape']:.2%} is above {was:.2%}, which the baseline allows"
    return ""


def _grouped_by(summary: pd.DataFrame) -> list[str]:
    """The columns that a report's lines are groups of."""
    return list(summary.columns)[: list(summary.columns).index("n")]


def _group(line: Mapping[Hashable, Any], names: Sequence[str]) -> str:
    return " ".join(str(line[name]) or "-" for name in names) or ALL


def gate(summary: pd.DataFrame, max_error: float) -> list[str]:
    """Why a report misses `max_error` (a fraction) on its MAPE: a line per group; empty = passed.

    Every line of the report must hold; see `verdicts`.
    """
    return [f"{v.group}: {v.miss}" for v in verdicts(summary, max_error) if v.miss]


def assumptions(table: pd.DataFrame) -> dict[str, int]:
    """What was assumed for names that nothing is known of, with the numbers of rows."""
    found = table["assumed"][table["assumed"] != ""].value_counts()
    return {str(said): int(count) for said, count in found.items()}


def reasons(table: pd.DataFrame) -> dict[str, int]:
    """Why rows could not be predicted, with their numbers, the most frequent first."""
    found = table["reason"][table["reason"] != ""].value_counts()
    return {str(reason): int(count) for reason, count in found.items()}


def plain_lines(summary: pd.DataFrame) -> list[dict[str, Any]]:
    """A report's lines as plain values."""
    found = summary.astype(object).to_dict("records")
    return [{str(name): _plain(value) for name, value in line.items()} for line in found]


def _plain(value: Any) -> Any:
    """A cell as JSON knows it: numbers of numpy and missing values included."""
    if hasattr(value, "item"):
        return value.item()
    return None if value != value else value if isinstance(value, int | float | str) else str(value)
