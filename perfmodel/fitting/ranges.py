"""Prediction ranges from errors on runs left out, and the file of ranges.

Each side of a range is a family's width times a factor for each unknown
(`perfmodel.timing.spread`). Widths and factors are percentiles of ln(measured / predicted) over
runs left out:

width            everything known: the fit's own errors, at least the difference of frameworks
sibling          devices left out, others of their architecture kept
calibrated       architectures left out, their devices' measured rates kept
generation       architectures left out, with datasheets alone
named            frameworks left out
unseen           sources left out: frameworks and how they are timed come in other pairs
assumed          names of implementations, or of harnesses, blanked

Groups (one source, device and implementation) have equal weight for any number of runs: a new group
is as likely to resemble a small one as a large one.

Runs that wait for the host of their own framework (`host_seconds` in names.yaml) are left out: they
say how long a host takes to call, not how long kernels take.

The facts of kernels were written with most runs known, so leaving out constants underestimates
errors on new runs. Runs that arrived after the facts were written are therefore used as well:
`first_met.yaml` has the percentiles of their first predictions. The wider of both factors is taken.

For these runs, measured rates of a new architecture made no difference, so `calibrated` and
`generation` share their groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel import yamltable
from perfmodel.fitting.fitted import families
from perfmodel.fitting.heldout import Linearised, labels, left_out
from perfmodel.hardware import Device, load
from perfmodel.timing.architectures import architecture_of
from perfmodel.timing.constants import Constants
from perfmodel.timing.knowledge import LEVELS, is_calibrated, signature
from perfmodel.timing.libraries import AttentionFacts, caller_of, framework_of, kernels
from perfmodel.timing.spread import FIRST_GUESS
from perfmodel.validation.compare import predict_table
from perfmodel.validation.judging import LEFT_OUT
from perfmodel.validation.masking import datasheet, unnamed

if TYPE_CHECKING:
    import pandas as pd

VERSION = 2
TAILS = (0.1, 0.9)
"""Quantiles of the lower and upper end of an 80 % range."""
# Bin edges of predicted times in microseconds: launch floors, one wave, many waves, sustained
# clocks.
_EDGES_US = (10.0, 40.0, 200.0, 1000.0)
# Fewest rows and groups of a bin, and the rows from which a group has full weight.
_FEWEST, _FEWEST_GROUPS, _WHOLE = 40, 3, 8
# Least half-width of operators to which nothing is fitted: two frameworks' kernels of one attention
# differ by so much (docs/accuracy/in-sample.csv, noise).
_UNFITTED_LEAST = 0.1
# Times of a framework's call on one kind of host spread by so much.
_CALL_SPREAD = 1.25
# Columns that identify a problem.
_SHAPE = (
    "device", "harness", "op", "variant", "dtype", "kv_dtype", "direction", "phase", "causal",
    "includes", "batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "head_dim", "window", "m", "n",
    "k", "rows", "cols",
)  # fmt: skip


def waits_for_host(table: pd.DataFrame) -> np.ndarray:
    """Whether a run takes as long as its framework's own call keeps the host busy."""
    keys = ["device", "op", "implementation", "dtype"]
    seconds = np.zeros(len(table))
    groups: Any = table.groupby(keys).indices
    for (device, op, name, dtype), rows in groups.items():
        instruction = architecture_of(load(str(device))).instruction
        seconds[rows] = caller_of(str(op), str(name), str(dtype), instruction).host_seconds or 0.0
    return np.asarray(table["measured_us"].to_numpy(float) * 1e-6 < _CALL_SPREAD * seconds)


def errors(predicted: pd.DataFrame) -> pd.DataFrame:
    """ln(measured / predicted) as `error`, with family, predicted microseconds, group and weight.

    Only rows that are predicted, measured and not flagged.
    """
    import pandas as pd

    rows = predicted[predicted["predicted_us"].notna() & ~predicted["flag"].isin(LEFT_OUT)]
    group = ["source", "device", "implementation"]
    group = [name for name in group if name in rows.columns]
    frame = pd.DataFrame(
        {
            "error": np.log(rows["measured_us"] / rows["predicted_us"]),
            "family": families(rows),
            "time_us": rows["predicted_us"].astype(float),
        },
        index=rows.index,
    ).join(rows[[*group, *(["architecture"] if "architecture" in rows else [])]])
    frame["group"] = frame.groupby(["family", *group], dropna=False).ngroup()
    size = frame.groupby("group")["error"].transform("size")
    return frame.assign(weight=np.minimum(size / _WHOLE, 1.0) / size)


