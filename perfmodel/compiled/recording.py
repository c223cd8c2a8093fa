"""Recording numbers: arrays that compute as NumPy's and leave their operations in a graph.

A function of arrays runs once on a few sample problems. Its arrays are of a class that NumPy hands
every operation to, so the function itself needs no change. What it decides from values of problems
becomes a guard: code that is generated from the graph holds only where its guards do.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from perfmodel import arithmetic
from perfmodel.compiled.graph import Graph

_LOCK = threading.RLock()


class UnrecordableError(Exception):
    """A function decides from values of problems what no guard states."""


class Recording:
    """The graph of a function, its guards and the words that its numbers stand for."""

    def __init__(self, problems: int) -> None:
        self.problems = problems
        """Number of sample problems; arrays over problems have this first extent."""
        self.graph = Graph()
        """The operations."""
        self.guards: dict[tuple[int, str], bool] = {}
        """What held: by node and `any` or `all` over the problems."""
        self.words: dict[int, tuple[str, ...]] = {}
        """The words that a node is an index of, where an array has words."""

    def input(self, name: str, values: np.ndarray) -> Recorded:
        """An array over problems as a recording number; none is less than the least of the sample,
        or than 1, and none has a fraction where the sample has none."""
        graph, least = self.graph, min(float(values.min()), 1.0)
        node = graph.put("input", name, least)
        self.guards[graph.put("greater_equal", node, graph.constant(least)), "all"] = True
        if np.all(values == np.floor(values)):
            self.guards[graph.put("equal", node, graph.put("floor", node)), "all"] = True
            graph.whole.add(node)
        return self.wrap(values, node)

    def wrap(self, values: Any, node: int) -> Recorded:
        """Values with their node."""
        array = np.asarray(values).view(Recorded)
        array.node, array.recording = node, self
        return array

    def node(self, value: Any) -> int:
        """The node of a recording number, of a number, or of numbers a column."""
        if isinstance(value, Recorded):
            if value.node is None:
                raise UnrecordableError("an array in another shape")
            return value.node
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise UnrecordableError(f"an array of {array.dtype}")
        first = array.flat[0] if array.size else 0.0
        if array.ndim == 0 or np.all(array == first):
            return self.graph.constant(float(first))
        if array.ndim == 2 and array.shape[0] == 1:
            return self.graph.table(array)
        raise UnrecordableError(f"an array of shape {array.shape} that was not recorded")

    def result(self, name: str, arguments: tuple[Any, ...], values: Any) -> Any:
        """The values of an operation with its node; of constants and tables alone a new one."""
        nodes = [self.node(each) for each in arguments]
        graph, array = self.graph, np.asarray(values)
        kinds = {graph.nodes[node][0] for node in nodes}
        if kinds <= {"constant"}:
            return self.wrap(array, graph.constant(float(array.flat[0])))
        if kinds <= {"constant", "table"} and array.ndim == 2:
            return self.wrap(array, graph.table(array[:1]))
        node = graph.operation(name, *nodes)
        if np.all(array >= 0):
            graph.positive.add(node)
        return self.wrap(array, node)

    def decided(self, array: Recorded, quantifier: str) -> bool:
        """Whether any or all are true, with a guard where that depends on the problems."""
        truth = bool(getattr(np, quantifier)(array.view(np.ndarray)))
        node = self.node(array)
        value = self.graph.value(node)
        if value is None and self.graph.by_column()[node]:
            raise UnrecordableError("a condition on the columns of a menu")
        if value is None:
            self.guards[node, quantifier] = truth
        return truth


class Recorded(np.ndarray):
    """An array over sample problems, and the node that computes it."""

    node: int | None
    recording: Recording

    def __array_finalize__(self, source: Any) -> None:
        self.node = None
        if isinstance(source, Recorded):
            self.recording = source.recording

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        recording = _of(inputs)
        name = ufunc.__name__
        if method == "reduce":
            return _reduced(recording, name, inputs[0], **options)
        out = options.pop("out", None)
        if method != "__call__" or options or (out is not None and out[0] is not inputs[0]):
            raise UnrecordableError(f"{name}.{method}")
        values = ufunc(*(_plain(each) for each in inputs))
        if name == "clip":
            return np.minimum(np.maximum(inputs[0], inputs[1]), inputs[2])
        return recording.result(name, inputs, values)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        handler = _FUNCTIONS.get(function.__name__)
        if handler is not None:
            return handler(*args, **kwargs)
        return super().__array_function__(function, types, args, kwargs)

    def __getitem__(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        chosen = [each for each in parts if isinstance(each, Recorded)]
        if chosen:
            return self._chosen(chosen[-1], parts)
        values = self.view(np.ndarray)[index]
        same = all(
            each is None
            or each is Ellipsis
            or isinstance(each, slice)
            or (isinstance(each, np.ndarray) and each.size == self.recording.problems)
            or (isinstance(each, int) and size == 1)
            for each, size in zip(parts, (*self.shape, *(1 for _ in parts)), strict=False)
        )
        if not same or np.asarray(values).size != self.size:
            raise UnrecordableError("a part of an array")
        return self.recording.wrap(values, self.recording.node(self))

    def _chosen(self, column: Recorded, parts: tuple[Any, ...]) -> Any:
        recording, graph = self.recording, self.recording.graph
        plain = tuple(_plain(each) for each in parts)
        values = self.view(np.ndarray)[plain]
        search = recording.node(column)
        if graph.value(search) is None and graph.nodes[search][0] != "argmin":
            raise UnrecordableError("an index that no search gave")
        return recording.wrap(values, graph.at(recording.node(self), search))

    def astype(self, dtype: Any, *_: Any, **__: Any) -> Any:
        """The values in another type; whole numbers are cut off."""
        kind, values = np.dtype(dtype).kind, self.view(np.ndarray).astype(dtype)
        if kind == "b" and self.dtype.kind != "b":
            return self != 0
        cut = kind in "iu" and self.dtype.kind == "f"
        recording = self.recording
        return (
            recording.result("trunc", (self,), values)
            if cut
            else recording.wrap(values, recording.node(self))
        )

    def reshape(self, *shape: Any, **_: Any) -> Any:
        """The values in another shape of as many extents above one."""
        values = self.view(np.ndarray).reshape(*shape)
        if max(values.shape, default=1) != max(self.shape, default=1):
            raise UnrecordableError("an array in another shape")
        return self.recording.wrap(values, self.recording.node(self))

    def __bool__(self) -> bool:
        if self.size != 1:
            raise UnrecordableError("a condition on an array")
        return self.recording.decided(self, "all")

    def __float__(self) -> float:
        value = self.recording.graph.value(self.recording.node(self))
        if value is None:
            raise UnrecordableError("a number of an array")
        return value

    def __int__(self) -> int:
        return int(float(self))

    __index__ = __int__

    def item(self, *_: Any) -> Any:
        """The number, of a constant."""
        return float(self)


def _of(values: Any) -> Recording:
    return next(each.recording for each in values if isinstance(each, Recorded))


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Recorded) else value


def _reduced(recording: Recording, name: str, array: Any, axis: Any = None, **options: Any) -> Any:
    """A reduction: any and all as guards, the largest over the columns of a menu as a node."""
    if axis is None and name in ("logical_or", "logical_and"):
        return recording.decided(array, "any" if name == "logical_or" else "all")
    if name == "maximum" and axis in (1, -1) and array.ndim == 2:
        values = array.view(np.ndarray).max(axis=1, keepdims=options.get("keepdims", False))
        node = recording.node(array)
        flags = recording.graph.by_column()
        return recording.wrap(values, recording.graph.put("largest", node) if flags[node] else node)
    value = recording.graph.value(recording.node(array))
    if name in ("maximum", "minimum") and value is not None:
        return _plain(array).flat[0]
    raise UnrecordableError(f"{name} over axis {axis}")


def _search(name: str) -> Callable[..., Any]:
    def search(array: Any, axis: Any = None, **_: Any) -> Any:
        recording = _of((array,))
        if axis != 1 or array.ndim != 2:
            raise UnrecordableError(f"{name} over axis {axis}")
        values, node = getattr(np, name)(_plain(array), axis=1), recording.node(array)
        graph = recording.graph
        varies = graph.by_column()[node] and graph.nodes[node][0] != "table"
        return recording.wrap(
            values, graph.put(name, node) if varies else graph.constant(values[0])
        )

    return search


def _where(condition: Any, yes: Any, no: Any) -> Any:
    parts = (condition, yes, no)
    return _of(parts).result("where", parts, np.where(*(_plain(each) for each in parts)))


def _clip(array: Any, low: Any = None, high: Any = None, **_: Any) -> Any:
    array = array if low is None else np.maximum(array, low)
    return array if high is None else np.minimum(array, high)


def _broadcast(array: Any, shape: Any, **_: Any) -> Any:
    recording = _of((array,))
    return recording.wrap(np.broadcast_to(_plain(array), shape), recording.node(array))


def _searchsorted(edges: Any, values: Any, **_: Any) -> Any:
    recording = _of((values,))
    graph = recording.graph
    total = graph.constant(0.0)
    for edge in np.asarray(edges, dtype=np.float64):
        total = graph.operation(
            "add", graph.operation("greater", recording.node(values), graph.constant(edge)), total
        )
    return recording.wrap(np.searchsorted(edges, _plain(values)), total)


def _take(array: Any, index: Any, **_: Any) -> Any:
    recording = _of((index,))
    values, node = np.take(array, _plain(index)), recording.node(index)
    if array.dtype.kind == "U":
        recording.words[node] = tuple(map(str, array))
        return recording.wrap(values, node)
    graph = recording.graph
    return recording.wrap(values, graph.put("lookup", graph.row(array), node))


def _full(value: float | None) -> Callable[..., Any]:
    def like(array: Any, *given: Any, dtype: Any = None, **_: Any) -> Any:
        fill, *kind = given if value is None else (value, *given)
        return np.full(np.shape(array), fill, kind[0] if kind else dtype or array.dtype)

    return like


def _concatenate(arrays: Any, axis: int = 0, **_: Any) -> Any:
    """Arrays side by side; each has one value a problem, or all are tables."""
    recording = _of(arrays)
    graph = recording.graph
    values = np.concatenate([_plain(each) for each in arrays], axis=axis)
    nodes = [recording.node(each) for each in arrays]
    flags = graph.by_column()
    if axis != 1 or any(flags[node] for node in nodes):
        raise UnrecordableError("menus side by side")
    ends = np.cumsum([each.shape[1] for each in arrays])
    places, node = np.arange(ends[-1], dtype=np.float64), nodes[-1]
    for end, left in zip(ends[-2::-1], nodes[-2::-1], strict=True):
        node = graph.operation("where", graph.table((places < end) * 1.0), left, node)
    return recording.wrap(values, node)


def _repeat(array: Any, times: int, axis: int | None = None) -> Any:
    if axis != 1 or array.shape[1] != 1:
        raise UnrecordableError("a repeated array")
    return _broadcast(array, (array.shape[0], times))


def _decide(quantifier: str) -> Callable[..., Any]:
    name = "logical_or" if quantifier == "any" else "logical_and"
    return lambda array, axis=None, **_: _reduced(array.recording, name, array, axis=axis)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "where": _where, "clip": _clip, "any": _decide("any"), "all": _decide("all"),
    "broadcast_to": _broadcast, "searchsorted": _searchsorted,
    "argmin": _search("argmin"), "argmax": _search("argmax"), "concatenate": _concatenate,
    "repeat": _repeat, "shape": lambda a: _plain(a).shape, "ndim": lambda a: _plain(a).ndim,
    "size": lambda a: _plain(a).size, "zeros_like": _full(0.0), "ones_like": _full(1.0),
    "full_like": _full(None), "ravel": lambda a, **_: a.reshape(-1),
    "atleast_2d": lambda a: a.reshape(-1, 1) if a.ndim < 2 else a,
    "max": lambda a, axis=None, **k: _reduced(a.recording, "maximum", a, axis=axis, **k),
}  # fmt: skip


class _Numpy:
    """NumPy, except that making an array of a recording number keeps it one."""

    def __init__(self, recording: Recording) -> None:
        self._recording, self._thread = recording, threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def asarray(self, value: Any, dtype: Any = None, **options: Any) -> Any:
        """The array itself, in the type that is asked for."""
        if isinstance(value, Recorded):
            return value if dtype is None else value.astype(dtype)
        array = np.asarray(value, dtype, **options)
        menu = (
            array.ndim == 2 and array.shape[0] == 1 < array.shape[1] and array.dtype.kind in "bif"
        )
        if menu and threading.get_ident() == self._thread:
            return self._recording.wrap(array, self._recording.node(array))
        return array

    def broadcast_to(self, value: Any, shape: Any, **options: Any) -> Any:
        """A menu for each problem, as a recording number."""
        if isinstance(value, Recorded) or threading.get_ident() != self._thread:
            return np.broadcast_to(value, shape, **options)
        return self._recording.wrap(np.broadcast_to(value, shape), self._recording.node(value))

    def take(self, array: Any, index: Any, **options: Any) -> Any:
        """Entries of a table; NumPy hands on only the table."""
        return (_take if isinstance(index, Recorded) else np.take)(array, index, **options)


def _floor_sum(*values: Any) -> Any:
    if not any(isinstance(each, Recorded) for each in values):
        return arithmetic.floor_sum(*values)
    sums = arithmetic.floor_sum(*(_plain(each) for each in values))
    return _of(values).result("floor_sum", values, sums)


@contextmanager
def _standing_in(recording: Recording) -> Iterator[None]:
    """The package's modules with a NumPy that records; other threads compute as before."""
    stand_ins = {"np": (np, _Numpy(recording)), "floor_sum": (arithmetic.floor_sum, _floor_sum)}
    changed = []
    for module in list(sys.modules.values()):
        name = module.__name__ if module is not None else ""
        if not name.startswith("perfmodel.") or name.startswith("perfmodel.compiled"):
            continue
        for attribute, (own, stand_in) in stand_ins.items():
            defines = module is arithmetic and own is arithmetic.floor_sum
            if vars(module).get(attribute) is own and not defines:
                changed.append((module, attribute, own))
                setattr(module, attribute, stand_in)
    try:
        yield
    finally:
        for module, attribute, own in changed:
            setattr(module, attribute, own)


def record(
    function: Callable[[Mapping[str, Any]], tuple[Any, Mapping[str, Any]]],
    samples: Mapping[str, np.ndarray],
) -> tuple[Any, Recording, dict[str, int], dict[str, tuple[str, ...]]]:
    """A function's first answer, its recording, the node of each array of its second answer, and
    the words of those that have words.

    Raises `UnrecordableError` for a function whose steps no graph states.
    """
    with _LOCK:
        recording = Recording(len(next(iter(samples.values()))))
        arrays = {name: recording.input(name, values) for name, values in samples.items()}
        with _standing_in(recording):
            answer, results = function(arrays)
        nodes = {name: recording.node(each) for name, each in results.items()}
        words = {
            name: recording.words[nodes[name]]
            for name, each in results.items()
            if np.asarray(each).dtype.kind == "U"
        }
        return answer, recording, nodes, words
