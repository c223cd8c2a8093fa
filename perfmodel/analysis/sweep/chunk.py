"""One chunk: a range of the grid → predictions → an Arrow table; used by all runners.

A point that cannot be predicted has a row with empty numbers and the reason in `reason`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.algorithms.problem import length, pick
from perfmodel.analysis.sweep.grid import Group, Range
from perfmodel.analysis.sweep.plan import Part, Sweep
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.predict import predict_arrays
from perfmodel.prediction import Predictions
from perfmodel.timing.exchange import link_of

if TYPE_CHECKING:
    import pyarrow as pa

_MICRO = 1e6

Piece = tuple[np.ndarray, Predictions]
Failure = tuple[np.ndarray, str]

# Levels whose bytes have a column; it is empty for devices without the level.
_LEVELS = ("hbm", "llc", "l2", "shared")

# Column name to the function that reads it from predictions.
_NUMBERS: dict[str, Callable[[Predictions], np.ndarray | None]] = {
    "time_us": lambda p: p.seconds * _MICRO,
    "low_us": lambda p: p.low_seconds * _MICRO,
    "high_us": lambda p: p.high_seconds * _MICRO,
    **{f"bytes_{name}": lambda p, name=name: p.bytes.get(name) for name in _LEVELS},  # type: ignore[misc]
    "flops_matrix": lambda p: p.flops["matrix"],
    "flops_vector": lambda p: p.flops["vector"],
    "flops_special": lambda p: p.flops["special"],
    "useful_flops": lambda p: p.useful_flops,
    "footprint_bytes": lambda p: p.footprint_bytes,
    "waves": lambda p: p.waves,
    "occupancy": lambda p: p.occupancy,
}


def numbers(sweep: Sweep) -> dict[str, Callable[[Predictions], np.ndarray | None]]:
    """Every float64 column of a sweep, with the function that reads it from predictions."""
    found: dict[str, Callable[[Predictions], np.ndarray | None]] = dict(_NUMBERS)
    for name in dict.fromkeys((*sweep.place.values(), *_crossed(sweep))):
        found |= {f"bytes_{name}": lambda p, name=name: p.bytes.get(name)}  # type: ignore[misc]
    for name in dict.fromkeys(sweep.place.values()):
        found |= {f"footprint_{name}": lambda p, name=name: p.footprints.get(name)}  # type: ignore[misc]
    for name in sweep.grid.operator.tile:
        found[f"tile_{name}"] = lambda p, key=name: p.tile.get(key)  # type: ignore[misc]
    return found


def _crossed(sweep: Sweep) -> Iterator[str]:
    """Levels of the links between the devices of the mesh."""
    for device in sweep.devices:
        for _, link in sweep.mesh.values():
            with suppress(ProblemError):  # a device without its bandwidth has no results either
                yield link_of(device, link)[0].name


def column_kinds(sweep: Sweep) -> dict[str, str]:
    """Every column of a sweep, `device` included, as "number", "text" or "truth"."""
    grid = sweep.grid
    found = {"device": "text", "case": "number", "schedule": "text", "implementation": "text"}
    for name, values in grid.kinds.items():
        found[name] = "truth" if _truths(values) else "text"
    found |= dict.fromkeys(grid.columns, "number")
    found |= {"limiter": "text", **dict.fromkeys(numbers(sweep), "number"), "reason": "text"}
    return found


def chunk_table(sweep: Sweep, part: Part) -> pa.Table:
    """The rows of one part, in the order of the grid; `device` is not among the columns."""
    import pyarrow as pa

    points = sweep.grid.decode(part.start, part.stop)
    pieces: list[Piece] = []
    failures: list[Failure] = []
    for group in points.groups:
        _predict(sweep, part.device, group, pieces, failures)
    return pa.table(_columns(sweep, points, pieces, failures))


def _predict(
    sweep: Sweep, device: Device, group: Group, pieces: list[Piece], failures: list[Failure]
) -> None:
    """Predict a group; if that fails, find the rows that fail and their reasons."""
    if group.problem is None:
        failures.append((group.rows, group.reason))
        return
    try:
        answer = predict_arrays(
            group.problem,
            device,
            schedule=group.schedule,
            implementation=sweep.implementation,
            harness=sweep.harness,
            place=sweep.place,
            mesh=sweep.mesh,
            stored=sweep.stored,
            constants=sweep.constants,
        )
        pieces.append((group.rows, answer))
    except ProblemError as error:
        # If the sizes that decide whether a tile fits are equal in the whole group, all of it
        # fails.
        names = group.problem.values() if sweep.mesh else sweep.grid.operator.fits_by
        parts = _alike(names, group.problem)
        if len(parts) == 1:
            failures.append((group.rows, str(error)))
            return
        for index in parts:
            smaller = Group(group.rows[index], group.schedule, pick(group.problem, index))
            _predict(sweep, device, smaller, pieces, failures)


def _alike(names: Iterable[str], problem: Problem) -> list[np.ndarray]:
    """Indices of problems with equal values of the sizes that decide whether they can run, by
    group."""
    key = np.zeros(length(problem), dtype=np.int64)
    values = problem.values()
    for name in names:
        if isinstance(values.get(name), np.ndarray):
            found = np.unique(values[name], return_inverse=True)
            key = key * found[0].size + found[1]
    return [np.flatnonzero(key == value) for value in np.unique(key)]


def _columns(
    sweep: Sweep, points: Range, pieces: Sequence[Piece], failures: Sequence[Failure]
) -> dict[str, Any]:
    import pyarrow as pa

    grid, n = sweep.grid, len(points)
    asked = [(group.rows, group.schedule) for group in points.groups]
    columns: dict[str, Any] = {"case": pa.array(np.arange(points.start, points.start + n))}
    ran = [(rows, answer.schedule) for rows, answer in pieces]
    columns["schedule"] = _labels(n, [*asked, *ran])
    columns["implementation"] = _labels(n, [(rows, p.implementation) for rows, p in pieces])
    for name, values in grid.kinds.items():
        columns[name] = _kind(points.kinds[name], values)
    for name in grid.columns:
        columns[name] = pa.array(points.sizes[name])
    columns["limiter"] = _limiters(n, pieces)
    for name, get in numbers(sweep).items():
        columns[name] = _gather(n, pieces, get)
    columns["reason"] = _labels(n, failures)
    return columns


def _gather(
    n: int, pieces: Sequence[Piece], get: Callable[[Predictions], np.ndarray | None]
) -> pa.Array:
    """One number of all pieces as a column; empty for pieces that lack it."""
    import pyarrow as pa

    found = [(rows, get(answer)) for rows, answer in pieces]
    if len(found) == 1 and found[0][1] is not None and found[0][0].size == n:
        return pa.array(np.ascontiguousarray(found[0][1], dtype=np.float64))
    whole, empty = np.zeros(n), np.ones(n, dtype=bool)
    for rows, values in found:
        if values is not None:
            whole[rows], empty[rows] = values, False
    return pa.array(whole, mask=empty)


def _limiters(n: int, pieces: Sequence[Piece]) -> pa.Array:
    import pyarrow as pa

    text = np.zeros(n, dtype="<U16")
    empty = np.ones(n, dtype=bool)
    for rows, answer in pieces:
        text[rows], empty[rows] = answer.limiter, False
    return _dictionary(pa.array(text, mask=empty).dictionary_encode())


def _labels(n: int, pieces: Sequence[tuple[np.ndarray, str]]) -> pa.Array:
    """A text column from one label for each piece; later pieces win, empty where there is none."""
    import pyarrow as pa

    labels = list(dict.fromkeys(label for _, label in pieces))
    codes, empty = np.zeros(n, dtype=np.int32), np.ones(n, dtype=bool)
    for rows, label in pieces:
        codes[rows], empty[rows] = labels.index(label), False
    return pa.DictionaryArray.from_arrays(
        pa.array(codes, mask=empty), pa.array(labels, pa.string())
    )


def _kind(codes: np.ndarray, values: Sequence[Any]) -> pa.Array:
    """A column of a kind: booleans unchanged, names as dictionary codes, None as empty."""
    import pyarrow as pa

    if _truths(values):
        return pa.array(np.array(values)[codes])
    return _dictionary(_decoded(codes, tuple(values)))


def _truths(values: Sequence[Any]) -> bool:
    return all(isinstance(value, bool) for value in values)


def _decoded(codes: np.ndarray, values: tuple[Any, ...]) -> pa.DictionaryArray:
    import pyarrow as pa

    empty = np.array([value is None for value in values])
    names, places = _names(values)
    coded = np.array(places, dtype=np.int32)[codes]
    return pa.DictionaryArray.from_arrays(
        pa.array(coded, mask=empty[codes]), pa.array(names, pa.string())
    )


@lru_cache(maxsize=256)
def _names(values: tuple[Any, ...]) -> tuple[list[str], list[int]]:
    """The names among `values`, and each value's index among them (0 for None)."""
    names = list(dict.fromkeys(str(value) for value in values if value is not None))
    return names, [names.index(str(value)) if value is not None else 0 for value in values]


def _dictionary(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """A text column in the common type: 32-bit dictionary codes into strings."""
    import pyarrow as pa

    return column.cast(pa.dictionary(pa.int32(), pa.string()))