def quantile(values: np.ndarray, weight: np.ndarray, share: float) -> float:
    """The weighted quantile at `share`, interpolated linearly."""
    order = np.argsort(values, kind="stable")
    values, weight = np.asarray(values)[order], np.asarray(weight, dtype=float)[order]
    middles = np.cumsum(weight) - weight / 2
    return float(np.interp(share * weight.sum(), middles, values))


def spread_of(
    predicted: pd.DataFrame, least: Mapping[str, float] | None = None
) -> dict[str, dict[str, Any]]:
    """10th and 90th percentiles of ln(measured / predicted) by family and predicted time.

    A bin with few rows or groups uses the whole family's percentiles. `least` is the minimum
    half-width of each family; a family that is not in it gets the median of the others.
    """
    default = float(np.median(list(least.values()))) if least else 0.0
    entries: dict[str, dict[str, Any]] = {}
    for name, rows in errors(predicted).groupby("family"):
        bins = np.searchsorted(_EDGES_US, rows["time_us"].to_numpy())
        sides: tuple[list[float], list[float]] = [], []
        half = (least or {}).get(str(name), default)
        for i in range(len(_EDGES_US) + 1):
            part = rows[bins == i]
            part = part if _has_enough(part, rows) else rows
            error, weight = part["error"].to_numpy(), part["weight"].to_numpy()
            low, high = (quantile(error, weight, share) for share in TAILS)
            sides[0].append(round(min(low, -half), 4))
            sides[1].append(round(max(high, half), 4))
        entries[str(name)] = {
            "n": len(rows), "groups": int(rows["group"].nunique()),
            "edges_us": list(_EDGES_US), "low": sides[0], "high": sides[1],
        }  # fmt: skip
    return entries


def _has_enough(rows: pd.DataFrame, family: pd.DataFrame) -> bool:
    """Whether a bin has enough rows and groups of its own."""
    groups = min(_FEWEST_GROUPS, family["group"].nunique())
    return len(rows) >= _FEWEST and rows["group"].nunique() >= groups


def between_frameworks(table: pd.DataFrame, predicted: pd.DataFrame) -> dict[str, float]:
    """Half of the median |ln| between two frameworks' runs of one kernel, by family.

    The runs have the same device and shape: a prediction that ignores the framework cannot be
    closer to both. `predicted` has the kernel of each implementation.
    """
    rows = table[~table["flag"].isin(LEFT_OUT)]
    keys = ["device", "op", "dtype", "phase", "implementation"]
    kernel = predicted.groupby(keys)["kernel"].first().rename("kernel")
    rows = rows.join(kernel, on=keys).assign(framework=labels(rows, "framework"))
    shape = [*(name for name in _SHAPE if name in rows.columns), "kernel"]
    time = np.log(rows["measured_us"]).groupby(
        [rows[name] for name in [*shape, "framework"]], dropna=False
    )
    medians = time.median().groupby(level=list(range(len(shape))), dropna=False)
    gaps = (medians.max() - medians.min())[medians.size() > 1].rename("apart").reset_index()
    halves = gaps["apart"].groupby(families(gaps)).median() / 2
    return {str(name): float(half) for name, half in halves.items()}


def kernels_of(predicted: pd.DataFrame) -> dict[str, dict[str, list[str]]]:
    """Devices, architectures, named kernels and harnesses of the runs in the fit, by family."""
    rows = predicted[predicted["predicted_us"].notna()]
    family = families(rows)
    signatures = [
        signature(framework_of(str(name)), str(kernel))
        if name and level != "assumed" else ""
        for name, kernel, level in zip(
            rows["implementation"], rows["kernel"], rows["known_implementation"], strict=True
        )
    ]  # fmt: skip
    timed = [
        signature(framework_of(str(name)), str(harness)) if name else ""
        for name, harness in zip(rows["implementation"], rows["harness"], strict=True)
    ]
    runs = rows.assign(
        family=family, ran=signatures, timed=timed, architecture=labels(rows, "architecture")
    )
    return {
        str(name): {
            "devices": sorted(set(group["device"])),
            "architectures": sorted(set(group["architecture"]) - {"other"}),
            "kernels": sorted(set(group["ran"]) - {""}),
            "harnesses": sorted(set(group["timed"]) - {""}),
        }
        for name, group in runs.groupby("family")
    }


def relative(error: np.ndarray, entry: Mapping[str, Any], time_us: np.ndarray) -> np.ndarray:
    """Errors relative to the family's range: 1 is at its upper end, −1 at its lower end."""
    bins = np.searchsorted(np.asarray(entry["edges_us"]), time_us)
    low, high = (np.abs(np.asarray(entry[side]))[bins] for side in ("low", "high"))
    side = np.where(error > 0, high, low)
    return np.asarray(error / np.maximum(side, 1e-3))


