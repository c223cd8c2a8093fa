"""A file of corrections: what was learned, from which runs, and how good it is on runs left out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from perfmodel import yamltable
from perfmodel.algorithms import Problem
from perfmodel.columns import Column, Result
from perfmodel.count import compulsory_bytes
from perfmodel.entries import Misfit, made
from perfmodel.errors import PerfmodelError
from perfmodel.frozen import dataclass
from perfmodel.hardware import Device
from perfmodel.learned.regression import Process, Scale, distances
from perfmodel.timing.architectures import architecture_of

SIBLING = 1.15
"""Factor on the range of a device that is not among those of the runs."""
IMPLEMENTATION = "implementation="
"""Beginning of the word for the name of what ran."""
_PIECE = 4096  # problems that are corrected together


@dataclass(frozen=True)
class Group(Result):
    """A correction of one family of operators by one framework on one architecture."""

    framework: Annotated[str, Column("framework")]
    """Beginning of the names of its implementations: vllm, torch, triton."""
    family: Annotated[str, Column("family")]
    """The operator, with phase and direction: attention-decode-fwd."""
    architecture: Annotated[str, Column("architecture")]
    """Architecture of its devices."""
    kernels: tuple[str, ...]
    """Kernels that its runs were modelled as."""
    devices: tuple[str, ...]
    """Devices of its runs."""
    start_us: Annotated[float, Column("start us", show="{:.2f}", place=1)]
    """Microseconds that every call takes beyond the model."""
    factor: Annotated[float, Column("factor", show="{:.3f}", place=1)]
    """Measured over modelled time of long calls."""
    rows: Annotated[int, Column("runs")]
    """Number of runs that it was learned from."""
    before: Annotated[float, Column("model off", show="{:.1%}", place=2)]
    """Median of |ln(measured / model)| of its runs."""
    after: Annotated[float, Column("left out", show="{:.1%}", place=2)]
    """The same, each run corrected by what all others teach."""
    signal: float
    """How far residuals are from zero, in ln (`regression`)."""
    multiple: float
    """Half the width of the 80 % range in standard deviations (conformal: the 0.8 quantile of left
    out residuals over their deviations)."""
    numbers: Mapping[str, tuple[float, ...]]
    """Sizes, operations and bytes of the runs that others are near to, at most 200, by name."""
    words: tuple[tuple[str, ...], ...]
    """What else describes each: types, kernel, harness."""
    ratios: tuple[float, ...]
    """Measured time of each over start + factor × model; of outliers nearer to the others'."""
    shared: tuple[str, ...] = ()
    """Words that a call must have; those of the runs are without them."""

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        """The runs' numbers as arrays."""
        return {name: np.asarray(each, dtype=float) for name, each in self.numbers.items()}

    @cached_property
    def scale(self) -> Scale:
        """How coordinates are standardised."""
        return Scale.of(self.columns)

    @cached_property
    def vocabulary(self) -> list[frozenset[str]]:
        """The words of each run."""
        return [frozenset(words) for words in self.words]

    @cached_property
    def coordinates(self) -> np.ndarray:
        """The coordinates of the runs."""
        return self.scale.coordinates(self.columns, len(self.ratios))

    @cached_property
    def process(self) -> Process:
        """The process of the runs' residuals."""
        gaps = distances(self.coordinates, self.vocabulary, self.coordinates, self.vocabulary)
        return Process.of(gaps, np.log(np.asarray(self.ratios, dtype=float)), self.signal)

    def applies(self, framework: str, kernel: str, words: frozenset[str]) -> bool:
        """Whether it was learned from such runs; no framework: of that kernel."""
        same = kernel in self.kernels and framework in ("", self.framework)
        return same and words.issuperset(self.shared)

    def corrected(
        self, seconds: np.ndarray, numbers: Mapping[str, Any], words: frozenset[str], device: str
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Time and 80 % range of n problems on a device that all have these words, in seconds."""
        base = self.start_us * 1e-6 + self.factor * seconds
        coordinates = self.scale.coordinates(numbers, len(seconds))
        mean, deviation = np.empty(len(seconds)), np.empty(len(seconds))
        own = words.difference(self.shared)
        for start in range(0, len(seconds), _PIECE):
            part = slice(start, start + _PIECE)
            gaps = distances(coordinates[part], [own], self.coordinates, self.vocabulary)
            mean[part], deviation[part] = self.process.at(gaps)
        reach = self.multiple * (1.0 if device in self.devices else SIBLING)
        middle, half = base * np.exp(mean), np.exp(reach * deviation)
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

    @cached_property
    def kinds(self) -> Mapping[tuple[str, str], list[Group]]:
        """The corrections by family and architecture."""
        kinds: dict[tuple[str, str], list[Group]] = {}
        for group in self.groups:
            kinds.setdefault((group.family, group.architecture), []).append(group)
        return kinds

    def group(
        self, framework: str, family: str, architecture: str, kernel: str, words: frozenset[str]
    ) -> Group | None:
        """The correction for such a call; None where none was learned."""
        matches = (each for each in self.kinds.get((family, architecture), ())
                   if each.applies(framework, kernel, words))  # fmt: skip
        return next(matches, None)


def framework_of(implementation: str | None) -> str:
    """The framework in an implementation's name: `vllm` of vllm-0.24.0:flash_attn; "" of None."""
    return re.split(r"[-:./(\d]", (implementation or "").lower())[0]


def family_of(problem: Any) -> str:
    """The family of a problem: its operator, with phase and direction where it has them."""
    parts = (problem.operator, getattr(problem, "phase", ""), getattr(problem, "direction", ""))
    return "-".join(part for part in parts if part)


def architecture_name(device: Device) -> str:
    """The architecture whose devices share corrections: hopper, ada; of one that is not known, its
    own name."""
    name = architecture_of(device).name
    return device.architecture if name == "other" else name


def numbers_of(problem: Problem) -> dict[str, np.ndarray]:
    """What the distance of two problems depends on, as arrays.

    They are the problem's alone, so that a correction is the same on every device: a faster device
    stays faster.
    """
    return {
        **{name: np.asarray(each, dtype=float) for name, each in problem.sizes().items()},
        "flops": np.asarray(problem.flops(), dtype=float),
        "bytes": np.asarray(compulsory_bytes(problem), dtype=float),
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
