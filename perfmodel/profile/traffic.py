"""What recorded operators without products read and write, by the table of `operations.yaml`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfmodel.algorithms import Rowwise
from perfmodel.profile.streams import Streamed, stream
from perfmodel.profile.timeline import Recorded

Entry = Mapping[str, Any]
_LONG = "fp64"
"""The width of the numbers by which elements are picked: int64."""
_FLAG = "int8"


@dataclass(frozen=True)
class Types:
    """The types of an operator's arguments."""

    said: Sequence[str]
    """As the profiler writes them."""
    known: Mapping[str, str]
    """The profiler's words for types as ours, in the order of promotion."""
    numbers: Mapping[int, str]
    """Numbers of types as ours."""
    usual: str
    """The type of arguments without one: of lists of tensors."""

    def of(self, place: int) -> str:
        """The type of an argument."""
        return self.known.get(self.said[place] if place < len(self.said) else "", self.usual)

    def result(self, places: Sequence[int]) -> str:
        """The type that the result of a map of these arguments has."""
        words = [
            word for i in places if i < len(self.said) and (word := self.said[i]) in self.known
        ]
        order = list(self.known)
        if not words:
            return self.usual
        halves = {self.known[word] for word in words if self.known[word] in ("bf16", "fp16")}
        last = max(words, key=order.index)
        return "fp32" if len(halves) > 1 and self.known[last] in halves else self.known[last]


Way = Callable[[Recorded, Types, Entry, str], Rowwise | None]


def _tensors(recorded: Recorded) -> dict[int, int]:
    """Elements in memory of each argument that is a tensor or a list of them, by its place."""
    return {i: _elements(recorded, i) for i, shape in enumerate(recorded.dims) if shape}


def _elements(recorded: Recorded, place: int) -> int:
    """Elements of an argument that lie at places of their own: repeated ones have stride 0."""
    if recorded.is_list(place):
        return sum(map(math.prod, recorded.tensors(place)))
    shape = recorded.extents(place)
    strides = recorded.strides[place] if place < len(recorded.strides) else ()
    if len(strides) != len(shape):
        return math.prod(shape)
    return math.prod(n for n, stride in zip(shape, strides, strict=True) if stride != 0)


def _broadcast(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The shape that all broadcast to; raises `ValueError` where there is none."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    common = tuple(max(extents) if min(extents) else 0 for extents in zip(*padded, strict=True))
    if any(n not in (1, size) for shape in padded for n, size in zip(shape, common, strict=True)):
        raise ValueError("shapes that do not broadcast")
    return common


def _map(recorded: Recorded, types: Types, entry: Entry, variant: str) -> Rowwise | None:
    tensors = _tensors(recorded)
    if any(map(recorded.is_list, tensors)):
        size, cols = max(tensors.values()), 1
    else:
        shape = _broadcast([recorded.extents(i) for i in tensors])
        size, cols = math.prod(shape), shape[-1]
    if recorded.name.endswith("_") or "reads" in entry:
        dtype = types.of(0)
    else:
        dtype = _FLAG if entry.get("makes") == "bool" else types.result(list(tensors))
    if "to" in entry:
        number = recorded.argument(entry["to"])
        dtype = types.numbers.get(number, dtype) if type(number) is int else dtype
    places = [i for i in entry.get("reads", tensors) if i in tensors]
    reads = [Streamed(tensors[i], types.of(i)) for i in places]
    return stream(variant, reads, [Streamed(size, dtype)], cols)


def _reduction(recorded: Recorded, types: Types, entry: Entry, variant: str) -> Rowwise | None:
    """The first argument once, and what is left of it; of two tensors the larger is a map."""
    if len(recorded.dims) == len(_tensors(recorded)) == 2:
        return _map(recorded, types, {}, variant)
    reads = [Streamed(_elements(recorded, 0), types.of(0))]
    if recorded.is_list(0):
        return stream(variant, reads, [])
    shape, writes = recorded.extents(0), []
    along = recorded.argument(entry.get("along")) if len(recorded.dims) > 2 else None
    dims = [along] if isinstance(along, int) else along or []
    if dims:
        count = math.prod(shape) // math.prod(shape[d] for d in dims)
        dtypes = (types.of(0), _LONG)[: entry.get("results", 1)]
        writes = [Streamed(count, dtype) for dtype in dtypes]
    return stream(variant, reads, writes, shape[-1])


def _join(recorded: Recorded, types: Types, entry: Entry, variant: str) -> Rowwise | None:
    """A copy of all that the list holds."""
    size = sum(_tensors(recorded).values())
    columns = {shape[-1] for i in _tensors(recorded) for shape in recorded.tensors(i) if shape}
    streams = [Streamed(size, types.of(0))]
    return stream("copy", streams, streams, columns.pop() if len(columns) == 1 else 1)


def _update(recorded: Recorded, types: Types, entry: Entry, variant: str) -> Rowwise | None:
    tensors = _tensors(recorded)
    reads, writes = (
        [Streamed(tensors[i], types.of(i)) for i in entry[side] if i in tensors]
        for side in ("reads", "writes")
    )
    return stream(variant, reads, writes)


def _move(recorded: Recorded, types: Types, entry: Entry, variant: str) -> Rowwise | None:
    tensors = _tensors(recorded)
    reads = [Streamed(tensors[i], types.of(i)) for i in entry["reads"] if i in tensors]
    source = entry.get("like")
    return stream(
        variant, reads, [Streamed(tensors[source], types.of(source))] if source in tensors else []
    )


WAYS: Mapping[str, Way] = {
    "maps": _map, "reductions": _reduction, "joins": _join, "updates": _update, "moved": _move,
}  # fmt: skip
"""Kinds of `operations.yaml` whose bytes pass once."""


def rows(recorded: Recorded, entry: Entry) -> tuple[int, int] | None:
    """Rows that are picked by number, and elements of one; None where elements are not in rows."""
    if entry["way"] != "rows" or recorded.argument(entry.get("along")):
        return None
    (numbers,) = recorded.tensors(entry["index"])  # numbers of several dimensions pick elements
    if not numbers:
        raise ValueError("the numbers' extents are not recorded")
    return math.prod(numbers), math.prod(recorded.extents(0)[1:])


def gather(recorded: Recorded, types: Types, entry: Entry) -> Rowwise | None:
    """Elements that are picked from a tensor, added to it or stored in it, with their numbers."""
    index = entry["index"]
    numbers = Streamed(_elements(recorded, index) if recorded.dims[index] else 0, _LONG)
    if entry["way"] == "rows":  # along another dimension than the first
        shape = recorded.extents(0)
        elements = math.prod(shape) // shape[recorded.argument(entry["along"])] * numbers.elements
    elif entry["way"] == "picked":
        elements = numbers.elements
    else:
        elements = _elements(recorded, entry["values"])
    values = Streamed(elements, types.of(0))
    base = [values] if entry["way"] == "added" else []
    variant = "gather" if entry["way"] in ("rows", "picked") else "scatter"
    return stream(variant, [values, *base, numbers], [values])


def pointers(recorded: Recorded, types: Types, variant: str) -> Rowwise | None:
    """The tensors that a kernel is given, the last of them written."""
    tensors = [Streamed(n, types.of(i)) for i, n in _tensors(recorded).items()]
    if not tensors:
        return None
    *reads, output = tensors
    return stream(variant, reads or [output], [output])
