"""Live memory: bytes of a graph that are allocated while each node runs, by level.

The caller holds inputs and weights all the time, and outputs from the node that writes them to the
end. Every other tensor is allocated from the node that writes it to the last one that reads it,
both included (a node's operands and results exist at once). A tensor written over another one takes
no memory of its own. No allocator is modelled: fragmentation and caching come on top.
"""

from __future__ import annotations

from collections.abc import Sequence

from perfmodel.graph.graph import Graph


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
    levels = dict.fromkeys(("hbm", *(tensor.place for tensor in graph.tensors.values())))
    live = {level: [0.0] * len(graph.nodes) for level in levels}
    for name, (first, last) in intervals(graph).items():
        tensor = graph.tensors[name]
        for i in range(first, last + 1):
            live[tensor.place][i] += tensor.bytes
    for i, size in enumerate(scratch):
        live["hbm"][i] += size
    return live
