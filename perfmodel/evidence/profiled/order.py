"""Launches in order against the nodes of a known graph, where a profile has no shapes.

Both are sequences of classes: gemm, attention, rmsnorm ... The nodes repeat layer after layer. A
launch takes the nearest node from where the one before it stands, at most `REACH` nodes on; one
whose class is not met there is left, as is a node that no launch took. Kernels that belong to an
operator of several (a split product's sum) are of no class and pass.
"""

from __future__ import annotations

from collections.abc import Sequence

REACH = 6
"""Nodes that a launch may pass over: a fused norm, an activation in a product's epilogue."""


def aligned(kinds: Sequence[str], nodes: Sequence[str]) -> list[int]:
    """The node of each launch, -1 for none; the nodes go round.

    Classes that no node has are passed without losing the place.
    """
    if not nodes:
        return [-1] * len(kinds)
    known = set(nodes)
    found, at = [], 0
    for kind in kinds:
        place = -1
        if kind in known:
            for step in range(min(REACH, len(nodes))):
                if nodes[(at + step) % len(nodes)] == kind:
                    place = (at + step) % len(nodes)
                    at = place + 1
                    break
        found.append(place)
    return found


def agreement(kinds: Sequence[str], nodes: Sequence[str]) -> float:
    """The share of launches of the nodes' classes that found a node."""
    known = set(nodes)
    meant = [kind for kind in kinds if kind in known]
    if not meant:
        return 0.0
    return sum(place >= 0 for place in aligned(meant, nodes)) / len(meant)
