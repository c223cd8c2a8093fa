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
    target = system or systems.usual(device)
    if plan.devices > target.devices:
        copy = plan.devices // plan.data
        copies = target.devices // copy
        raise SizeError(
            f"the plan takes {plan.devices:,} devices and {target.slug} joins {target.devices:,}",
            {"devices": [copy * n for n in range(max(copies - 3, 1), copies + 1)]},
        )
    if plan.zero == 3 and plan.setting.stack.one_adapter:
        target = systems.by_one_door(target)
    return Fabric(plan, target.node_devices, _collective_times(target))


def _collective_times(system: System) -> Ask:
    """Times of collectives on a system."""

    def answer(op: str, tensor_bytes: float, ranks: int, local: int, share: float) -> Taken:
        problem = Collective(op, round(tensor_bytes), ranks, local, network_share=share)
        time = predict_collective(problem, system)
        return Taken(
            float(time.seconds[0]), float(time.low_seconds[0]), float(time.high_seconds[0])
        )

    return answer
