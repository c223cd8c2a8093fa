"""Live memory: what is held from one moment to another, and the bytes held at each moment.

A moment is a node of a graph, a pass of a training step, or a phase of requests.

Of a graph, the caller holds inputs and weights all the time, and outputs from the node that writes
them to the end. Every other tensor is allocated from the node that writes it to the last one that
reads it, both included (a node's operands and results exist at once). A tensor written over another
one takes no memory of its own. No allocator is modelled: fragmentation and caching come on top.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from perfmodel.columns import Column, Result
from perfmodel.graph.graph import Graph
from perfmodel.graph.tensor import OWN


@dataclass(frozen=True)
class Span:
    """Memory that is held from one moment to another, both included."""

    name: str
    """What is held."""
    bytes: Any
    """Its bytes: a number, or an array with one for each of many cases."""
    first: int
    """The first moment."""
    last: int
    """The last moment."""
    place: str = OWN
    """The level of memory that it lies in."""


def alive(spans: Iterable[Span], moments: int) -> dict[str, list[Any]]:
    """Bytes held at each moment, by level."""
    live: dict[str, list[Any]] = {}
    for span in spans:
        sums = live.setdefault(span.place, [0.0] * moments)
        for moment in range(span.first, span.last + 1):
            sums[moment] = sums[moment] + span.bytes
    return live


@dataclass(frozen=True)
class Memory(Result):
    """What is held from moment to moment, and the room for it."""

    spans: tuple[Span, ...]
    """All that is held."""
    moments: tuple[str, ...]
    """Names of the moments."""
    rooms: Mapping[str, float]
    """Capacity in bytes of each level that has a known one."""

    @classmethod
    def of(cls, levels: Mapping[str, tuple[float, float | None]], name: str = "data") -> Memory:
        """What is held throughout, in bytes, and the capacity, if known: of each level."""
        spans = tuple(Span(name, size, 0, 0, level) for level, (size, _) in levels.items())
        rooms = {level: room for level, (_, room) in levels.items() if room is not None}
        return cls(spans, ("throughout",), rooms)

    @cached_property
    def live_bytes(self) -> Mapping[str, list[float]]:
        """Bytes held at each moment, by level."""
        return alive(self.spans, len(self.moments))

    @cached_property
    def footprints(self) -> Annotated[Mapping[str, float], Column()]:
        """Most bytes held at once, by level."""
        return {level: max(sums) for level, sums in self.live_bytes.items()}

    @property
    def peak_bytes(self) -> Annotated[float, Column()]:
        """Most bytes held at once in the device's own memory."""
        return self.footprints[OWN]

    @property
    def _fullest(self) -> int:
        return self.live_bytes[OWN].index(self.peak_bytes)

    @property
    def peak_node(self) -> Annotated[str, Column()]:
        """The first moment with that many bytes."""
        return self.moments[self._fullest]

    @cached_property
    def lines(self) -> Mapping[str, float]:
        """What the device's own memory holds at that moment, by name."""
        moment = self._fullest
        return {
            span.name: span.bytes
            for span in self.spans
            if span.place == OWN and span.first <= moment <= span.last and span.bytes
        }

    @property
    def capacity_bytes(self) -> float | None:
        """Capacity of the device's own memory; None where its spec has none."""
        return self.rooms.get(OWN)

    @property
    def lacking_bytes(self) -> float:
        """Bytes missing from the device's own memory."""
        return max(self.peak_bytes - (self.capacity_bytes or self.peak_bytes), 0.0)

    @property
    def fits_at(self) -> Annotated[Mapping[str, bool], Column()]:
        """Whether the peak fits in each level with known capacity."""
        return {level: self.footprints[level] <= room for level, room in self.rooms.items()}

    @property
    def fits(self) -> Annotated[bool, Column()]:
        """Whether the peak fits in every level with known capacity."""
        return all(self.fits_at.values())


def intervals(graph: Graph) -> dict[str, tuple[int, int]]:
    """First and last node, by index, at which the memory of each tensor is held.

    Keys are the tensors that own memory (`Graph.storage`).
    """
    last = len(graph.nodes) - 1
    spans = {graph.storage(name): (0, last) for name in (*graph.inputs, *graph.weights)}
    for i, node in enumerate(graph.nodes):
        for name in (name for edge in node.edges for name in edge.tensors):
            first, end = spans.setdefault(graph.storage(name), (i, i))
            spans[graph.storage(name)] = (first, max(end, i))
    for name in graph.outputs:
        first, _ = spans[graph.storage(name)]
        spans[graph.storage(name)] = (first, last)
    return spans


def spans(graph: Graph, scratch: Sequence[float] = ()) -> tuple[Span, ...]:
    """The tensors of a graph, node by node; `scratch` has each node's own bytes in device
    memory."""
    tensors = graph.tensors
    return (
        *(Span("", 0.0, 0, -1, level) for level in (OWN, *(t.place for t in tensors.values()))),
        *(
            Span(name, tensors[name].bytes, *ends, tensors[name].place)
            for name, ends in intervals(graph).items()
        ),
        *(Span("scratch", size, i, i) for i, size in enumerate(scratch)),
    )


def live_bytes(graph: Graph, scratch: Sequence[float] = ()) -> dict[str, list[float]]:
    """Bytes alive at each node, by level."""
    return alive(spans(graph, scratch), len(graph.nodes))