class Missed:
    """Errors without some knowledge, relative to their family's range, with weights."""

    def __init__(self, widths: Mapping[str, Mapping[str, Any]]) -> None:
        self.widths = widths
        self.values: list[np.ndarray] = []
        self.weights: list[np.ndarray] = []

    def add(self, predicted: pd.DataFrame) -> Missed:
        """Add the errors of predicted runs."""
        for name, rows in errors(predicted).groupby("family"):
            entry = self.widths.get(str(name))
            if entry is not None:
                error, time = rows["error"].to_numpy(), rows["time_us"].to_numpy()
                self.values.append(relative(error, entry, time))
                self.weights.append(rows["weight"].to_numpy())
        return self

    def add_met(self, groups: Iterable[Mapping[str, Any]]) -> Missed:
        """Add the errors of groups of `first_met.yaml`."""
        for group in groups:
            entry = self.widths.get(group["family"])
            if entry is not None:
                deciles = np.asarray(group["deciles"], dtype=float)
                time = np.full(len(deciles), float(group["time_us"]))
                self.values.append(relative(deciles, entry, time))
                weight = min(group["n"] / _WHOLE, 1.0)
                self.weights.append(np.full(len(deciles), weight / len(deciles)))
        return self

    def factors(self) -> list[float]:
        """The factor by which each side must grow to contain 80 % of the errors; at least 1."""
        if not self.values:
            return [1.0, 1.0]
        value, weight = np.concatenate(self.values), np.concatenate(self.weights)
        low, high = (quantile(value, weight, share) for share in TAILS)
        return [round(max(-low, 1.0), 3), round(max(high, 1.0), 3)]


def wider(*factors: Sequence[float]) -> list[float]:
    """The larger factor of each side."""
    return [max(pair) for pair in zip(*factors, strict=True)]


@lru_cache(maxsize=1)
def first_met() -> Sequence[Mapping[str, Any]]:
    """Groups of runs that arrived after the model was fitted: what was known, and their errors."""
    document: Mapping[str, Any] = yamltable.read(Path(__file__).with_name("first_met.yaml"))
    groups: Sequence[Mapping[str, Any]] = document["groups"]
    return groups


def met(**levels: str) -> list[Mapping[str, Any]]:
    """The groups with the given levels of knowledge, and full knowledge otherwise."""
    filters = {axis: v[0] for axis, v in LEVELS.items() if axis != "harness"} | levels
    return [g for g in first_met() if all(g[axis] == level for axis, level in filters.items())]


def table_of(fit: Linearised, runs: pd.DataFrame) -> dict[str, Any]:
    """The table of ranges of a fit; `runs` are all runs, of which the fit may have used a part."""
    from perfmodel.fitting.estimation import values_of

    values = values_of(fit.constants, fit.runs)
    fit, runs = _kernel_fit(fit), runs[~waits_for_host(runs)]
    predicted = predict_table(fit.table, constants=values)
    widths = spread_of(predicted, between_frameworks(runs, predicted))
    frameworks = Missed(widths).add(left_out(fit, "framework")).factors()
    names = wider(frameworks, Missed(widths).add_met(met(implementation="named")).factors())
    factors = {
        "device": {"fitted": [1.0, 1.0], **_device_factors(fit, widths)},
        "implementation": {
            "fitted": [1.0, 1.0],
            "named": names,
            "assumed": _factors(fit, "implementation", values, widths),
        },
        "harness": {
            "known": [1.0, 1.0],
            "unseen": unseen(predicted),
            "assumed": _factors(fit, "harness", values, widths),
        },
    }
    facts, extra = kernels_of(predicted), _assumed_by_family(fit, values, widths)
    return {
        "version": VERSION,
        "factors": factors,
        "families": {
            name: {**entry, **extra.get(name, {}), **facts[name]} for name, entry in widths.items()
        },
    }


def unseen(predicted: pd.DataFrame) -> list[float]:
    """The factor for runs of a source, by the ranges of all the others.

    Constants stay as they are: without a source they move too little to matter (docs/accuracy.md).
    """
    values: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    for source in predicted["source"].unique():
        mine = predicted["source"] == source
        missed = Missed(spread_of(predicted[~mine])).add(predicted[mine])
        values, weights = values + missed.values, weights + missed.weights
    every = Missed({})
    every.values, every.weights = values, weights
    return every.factors()


