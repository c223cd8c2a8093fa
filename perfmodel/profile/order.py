"""Aligns launches with the nodes of a known graph by order, for profiles without shapes.

Both are sequences of classes: gemm, attention, rmsnorm ... The nodes repeat layer after layer. A
launch is matched to the next node of its class after the previous launch's node, at most `REACH`
nodes ahead. A launch without such a node, and a node without a launch, stay unmatched. Auxiliary
kernels of an operator (the sum of a split product) have no class and are skipped.
"""

from __future__ import annotations

from collections.abc import Sequence

REACH = 6
"""Nodes that may be skipped between two launches: a fused norm, an activation in an epilogue."""


def aligned(kinds: Sequence[str], nodes: Sequence[str]) -> list[int]:
    """The node of each launch, -1 for none; after the last node comes the first.

    Launches of a class that no node has are skipped.
    """
    if not nodes:
        return [-1] * len(kinds)
    classes = set(nodes)
    places, cursor = [], 0
    for kind in kinds:
        place = -1
        if kind in classes:
            for step in range(min(REACH, len(nodes))):
                if nodes[(cursor + step) % len(nodes)] == kind:
                    place = (cursor + step) % len(nodes)
                    cursor = place + 1
                    break
        places.append(place)
    return places


def agreement(kinds: Sequence[str], nodes: Sequence[str]) -> float:
    """The share of matched launches among those whose class some node has."""
    classes = set(nodes)
    candidates = [kind for kind in kinds if kind in classes]
    if not candidates:
        return 0.0
    return sum(place >= 0 for place in aligned(candidates, nodes)) / len(candidates)
