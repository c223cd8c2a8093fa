"""Which corrections are used: those of `corrected_by`, else of the file in PERFMODEL_LEARNED; after
them the bundled record's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

import numpy as np

from perfmodel import plugins
from perfmodel.algorithms import Problem
from perfmodel.frozen import dataclass
from perfmodel.hardware import Device
from perfmodel.learned import record
from perfmodel.learned.groups import (
    IMPLEMENTATION,
    Group,
    Learned,
    architecture_name,
    family_of,
    framework_of,
    load,
    numbers_of,
    words_of,
)
from perfmodel.operators import Request

ENVIRONMENT = "PERFMODEL_LEARNED"
"""Environment variable: a file of corrections, or `none` for the model alone, for this process and
those that it starts."""
_NONE = "none"


@dataclass(frozen=True)
class Chosen:
    """The corrections that are used, best first."""

    files: tuple[Learned, ...] = ()
    """Those of files."""
    record: bool = True
    """Whether the bundled record is used where these have nothing to say."""


_ACTIVE: ContextVar[Chosen | None] = ContextVar("learned", default=None)


@contextmanager
def corrected_by(learned: Learned | str | Path | None, *, record: bool = True) -> Iterator[None]:
    """Corrects all predictions of a block, and by the bundled `record` where it has nothing to say.

    None: the model alone. Raises `PerfmodelError` for a file that has no corrections.
    """
    inherited = None
    if learned is None:
        chosen, inherited = Chosen(record=False), _NONE
    elif isinstance(learned, Learned):
        chosen = Chosen((learned,), record)
    else:
        chosen, inherited = Chosen((load(learned),), record), str(Path(learned).absolute())
    token, before = _ACTIVE.set(chosen), os.environ.get(ENVIRONMENT)
    if inherited is not None:  # for processes that the block starts
        os.environ[ENVIRONMENT] = inherited
    try:
        yield
    finally:
        _ACTIVE.reset(token)
        if before is None:
            os.environ.pop(ENVIRONMENT, None)
        else:
            os.environ[ENVIRONMENT] = before


def active() -> Chosen:
    """The corrections in use. Raises `PerfmodelError` for a file that has none."""
    if (chosen := _ACTIVE.get()) is not None:
        return chosen
    if path := os.environ.get(ENVIRONMENT):
        return Chosen(record=False) if path == _NONE else _kept(path)
    places = os.environ.get(plugins.ENVIRONMENT)
    return Chosen() if places is None else _brought(places)


@lru_cache(maxsize=4)
def _kept(path: str) -> Chosen:
    return Chosen((load(path),))


@lru_cache(maxsize=4)
def _brought(_places: str) -> Chosen:
    """Those of all files in folders `learned` of PERFMODEL_PATH."""
    return Chosen(tuple(plugins.readable(plugins.files(plugins.folders("learned")), load)))


@dataclass(frozen=True)
class Correction:
    """What is corrected in the prediction of some problems of one kind on a device."""

    group: Group
    """What was learned."""
    words: frozenset[str]
    """What describes the problems and their kernel beyond sizes."""
    device: str
    """The device."""

    def applied(
        self, problem: Problem, results: dict[str, np.ndarray], floor: np.ndarray
    ) -> dict[str, np.ndarray]:
        """The times of a prediction's `results`, corrected; none is below the `floor`, in
        seconds."""
        times = self.group.corrected(
            results["seconds"], numbers_of(problem), self.words, self.device
        )
        middle = np.maximum(times[0], floor)
        return results | {
            "seconds": middle,
            "low_seconds": np.clip(times[1], floor, middle),
            "high_seconds": np.maximum(times[2], middle),
        }


def corrections(implementation: str | None, *, shipped: bool) -> tuple[Learned, ...]:
    """The corrections that a call may have, best first.

    The bundled record is for calls that name an implementation, and for the `shipped` constants.
    """
    chosen = active()
    bundled = chosen.record and shipped and implementation
    return (*chosen.files, record.shipped()) if bundled else chosen.files


def correction(
    files: Sequence[Learned], problem: Problem, device: Device, request: Request, kernel: str
) -> Correction | None:
    """The correction of such a call, if one was learned."""
    if not files:
        return None
    name = request.implementation
    framework, family = framework_of(name), family_of(problem)
    architecture = architecture_name(device)
    more = (f"{IMPLEMENTATION}{name}",) if name else ()
    words = words_of(problem, kernel, request.harness, *request.includes, *more)
    for learned in files:
        group = learned.group(framework, family, architecture, kernel, words)
        if group is not None:
            return Correction(group, words, device.slug)
    return None
