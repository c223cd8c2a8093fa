"""A file of corrections: what was learned, from which runs, and how good it is on runs left out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from perfmodel import yamltable
from perfmodel.entries import Misfit, made
from perfmodel.errors import PerfmodelError
from perfmodel.frozen import dataclass
from perfmodel.learned.regression import Fitted, Scale, distances, fitted

_PIECE = 4096  # problems that are corrected together


@dataclass(frozen=True)
class Point:
    """A run that was learned from."""

    numbers: Mapping[str, float]
    """Sizes, operations, bytes and modelled seconds, by name."""
    words: tuple[str, ...]
    """What else describes it: types, kernel, device, harness."""
    ratio: float
    """Measured time over start + factor × model."""


@dataclass(frozen=True)
class Group:
    """A correction of one family of operators by one framework on one architecture."""

    framework: str
    """Beginning of the names of its implementations: vllm, torch, triton."""
    family: str
    """The operator, with phase and direction: attention-decode-fwd."""
    architecture: str
    """Architecture of its devices."""
    kernels: tuple[str, ...]
    """Kernels that its runs were modelled as."""
    start_us: float
    """Microseconds that every call takes beyond the model."""
    factor: float
    """Measured over modelled time of long calls."""
    rows: int
    """Number of runs that it was learned from."""
    before: float
    """Median of |ln(measured / model)| of its runs."""
    after: float
    """The same, each run corrected by what all others teach."""
    multiple: float
    """Half the width of the 80 % range in standard deviations (conformal: the 0.8 quantile of left
    out residuals over their deviations)."""
    points: tuple[Point, ...]
    """The runs that others are near to, at most 200."""

    @cached_property
    def scale(self) -> Scale:
        """How coordinates are standardised."""
        names = dict.fromkeys(name for point in self.points for name in point.numbers)
        return Scale.of(
            {
                name: np.array([point.numbers.get(name, 1.0) for point in self.points])
                for name in names
            }
        )

    @cached_property
    def words(self) -> list[frozenset[str]]:
        """The words of each point."""
        return [frozenset(point.words) for point in self.points]

    @cached_property
    def coordinates(self) -> np.ndarray:
        """The coordinates of the points."""
        columns = {
            name: np.array([point.numbers.get(name, 1.0) for point in self.points])
            for name in self.scale.width
        }
        return self.scale.coordinates(columns, len(self.points))

    @cached_property
    def process(self) -> Fitted:
        """The process of the points' residuals."""
        gaps = distances(self.coordinates, self.words, self.coordinates, self.words)
        return fitted(gaps, np.log([point.ratio for point in self.points]))

    def applies(self, framework: str, family: str, architecture: str, kernel: str) -> bool:
        """Whether it was learned from such runs; no framework: of that kernel."""
        same = (self.family, self.architecture) == (family, architecture)
        return same and kernel in self.kernels and framework in ("", self.framework)

    def corrected(
        self, seconds: np.ndarray, numbers: Mapping[str, Any], words: frozenset[str]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Time and 80 % range of n problems that all have these words, in seconds."""
        base = self.start_us * 1e-6 + self.factor * seconds
        coordinates = self.scale.coordinates(numbers, len(seconds))
        mean, deviation = np.empty(len(seconds)), np.empty(len(seconds))
        for start in range(0, len(seconds), _PIECE):
            part = slice(start, start + _PIECE)
            query = coordinates[part]
            gaps = distances(query, [words], self.coordinates, self.words)
            mean[part], deviation[part] = self.process.at(gaps)
        middle, half = base * np.exp(mean), np.exp(self.multiple * deviation)
        return middle, middle / half, middle * half

    @property
    def remark(self) -> str:
        """One sentence for the assumptions of a prediction."""
        change = f"left out {self.before:.0%} → {self.after:.0%}"
        return f"corrected by {self.rows} runs of {self.framework} on {self.architecture}, {change}"


@dataclass(frozen=True)
class Learned:
    """All corrections of a file."""

    learned_from: str
    """The tables, and when."""
    version: str
    """The version of perfmodel whose model is corrected."""
    groups: tuple[Group, ...]
    """The corrections."""

    def group(self, framework: str, family: str, architecture: str, kernel: str) -> Group | None:
        """The correction for such a call; None where none was learned."""
        matches = (each for each in self.groups
                   if each.applies(framework, family, architecture, kernel))  # fmt: skip
        return next(matches, None)


def framework_of(implementation: str | None) -> str:
    """The framework in an implementation's name: `vllm` of vllm-0.24.0:flash_attn; "" of None."""
    return re.split(r"[-:./(\d]", (implementation or "").lower())[0]


def family_of(problem: Any) -> str:
    """The family of a problem: its operator, with phase and direction where it has them."""
    parts = (problem.operator, getattr(problem, "phase", ""), getattr(problem, "direction", ""))
    return "-".join(part for part in parts if part)


def numbers_of(problem: Any, seconds: Any, hbm_bytes: Any) -> dict[str, Any]:
    """What the distance of two problems depends on, as numbers or arrays."""
    sizes = {name: np.asarray(each, dtype=float) for name, each in problem.sizes().items()}
    return {
        **sizes,
        "flops": np.asarray(problem.flops(), dtype=float),
        "hbm_bytes": np.asarray(hbm_bytes, dtype=float),
        "model_us": np.asarray(seconds, dtype=float) * 1e6,
    }


def words_of(problem: Any, *more: str) -> frozenset[str]:
    """What else describes a call: the texts and flags of its problem, and `more`."""
    texts = [f"{name}={each}" for name, each in problem.said().items()
             if isinstance(each, str | bool)]  # fmt: skip
    return frozenset((*texts, *(word for word in more if word)))


def load(path: str | Path) -> Learned:
    """The corrections in a file. Raises `PerfmodelError`, in one line, for one that is none."""
    try:
        entry = yamltable.read(Path(path))
    except (OSError, ValueError) as error:
        line = " ".join(str(error).split())
        raise PerfmodelError(
            f"{path}: cannot be read ({line}); make it with perfmodel learn"
        ) from None
    try:
        learned = made(Learned, entry)
    except Misfit as misfit:
        raise PerfmodelError(f"{path}: {misfit}; make it with perfmodel learn") from None
    assert isinstance(learned, Learned)
    return learned


def frozen(words: Sequence[frozenset[str]]) -> list[tuple[str, ...]]:
    """Words in the order in which a file has them."""
    return [tuple(sorted(each)) for each in words]
