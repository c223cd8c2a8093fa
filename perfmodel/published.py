"""The published run that is nearest to what is asked for, and how far it is.

Both are points: words that must be equal (family of the network, generation of the device, kind of
load) and sizes above 0 (parameters, devices, tokens). With a and b the sizes of both, they are

    d = √(Σ ln(a / b)²)

apart, over the sizes that the run states. A run farther than `REACH` is not near.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from operator import ne
from typing import Any

from perfmodel.columns import Result
from perfmodel.quantities import header_of, kind_of, shown

REACH = math.log(4.0)
"""Largest distance that is near, a choice: a factor of 4 in one size, or of 2.7 in each of two."""
_SAME = 0.05
"""Sizes that differ by less, in ln, are not named in a sentence."""


@dataclass(frozen=True)
class Point:
    """A case, as far as distances go."""

    words: tuple[str, ...]
    """What near cases have in common."""
    sizes: Mapping[str, float]
    """Sizes above 0 by name; a run leaves out those that its source does not state."""
    kinds: tuple[str, ...] = ()
    """What decides between runs at equal distance: most of these equal."""

    def factors(self, run: Point) -> dict[str, float]:
        """A run's sizes over those of this case."""
        return {name: size / self.sizes[name] for name, size in run.sizes.items()}

    def distance(self, run: Point) -> float:
        """How far a run is; infinite where words differ."""
        if self.words != run.words:
            return math.inf
        return math.hypot(*(math.log(size / self.sizes[name]) for name, size in run.sizes.items()))


@dataclass(frozen=True)
class Run:
    """One published run with its metrics."""

    name: str
    """Network, devices, program and sizes, in words."""
    source: str
    """Title of the document."""
    url: str
    """Its address."""
    point: Point
    """Where it is."""
    values: Mapping[str, tuple[float, int]]
    """Its published values by metric, each with the index of its row."""


@dataclass(frozen=True)
class Nearest(Result):
    """The nearest published run."""

    run: str
    """Network, devices, program and sizes, in words."""
    source: str
    """Title of the document."""
    url: str
    """Its address."""
    distance: float
    """√(Σ ln(a / b)²) over its sizes."""
    factors: Mapping[str, float]
    """Its sizes over those of what is asked for."""
    measured: Mapping[str, float]
    """Its published values by metric."""
    predicted: Mapping[str, float]
    """What is predicted for it, by metric."""

    @property
    def sentence(self) -> str:
        """One line: the run, its values beside those predicted, and how far it is."""
        values = [
            f"{header_of(name)} measured {shown(value, kind_of(name))}, predicted there "
            f"{shown(self.predicted[name], kind_of(name))}"
            for name, value in self.measured.items()
        ]
        far = sorted(self.factors.items(), key=lambda item: -abs(math.log(item[1])))
        sizes = [f"{name.replace('_', ' ')} {factor:.2g}x"
                 for name, factor in far if abs(math.log(factor)) > _SAME]  # fmt: skip
        way = ", ".join([f"distance {self.distance:.2f}", *sizes])
        return f"nearest published run: {self.run} ({self.source}): {'; '.join(values)}; {way}"


def rows(package: str, name: str) -> tuple[dict[str, Any], ...]:
    """The rows of a shipped table: texts, and True or False; empty cells are left out."""
    text = files(package).joinpath(name).read_text(encoding="utf-8")
    truths = {"True": True, "False": False}
    return tuple(
        {key: truths.get(cell, cell) for key, cell in row.items() if cell}
        for row in csv.DictReader(text.splitlines())
    )


def together(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Runs of one name and source as one, with the metrics of all."""
    by_name: dict[tuple[str, str], Run] = {}
    for run in runs:
        key = run.source, run.name
        same = by_name.get(key)
        by_name[key] = replace(run, values={**same.values, **run.values}) if same else run
    return tuple(by_name.values())


def nearest(point: Point, runs: Iterable[Run], predict: Callable[[int], float]) -> Nearest | None:
    """The nearest run within `REACH`, None without one; `predict` gives the metric of a row."""

    def order(run: Run) -> tuple[int, str, str]:
        return sum(map(ne, point.kinds, run.point.kinds)), run.name, run.source

    distances = [(round(point.distance(run.point), 9), run) for run in runs]
    least = min((distance for distance, _ in distances), default=math.inf)
    if least > REACH:
        return None
    run = min((run for distance, run in distances if distance == least), key=order)
    values = dict(sorted(run.values.items()))
    return Nearest(
        run.name,
        run.source,
        run.url,
        least,
        point.factors(run.point),
        {name: value for name, (value, _) in values.items()},
        {name: predict(row) for name, (_, row) in values.items()},
    )


def sentences(near: Iterable[Nearest | None]) -> list[str]:
    """The sentence of the nearest of several runs; none where there is none."""
    runs = [run for run in near if run is not None]
    return [min(runs, key=lambda run: run.distance).sentence] if runs else []
