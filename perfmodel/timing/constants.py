"""Constants of the time model: one file, each with meaning, unit, bounds and source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfmodel import yamltable
from perfmodel.errors import PerfmodelError
from perfmodel.timing.runs import Run, run_of, table

VERSION = 1


@dataclass(frozen=True)
class Constant:
    """One constant of the time model, and where it comes from."""

    name: str
    """Its name in `constants.yaml`."""
    value: float
    """Its value."""
    unit: str
    """Its unit; empty for a share."""
    low: float
    """Lower physical bound."""
    high: float
    """Upper physical bound."""
    meaning: str
    """What it measures."""
    source: str
    """Where it comes from."""
    fitted: bool
    """Whether its value comes from a fit to measured runs."""
    prior: float
    """The source's value: where a fit starts, and the centre of its prior."""
    interval: tuple[float, float] | None = None
    """95 % interval of a fitted constant; None for others."""
    identified: bool = True
    """Whether the interval is narrow enough to say that the data determine the constant."""


class Constants(dict[str, float]):
    """Values by name, the terms that are switched off, and how runs are timed.

    `with_values` returns a changed copy (for fitting). `without` returns one with terms left out
    (for ablation, see `perfmodel.timing.ablation`). `with_runs` returns one with other harnesses.
    """

    off: frozenset[str] = frozenset()
    """Terms that are left out."""
    changed_runs: Mapping[str, Run] | None = None
    """Harnesses by name; None: those of `runs.yaml`."""

    def __missing__(self, name: str) -> float:
        """Raises `PerfmodelError`: a file of an earlier release may lack what this one reads."""
        raise PerfmodelError(f"no constant named {name!r}; it must be in constants.yaml")

    @property
    def runs(self) -> Mapping[str, Run]:
        """Harnesses by name."""
        return table().runs if self.changed_runs is None else self.changed_runs

    def run(self, harness: str) -> Run:
        """The `Run` of a harness. Raises `ProblemError`, naming the harnesses, for an unknown
        one."""
        return run_of(self.runs, harness)

    def without(self, *terms: str) -> Constants:
        """A copy with some terms switched off."""
        copy = self.with_values({})
        copy.off = self.off | frozenset(terms)
        return copy

    def with_runs(self, runs: Mapping[str, Run]) -> Constants:
        """A copy with other harnesses."""
        copy = self.with_values({})
        copy.changed_runs = runs
        return copy

    def with_values(self, changes: Mapping[str, float]) -> Constants:
        """A copy with some values changed; raises `PerfmodelError` for an unknown name."""
        for name in changes:
            if name not in self:
                self.__missing__(name)
        copy = Constants({**self, **changes})
        copy.off, copy.changed_runs = self.off, self.changed_runs
        return copy


def read(path: Path) -> tuple[Constant, ...]:
    """Constants of a file, checked. Raises `PerfmodelError` in one line with the fault."""
    try:
        document = yamltable.read(path)
    except FileNotFoundError:
        raise PerfmodelError(f"no constants file {path}; reinstall perfmodel or name one") from None
    except (OSError, ValueError) as error:
        line = " ".join(str(error).split())
        raise PerfmodelError(f"{path}: cannot be read as constants: {line}") from None
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise PerfmodelError(f"{path}: constants of another version; this code reads {VERSION}")
    entries = document.get("constants")
    if not isinstance(entries, dict):
        raise PerfmodelError(f"{path}: no mapping called constants; see the shipped constants.yaml")
    return tuple(_constant(path, name, entry) for name, entry in entries.items())


_KEYS = frozenset(item.name for item in fields(Constant)) - {"name"}


def _constant(path: Path, name: str, entry: Mapping[str, Any]) -> Constant:
    try:
        constant = Constant(
            name=name,
            value=float(entry["value"]),
            unit=str(entry["unit"]),
            low=float(entry["low"]),
            high=float(entry["high"]),
            meaning=str(entry["meaning"]),
            source=str(entry["source"]),
            fitted=bool(entry["fitted"]),
            prior=float(entry.get("prior", entry["value"])),
            interval=_interval(entry.get("interval")),
            identified=bool(entry.get("identified", True)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise PerfmodelError(f"{path}: constant {name}: {error!r} is missing or wrong") from None
    for key in entry:
        # An unquoted comma in a text of YAML starts another key.
        if key not in _KEYS:
            raise PerfmodelError(
                f"{path}: constant {name} has no {key!r}; put a text with a comma in quotes"
            )
    if not constant.low <= constant.value <= constant.high:
        raise PerfmodelError(
            f"{path}: constant {name} = {constant.value:g} lies outside its physical bounds "
            f"[{constant.low:g}, {constant.high:g}]"
        )
    if not constant.low <= constant.prior <= constant.high:
        raise PerfmodelError(
            f"{path}: constant {name}: its prior {constant.prior:g} lies outside its physical "
            f"bounds [{constant.low:g}, {constant.high:g}]"
        )
    return constant


def _interval(ends: Any) -> tuple[float, float] | None:
    if ends is None:
        return None
    low, high = ends
    return float(low), float(high)


@lru_cache(maxsize=1)
def shipped() -> tuple[Constant, ...]:
    """The constants that come with the package."""
    return read(Path(__file__).with_name("constants.yaml"))


@lru_cache(maxsize=1)
def default() -> Constants:
    """Values of the shipped constants."""
    return Constants({constant.name: constant.value for constant in shipped()})
