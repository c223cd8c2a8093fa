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
from perfmodel.analysis.sweep.plan import Part, Sweep
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.operators.grid import Group, Range
from perfmodel.predict import predict_arrays
from perfmodel.prediction import Predictions, columns
from perfmodel.timing.exchange import link_of

if TYPE_CHECKING:
    import pyarrow as pa

Piece = tuple[np.ndarray, Predictions]
Failure = tuple[np.ndarray, str]

Reader = Callable[[Predictions], np.ndarray | None]
"""Reads a column from predictions; None where they have no such number."""


def _reader(name: str, member: str = "", scale: float = 1.0) -> Reader:
    """Reads a field, or one member of it where it is a mapping, times `scale`."""

    def read(predictions: Predictions) -> np.ndarray | None:
        field = getattr(predictions, name)
        values: np.ndarray | None = field.get(member) if member else field
        return values if scale == 1.0 or values is None else values * scale

    return read


def numbers(sweep: Sweep) -> dict[str, Reader]:
    """Every float64 column of a sweep, with the function that reads it from predictions."""
    readers = {key: _reader(*column) for key, column in columns().items()}
    for name in (*sweep.place.values(), *_link_levels(sweep)):
        readers[f"bytes_{name}"] = _reader("bytes", name)
    for name in sweep.place.values():
        readers[f"footprint_{name}"] = _reader("footprints", name)
    for name in sweep.grid.operator.tile:
        readers[f"tile_{name}"] = _reader("tile", name)
    return readers


def _link_levels(sweep: Sweep) -> Iterator[str]:
    """Levels of the links between the devices of the mesh."""
    for device in sweep.devices:
        for _, link in sweep.mesh.values():
            with suppress(ProblemError):  # a device without its bandwidth has no results either
                yield link_of(device, link)[0].name


def column_kinds(sweep: Sweep) -> dict[str, str]:
    """Every column of a sweep, `device` included, as "number", "text" or "truth"."""
    grid = sweep.grid
    kinds = {"device": "text", "case": "number", "schedule": "text", "implementation": "text"}
    for name, values in grid.kinds.items():
        kinds[name] = "truth" if _is_boolean(values) else "text"
    kinds |= dict.fromkeys(grid.columns, "number")
    kinds |= {"limiter": "text", **dict.fromkeys(numbers(sweep), "number"), "reason": "text"}
    return kinds


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
        parts = _equal_groups(names, group.problem)
        if len(parts) == 1:
            failures.append((group.rows, str(error)))
            return
        for index in parts:
            part = Group(group.rows[index], group.schedule, pick(group.problem, index))
            _predict(sweep, device, part, pieces, failures)


def _equal_groups(names: Iterable[str], problem: Problem) -> list[np.ndarray]:
    """Indices of problems with equal values of the sizes that decide whether they can run, by
    group."""
    key = np.zeros(length(problem), dtype=np.int64)
    values = problem.values()
    for name in names:
        if isinstance(values.get(name), np.ndarray):
            unique = np.unique(values[name], return_inverse=True)
            key = key * unique[0].size + unique[1]
    return [np.flatnonzero(key == value) for value in np.unique(key)]


def _columns(
    sweep: Sweep, points: Range, pieces: Sequence[Piece], failures: Sequence[Failure]
) -> dict[str, Any]:
    import pyarrow as pa

    grid, n = sweep.grid, len(points)
    requests = [(group.rows, group.schedule) for group in points.groups]
    columns: dict[str, Any] = {"case": pa.array(np.arange(points.start, points.start + n))}
    answers = [(rows, answer.schedule) for rows, answer in pieces]
    columns["schedule"] = _labels(n, [*requests, *answers])
    columns["implementation"] = _labels(n, [(rows, p.implementation) for rows, p in pieces])
    for name, values in grid.kinds.items():
        columns[name] = _kind(points.kinds[name], values)
    for name in grid.columns:
        columns[name] = pa.array(points.sizes[name])
    columns["limiter"] = _limiters(n, pieces)
    for name, getter in numbers(sweep).items():
        columns[name] = _gather(n, pieces, getter)
    columns["reason"] = _labels(n, failures)
    return columns


def _gather(n: int, pieces: Sequence[Piece], getter: Reader) -> pa.Array:
    """One number of all pieces as a column; empty for pieces that lack it."""
    import pyarrow as pa

    parts = [(rows, getter(answer)) for rows, answer in pieces]
    if len(parts) == 1 and parts[0][1] is not None and parts[0][0].size == n:
        return pa.array(np.ascontiguousarray(parts[0][1], dtype=np.float64))
    column, empty = np.zeros(n), np.ones(n, dtype=bool)
    for rows, values in parts:
        if values is not None:
            column[rows], empty[rows] = values, False
    return pa.array(column, mask=empty)


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

    if _is_boolean(values):
        return pa.array(np.array(values)[codes])
    return _dictionary(_text_column(codes, tuple(values)))


def _is_boolean(values: Sequence[Any]) -> bool:
    return all(isinstance(value, bool) for value in values)


def _text_column(codes: np.ndarray, values: tuple[Any, ...]) -> pa.DictionaryArray:
    import pyarrow as pa

    empty = np.array([value is None for value in values])
    names, places = _names(values)
    indices = np.array(places, dtype=np.int32)[codes]
    return pa.DictionaryArray.from_arrays(
        pa.array(indices, mask=empty[codes]), pa.array(names, pa.string())
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
