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
        mask = groups == value
        widths = ranges.spread_of(usual[~usual.index.isin(groups.index[mask])])
        rest = predicted[~mask]
        down, up = ranges.Missed(widths).add(rest).factors() if widened else (1.0, 1.0)
        rows = predicted[mask]
        low, high = _ends(rows, widths, down, up)
        predicted_us = rows["predicted_us"]
        parts.append(
            rows.assign(low_us=predicted_us * np.exp(low), high_us=predicted_us * np.exp(high))
        )
    frame: pd.DataFrame = pd.concat(parts).sort_index()
    return frame


def _ends(
    rows: pd.DataFrame, widths: Mapping[str, Mapping[str, Any]], down: float, up: float
) -> tuple[np.ndarray, np.ndarray]:
    """ln(end / prediction) of both ends of the range."""
    low, high = np.full(len(rows), -_GUESS), np.full(len(rows), _GUESS)
    family, time = families(rows), rows["predicted_us"].to_numpy(float)
    for name, entry in widths.items():
        mask = family == name
        bins = np.searchsorted(np.asarray(entry["edges_us"]), time[mask])
        low[mask] = np.asarray(entry["low"])[bins] * down
        high[mask] = np.asarray(entry["high"])[bins] * up
    return low, high


def categories(
    fit: Linearised, by: Mapping[str, Sequence[Fold]]
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each category of knowledge, with its runs predicted with that knowledge, and their ranges.

    `by` has the folds of "framework", "device" and "architecture". Categories without runs are left
    out.
    """
    table, values = fit.table, values_of(fit.constants, fit.runs)
    predictions = predict_table(table, constants=values)
    group = table["source"] + " " + table["device"] + " " + table["implementation"]
    yield "all known", held_against_others(predictions, group, predictions, widened=False)
    for name, predicted, groups in _ablations(fit, by):
        if len(predicted):
            yield name, held_against_others(predicted, groups, predictions, widened=True)


def _ablations(
    fit: Linearised, folds_: Mapping[str, Sequence[Fold]]
) -> Iterator[tuple[str, pd.DataFrame, pd.Series]]:
    """Runs predicted without some knowledge, and the groups by which they are held out."""
    table, architecture = fit.table, labels(fit.table, "architecture")
    mask = table.groupby([families(table), architecture])["device"].transform("nunique") > 1
    runs = left_out(fit, "device", known=folds_["device"])
    yield "device: sibling", runs[mask], table["device"][mask]
    slugs = {name for name in set(table["device"]) if is_calibrated(load(str(name)))}
    measured = table["device"].isin(slugs)
    runs = left_out(fit, "architecture", known=folds_["architecture"])
    yield "device: calibrated", runs[measured], architecture[measured]
    runs = left_out(fit, "architecture", known=folds_["architecture"], device=ranges.sheet)
    yield "device: generation", runs, architecture
    framework = labels(table, "framework")
    yield "implementation: named", left_out(fit, "framework", known=folds_["framework"]), framework
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
    rows = []
    keys = sorted({(group["device"], group["implementation"]) for group in ranges.first_met()})
    for device, implementation in keys:
        groups = ranges.met(device=device, implementation=implementation)
        hits, weight, deciles, spans = [], [], [], []
        for group in groups:
            entry = widths.get(group["family"])
            if entry is None:
                continue
            levels = {"device": device, "implementation": implementation}
            pairs = [factors[axis][level] for axis, level in levels.items()]
            down, up = (together(max(pair[side], 1.0) for pair in pairs) for side in (0, 1))
            bins = int(np.searchsorted(np.asarray(entry["edges_us"]), group["time_us"]))
            low, high = entry["low"][bins] * down, entry["high"][bins] * up
            errors = np.asarray(group["deciles"], dtype=float)
            hits.append(float(np.mean((errors >= low) & (errors <= high))))
            spans.append(high - low)
            weight.append(min(group["n"] / 8, 1.0))
            deciles.append(errors)
        if not hits:
            continue
        errors_ = np.abs(np.concatenate(deciles))
        weights = np.repeat(weight, [len(part) for part in deciles])
        rows.append(
            {
                "device": device, "implementation": implementation, "groups": len(hits),
                "n": sum(group["n"] for group in groups),
                "median": ranges.quantile(errors_, weights, 0.5),
                "p90": ranges.quantile(errors_, weights, 0.9),
                "coverage": float(np.average(hits, weights=weight)),
                "width": float(np.median(spans)),
            }
        )  # fmt: skip
    return rows
