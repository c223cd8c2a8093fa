"""Fits constants of collectives to measured runs, and tests them on runs left out.

    python -m perfmodel.fitting.collectives collectives.csv.gz

fits every constant marked `fitted` in `perfmodel/collectives/constants.yaml` from its prior, and
again with each device, library, source and kind of collective left out. It prints the errors on the
rows left out, and writes constants and ranges to `perfmodel/collectives`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.collectives.constants import PATH, shipped
from perfmodel.errors import TableError, exit_code
from perfmodel.fitting.estimation import ROBUST_SCALE, bounds, intervals, movable, pulls
from perfmodel.fitting.fitted import Fitted, constants_text
from perfmodel.hardware import load
from perfmodel.timing.architectures import architecture_of
from perfmodel.timing.constants import Constant
from perfmodel.validation.collectives import FIELDS, Asked, asked, predict_table, read
from perfmodel.validation.judging import report as judged
from perfmodel.validation.pages import between
from perfmodel.validation.scores import csv_text

if TYPE_CHECKING:
    import pandas as pd

AXES = ("device", "library", "source", "collective", "ranks")
"""Columns whose values are left out one at a time."""

# Columns of a group. Rows of one group are nearly repetitions, so each group has equal weight.
_GROUP = ("source", "device", "library", "collective", "ranks")
_STEPS = 15
_GAIN = 1e-4
# A fold counts for a family if it leaves out at most half of this share of the family's rows.
_MOST_OUT = 1.5
_HEAD = """\
# Constants of collectives. None belongs to a source, a device or a network. Fitted ones come from
# collectives on A100, H100, B200 within their physical bounds; for the others the source decides.
# Written by python -m perfmodel.fitting.collectives.
"""
_SPREAD_HEAD = """\
# How far collectives lay from their prediction that the constants had not seen: 10th and 90th
# percentile of ln(measured / predicted), by algorithm and protocol. fitted: their library, kind of
# collective or number of ranks left out; links: the same over one generation of link; unseen: their
# device, and so its generation, as wide both ways. Written by
# python -m perfmodel.fitting.collectives.
"""


_INTRODUCTION = """\
## Collectives

*nothing* is in sample: every constant is fitted to all rows. In the other rows the constants were
fitted without any row of that device, library, source, kind of collective or number of ranks; the
errors are of the rows left out. Without aiconfigurator only 140 all-reduces of a MiB and more are
left, which do not show latency. [collectives.csv](accuracy/collectives.csv) has the errors in
sample by device, library and collective. `python -m perfmodel.fitting.collectives TABLE --page
docs/accuracy.md` writes this section."""


@dataclass(frozen=True)
class Fold:
    """A fit without some rows."""

    axis: str
    """The column: one of `AXES`."""
    value: str
    """The value of the column that is left out."""
    errors: np.ndarray
    """ln(predicted / measured) of the rows left out."""
    rows: np.ndarray
    """Their indices in the table."""


def weights(table: pd.DataFrame) -> np.ndarray:
    """Square roots of the rows' weights: equal weight for every group, mean square 1."""
    weight = table.groupby(list(_GROUP))["latency_us"].transform("size").to_numpy(float) ** -0.5
    return np.asarray(weight / np.sqrt(np.mean(np.square(weight))))


def errors(
    table: pd.DataFrame, values: Mapping[str, float], questions: Sequence[Asked] = ()
) -> np.ndarray:
    """ln(predicted / measured) of every row; `questions` are the rows, where they are known."""
    seconds = np.empty(len(table))
    for part in questions or asked(table):
        seconds[part.rows] = part.predicted(dict(values)).seconds
    return np.asarray(np.log(seconds * 1e6 / table["latency_us"].to_numpy(float)))


def fit(
    table: pd.DataFrame, constants: Sequence[Constant], near: Mapping[str, float] | None = None
) -> list[Fitted]:
    """All constants, those marked `fitted` with fitted values and 95 % intervals.

    The search starts from the priors, or `near` other values, and stops where a step gains less
    than 1/10,000 of the cost. Raises `TableError` if no row is left. Needs SciPy (extra `[fit]`).
    """
    from scipy.optimize import least_squares

    if table.empty:
        raise TableError("no collective is left to fit to")
    free = movable(constants)
    x0, pull, weight = np.log([c.prior for c in free]), np.diag(pulls(free)), weights(table)
    start = {item.name: item.prior if item.fitted else item.value for item in constants}
    first = x0 if near is None else np.log([near[c.name] for c in free])
    questions = asked(table)

    def residuals(x: np.ndarray) -> np.ndarray:
        values = {c.name: float(np.exp(v)) for c, v in zip(free, x, strict=True)}
        return np.concatenate(
            [weight * errors(table, {**start, **values}, questions), pull @ (x - x0)]
        )

    solution = least_squares(
        residuals,
        first,
        bounds=bounds(free),
        loss="soft_l1",
        f_scale=ROBUST_SCALE / 3,
        diff_step=np.full(len(free), 1e-3),
        max_nfev=_STEPS,
        ftol=_GAIN,
    )
    slopes, misfit = np.asarray(solution.jac), np.asarray(solution.fun)
    return intervals(constants, free, solution.x, slopes, misfit, np.diag(pull))


