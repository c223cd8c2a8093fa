"""Measured runs of any kind with their predictions: a dot for each run; errors against the
noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfmodel.columns import Column
from perfmodel.quantities import kind_of
from perfmodel.render.html.columns import columns, telling
from perfmodel.render.html.kinds.registry import Document, kind
from perfmodel.render.html.sections import Dots, Rows, Section

Row = Mapping[str, Any]

RUNS = "runs"
"""The kind of measured runs of single operators."""

_FILTERS = (
    *("metric", "device", "op", "engine", "stack", "network", "library", "collective", "load"),
    *("implementation", "direction", "system", "ranks", "verdict", "source"),
)
"""Columns that runs can be filtered by."""
_NAMED = ("op", "network", "collective", "engine", "implementation", "device")
_FIRST = ("device", "op", "engine", "network", "stack", "collective", "ranks", "bytes", "metric")
_LEFT_OUT = r"^(notes|row|floor_us|predicted_\w+_bytes)$"
_LAYERS = (
    r"^(hidden|layers|heads|kv_heads|head_dim|inner|vocabulary|gated|tied|\w*experts\w*"
    r"|expert_inner|dense_layers|mla_\w+)$"
)
"""Columns of a network's layers, which are omitted since its name implies them."""


@dataclass(frozen=True)
class _Table:
    """Column names of a kind of measured runs."""

    what: str
    """Its rows, in words."""
    measured: str
    """Column of the measured value."""
    predicted: str
    """Column of the predicted value."""
    low: str
    """Column of the lower end of the predicted range."""
    high: str
    """Column of the upper end of the predicted range."""
    left_out: str = _LEFT_OUT
    """Columns that the page omits."""
    assumed: str = "assumed"
    """Column of the prediction's assumptions."""


@kind(RUNS, keys=("measured_us", "predicted_us", "device"), late=True)
def operators(documents: Sequence[Document]) -> Iterator[Section]:
    """Runs of operators."""
    table = _Table("measured runs", "measured_us", "predicted_us", "low_us", "high_us")
    yield _section(documents, table, "scatter", "Predicted against measured")


@kind("training runs", keys=("metric", "value", "predicted", "global_batch"), late=True)
def training(documents: Sequence[Document]) -> Iterator[Section]:
    """Training steps."""
    yield _network_runs(documents, "training")


@kind("serving runs", keys=("metric", "value", "predicted", "engine", "load"), late=True)
def serving(documents: Sequence[Document]) -> Iterator[Section]:
    """Served networks."""
    yield _network_runs(documents, "serving")


def _network_runs(documents: Sequence[Document], what: str) -> Section:
    """Runs of whole networks, whose rows name their metric."""
    pattern = f"{_LEFT_OUT}|{_LAYERS}|^assumed$"
    table = _Table(f"{what} runs", "value", "predicted", "low", "high", pattern, "assumed_of_plan")
    return _section(documents, table, f"scatter-{what}", f"Predicted against measured: {what}")


@kind("collective runs", keys=("latency_us", "predicted", "collective", "ranks"), late=True)
def collectives(documents: Sequence[Document]) -> Iterator[Section]:
    """Collectives."""
    table = _Table("collective runs", "latency_us", "predicted", "low", "high")
    yield _section(
        documents, table, "scatter-collective", "Predicted against measured: collectives"
    )


def _section(documents: Sequence[Document], table: _Table, name: str, title: str) -> Section:
    rows = [_run(row, table) for document in documents for row in document.rows]
    units = {row["unit"] for row in rows}
    unit = units.pop() if len(units) == 1 else "number"
    keys = {"measured", "predicted", "low", "high", "ratio", "unit"}
    keys |= {table.measured, table.predicted, table.low, table.high}
    others = [c for c in columns(rows, _FIRST, table.left_out) if c.name not in keys]
    values = [
        Column(key, key, unit, unit != "text") for key in ("measured", "predicted", "low", "high")
    ]
    values.insert(2, Column("predicted / measured", "ratio"))
    first = [c for c in others if c.name in _FIRST]
    names = {c.name for c in others}
    filters = telling(rows, _FILTERS)
    dots = Dots(
        title,
        ["measured"],
        ["predicted"],
        [key for key in _NAMED if key in names],
        filters=filters,
        by=filters,
        ranges={"predicted": ("low", "high")},
        compared=True,
        unit="unit" if units else "",
        apart="metric" if units else "",
    )
    return Section(
        title,
        rows,
        [
            *first,
            *values,
            *(c for c in others if c not in first),
            Column(key="unit", number=False),
        ],
        [dots, Rows("Runs")],
        [*_sentences(rows, table.what)],
        [str(row[table.assumed]) for row in rows if row.get(table.assumed)],
        id=name,
    )


def _run(row: Row, table: _Table) -> dict[str, Any]:
    """A run with the members that all kinds of tables share, under common names."""
    metric = str(row.get("metric") or table.measured)
    run = {
        **row,
        "measured": row.get(table.measured),
        "predicted": row.get(table.predicted),
        "low": row.get(table.low),
        "high": row.get(table.high),
        "unit": kind_of(metric),
    }
    if run["measured"] and run["predicted"]:
        run["ratio"] = run["predicted"] / run["measured"]
    return run


def _sentences(rows: Sequence[Row], what: str) -> Iterator[str]:
    noun = what.removesuffix("s") if len(rows) == 1 else what
    scored = [row for row in rows if row.get("ratio")]
    if not scored:
        yield f"{len(rows):,} {noun}, none of which could be predicted."
        return
    ratios = np.array([row["ratio"] for row in scored])
    inside = [
        row["low"] <= row["measured"] <= row["high"]
        for row in scored
        if row.get("low") is not None and row.get("high") is not None
    ]
    coverage = f", {sum(inside) / len(inside):.0%} inside the predicted range" if inside else ""
    missing = f"; {len(rows) - len(scored)} could not be predicted" * (len(scored) < len(rows))
    yield (
        f"{len(rows):,} {noun}: predictions are off by "
        f"{float(np.median(np.abs(ratios - 1))):.1%} in the median{coverage}{missing}."
    )
    noisy = [row for row in scored if row.get("noise_ln")]
    if noisy:
        noise = float(np.median([row["noise_ln"] for row in noisy]))
        error = float(np.median([abs(np.log(row["ratio"])) for row in noisy]))
        within = sum(abs(np.log(row["ratio"])) <= row["noise_ln"] for row in noisy)
        yield (
            f"Repeated measurements are known of {len(noisy):,} of the {noun}: they scatter by "
            f"{noise:.1%}, and predictions are off by {error:.1%}; {within:,} of {len(noisy):,} "
            "errors are within the noise."
        )
