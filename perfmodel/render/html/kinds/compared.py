"""Measured runs of any kind with their predictions: a dot a run, its errors beside the noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from perfmodel.render.html.columns import Column, columns, kind_of
from perfmodel.render.html.kinds.registry import Document, kind
from perfmodel.render.html.sections import Dots, Rows, Section

Row = Mapping[str, Any]

RUNS = "runs"
"""The kind of measured runs of one operator each."""
_MOST_VALUES = 60  # of a column that rows can be chosen by
_FILTERS = (
    *("metric", "device", "op", "engine", "stack", "network", "library", "collective", "load"),
    *("implementation", "direction", "system", "ranks", "verdict", "source"),
)
_LAST = r"^(notes|row|floor_us|predicted_\w+_bytes)$"


@kind(RUNS, keys=("measured_us", "predicted_us", "device"), late=True)
def operators(documents: Sequence[Document]) -> Iterator[Section]:
    """Runs of operators."""
    yield _section(documents, "runs", "scatter", "measured_us", "predicted_us", "_us")


@kind("training runs", keys=("metric", "value", "predicted", "global_batch"), late=True)
def training(documents: Sequence[Document]) -> Iterator[Section]:
    """Training steps."""
    yield _section(documents, "training runs", "scatter-training", "value", "predicted", "")


@kind("serving runs", keys=("metric", "value", "predicted", "engine", "load"), late=True)
def serving(documents: Sequence[Document]) -> Iterator[Section]:
    """Served networks."""
    yield _section(documents, "serving runs", "scatter-serving", "value", "predicted", "")


@kind("collective runs", keys=("latency_us", "predicted", "collective", "ranks"), late=True)
def collectives(documents: Sequence[Document]) -> Iterator[Section]:
    """Collectives."""
    yield _section(
        documents, "collective runs", "scatter-collective", "latency_us", "predicted", ""
    )


def _section(
    documents: Sequence[Document], what: str, name: str, measured: str, predicted: str, ends: str
) -> Section:
    rows = [
        _judged(row, measured, predicted, ends) for document in documents for row in document.rows
    ]
    common = _common(rows)
    shown = [
        one
        for one in columns(rows, ("device", "op", "engine", "network", "stack"), _LAST)
        if one.key not in common
        and one.key not in (measured, predicted, f"low{ends}", f"high{ends}")
    ]
    at = {one.key: one for one in shown}
    numbers = kind_of(measured) if measured.endswith("_us") else "number"
    pair = [Column(key, key, numbers) for key in ("measured", "predicted")]
    ratio = [Column("ratio", "predicted / measured", "number")]
    limits = [Column(key, key, numbers) for key in ("low", "high")]
    filters = [
        key for key in _FILTERS
        if 1 < len({str(row.get(key) or "") for row in rows}) <= _MOST_VALUES
    ]  # fmt: skip
    unit = "unit" if len({row.get("unit") for row in rows}) > 1 else ""
    dots = Dots(
        "Predicted against measured",
        ["measured"],
        ["predicted"],
        [key for key in ("op", "network", "collective", "engine", "implementation", "device")
         if key in at or key in common],
        filters=filters,
        by=filters,
        ranges={"predicted": ("low", "high")},
        compared=True,
        unit=unit,
    )  # fmt: skip
    alike = "; ".join(f"{key} {value}" for key, value in common.items() if key in _FILTERS)
    title = "Predicted against measured" + ("" if what == "runs" else f": {what}")
    kept = [
        one for one in shown if one.key not in ("ratio", "measured", "predicted", "low", "high")
    ]
    return Section(
        title,
        rows,
        [*kept[:8], *pair, *ratio, *limits, *kept[8:]],
        [dots, Rows("Runs")],
        [*_sentences(rows, what, alike)],
        id=name,
        assumptions=[
            str(row[key])
            for row in rows
            for key in ("assumed", "assumed_of_plan")
            if row.get(key) and (key != "assumed" or what in ("runs", "collective runs"))
        ],
    )


def _judged(row: Row, measured: str, predicted: str, ends: str) -> dict[str, Any]:
    found = {
        **row,
        "measured": row.get(measured),
        "predicted": row.get(predicted),
        "low": row.get(f"low{ends}"),
        "high": row.get(f"high{ends}"),
    }
    if row.get("metric"):
        found["unit"] = kind_of(str(row["metric"]))
    if found["measured"] and found["predicted"]:
        found["ratio"] = found["predicted"] / found["measured"]
    return found


def _common(rows: Sequence[Row]) -> dict[str, Any]:
    """Values that are the same in all of several rows: no column, no filter."""
    if len(rows) < 2:
        return {}
    first = rows[0]
    return {
        key: value
        for key, value in first.items()
        if isinstance(value, str) and value and all(row.get(key) == value for row in rows)
    }


def _sentences(rows: Sequence[Row], what: str, alike: str) -> Iterator[str]:
    said = what if what != "runs" else "measured runs"
    if len(rows) == 1:
        said = said.removesuffix("s")
    if alike:
        said += f" ({alike})"
    scored = [row for row in rows if row.get("ratio")]
    if not scored:
        yield f"{len(rows):,} {said}, none of which could be predicted."
        return
    ratios = np.array([row["ratio"] for row in scored])
    inside = [
        row["low"] <= row["measured"] <= row["high"]
        for row in scored
        if row.get("low") is not None and row.get("high") is not None
    ]
    covered = f", {sum(inside) / len(inside):.0%} inside the predicted range" if inside else ""
    missing = f"; {len(rows) - len(scored)} could not be predicted" * (len(scored) < len(rows))
    yield (
        f"{len(rows):,} {said}: predictions are off by "
        f"{float(np.median(np.abs(ratios - 1))):.1%} in the median{covered}{missing}."
    )
    noisy = [row for row in scored if row.get("noise_ln")]
    if noisy:
        noise = float(np.median([row["noise_ln"] for row in noisy]))
        error = float(np.median([abs(np.log(row["ratio"])) for row in noisy]))
        within = sum(abs(np.log(row["ratio"])) <= row["noise_ln"] for row in noisy)
        yield (
            f"Repeated measurements are known of {len(noisy):,} of the {said}: they scatter by "
            f"{noise:.1%} where predictions are off by {error:.1%}; {within:,} are within the noise."
        )
