"""The links of a plan: the ranks that each mesh axis joins, and the time of exchanges.

Axes are placed on a system from the inside outwards, as Megatron-LM does (parallel_state.py):
tensor, context, data, pipeline. The experts are inside data, or inside tensor and data where the
devices of tensor do not split them; their copies are the axis `expert-data`. An axis of r ranks at
a stride of s devices has G / s of its ranks in a node of G devices, at least one and at most r.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from math import gcd

from perfmodel.collectives import Collective
from perfmodel.errors import SizeError
from perfmodel.graph.tree import Tree
from perfmodel.hardware import Device, System, systems
from perfmodel.hardware.variants import by_one_adapter
from perfmodel.networks.dispatching import exchange_ends, sends
from perfmodel.networks.networktime import Held
from perfmodel.networks.recorder import Exchanged
from perfmodel.networks.stack import Stack
from perfmodel.training.overlap import FABRIC_UNITS, Work, tiled_seconds, together_seconds
from perfmodel.training.plan import Plan

_ROUND = ("all-gather", "reduce-scatter")


Ask = Callable[[str, float, int, int, int], Tree]
"""(operation, bytes of the whole tensor, ranks, ranks in one node, devices from one rank to the
next) → time."""


@dataclass(frozen=True)
class Fabric:
    """Exchanges of a plan. A plan on one device has none, and `ask` is never called."""

    plan: Plan
    """The plan whose axes these are."""
    node_devices: int = 1
    """Devices in a node."""
    ask: Ask | None = None
    """Time of an exchange on the system."""
    system: System | None = None
    """The system, where kernels of the stack's dispatcher may run exchanges with experts."""
    asked: dict[tuple[str, float, str, int], Tree] = field(default_factory=dict, compare=False)
    """Cache of answers."""
    without: str = ""
    """An axis whose exchanges between kernels take no time, as something else hides them."""

    def ranks(self, axis: str) -> tuple[int, int]:
        """Ranks of an axis, and how many of them are in one node."""
        plan = self.plan
        copies = {"data": plan.copies, "expert-data": plan.expert_copies}
        ranks = copies[axis] if axis in copies else int(getattr(plan, axis))
        local = max(min(self.node_devices // self.stride(axis), ranks), 1)
        while ranks % local:  # groups of equal size
            local -= 1
        return ranks, local

    def stride(self, axis: str) -> int:
        """Devices from one rank of an axis to the next."""
        plan = self.plan
        split, inner = plan.tensor if plan.splits_experts else 1, plan.expert <= plan.data
        strides = {
            "tensor": 1,
            "context": plan.tensor,
            "expert": split * (plan.context if plan.splits_experts and inner else 1),
            "data": plan.tensor,
            "expert-data": plan.expert * split,
            "pipeline": plan.tensor * plan.context * plan.data,
        }
        return strides[axis]

    def take(self, op: str, tensor_bytes: float, axis: str, group: int | None = None) -> Tree:
        """Time of an exchange along an axis, or among each `group` of its nearest ranks."""
        if op in (
            "ring-gradient",
            "gather-gradient",
        ):  # keys and values once more, with their gradients
            ring, gradient = (self.take(each, tensor_bytes, axis) for each in _ROUND)
            return ring + gradient
        op = "all-gather" if op == "ring" else op  # as many bytes over the same links
        ranks, local = self.ranks(axis)
        if group is not None:
            ranks, local = group, gcd(group, local)
        if ranks == 1 or tensor_bytes <= 0:
            return exchange(op, (0.0, 0.0, 0.0))
        key = (op, tensor_bytes, axis, ranks)
        if key not in self.asked:
            assert self.ask is not None
            if op == "send-receive":
                ranks, local = 2, min(local, 2)
            # Which ranks share a leaf switch matters where the network has some.
            stride = self.stride(axis) if self.system and self.system.leaves else 1
            self.asked[key] = self.ask(op, tensor_bytes, ranks, local, stride)
        return self.asked[key]

    def seconds(self, one: Exchanged, product_seconds: float, beside_seconds: float) -> float:
        """Seconds that an exchange between kernels of a layer adds to them.

        In tensor parallelism, a stack may send a product's rows in tiles while it runs, or send
        beside a product that needs none of them.
        """
        if one.axis == self.without:
            return 0.0
        stack, transfer = self.plan.setting.stack, self.between(one).seconds
        if one.axis != "tensor":
            return transfer
        work = Work(transfer, FABRIC_UNITS)
        if stack.tiles > 1 and product_seconds:
            tiled = tiled_seconds(Work(product_seconds, 1.0), work, stack.tiles)
            return float(tiled) - product_seconds
        if stack.sends_beside and beside_seconds:
            return float(together_seconds(Work(beside_seconds, 1.0), work)) - beside_seconds
        return transfer

    def between(self, one: Exchanged) -> Tree:
        """The same with its range, as if nothing hid it."""
        stack = self.plan.setting.stack
        if self.system is None or not sends(stack, self.system, one):
            return self.take(one.kind, one.tensor_bytes, one.axis)
        return _dispatched(
            Held(self.system), replace(one, name="", before=0), *self.ranks(one.axis), stack
        )


def fabric(plan: Plan, device: Device, system: System | None = None) -> Fabric:
    """The fabric of a plan on a system, or on the device's default system.

    Raises `SizeError` for more devices than the system has.
    """
    if plan.devices == 1:
        return Fabric(plan)
    target = system or systems.usual(device)
    if plan.devices > target.devices:
        copy = plan.devices // plan.data
        copies = target.devices // copy
        raise SizeError(
            f"the plan takes {plan.devices:,} devices and {target.slug} joins {target.devices:,}",
            {"devices": [copy * n for n in range(max(copies - 3, 1), copies + 1)]},
        )
    if plan.zero == 3 and plan.setting.stack.one_adapter:
        target = by_one_adapter(target)
    return Fabric(plan, target.node_devices, partial(_taken, Held(target)), target)


@lru_cache(maxsize=4096)
def _taken(
    key: Held[System], op: str, tensor_bytes: float, ranks: int, local: int, stride: int
) -> Tree:
    """Time of a collective on a system."""
    problem = Collective(op, round(tensor_bytes), ranks, local, stride=stride)
    return exchange(op, problem.seconds_on(key.own))


@lru_cache(maxsize=4096)
def _dispatched(key: Held[System], rows: Exchanged, ranks: int, local: int, stack: Stack) -> Tree:
    """Time of an exchange with experts by the stack's dispatcher."""
    seconds, low, high = exchange_ends([rows], ranks, local, key.own, stack)[:, 0].tolist()
    return exchange(rows.kind, (seconds, low, high))


def exchange(op: str, ends: tuple[float, float, float]) -> Tree:
    """An exchange as a leaf: its seconds, and the ends of their range."""
    seconds, low, high = ends
    return Tree(
        name=op, kind="communication", family="collective", seconds=seconds, low_seconds=low,
        high_seconds=high,
    )  # fmt: skip