def folds(
    table: pd.DataFrame, constants: Sequence[Constant], near: Mapping[str, float]
) -> Iterator[Fold]:
    """A fit for each value of each axis, without the rows of that value; from `near` on."""
    for axis in AXES:
        for value in table[axis].unique():
            rows = np.flatnonzero(table[axis] == value)
            rest = table.drop(table.index[rows]).reset_index(drop=True)
            if rest.empty:
                continue
            values = {
                item.constant.name: item.constant.value for item in fit(rest, constants, near)
            }
            yield Fold(axis, str(value), errors(table.iloc[rows], values), rows)


def report(folds_: Sequence[Fold]) -> str:
    """Errors of the rows left out, as a Markdown table with one line for each fit."""
    lines = ["| left out | rows | median | p90 | bias |", "|---|---:|---:|---:|---:|"]
    for fold in folds_:
        size = np.abs(fold.errors)
        middle, tail = np.median(size), np.quantile(size, 0.9)
        name = f"{fold.axis} {fold.value}".strip()
        bias = np.exp(np.mean(fold.errors))
        lines.append(f"| {name} | {len(size)} | {middle:.3f} | {tail:.3f} | {bias:.2f} |")
    return "\n".join(lines)


def spread_of(
    table: pd.DataFrame, predicted: pd.DataFrame, found: Sequence[Fold]
) -> dict[str, Any]:
    """The table of ranges: devices and libraries seen, percentiles by algorithm and protocol."""
    labels = (predicted["chosen"] + " " + predicted["protocol"]).to_numpy(object)
    weight = np.square(weights(table))
    others = [f for f in found if f.axis not in ("device", "source")]
    ends = _ends(labels, weight, others)
    generations = _generations(table)
    links = {
        name: _lists(_ends(np.where(generations == name, labels, ""), weight, others))
        for name in sorted(set(generations))
    }
    unseen = _even(_ends(labels, weight, [f for f in found if f.axis == "device"]))
    common = [name for name in ends if name in unseen]
    wider = float(np.median([np.ptp(unseen[name]) / np.ptp(ends[name]) for name in common]))
    for name in ends.keys() - unseen.keys():  # only one device has them, so none can be left out
        unseen.update(_even({name: ends[name] * max(wider, 1.0)}))
    return {
        "version": 1,
        "devices": sorted(table["device"].unique()),
        "architectures": sorted({architecture_of(load(d)).name for d in table["device"].unique()}),
        "libraries": sorted(table["library"].unique()),
        "fitted": _lists(ends),
        "links": links,
        "unseen": _lists(unseen),
    }


def _generations(table: pd.DataFrame) -> np.ndarray:
    """The generation of each row's link between devices."""
    names = np.full(len(table), "", dtype=object)
    for part in asked(table):
        names[part.rows] = part.system.levels[0].generation
    return names


def _ends(labels: np.ndarray, weight: np.ndarray, folds_: Sequence[Fold]) -> dict[str, np.ndarray]:
    """10th and 90th percentile of ln(measured / predicted) by family, over folds.

    A fold does not count for a family if it leaves out more than 3/4 of its rows, nor a row without
    a label.
    """
    result = {}
    for label in sorted({*labels} - {""}):
        misses: list[np.ndarray] = []
        weights_: list[np.ndarray] = []
        for fold in folds_:
            mask = labels[fold.rows] == label
            if 0 < 2 * mask.sum() <= _MOST_OUT * (labels == label).sum():
                misses.append(-fold.errors[mask])
                weights_.append(weight[fold.rows[mask]])
        if misses:
            ends = _quantiles(np.concatenate(misses), np.concatenate(weights_), (0.1, 0.9))
            result[str(label)] = np.array(ends)
    return result


