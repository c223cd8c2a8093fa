"""Coverage and width of ranges under missing knowledge, with ranges from other groups of runs.

    categories(fit)     # a line per category: runs, errors, share inside the range, its width

Each group of runs is tested with widths and factors from all other groups, so that no quantile is
tested on its own data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.fitting import ranges
from perfmodel.fitting.estimation import values_of
from perfmodel.fitting.fitted import families
from perfmodel.fitting.heldout import Fold, Linearised, labels, left_out
from perfmodel.hardware import load
from perfmodel.timing.knowledge import is_calibrated
from perfmodel.timing.spread import together
from perfmodel.validation.compare import predict_table
from perfmodel.validation.masking import unnamed

if TYPE_CHECKING:
    import pandas as pd

_GUESS = 0.7  # half width if no other group has data


def held_against_others(
    predicted: pd.DataFrame, groups: pd.Series, usual: pd.DataFrame, *, widened: bool
) -> pd.DataFrame:
    """`predicted` with low_us and high_us from groups other than the row's own.

    `usual` are the same runs with everything known, which give the families' widths; `widened` is
    whether a factor is applied to them. The result has the shape and index of `predicted`.
    """
    import pandas as pd

    parts = []
    for value in sorted(groups.unique()):
        mine = groups == value
        widths = ranges.spread_of(usual[~usual.index.isin(groups.index[mine])])
        others = predicted[~mine]
        down, up = ranges.Missed(widths).add(others).factors() if widened else (1.0, 1.0)
        rows = predicted[mine]
        low, high = _ends(rows, widths, down, up)
        predicted_us = rows["predicted_us"]
        parts.append(
            rows.assign(low_us=predicted_us * np.exp(low), high_us=predicted_us * np.exp(high))
        )
    found: pd.DataFrame = pd.concat(parts).sort_index()
    return found


def _ends(
    rows: pd.DataFrame, widths: Mapping[str, Mapping[str, Any]], down: float, up: float
) -> tuple[np.ndarray, np.ndarray]:
    """ln(end / prediction) of both ends of the range."""
    low, high = np.full(len(rows), -_GUESS), np.full(len(rows), _GUESS)
    family, time = families(rows), rows["predicted_us"].to_numpy(float)
    for name, entry in widths.items():
        mine = family == name
        bins = np.searchsorted(np.asarray(entry["edges_us"]), time[mine])
        low[mine] = np.asarray(entry["low"])[bins] * down
        high[mine] = np.asarray(entry["high"])[bins] * up
    return low, high


def categories(
    fit: Linearised, by: Mapping[str, Sequence[Fold]]
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each category of knowledge, with its runs predicted with that knowledge, and their ranges.

    `by` has the folds of "framework", "device" and "architecture". Categories without runs are left
    out.
    """
    table, values = fit.table, values_of(fit.constants, fit.runs)
    usual = predict_table(table, constants=values)
    group = table["source"] + " " + table["device"] + " " + table["implementation"]
    yield "all known", held_against_others(usual, group, usual, widened=False)
    for name, predicted, groups in _lacking(fit, by):
        if len(predicted):
            yield name, held_against_others(predicted, groups, usual, widened=True)


def _lacking(
    fit: Linearised, by: Mapping[str, Sequence[Fold]]
) -> Iterator[tuple[str, pd.DataFrame, pd.Series]]:
    """Runs predicted without some knowledge, and the groups by which they are held out."""
    table, architecture = fit.table, labels(fit.table, "architecture")
    near = table.groupby([families(table), architecture])["device"].transform("nunique") > 1
    found = left_out(fit, "device", known=by["device"])
    yield "device: sibling", found[near], table["device"][near]
    calibrated = {name for name in set(table["device"]) if is_calibrated(load(str(name)))}
    measured = table["device"].isin(calibrated)
    found = left_out(fit, "architecture", known=by["architecture"])
    yield "device: calibrated", found[measured], architecture[measured]
    found = left_out(fit, "architecture", known=by["architecture"], device=ranges.sheet)
    yield "device: generation", found, architecture
    framework = labels(table, "framework")
    yield "implementation: named", left_out(fit, "framework", known=by["framework"]), framework
    values = values_of(fit.constants, fit.runs)
    for column in ("implementation", "harness"):
        blank = predict_table(unnamed(table, column), constants=values)
        yield f"{column}: assumed", blank.assign(**{column: table[column]}), framework


def first_met(
    widths: Mapping[str, Mapping[str, Any]], factors: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """What was known of the groups of `first_met.yaml`, and their share inside the range.

    Ranges have today's widths; each group is tested with factors from the others.
    """
    found = []
    keys = sorted({(one["device"], one["implementation"]) for one in ranges.first_met()})
    for device, implementation in keys:
        mine = ranges.met(device=device, implementation=implementation)
        inside, weight, deciles, wide = [], [], [], []
        for one in mine:
            entry = widths.get(one["family"])
            if entry is None:
                continue
            levels = {"device": device, "implementation": implementation}
            pairs = [factors[axis][level] for axis, level in levels.items()]
            down, up = (together(max(pair[side], 1.0) for pair in pairs) for side in (0, 1))
            bins = int(np.searchsorted(np.asarray(entry["edges_us"]), one["time_us"]))
            low, high = entry["low"][bins] * down, entry["high"][bins] * up
            errors = np.asarray(one["deciles"], dtype=float)
            inside.append(float(np.mean((errors >= low) & (errors <= high))))
            wide.append(high - low)
            weight.append(min(one["n"] / 8, 1.0))
            deciles.append(errors)
        if not inside:
            continue
        every = np.abs(np.concatenate(deciles))
        each = np.repeat(weight, [len(part) for part in deciles])
        found.append(
            {
                "device": device, "implementation": implementation, "groups": len(inside),
                "n": sum(one["n"] for one in mine),
                "median": ranges.quantile(every, each, 0.5),
                "p90": ranges.quantile(every, each, 0.9),
                "coverage": float(np.average(inside, weights=weight)),
                "width": float(np.median(wide)),
            }
        )  # fmt: skip
    return found
