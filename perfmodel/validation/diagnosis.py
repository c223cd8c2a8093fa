"""Explains residuals in words: groups of rows with the same kind of error, and the likely cause.

Each statement has its evidence: the number of rows, the factor, and which rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.validation.judging import OPERATORS, scored
from perfmodel.validation.units import wrong_units

if TYPE_CHECKING:
    import pandas as pd

# A group is reported if it has this many rows and its median error is this large.
_FEWEST = 8
_OFF = 0.15
# A spread of |ln| up to this is taken as a constant factor, not as scatter.
_TIGHT = 0.15
_SMALL_US = 20.0
_SUSTAINED_US = 1000.0


@dataclass(frozen=True)
class Statement:
    """A statement about a group of rows."""

    text: str
    """The sentence."""
    factor: float
    """Median of predicted over measured."""
    rows: tuple[int, ...]
    """The group's rows."""

    def line(self) -> str:
        """The statement followed by its evidence."""
        rows = ", ".join(map(str, self.rows[:5])) + (", ..." if len(self.rows) > 5 else "")
        return f"{self.text} (predicted/measured {self.factor:.2f}, {len(self.rows)} rows: {rows})"


def explain(predicted: pd.DataFrame) -> list[Statement]:
    """Statements about a table from `predict_table`, the strongest first."""
    rows = scored(predicted)
    rows = rows.assign(_error=(rows["predicted_us"] / rows["measured_us"]).map(np.log))
    units = [Statement(o.text, o.factor, o.rows) for o in wrong_units(predicted, OPERATORS)]
    rows = rows.drop(index=[row for item in units for row in item.rows])
    statements = [*units, *_floors(rows), *_clocks(rows), *_constant(rows), *_devices(rows)]
    statements += _one_sided(
        rows.drop(index=[row for item in statements for row in item.rows], errors="ignore")
    )
    return sorted(statements, key=lambda item: -abs(np.log(item.factor)) * np.sqrt(len(item.rows)))


def _groups(
    rows: pd.DataFrame, columns: list[str], fewest: int = _FEWEST
) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    for key, group in rows.groupby(columns, dropna=False, sort=True, observed=True):
        if len(group) >= fewest:
            yield (key if isinstance(key, tuple) else (key,)), group


def _statement(text: str, group: pd.DataFrame) -> Statement:
    factor = float(np.exp(group["_error"].median()))
    return Statement(text, factor, tuple(int(i) for i in group.index))


def _floors(rows: pd.DataFrame) -> Iterator[Statement]:
    """Small cases with a common error: the harness's launch floor."""
    small = rows[rows["measured_us"] < _SMALL_US]
    for (harness, op, implementation), group in _groups(small, ["harness", "op", "implementation"]):
        middle = float(group["_error"].median())
        if abs(middle) > _OFF:
            way = "too slow" if middle > 0 else "too fast"
            level = "lower" if middle > 0 else "higher"
            yield _statement(
                f"{op} of {implementation} is {way} below {_SMALL_US:.0f} µs: the launch floor of "
                f"{harness} looks {level} there",
                group,
            )


def _clocks(rows: pd.DataFrame) -> Iterator[Statement]:
    """Long cases predicted too fast while shorter ones are right: the power limit."""
    columns = ["device", "op", "implementation"]
    for (device, op, implementation), group in _groups(rows, columns):
        long = group[group["measured_us"] > _SUSTAINED_US]
        short = group[group["measured_us"].between(_SMALL_US, _SUSTAINED_US)]
        if len(long) < _FEWEST or len(short) < _FEWEST:
            continue
        long_error, short_error = float(long["_error"].median()), float(short["_error"].median())
        if long_error < -_OFF and long_error < short_error - _OFF:
            yield _statement(
                f"{op} of {implementation} on {device} is too fast above 1 ms only: its clock "
                "drops under sustained load more than the power term says",
                long,
            )


def _constant(rows: pd.DataFrame) -> Iterator[Statement]:
    """One implementation with a constant factor: another instruction path or a fallback."""
    large = rows[rows["measured_us"] >= _SMALL_US]
    for (op, implementation, dtype), group in _groups(large, ["op", "implementation", "dtype"]):
        low, middle, high = group["_error"].quantile([0.25, 0.5, 0.75])
        if abs(middle) > _OFF and high - low < _TIGHT:
            yield _statement(
                f"{op} of {implementation} in {dtype} is off by a constant factor: {_path(group)}",
                group,
            )


def _path(group: pd.DataFrame) -> str:
    """The likely cause of a constant factor: 2 or 4 with the matrix unit as limiter means another
    type."""
    middle = float(group["_error"].median())
    if group["limiter"].mode().iloc[0] == "matrix":
        for times in (2, 4):
            if abs(abs(middle) - np.log(times)) < _TIGHT:
                way = "faster" if middle > 0 else "slower"
                return f"its matrix products look like those of a type {times} times {way}"
    return "another instruction path, pass or fallback than its class says"


def _devices(rows: pd.DataFrame) -> Iterator[Statement]:
    """One device with errors across operators while others are right: its bandwidth or its
    clock."""
    overall = rows.groupby("device", observed=True)["_error"].median()
    slugs = set()
    for (limiter,), group in _groups(rows, ["limiter"]):
        if limiter not in ("hbm", "llc", "l2", "matrix", "vector"):
            continue
        medians = group.groupby("device", observed=True)["_error"].median()
        for (device,), runs in _groups(group, ["device"]):
            # On another device the same runs may have another limiter.
            peers = medians if len(medians) > 1 else overall
            if _is_outlier(runs, device, peers):
                slugs.add(device)
                cause = "bandwidth" if limiter in ("hbm", "llc", "l2") else "clock or peak"
                yield _statement(
                    f"{device} alone is off where {limiter} rules: its {cause} in the spec", runs
                )
    for (device,), runs in _groups(rows, ["device"]):
        if device not in slugs and _is_outlier(runs, device, overall):
            yield _statement(f"{device} alone is off whatever rules: its clock in the spec", runs)


def _one_sided(rows: pd.DataFrame) -> Iterator[Statement]:
    """Groups of any size, of three rows or more, whose every row is off to the same side."""
    for (device, op), group in _groups(rows, ["device", "op"], fewest=3):
        errors = group["_error"]
        if (errors > _OFF).all() or (errors < -_OFF).all():
            way = "slow" if errors.iloc[0] > 0 else "fast"
            low, high = np.exp(errors.abs().min()), np.exp(errors.abs().max())
            yield _statement(
                f"every row of {op} on {device} is too {way}, {low:.1f} to {high:.1f} times",
                group,
            )


def _is_outlier(rows: pd.DataFrame, device: str, medians: pd.Series[float]) -> bool:
    """Whether a device's rows have errors while the medians of the other devices are right."""
    peers = medians.drop(device)
    off = abs(float(rows["_error"].median())) > _OFF
    return bool(off and len(peers) and peers.abs().median() < _OFF / 2)
