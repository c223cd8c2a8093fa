"""Corrections from a table of measured runs (`perfmodel.learned`), and which runs to measure.

A group is a framework, a family and an architecture. Its start a and factor b are the most likely
ones of  measured = (a + b · model) · noise,  with a near 0 and b near 1 (Huber's loss in ln, priors
below). From ten runs on, residuals of near runs are added. A group whose runs, each predicted from
the others, come out no better than the model does is left alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.entries import written
from perfmodel.errors import ProblemError
from perfmodel.learned.groups import (
    IMPLEMENTATION,
    Group,
    Learned,
    architecture_name,
    family_of,
    framework_of,
    frozen,
    numbers_of,
    words_of,
)
from perfmodel.learned.regression import SIGNALS, Process, Scale, distances, settled
from perfmodel.replacing import replacing
from perfmodel.table.provenance import as_ran
from perfmodel.table.records import tidy
from perfmodel.validation.compare import predict_table, problems

if TYPE_CHECKING:
    import pandas as pd

MOST = 200
"""Points that a group keeps; of more runs those at cluster centres."""
LEAST = 3
"""Runs of a group from which anything is learned."""
_NEAR = 10  # runs from which residuals of near runs are added
_START_US, _FACTOR = 1.5, 0.25  # standard deviations of start, and of ln factor, before any run
_LOSS = 0.12  # of Huber's loss, in ln: beyond it a run counts less
_BETTER = 0.9  # a group is kept where its left-out error is below this share of the model's
_CLIPPED = 0.5  # largest error of a run in that comparison, in ln
_COVERED = 0.8
_SEED = 0
_TELLING = re.compile(f"(kv_)?dtype=|{IMPLEMENTATION}")
_ROUNDS = 15


@dataclass(frozen=True)
class Runs:
    """Measured and modelled runs of one group."""

    key: tuple[str, str, str]
    """Framework, family, architecture."""
    kernels: tuple[str, ...]
    """Kernels that they were modelled as."""
    measured_us: np.ndarray
    """Measured microseconds."""
    model_us: np.ndarray
    """Modelled microseconds."""
    numbers: dict[str, np.ndarray]
    """Sizes, operations and bytes by name."""
    words: list[frozenset[str]]
    """What else describes each run."""
    devices: np.ndarray
    """The device of each."""
    places: np.ndarray
    """Row of each run in the table; of equal runs, the first."""
    shared: tuple[str, ...] = ()
    """Words that all have, where they tell the group from others."""

    def __len__(self) -> int:
        return len(self.measured_us)

    @property
    def coordinates(self) -> np.ndarray:
        """Standardised coordinates of the runs."""
        return Scale.of(self.numbers).coordinates(self.numbers, len(self))

    def chosen(self, places: Sequence[int] | np.ndarray) -> Runs:
        """Some of the runs."""
        index = np.asarray(places, dtype=int)
        numbers = {name: each[index] for name, each in self.numbers.items()}
        words = [self.words[i] for i in index]
        return Runs(
            self.key, self.kernels, self.measured_us[index], self.model_us[index], numbers, words,
            self.devices[index], self.places[index], self.shared,
        )  # fmt: skip


def learn(table: pd.DataFrame, source: str) -> Learned:
    """Corrections from a table of measured runs, all groups that get better.

    `source` says where the runs are from. Raises `ProblemError` where no group has `LEAST` runs.
    """
    from perfmodel import __version__

    usable = [runs for runs in groups(table) if len(runs) >= LEAST]
    if not usable:
        raise ProblemError(
            f"no framework has {LEAST} usable runs of one operator on one architecture; "
            "measure more, or see perfmodel compare for why rows are not used"
        )
    learned = [taught(runs) for runs in usable]
    return Learned(source, __version__, tuple(each for each in learned if each is not None))


def groups(table: pd.DataFrame, *, unnamed: bool = False, apart: bool = False) -> list[Runs]:
    """The unflagged, predicted runs of a table by framework, family and architecture; `apart`: by
    types, implementation, kernel and harness, too.

    Equal runs are one, with the median of their times. Runs of several problems (a backward pass
    after a forward one) are left out, and those without an implementation unless `unnamed`.
    """
    return grouped(predict_table(as_ran(tidy(table)), learned=False), unnamed=unnamed, apart=apart)


def grouped(timed: pd.DataFrame, *, unnamed: bool = False, apart: bool = False) -> list[Runs]:
    """The groups of a table that the model has predicted."""
    from perfmodel.hardware import load

    usable = timed["predicted_us"].gt(0) & timed["measured_us"].gt(0) & timed["flag"].eq("")
    scored, places = timed[usable], np.flatnonzero(usable)
    parts: dict[tuple[Any, ...], dict[Any, list[tuple[Any, ...]]]] = {}
    for index, problem in problems(scored):
        rows = scored.iloc[index]
        first, n = rows.iloc[0], len(rows)
        slug, name, harness = str(first["device"]), str(first["implementation"]), first["harness"]
        key = (framework_of(name), family_of(problem), architecture_name(load(slug)))
        columns = {name: np.broadcast_to(x, n).tolist() for name, x in numbers_of(problem).items()}
        numbers = zip(*columns.values(), strict=True)
        texts = words_of(problem, harness or "kernel", *str(first["includes"]).split("+"),
                         f"{IMPLEMENTATION}{name}")  # fmt: skip
        telling = {word for word in texts if word == (harness or "kernel") or _TELLING.match(word)}
        cells = (rows["measured_us"], rows["predicted_us"], numbers, rows["kernel"], places[index])
        for measured, model, values, kernel, place in zip(*cells, strict=True):
            shared = tuple(sorted({*telling, str(kernel)})) if apart else ()
            words = (texts | {str(kernel)}).difference(shared)
            run = (measured, model, dict(zip(columns, values, strict=True)), words, str(kernel),
                   slug, place)  # fmt: skip
            cases = parts.setdefault((key, shared), {})
            cases.setdefault((values, words, slug), []).append(run)
    return [
        _runs(key, shared, list(rows.values()))
        for (key, shared), rows in parts.items()
        if key[0] or unnamed
    ]


def _runs(
    key: tuple[str, str, str], shared: tuple[str, ...], cases: list[list[tuple[Any, ...]]]
) -> Runs:
    rows = [(float(np.median([run[0] for run in runs])), *runs[0][1:]) for runs in cases]
    measured, model, numbers, words, kernels, devices, places = zip(*rows, strict=True)
    names = dict.fromkeys(name for each in numbers for name in each)
    columns = {name: np.array([each.get(name, 1.0) for each in numbers]) for name in names}
    return Runs(
        key, tuple(dict.fromkeys(kernels)), np.array(measured), np.array(model), columns,
        list(words), np.array(devices), np.array(places), shared,
    )  # fmt: skip


def taught(runs: Runs) -> Group | None:
    """The correction that some runs teach; None where it makes them no better."""
    chosen = runs.chosen(spread(runs, MOST)) if len(runs) > MOST else runs
    start_us, factor = line(chosen.model_us, chosen.measured_us)
    errors = np.log(chosen.measured_us / chosen.model_us)
    process, left_out = _process(chosen, start_us, factor)
    scores = np.abs(left_out) / process.left_out()[1]
    before, after = (
        float(np.minimum(np.abs(each), _CLIPPED).mean()) for each in (errors, left_out)
    )
    if after > _BETTER * before:
        return None
    framework, family, architecture = runs.key
    return Group(
        framework,
        family,
        architecture,
        chosen.kernels,
        tuple(sorted(set(runs.devices.tolist()))),
        float(f"{start_us:.4g}"),
        float(f"{factor:.5g}"),
        len(runs),
        float(f"{np.median(np.abs(errors)):.4g}"),
        float(f"{np.median(np.abs(left_out)):.4g}"),
        process.signal,
        float(f"{_multiple(scores):.4g}"),
        {name: tuple(float(f"{x:.6g}") for x in each) for name, each in chosen.numbers.items()},
        tuple(frozen(chosen.words)),
        tuple(float(f"{math.exp(each):.6g}") for each in process.residuals),
        chosen.shared,
    )


def _process(runs: Runs, start_us: float, factor: float) -> tuple[Process, np.ndarray]:
    """The process of the runs about a line, and the error of each by what all others teach."""
    residuals = np.log(runs.measured_us / (start_us + factor * runs.model_us))
    gaps = distances(runs.coordinates, runs.words, runs.coordinates, runs.words)
    if len(runs) < _NEAR:  # too few to say what near runs have in common
        return Process.of(gaps, 0.0 * residuals, SIGNALS[0]), _others_teach(runs)
    signal, pulled = settled(gaps, residuals)
    process = Process.of(gaps, pulled, signal)
    return process, process.left_out()[0] + residuals - pulled


def line(model_us: np.ndarray, measured_us: np.ndarray) -> tuple[float, float]:
    """The most likely start in microseconds, at least 0, and factor of some runs."""
    from scipy.optimize import least_squares

    def penalties(parameters: np.ndarray) -> np.ndarray:
        start, factor = parameters[0], math.exp(parameters[1])
        errors = np.log((start + factor * model_us) / measured_us) / _LOSS
        losses = np.sqrt(2.0 * (np.sqrt(1.0 + errors**2) - 1.0))
        return np.concatenate([losses, [start / _START_US, parameters[1] / _FACTOR]])

    guess = [0.01, float(np.clip(np.median(np.log(measured_us / model_us)), -2.0, 2.0))]
    fit = least_squares(penalties, guess, bounds=([0.0, -3.0], [np.inf, 3.0]))
    return float(fit.x[0]), math.exp(float(fit.x[1]))


def _others_teach(runs: Runs) -> np.ndarray:
    """The residual of each run by the line of all others."""
    places = np.arange(len(runs))
    residuals = []
    for i in places:
        rest = places != i
        start, factor = line(runs.model_us[rest], runs.measured_us[rest])
        residuals.append(math.log(runs.measured_us[i] / (start + factor * runs.model_us[i])))
    return np.array(residuals)


def _multiple(scores: np.ndarray) -> float:
    """The conformal quantile of left-out scores: that of n + 1 values, n of which are known."""
    rank = math.ceil(_COVERED * (len(scores) + 1)) - 1
    return float(np.sort(scores)[min(rank, len(scores) - 1)])


def spread(runs: Runs, count: int) -> np.ndarray:
    """Places of `count` runs that stand for all: those nearest to the centres of as many clusters.

    k-means with k-means++ (Arthur and Vassilvitskii, 2007), from a fixed seed.
    """
    if count >= len(runs):
        return np.arange(len(runs))
    vocabulary = sorted(set().union(*runs.words))
    marks = np.array([[word in words for word in vocabulary] for words in runs.words], dtype=float)
    values = np.hstack([runs.coordinates, 0.5 * marks])
    centres = values[_first_centres(values, count)]
    for _ in range(_ROUNDS):
        nearest = _squares(values, centres).argmin(1)
        centres = np.stack(
            [values[nearest == j].mean(0) if (nearest == j).any() else centres[j]
             for j in range(count)]
        )  # fmt: skip
    order = np.argsort(_squares(values, centres), axis=0, kind="stable")
    places: list[int] = []
    for column in order.T:
        places.append(next(int(i) for i in column if int(i) not in places))
    return np.array(places)


def _first_centres(values: np.ndarray, count: int) -> list[int]:
    random = np.random.default_rng(_SEED)
    places = [int(random.integers(len(values)))]
    gaps = np.maximum(_squares(values, values[places])[:, 0], 0.0)
    while len(places) < count:
        total = gaps.sum()
        chances = gaps / total if total > 0 else np.full(len(values), 1.0 / len(values))
        places.append(int(random.choice(len(values), p=chances)))
        gaps = np.clip(_squares(values, values[places[-1:]])[:, 0], 0.0, gaps)
    return places


def _squares(values: np.ndarray, centres: np.ndarray) -> np.ndarray:
    products = values @ centres.T
    return np.asarray(np.square(values).sum(1)[:, None] + np.square(centres).sum(1) - 2 * products)


def curve(
    table: pd.DataFrame, counts: Sequence[int] = (5, 10, 20, 50, 100)
) -> Iterator[dict[str, Any]]:
    """How good a number of a table's runs is for the rest of it, device by device.

    Yields device, framework, family, rows, the number learned from, and for the runs left out
    the median and 90th percentile of |ln| by the model and corrected, the share in the range and
    its mean width in ln.
    """
    for device, rows in table.groupby("device", observed=True, sort=False):
        for runs in groups(rows.reset_index(drop=True)):
            for count in counts:
                if 2 * count <= len(runs):
                    yield {"device": device, **scored(runs, count)}


def scored(runs: Runs, count: int) -> dict[str, Any]:
    """How good `count` of the runs are for the rest, as in `curve`."""
    chosen = spread(runs, count)
    rest = runs.chosen(np.setdiff1d(np.arange(len(runs)), chosen))
    group = taught(runs.chosen(chosen))
    plain = np.abs(np.log(rest.measured_us / rest.model_us))
    framework, family, _ = runs.key
    score: dict[str, Any] = {
        "framework": framework, "family": family,
        "rows": len(runs), "learned": count, "model": float(np.median(plain)),
        "model_p90": float(np.quantile(plain, 0.9)),
    }  # fmt: skip
    if group is None:
        unchanged = {"corrected": score["model"], "corrected_p90": score["model_p90"]}
        return score | unchanged | {"covered": None, "width": None}
    middle, low, high = times(group, rest)
    errors = np.abs(np.log(rest.measured_us / middle))
    inside = (low <= rest.measured_us) & (rest.measured_us <= high)
    return score | {
        "corrected": float(np.median(errors)), "corrected_p90": float(np.quantile(errors, 0.9)),
        "covered": float(inside.mean()), "width": float(np.log(high / low).mean()),
    }  # fmt: skip


def times(group: Group, runs: Runs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Time and range of runs by a correction, in microseconds."""
    kinds: dict[tuple[frozenset[str], str], list[int]] = {}
    for i, kind in enumerate(zip(runs.words, runs.devices.tolist(), strict=True)):
        kinds.setdefault(kind, []).append(i)
    table = np.empty((3, len(runs)))
    for (words, device), places in kinds.items():
        numbers = {name: each[places] for name, each in runs.numbers.items()}
        seconds = runs.model_us[places] * 1e-6
        every = words.union(runs.shared)
        table[:, places] = np.stack(group.corrected(seconds, numbers, every, device)) * 1e6
    middle, low, high = table
    return middle, low, high


def save(learned: Learned, path: str) -> None:
    """Write corrections as YAML. Raises `ProblemError` where there are none, `OutputError`."""
    import yaml

    if not learned.groups:
        raise ProblemError(
            "nothing was learned: corrections make these runs no better than the model does; "
            "nothing is written"
        )
    head = "# What perfmodel learned from measured runs; use it with --learned FILE.\n"
    with replacing(path) as partial:
        text = yaml.safe_dump(written(learned), sort_keys=False, allow_unicode=True, width=100)
        partial.write_text(head + text, encoding="utf-8")
