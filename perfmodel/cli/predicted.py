"""Predictions of cases on devices, one by one, as `perfmodel predict` shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from perfmodel.algorithms import Problem
from perfmodel.algorithms.problem import single
from perfmodel.cli.cases import Cases
from perfmodel.cli.leftout import Asked, answered
from perfmodel.frozen import dataclass
from perfmodel.hardware import Device
from perfmodel.predict import predict_arrays
from perfmodel.prediction import Prediction
from perfmodel.render.refused import Refused


@dataclass(frozen=True)
class Way:
    """A device, and the options of predictions on it."""

    device: Device
    """The device."""
    how: Mapping[str, Any]
    """Arguments of `predict_arrays` besides problem and device."""
    compiled: bool = False
    """Whether the nearest bundled kernel's binary replaces the assumed registers."""


@dataclass(frozen=True)
class Predicted:
    """One predicted case."""

    way: Way
    """Device and options."""
    problems: Problem
    """All problems of one call, as arrays."""
    place: int
    """The index of this case among them."""
    found: Prediction
    """The model's prediction."""

    @cached_property
    def problem(self) -> Problem:
        """Its problem, with plain sizes."""
        return single(self.problems, self.place)

    @cached_property
    def prediction(self) -> Prediction:
        """The prediction; with --compiled, with the binary's registers."""
        if not self.way.compiled:
            return self.found
        from perfmodel.evidence.compiled.compiledeffect import compiled_prediction

        return compiled_prediction(self.problem, self.way.device, self.found)

    @cached_property
    def row(self) -> dict[str, Any]:
        """The JSON form."""
        return self.prediction.as_dict()


def predicted(cases: Cases, ways: Sequence[Way]) -> Iterator[Predicted]:
    """All cases in every way, ordered by way, kind, sizes; one chunk at a time."""
    for way in ways:
        for count, groups in cases.chunks():
            slots: list[Predicted | None] = [None] * count
            for problem, places in groups:
                answer = predict_arrays(problem, way.device, **way.how)
                for i, place in enumerate(places):
                    slots[place] = Predicted(way, problem, i, answer.one(i))
            yield from (each for each in slots if each is not None)


def one_by_one(cases: Cases, ways: Sequence[Way]) -> tuple[list[Predicted], Refused]:
    """As `predicted`, for cases of which some are impossible: those with their reasons."""

    def questions() -> Iterator[Asked[Predicted]]:
        for way in ways:
            for words, case in cases.singles():
                parts = [way.device.slug, way.how["implementation"] or way.how["schedule"], words]
                label = " ".join(filter(None, parts))
                yield label, partial(_prediction, case, way)

    return answered(questions())


def _prediction(case: Cases, way: Way) -> Predicted:
    """The prediction of a single case."""
    return next(predicted(case, [way]))
