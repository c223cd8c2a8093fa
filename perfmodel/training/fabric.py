"""The links of a plan: the ranks that each mesh axis joins, and the time of exchanges.

Axes are placed on a system from the inside outwards, as Megatron-LM does (parallel_state.py):
tensor, context, data, pipeline. The experts are inside data; their copies are the axis
`expert-data`. An axis of r ranks at a stride of s devices has G / s of its ranks in a node of G
devices, at least one and at most r.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from perfmodel.networks.recorder import Exchanged
from perfmodel.training.plan import Plan

_ROUND = ("all-gather", "reduce-scatter")


class Taken(NamedTuple):
    """Time of one exchange in seconds, with its range."""

    seconds: float
    """Predicted."""
    low_seconds: float
    """Low end of the 80 % range."""
    high_seconds: float
    """High end."""


Ask = Callable[[str, float, int, int], Taken]
"""(operation, bytes of the whole tensor, ranks, ranks in one node) → time."""


@dataclass(frozen=True)
class Fabric:
    """Exchanges of a plan. A plan on one device has none, and `ask` is never called."""

    plan: Plan
    """The plan whose axes these are."""
    node_devices: int = 1
    """Devices in a node."""
    ask: Ask | None = None
    """Time of an exchange on the system."""
    asked: dict[tuple[str, float, str], Taken] = field(default_factory=dict, compare=False)
    """Cache of answers."""

    def ranks(self, axis: str) -> tuple[int, int]:
        """Ranks of an axis, and how many of them are in one node."""
        plan = self.plan
        inner = plan.expert <= plan.data
        inside = {
            "tensor": 1,
            "context": plan.tensor,
            "expert": plan.tensor * plan.context if inner else 1,
            "data": plan.tensor,
            "expert-data": plan.expert * (plan.tensor if inner else 1),
            "pipeline": plan.tensor * plan.context * plan.data,
        }
        copies = {"data": plan.copies, "expert-data": plan.expert_copies}
        ranks = copies[axis] if axis in copies else int(getattr(plan, axis))
        near = max(min(self.node_devices // inside[axis], ranks), 1)
        while ranks % near:  # groups of equal size
            near -= 1
        return ranks, near

    def take(self, op: str, tensor_bytes: float, axis: str) -> Taken:
        """Time of an exchange along an axis."""
        if op == "ring-gradient":  # keys and values once more, with their gradients
            once, back = (self.take(each, tensor_bytes, axis) for each in _ROUND)
            return Taken(*(a + b for a, b in zip(once, back, strict=True)))
        op = "all-gather" if op == "ring" else op  # as many bytes over the same links
        ranks, near = self.ranks(axis)
        if ranks == 1 or tensor_bytes <= 0:
            return Taken(0.0, 0.0, 0.0)
        key = (op, tensor_bytes, axis)
        if key not in self.asked:
            assert self.ask is not None
            pair = op == "send-receive"
            self.asked[key] = self.ask(
                op, tensor_bytes, 2 if pair else ranks, (2 if near > 1 else 1) if pair else near
            )
        return self.asked[key]

    def seconds(self, one: Exchanged) -> float:
        """Seconds of an exchange between kernels of a layer."""
        return self.between(one).seconds

    def between(self, one: Exchanged) -> Taken:
        """The same with its range.

        K experts of a token, spread evenly over N nodes, are on N·(1 − (1 − 1/N)^K) of them on
        average. Where a token is sent to a node once, that many rows cross the network instead of
        K.
        """
        moved = one.tensor_bytes
        if one.repeats > 1 and self.plan.setting.stack.sends_once:
            ranks, near = self.ranks(one.axis)
            nodes = ranks / near
            if nodes > 1:
                moved *= nodes * (1.0 - (1.0 - 1.0 / nodes) ** one.repeats) / one.repeats
        return self.take(one.kind, moved, one.axis)
