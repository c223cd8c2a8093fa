"""What earlier nodes left in the caches for a node, as reuse distances over the graph's order.

A node is taken to sweep all its tensors in parallel from front to back. The part at fraction f of a
tensor is touched when its last user has 1 − f of its sweep left, and is read again when the next
user has done f of its sweep.

The bytes touched between the two are: the tensor itself, once; every tensor of the nodes in
between, once; 1 − f of the last user's other tensors and f of the next user's. A tensor is divided
into slices of f.

For a node that follows itself that is all it touches, at every f: the distance of a repeated kernel
(`Circumstances.warm`). Tiled products revisit their operands in another order; the same distances
are assumed for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfmodel.graph.graph import Graph
from perfmodel.graph.node import Edge
from perfmodel.hardware import Device
from perfmodel.timing.reuse import Reuse

_Touched = Mapping[str, float]


_FAR = 32.0
"""Multiple of the largest cache of which less than a millionth is held: (1 / 32)⁴."""


_SLICES = 8
"""Slices of a tensor, from front to back, that are each found or not."""


def reuses(
    graph: Graph, scratch: Sequence[float], device: Device, *, again: bool
) -> list[dict[str, tuple[Reuse, ...]]]:
    """The reuses of each node's inputs, by operand.

    `scratch` has the bytes that each node touches besides its tensors. With `again` the graph has
    run before: its first nodes find what its last ones left; otherwise they find nothing. Distances
    are counted only up to the reach of the device's caches.
    """
    caches = [level.total_bytes or 0.0 for level in device.levels() if level.name in ("l2", "llc")]
    limit = _FAR * max(caches, default=0.0)
    touches = [_touches(graph, i, own) for i, own in enumerate(scratch)]
    survivors = [_survivors(graph, i) for i in range(len(graph.nodes))]
    entries: list[dict[str, tuple[Reuse, ...]]] = []
    last: dict[str, int] = {}
    if again:
        last = {name: i - len(touches) for i, names in enumerate(survivors) for name in names}
    for i, node in enumerate(graph.nodes):
        node_reuses: dict[str, tuple[Reuse, ...]] = {}
        for edge in node.reads:
            names = dict.fromkeys(edge.tensors)
            total = sum(graph.tensors[name].bytes for name in names)
            repeat = _repeat_share(graph, i, edge)
            parts = [Reuse(repeat, 0.0)] if repeat else []
            for name in names:
                storage = graph.storage(name)
                if storage in last and total:
                    share = (1.0 - repeat) * graph.tensors[name].bytes / total
                    distances = _distances(touches, storage, last[storage], i, limit)
                    parts += [Reuse(share / len(distances), distance) for distance in distances]
            if parts:
                node_reuses[edge.operand] = tuple(parts)
        entries.append(node_reuses)
        last.update(dict.fromkeys(survivors[i], i))
    return entries


def _repeat_share(graph: Graph, i: int, edge: Edge) -> float:
    """Share of an operand that a node has just read: a tensor that the operand has several times.

    The taps of a convolution read the pixels of the taps beside them.
    """
    names = dict.fromkeys(edge.tensors)
    if len(names) == len(edge.tensors) or not (size := graph.nodes[i].operand_bytes(edge.operand)):
        return 0.0
    return max(1.0 - sum(graph.tensors[name].bytes for name in names) / size, 0.0)


def _distances(
    touches: Sequence[_Touched], name: str, last: int, node: int, limit: float
) -> list[float]:
    """Bytes touched between the use of a tensor at node `last` (negative: in the run before) and at
    `node`.

    One number for each slice, or one for all where they are equal.
    """
    middle: dict[str, float] = {}
    for i in range(node - 1, last, -1):
        middle.update(touches[i])
        if sum(middle.values()) > limit:
            return [sum(middle.values())]
    middle.pop(name, None)
    rest_after, rest_before = (
        sum(size for other, size in end.items() if other != name and other not in middle)
        for end in (touches[last], touches[node])
    )
    least = max(touches[last].get(name, 0.0), touches[node].get(name, 0.0)) + sum(middle.values())
    if rest_after == rest_before:
        return [least + rest_after]
    middles = [(i + 0.5) / _SLICES for i in range(_SLICES)]
    return [least + (1.0 - f) * rest_after + f * rest_before for f in middles]


def _touches(graph: Graph, i: int, scratch: float) -> dict[str, float]:
    """Bytes of each tensor that a node touches, by owner of the memory, and its scratch.

    Memory behind a link bypasses the caches.
    """
    touches: dict[str, float] = {f"scratch of {i}": scratch} if scratch else {}
    node = graph.nodes[i]
    for edge in node.edges:
        for name in edge.tensors:
            tensor = graph.tensors[name]
            if tensor.place != "hbm":
                continue
            size = node.operand_bytes(edge.operand) * node.repeat if edge.part else tensor.bytes
            storage = graph.storage(name)
            touches[storage] = max(touches.get(storage, 0.0), min(size, tensor.bytes))
    return touches


def _survivors(graph: Graph, i: int) -> list[str]:
    """Tensors that a node leaves in the caches; not those it uses in part, since the part is
    unknown."""
    edges = (edge for edge in graph.nodes[i].edges if not edge.part)
    names = (name for edge in edges for name in edge.tensors)
    return [graph.storage(name) for name in names if graph.tensors[name].place == "hbm"]
