"""The corrections in use: of `corrected_by`, else of the file in PERFMODEL_LEARNED, else none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from perfmodel import plugins
from perfmodel.hardware import Device
from perfmodel.learned.groups import (
    Group,
    Learned,
    family_of,
    framework_of,
    load,
    numbers_of,
    words_of,
)

ENVIRONMENT = "PERFMODEL_LEARNED"
"""Environment variable: a file of corrections, for this process and those that it starts."""
_ACTIVE: ContextVar[Learned | None] = ContextVar("learned", default=None)


@contextmanager
def corrected_by(learned: Learned | str | Path) -> Iterator[Learned]:
    """Corrects all predictions of a block. Raises `PerfmodelError` for a file that is none."""
    corrections = learned if isinstance(learned, Learned) else load(learned)
    token, before = _ACTIVE.set(corrections), os.environ.get(ENVIRONMENT)
    if not isinstance(learned, Learned):  # for processes that the block starts
        os.environ[ENVIRONMENT] = str(Path(learned).absolute())
    try:
        yield corrections
    finally:
        _ACTIVE.reset(token)
        if before is None:
            os.environ.pop(ENVIRONMENT, None)
        else:
            os.environ[ENVIRONMENT] = before


def active() -> Learned | None:
    """The corrections that are used. Raises `PerfmodelError` for a file that is none."""
    path = os.environ.get(ENVIRONMENT)
    if (learned := _ACTIVE.get()) is not None:
        return learned
    if path:
        return _kept(path)
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


def correction(
    problem: Any, device: Device, implementation: str | None, kernel: str
) -> Group | None:
    """The correction of such a call, if one was learned."""
    learned = active()
    if learned is None:
        return None
    framework = framework_of(implementation)
    return learned.group(framework, family_of(problem), device.architecture, kernel)


def correct(
    group: Group,
    problem: Any,
    words: tuple[str, ...],
    results: dict[str, np.ndarray],
    floor: np.ndarray,
) -> dict[str, np.ndarray]:
    """The times of a prediction's `results`, corrected; none is below the `floor`, in seconds.

    `words` are the device's slug, the kernel, the harness and what else was timed.
    """
    seconds = results["seconds"]
    numbers = numbers_of(problem, seconds, results["bytes.hbm"])
    middle, low, high = group.corrected(seconds, numbers, words_of(problem, *words))
    middle = np.maximum(middle, floor)
    return results | {
        "seconds": middle,
        "low_seconds": np.clip(low, floor, middle),
        "high_seconds": np.maximum(high, middle),
    }