def unfitted(table: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Ranges of operators to which no constant is fitted, such as chains of kernels, by name; of
    the runs whose kernel is known. A family that spreads further than a first guess has none, and
    no family is known better than that where no kernel is named."""
    predicted = predict_table(table, learned=False)
    predicted = predicted[predicted["known_implementation"] != "assumed"]
    facts, least = kernels_of(predicted), {"": _UNFITTED_LEAST}
    return {
        name: {**entry, "assumed": [-FIRST_GUESS, FIRST_GUESS], **facts[name]}
        for name, entry in spread_of(predicted, least).items()
        if np.all(np.subtract(entry["high"], entry["low"]) < 2 * FIRST_GUESS)
    }


def _kernel_fit(fit: Linearised) -> Linearised:
    """The fit without the runs that wait for their host, which no constant moves."""
    mask = ~waits_for_host(fit.table)
    return replace(
        fit,
        table=fit.table[mask].reset_index(drop=True),
        errors=fit.errors[mask],
        slopes=fit.slopes[mask],
        kernel=fit.kernel[mask].reset_index(drop=True),
    )


def _assumed_by_family(
    fit: Linearised, values: Constants, widths: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, list[float]]]:
    """Errors if the implementation is not named, for families with several groups.

    The result has both percentiles of ln(measured / predicted) with names removed. Kernels of a
    different algorithm are left out: unfused attention, which writes scores to memory.
    """
    runs, kernel = _unnamed_runs(fit, "implementation", values), fit.kernel
    rows = errors(runs[~kernel.isin(unfused())])
    return {
        str(name): {"assumed": [round(_tail(group, share), 3) for share in TAILS]}
        for name, group in rows.groupby("family")
        if widths[str(name)]["groups"] >= _FEWEST_GROUPS
    }


def unfused() -> set[str]:
    """The attention kernels that write scores to memory."""
    return {
        name
        for name, facts in kernels().items()
        if isinstance(facts, AttentionFacts) and facts.schedule == "standard"
    }


def _tail(rows: pd.DataFrame, share: float) -> float:
    return quantile(rows["error"].to_numpy(), rows["weight"].to_numpy(), share)


def _unnamed_runs(fit: Linearised, column: str, values: Constants) -> pd.DataFrame:
    """The runs predicted with the names of a column removed; the names are restored in the
    result."""
    predictions = predict_table(unnamed(fit.table, column), constants=values)
    return predictions.assign(**{column: fit.table[column]})


def _device_factors(
    fit: Linearised, widths: Mapping[str, Mapping[str, Any]]
) -> dict[str, list[float]]:
    """Factors for devices that are not in the fit, by level of knowledge."""
    architecture = labels(fit.table, "architecture")
    kind = [families(fit.table), architecture]
    siblings = fit.table.groupby(kind)["device"].transform("nunique") > 1
    slugs = {str(name) for name in fit.table["device"]}
    measured = fit.table["device"].isin([name for name in slugs if is_calibrated(load(name))])
    sibling = left_out(fit, "device")[siblings]
    calibrated = left_out(fit, "architecture")[measured]
    sheets = left_out(fit, "architecture", device=sheet)
    met_groups = [g for level in ("calibrated", "generation") for g in met(device=level)]
    levels = {
        "sibling": (sibling, met(device="sibling")),
        "calibrated": (calibrated, met_groups),
        "generation": (sheets, met_groups),
        "none": (sheets, met_groups),
    }
    return {
        level: wider(Missed(widths).add(runs).factors(), Missed(widths).add_met(groups).factors())
        for level, (runs, groups) in levels.items()
    }


@cache
def sheet(name: str) -> Device:
    """A device with its datasheet values alone, without measured rates."""
    return datasheet(load(name))


def _factors(
    fit: Linearised, column: str, values: Constants, widths: Mapping[str, Mapping[str, Any]]
) -> list[float]:
    """Factors for names that are not known."""
    return Missed(widths).add(_unnamed_runs(fit, column, values)).factors()


def text(table: Mapping[str, Any]) -> str:
    """The text of the file of ranges."""
    import yaml

    body = yaml.safe_dump(dict(table), sort_keys=False, default_flow_style=None, width=100)
    return "\n".join([*_HEAD, body])


_HEAD = (
    "# 80 % ranges. `families`: 10th and 90th percentile of ln(measured / predicted), by predicted",
    "# time, where everything is known; and what was fitted. `factors`: by how much the lower and",
    "# the upper side grow where something is not. Written by the fit, in fitting/ranges.py; read",
    "# by knowledge.py and spread.py beside it.",
)
