"""What recorded operators without products read and write, by the table of `operations.yaml`."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfmodel.algorithms import Rowwise
from perfmodel.evidence.profiled.streams import Streamed, stream
from perfmodel.evidence.profiled.timeline import Extents, Recorded

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
    numbers: Mapping[str, str]
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
    shape = recorded.dims[place]
    if _is_list(shape):
        return sum(math.prod(each) for each in shape)  # type: ignore[arg-type]
    strides = recorded.strides[place] if place < len(recorded.strides) else ()
    if len(strides) != len(shape):
        return math.prod(shape)  # type: ignore[arg-type]
    return math.prod(n for n, stride in zip(shape, strides, strict=True) if stride != 0)  # type: ignore[misc]


def _is_list(shape: Extents) -> bool:
    return bool(shape) and isinstance(shape[0], tuple)


def _broadcast(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The shape that all broadcast to; raises `ValueError` where there is none."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    made = tuple(max(extents) if min(extents) else 0 for extents in zip(*padded, strict=True))
    if any(n not in (1, size) for shape in padded for n, size in zip(shape, made, strict=True)):
        raise ValueError("shapes that do not broadcast")
    return made


def _given(recorded: Recorded, place: int) -> Any:
    """An argument that is no tensor; None where it is not recorded."""
    text = recorded.given[place] if place < len(recorded.given) else ""
    try:
        return ast.literal_eval(text) if text and len(text) < 200 else None
    except SyntaxError:
        return None


def _map(recorded: Recorded, types: Types, entry: Entry, variant: str) -> Rowwise | None:
    tensors = _tensors(recorded)
    lists = any(_is_list(recorded.dims[i]) for i in tensors)
    if lists:
        size, cols = max(tensors.values()), 1
    else:
        shape = _broadcast([recorded.dims[i] for i in tensors])  # type: ignore[misc]
        size, cols = math.prod(shape), shape[-1]
    if recorded.name.endswith("_") or "reads" in entry:
        made = types.of(0)
    else:
        made = _FLAG if entry.get("makes") == "bool" else types.result(list(tensors))
    if "to" in entry:
        made = types.numbers.get(str(_given(recorded, entry["to"])), made)
    places = [i for i in entry.get("reads", tensors) if i in tensors]
    reads = [Streamed(tensors[i], types.of(i)) for i in places]
    return stream(variant, reads, [Streamed(size, made)], cols)


def _reduction(recorded: Recorded, types: Types, entry: Entry, variant: str) -> Rowwise | None:
    """The first argument once, and what is left of it; of two tensors the larger is a map."""
    if len(_tensors(recorded)) > 1 and not _is_list(recorded.dims[0]) and len(recorded.dims) == 2:
        return _map(recorded, types, {}, variant)
    shape = recorded.dims[0]
    reads = [Streamed(_elements(recorded, 0), types.of(0))]
    kept = 0
    if len(recorded.dims) > 2 and "along" in entry and not _is_list(shape):
        along = _given(recorded, entry["along"])
        dims = [along] if isinstance(along, int) else along or []
        if dims:
            gone = math.prod(shape[d] for d in dims)  # type: ignore[misc]
            kept = math.prod(shape) // gone  # type: ignore[arg-type]
    types_made = [types.of(0), _LONG][: entry.get("results", 1)]
    writes = [Streamed(kept, dtype) for dtype in types_made] if kept else []
    cols = shape[-1] if not _is_list(shape) else 1
    return stream(variant, reads, writes, int(cols))  # type: ignore[arg-type]


def _join(recorded: Recorded, types: Types, entry: Entry, variant: str) -> Rowwise | None:
    """A copy of all that the list holds."""
    size = sum(_tensors(recorded).values())
    shapes = recorded.dims[0] if _is_list(recorded.dims[0]) else recorded.dims
    columns = {shape[-1] for shape in shapes if shape}  # type: ignore[index]
    cols = int(columns.pop()) if len(columns) == 1 else 1  # type: ignore[arg-type]
    both = [Streamed(size, types.of(0))]
    return stream("copy", both, both, cols)


def _update(recorded: Recorded, types: Types, entry: Entry, variant: str) -> Rowwise | None:
    tensors = _tensors(recorded)
    reads, writes = (
        [Streamed(tensors[i], types.of(i)) for i in entry[side] if i in tensors]
        for side in ("reads", "writes")
    )
    return stream(variant, reads, writes)


def _moved(recorded: Recorded, types: Types, entry: Entry, variant: str) -> Rowwise | None:
    tensors = _tensors(recorded)
    reads = [Streamed(tensors[i], types.of(i)) for i in entry["reads"] if i in tensors]
    like = entry.get("like")
    return stream(
        variant, reads, [Streamed(tensors[like], types.of(like))] if like in tensors else []
    )


WAYS: Mapping[str, Way] = {
    "maps": _map, "reductions": _reduction, "joins": _join, "updates": _update, "moved": _moved,
}  # fmt: skip
"""Kinds of `operations.yaml` whose bytes pass once."""


def rows(recorded: Recorded, entry: Entry) -> tuple[int, int] | None:
    """Rows that are picked by number, and elements of one; None where elements are not in rows."""
    if entry["way"] != "rows" or ("along" in entry and _given(recorded, entry["along"])):
        return None
    table, picked = recorded.dims[0], recorded.dims[entry["index"]]
    if _is_list(picked):
        (picked,) = picked  # numbers of several dimensions pick elements
    if not picked:
        raise ValueError("the numbers' extents are not recorded")
    return math.prod(picked), math.prod(table[1:])  # type: ignore[arg-type]


def gather(recorded: Recorded, types: Types, entry: Entry) -> Rowwise | None:
    """Elements that are picked from a tensor, added to it or stored in it, with their numbers."""
    index, data = entry["index"], types.of(0)
    numbers = Streamed(_elements(recorded, index) if recorded.dims[index] else 0, _LONG)
    if entry["way"] == "rows":  # along another dimension than the first
        shape: Any = recorded.dims[0]
        along = _given(recorded, entry["along"])
        elements = math.prod(shape) // shape[along] * numbers.elements
    elif entry["way"] == "picked":
        elements = numbers.elements
    else:
        elements = _elements(recorded, entry["values"])
    moved = Streamed(elements, data)
    again = [moved] if entry["way"] == "added" else []
    variant = {"picked": "gather", "rows": "gather"}.get(entry["way"], "scatter")
    return stream(variant, [moved, *again, numbers], [moved])


def pointers(recorded: Recorded, types: Types, variant: str) -> Rowwise | None:
    """The tensors that a kernel is given, the last of them written."""
    found = [Streamed(n, types.of(i)) for i, n in _tensors(recorded).items()]
    if not found:
        return None
    *reads, made = found
    return stream(variant, reads or [made], [made])
