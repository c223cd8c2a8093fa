"""The noise of repeated measurements of a row, and whether an error exceeds it.

There are three estimates; the largest is taken, since a few repeats may agree by chance:

    repeated rows      rows of the same case: 1.28 standard deviations of their ln
    quantiles          p10 and p90: half of ln(p90 / p10); p20 and p80 by 1.28 / 0.84 more
    deviations         1.28 std / measured; half of ln(max / min) of a few samples

Each is the half-width of the middle 80 % of a normal distribution in ln: Φ⁻¹(0.9) = 1.2816 and
Φ⁻¹(0.8) = 0.8416 standard deviations. An error is *within noise* if |ln(predicted / measured)| is
at most the row's half-width, so that a repeated measurement could differ by as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.validation.judging import NOISE, Fields, scored

if TYPE_CHECKING:
    import pandas as pd

VERDICT = "verdict"
"""The column with the verdict on an error against noise and the prediction's range."""
WITHIN, IN_RANGE = "within noise", "in range"
TOO_FAST, TOO_SLOW = "predicted too fast", "predicted too slow"
"""Verdicts; the last two are also outside the prediction's range."""
_P90, _P80 = 1.2816, 0.8416
_QUANTILES = (("p10", "p90", _P90), ("p20", "p80", _P80), ("p25", "p75", 0.6745))


def judged(table: pd.DataFrame, fields: Fields, case: Sequence[str]) -> pd.DataFrame:
    """A predicted table with the noise of each row and the verdict on its error.

    `case` are the columns that identify a case. The noise is NaN if unknown, and the verdict is
    empty for rows without a prediction.
    """
    import pandas as pd

    noise = half_widths(table, fields, case)
    ratio = (table[fields.predicted] / table[fields.measured]).to_numpy(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.log(ratio)
    hits = (table[fields.low] <= table[fields.measured]) & (
        table[fields.measured] <= table[fields.high]
    )
    words = ["", IN_RANGE, TOO_FAST, TOO_SLOW, WITHIN]
    place = np.where(
        (error < 0) != _rates(table), words.index(TOO_FAST), words.index(TOO_SLOW)
    ).astype(np.int8)
    place[hits.to_numpy(bool)] = words.index(IN_RANGE)
    place[np.abs(error) <= noise] = words.index(WITHIN)
    place[~np.isfinite(error)] = words.index("")
    verdict = pd.Categorical.from_codes(place, dtype=pd.CategoricalDtype(words))
    return table.assign(**{NOISE: noise}, **{VERDICT: verdict})


def _rates(table: pd.DataFrame) -> np.ndarray:
    """Whether a row's `metric` is a rate, of which more is faster."""
    if "metric" not in table.columns:
        return np.zeros(len(table), dtype=bool)
    names = table["metric"].astype("str").str
    return (names.contains("_per_s") | names.contains("^tflops|^mfu")).to_numpy(bool)


def remark(table: pd.DataFrame, fields: Fields, *, include_flags: bool = False) -> str:
    """One line comparing a judged table's errors with its noise; empty if no noise is known."""
    rows = scored(table, include_flags=include_flags, fields=fields, columns=())
    noisy = rows[rows[NOISE].notna()]
    if noisy.empty:
        return ""
    errors = (noisy[fields.predicted] / noisy[fields.measured]).map(np.log).abs()
    noise, error = float(noisy[NOISE].median()), float(errors.median())
    hits = int((errors <= noisy[NOISE]).sum())
    verdict = WITHIN if error <= noise else f"{error / noise:.3g} times the noise" if noise else ""
    return (
        f"noise: {len(noisy)} of {len(rows)} rows have repeats or quantiles, within {noise:.1%} of "
        f"each other; {hits} of them are predicted within noise; their median error of "
        f"{error:.1%} is {verdict or 'above it'}"
    )


def half_widths(table: pd.DataFrame, fields: Fields, case: Sequence[str]) -> np.ndarray:
    """Half of the middle 80 % of repeated measurements in ln, by row; NaN where unknown."""
    widths: np.ndarray = np.fmax(
        _repeat_widths(table, fields.measured, case),
        np.fmax(_quantiles(table, fields.measured), _deviations(table, fields.measured)),
    )
    return widths


def _repeat_widths(table: pd.DataFrame, measured: str, case: Sequence[str]) -> np.ndarray:
    """From rows of the same case, if there are several."""
    keys = [name for name in case if name in table.columns]
    logs = table[measured].astype("float64").map(np.log)
    if not keys or len(table) < 2:
        return np.full(len(table), np.nan)
    deviations = logs.groupby(_cases(table[keys]), sort=False).transform("std", ddof=1)
    return np.asarray(deviations, dtype=np.float64) * _P90


def _cases(keys: pd.DataFrame) -> np.ndarray:
    """A number for each row, the same for rows that are equal in all of `keys`.

    Column after column, so that only two columns' numbers are in memory at once.
    """
    import pandas as pd

    case = np.zeros(len(keys), dtype=np.int64)
    for name in keys:
        codes, levels = pd.factorize(keys[name], use_na_sentinel=False)
        case = pd.factorize(case * len(levels) + codes)[0]
    return case


def _quantiles(table: pd.DataFrame, measured: str) -> np.ndarray:
    halves = np.full(len(table), np.nan)
    for low, high, deviations in _QUANTILES:
        half = _log_ratio(_spread(table, low, measured), _spread(table, high, measured)) / 2
        halves = np.where(np.isnan(halves), half * (_P90 / deviations), halves)
    return halves


def _deviations(table: pd.DataFrame, measured: str) -> np.ndarray:
    middle = table[measured].to_numpy(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = _spread(table, "std", measured) / middle * _P90
    ends = _log_ratio(_spread(table, "min", measured), _spread(table, "max", measured)) / 2
    spans = _numbers(table, "spread_ln") / 2
    widths = np.where(np.isnan(relative), ends, relative)
    return np.where(np.isnan(widths), spans, widths)


def _spread(table: pd.DataFrame, statistic: str, measured: str) -> np.ndarray:
    """The column of a statistic in the measurement's unit: p20_us for measured_us."""
    unit = measured.rpartition("_")[2]
    return _numbers(table, f"{statistic}_{unit}")


def _numbers(table: pd.DataFrame, name: str) -> np.ndarray:
    import pandas as pd

    if name not in table.columns:
        return np.full(len(table), np.nan)
    return pd.to_numeric(table[name], errors="coerce").to_numpy(np.float64)


def _log_ratio(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(high / low)
    return np.where(np.isfinite(ratio) & (ratio >= 0), ratio, np.nan)