def _even(ends: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Ends as wide as the wider one: which way one device errs says nothing of the next."""
    return {name: np.max(np.abs(pair)) * np.array([-1.0, 1.0]) for name, pair in ends.items()}


def _lists(ends: Mapping[str, np.ndarray]) -> dict[str, list[float]]:
    return {name: [float(f"{end:.3f}") for end in ends[name]] for name in sorted(ends)}


def groups(predicted: pd.DataFrame) -> pd.DataFrame:
    """Errors of the rows in the fit, by device, library and collective."""
    keys = ["device", "library", "collective"]
    summary = judged(predicted, keys, fields=FIELDS)
    errors = {"n": "rows", "median_abs_ln": "median", "p90_abs_ln": "p90", "bias": "bias"}
    return summary[[*keys, *errors]].rename(columns=errors).set_index(keys)


def coverage(table: pd.DataFrame, predicted: pd.DataFrame, found: Sequence[Fold]) -> str:
    """Coverage of ranges on each device left out, with ranges from the other devices' errors."""
    labels = (predicted["chosen"] + " " + predicted["protocol"]).to_numpy(object)
    weight, devices = np.square(weights(table)), [f for f in found if f.axis == "device"]
    lines = []
    for fold in devices:
        ends = _even(_ends(labels, weight, [f for f in devices if f is not fold]))
        mask = np.array([label in ends for label in labels[fold.rows]])
        low, high = (
            np.array([ends[label][side] for label in labels[fold.rows[mask]]]) for side in (0, 1)
        )
        misses = -fold.errors[mask]
        share = np.mean((low <= misses) & (misses <= high))
        lines.append(f"{share:.0%} of {mask.sum()} on {fold.value}")
    return f"Ranges made of the other devices' errors alone hold {', '.join(lines)}."


def _quantiles(values: np.ndarray, weight: np.ndarray, shares: Sequence[float]) -> list[float]:
    """Quantiles of weighted values."""
    order = np.argsort(values)
    mass = np.cumsum(weight[order]) / np.sum(weight)
    places = np.minimum(np.searchsorted(mass, np.asarray(shares)), len(order) - 1)
    return [float(value) for value in values[order][places]]


def spread_text(found: Mapping[str, Any]) -> str:
    """The text of the file of ranges."""
    import yaml

    return _SPREAD_HEAD + yaml.safe_dump(dict(found), sort_keys=False, default_flow_style=None)


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m perfmodel.fitting.collectives TABLE...`."""
    return exit_code("perfmodel.fitting.collectives", lambda: _main(arguments))


def _main(arguments: Sequence[str] | None) -> None:
    import argparse
    from pathlib import Path

    from perfmodel.replacing import replacing

    parser = argparse.ArgumentParser(prog="perfmodel.fitting.collectives", description=__doc__)
    parser.add_argument("table", nargs="+", help="collective tables (CSV, CSV.gz, Parquet)")
    parser.add_argument("--output", default=str(PATH.parent), help="folder")
    parser.add_argument("--page", help="document whose table between markers is written anew, too")
    args = parser.parse_args(arguments)
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    table = usable(read(args.table))
    constants = fit(table, shipped())
    values = {item.constant.name: item.constant.value for item in constants}
    folds_ = [*folds(table, shipped(), values)]
    in_sample = Fold("nothing", "", errors(table, values), np.arange(len(table)))
    predicted = predict_table(table, constants=values)
    parts = [report([in_sample, *folds_]), coverage(table, predicted, folds_)]
    print("\n\n".join(parts))
    ranges = spread_of(table, predicted, folds_)
    texts = {
        folder / "constants.yaml": constants_text(constants, _HEAD),
        folder / "spread.yaml": spread_text(ranges),
    }
    if args.page:
        page = Path(args.page)
        doc = page.read_text(encoding="utf-8")
        texts[page] = between(doc, "\n\n".join([_INTRODUCTION, *parts]), args.page, "collectives")
        texts[page.with_suffix("") / "collectives.csv"] = csv_text(groups(predicted))
    for path, text in texts.items():
        with replacing(str(path)) as partial:
            partial.write_text(text, encoding="utf-8")
        print(f"wrote {path.name}")


def usable(table: pd.DataFrame) -> pd.DataFrame:
    """The unflagged rows that can be predicted; prints how many cannot.

    Raises `TableError` if none is left.
    """
    rows = table[table["flag"] == ""].reset_index(drop=True)
    reasons = predict_table(rows)["reason"]
    if (reasons != "").any():
        print(f"left out {int((reasons != '').sum())} rows: {reasons[reasons != ''].iloc[0]}")
    rows = rows[(reasons == "").to_numpy()].reset_index(drop=True)
    if rows.empty:
        raise TableError("no collective is left to fit to; give ones that can be predicted")
    return rows


if __name__ == "__main__":
    raise SystemExit(main())
