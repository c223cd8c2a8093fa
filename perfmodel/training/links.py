"""The fabric of a plan on a system, with collectives timed as the library would run them."""

from __future__ import annotations

from perfmodel.collectives import Collective, predict_collective
from perfmodel.errors import SizeError
from perfmodel.hardware import Device, System, systems
from perfmodel.training.fabric import Ask, Fabric, Taken
from perfmodel.training.plan import Plan


def fabric(plan: Plan, device: Device, system: System | None = None) -> Fabric:
    """The fabric of a plan on a system, or on the device's default system.

    Raises `SizeError` for more devices than the system has.
    """
    if plan.devices == 1:
        return Fabric(plan)
    joined = system or systems.usual(device)
    if plan.devices > joined.devices:
        copy = plan.devices // plan.data
        copies = joined.devices // copy
        raise SizeError(
            f"the plan takes {plan.devices:,} devices and {joined.slug} joins {joined.devices:,}",
            {"devices": [copy * n for n in range(max(copies - 3, 1), copies + 1)]},
        )
    if plan.zero == 3 and plan.setting.stack.one_adapter:
        joined = systems.by_one_door(joined)
    return Fabric(plan, joined.node_devices, _ask(joined))


def _ask(system: System) -> Ask:
    """Times of collectives on a system."""

    def answer(op: str, tensor_bytes: float, ranks: int, near: int, share: float) -> Taken:
        problem = Collective(op, round(tensor_bytes), ranks, near, network_share=share)
        found = predict_collective(problem, system)
        return Taken(
            float(found.seconds[0]), float(found.low_seconds[0]), float(found.high_seconds[0])
        )

    return answer
