"""Rows that are dispatched to experts: how many nodes a token's copies go to.

A dispatcher sends a token once to each node that has some of its experts, and forwards it inside
the node (DeepEP; DeepSeek-V3, 2412.19437, section 3.2.2). With k experts evenly spread over n nodes
it has experts on

    n · (1 − (1 − 1/n)^k)

of them. A router that is limited to L of G groups of experts takes j of a node's G/n groups with
the hypergeometric chance H(j), and a node has none of the k experts with chance
Σⱼ H(j)·(1 − j/L)^k. Where a group has several nodes, it is 1 − L/G + L/G · (1 − G/(n·L))^k (own
derivation).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

from perfmodel.algorithms.grouped import reached


@dataclass(frozen=True)
class Router:
    """How a token's experts are chosen: evenly, and perhaps from few groups."""

    chosen: int
    """Experts of a token."""
    groups: int = 0
    """Groups that the experts lie in; 0: one for each node."""
    chosen_groups: int = 0
    """Groups that a token's experts are in at most; 0: no limit."""

    def nodes(self, nodes: int) -> float:
        """Expected number of nodes that hold some of a token's experts."""
        groups, limit = self.groups, self.chosen_groups
        if not limit or limit >= groups:
            return float(reached(nodes, self.chosen))
        if nodes >= groups:
            present = 1 - (1 - groups / (nodes * limit)) ** self.chosen
            return float(nodes * limit / groups * present)
        local = groups // nodes
        absent = sum(
            comb(local, j) * comb(groups - local, limit - j) * (1 - j / limit) ** self.chosen
            for j in range(min(local, limit) + 1)
        ) / comb(groups, limit)
        return float(nodes * (1 - absent))

    def share(self, nodes: int) -> float:
        """Copies of a token that cross the network, over its experts."""
        return self.nodes(nodes) / self.chosen
