"""Live memory: what is held from one moment to another, and the bytes held at each moment.

A moment is a node of a graph, a pass of a training step, or a phase of requests.

Of a graph, the caller holds inputs and weights all the time, and outputs from the node that writes
them to the end. Every other tensor is allocated from the node that writes it to the last one that
reads it, both included (a node's operands and results exist at once). A tensor written over another
one takes no memory of its own. No allocator is modelled: fragmentation and caching come on top.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

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


def peak(spans: Sequence[Span], moments: int) -> dict[str, Any]:
    """What the device's own memory holds at its fullest moment, by name; the first of equals."""
    sums = alive(spans, moments)[OWN]
    fullest = sums.index(max(sums))
    return {s.name: s.bytes for s in spans if s.place == OWN and s.first <= fullest <= s.last}


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


def live_bytes(graph: Graph, scratch: Sequence[float] = ()) -> dict[str, list[float]]:
    """Bytes alive at each node, by level; `scratch` has each node's own bytes in device memory."""
    tensors = graph.tensors
    spans = [
        *(Span("", 0.0, 0, -1, level) for level in (OWN, *(t.place for t in tensors.values()))),
        *(
            Span(name, tensors[name].bytes, *ends, tensors[name].place)
            for name, ends in intervals(graph).items()
        ),
        *(Span("scratch", size, i, i) for i, size in enumerate(scratch)),
    ]
    return alive(spans, len(graph.nodes))
