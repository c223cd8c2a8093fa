"""The links under a plan: which ranks of a system each mesh axis joins, and what exchanges take.

Axes lie on a system from the inside outwards as Megatron-LM lays them (parallel_state.py): tensor,
context, data (with the experts inside it, and around these `expert-data`, their copies), pipeline.
An axis of r ranks at a stride of s devices has as many of its ranks in a node of G devices as fit
there: G / s, at least one and at most r.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from perfmodel.networks.recorder import Exchanged
from perfmodel.training.plan import Plan

_ROUND = ("all-gather", "reduce-scatter")


class Taken(NamedTuple):
    """What one exchange takes, in seconds, with its range."""

    seconds: float
    """Predicted."""
    low_seconds: float
    """Low end of the 80 % range."""
    high_seconds: float
    """High end."""


Ask = Callable[[str, float, int, int], Taken]
"""Operation, bytes of the whole tensor, ranks, ranks of them in one node → what it takes."""


@dataclass(frozen=True)
class Fabric:
    """Exchanges of a plan. One device has none, and `ask` is never called."""

    plan: Plan
    """Whose axes."""
    node_devices: int = 1
    """Devices of a node."""
    ask: Ask | None = None
    """What exchanges take on the system."""
    asked: dict[tuple[str, float, str], Taken] = field(default_factory=dict, compare=False)
    """Answers so far."""

    def ranks(self, axis: str) -> tuple[int, int]:
        """Ranks of an axis, and those of them in one node."""
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
        """What an exchange along an axis takes."""
        if op == "ring-gradient":  # keys and values once more, and their gradients with them
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
        """What an exchange between kernels of a layer takes."""
        return self.between(one).seconds

    def between(self, one: Exchanged) -> Taken:
        """The same with its range.

        K experts of a token that are spread evenly over N nodes lie in N·(1 − (1 − 1/N)^K) of them
        on average; where a token goes to a node once, so many rows cross the network and not K.
        """
        moved = one.tensor_bytes
        if one.repeats > 1 and self.plan.setting.stack.sends_once:
            ranks, near = self.ranks(one.axis)
            nodes = ranks / near
            if nodes > 1:
                moved *= nodes * (1.0 - (1.0 - 1.0 / nodes) ** one.repeats) / one.repeats
        return self.take(one.kind, moved, one.axis)
