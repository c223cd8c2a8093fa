"""Constants of the time model: one file, each with meaning, unit, bounds and source."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import isnan, nan
from pathlib import Path

from perfmodel.catalogue import Table
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.frozen import dataclass
from perfmodel.timing.runs import HARNESSES, Run, run_of


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
    prior: float = nan
    """The source's value: where a fit starts, and the centre of its prior; by default the
    value."""
    interval: tuple[float, float] | None = None
    """95 % interval of a fitted constant; None for others."""
    identified: bool = True
    """Whether the interval is narrow enough to say that the data determine the constant."""

    def __post_init__(self) -> None:
        if isnan(self.prior):
            object.__setattr__(self, "prior", self.value)
        for name, value in (("value", self.value), ("prior", self.prior)):
            if not self.low <= value <= self.high:
                raise ProblemError(
                    f"{name} {value:g} lies outside the physical bounds, {self.low:g} to "
                    f"{self.high:g}"
                )


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
        return HARNESSES if self.changed_runs is None else self.changed_runs

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
    """Constants of a file, checked. Raises `SpecError` in one line with the fault."""
    return tuple(Table("constant", Constant, path, "constants").values())


@lru_cache(maxsize=1)
def shipped() -> tuple[Constant, ...]:
    """The constants that come with the package."""
    return read(Path(__file__).with_name("constants.yaml"))


@lru_cache(maxsize=1)
def default() -> Constants:
    """Values of the shipped constants."""
    return Constants({constant.name: constant.value for constant in shipped()})
