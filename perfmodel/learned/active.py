"""The corrections in use: of `corrected_by`, else of the file in PERFMODEL_LEARNED; then the bundled
record's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from perfmodel import plugins
from perfmodel.algorithms import Problem
from perfmodel.hardware import Device
from perfmodel.learned import record
from perfmodel.learned.groups import (
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
NONE = "none"
_NOTHING = Learned("nothing", "", ())
_ACTIVE: ContextVar[Learned | None] = ContextVar("learned", default=None)


@contextmanager
def corrected_by(learned: Learned | str | Path | None) -> Iterator[Learned]:
    """Corrects all predictions of a block, by the bundled record too; None: by nothing at all.

    Raises `PerfmodelError` for a file that has no corrections.
    """
    if isinstance(learned, Learned):
        corrections, inherited = learned, None
    elif learned is None or str(learned) == NONE:
        corrections, inherited = _NOTHING, NONE
    else:
        corrections, inherited = load(learned), str(Path(learned).absolute())
    token, before = _ACTIVE.set(corrections), os.environ.get(ENVIRONMENT)
    if inherited is not None:  # for processes that the block starts
        os.environ[ENVIRONMENT] = inherited
    try:
        yield corrections
    finally:
        _ACTIVE.reset(token)
        if before is None:
            os.environ.pop(ENVIRONMENT, None)
        else:
            os.environ[ENVIRONMENT] = before


def active() -> Learned | None:
    """The corrections that come before the bundled record's; without groups: no corrections at all.

    Raises `PerfmodelError` for a file that has none.
    """
    if (learned := _ACTIVE.get()) is not None:
        return learned
    if path := os.environ.get(ENVIRONMENT):
        return _NOTHING if path == NONE else _kept(path)
    return _brought(os.environ[plugins.ENVIRONMENT]) if plugins.ENVIRONMENT in os.environ else None


@lru_cache(maxsize=4)
def _kept(path: str) -> Learned:
    return load(path)


@lru_cache(maxsize=4)
def _brought(_places: str) -> Learned | None:
    """Those of all files in folders `learned` of PERFMODEL_PATH; None where there are none."""
    files = list(plugins.readable(plugins.files(plugins.folders("learned")), load))
    if not files:
        return None
    sources = ", ".join(file.learned_from for file in files)
    return Learned(sources, files[0].version, tuple(g for file in files for g in file.groups))


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
    """The corrections that a call may have, in order of precedence.

    The bundled record is for calls that name an implementation, and for the `shipped` constants.
    """
    first = active()
    if first is _NOTHING:
        return ()
    files = () if first is None else (first,)
    return (*files, record.shipped()) if shipped and implementation else files


def correction(
    files: Sequence[Learned], problem: Problem, device: Device, request: Request, kernel: str
) -> Correction | None:
    """The correction of such a call, if one was learned."""
    if not files:
        return None
    name = request.implementation
    framework, family = framework_of(name), family_of(problem)
    architecture = architecture_name(device)
    more = (f"implementation={name}",) if name else ()
    words = words_of(problem, kernel, request.harness, *request.includes, *more)
    for learned in files:
        group = learned.group(framework, family, architecture, kernel, words)
        if group is not None:
            return Correction(group, words, device.slug)
    return None
