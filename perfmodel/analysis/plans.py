"""Steps of many training plans, in this process or on a Dask scheduler (extra `dask`).

Plans keep their order; their kernels are predicted together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from perfmodel.errors import PerfmodelError
from perfmodel.hardware import Device, System
from perfmodel.networks.network import Network
from perfmodel.training.plan import Plan
from perfmodel.training.result import Step
from perfmodel.training.step import check, predict_steps

AT_ONCE = 64
"""Plans sent to a worker at a time."""
_TOGETHER = 512  # plans whose kernels are predicted together

Fields = Mapping[str, Any]
"""What `Plan.over` makes a plan of."""

Place = tuple[Network, Device, System | None]
"""The model that is trained and the system that it is trained on."""


def steps(
    place: Place, plans: Sequence[Fields], *, dask: str | None = None
) -> list[Step | PerfmodelError]:
    """The step of each plan, or the error of one that is not possible.

    `dask` is the address of a scheduler. With several plans, timelines and trees are not kept.
    Raises `OutputError` for a scheduler that does not answer, or whose workers give up.
    """
    if dask is None:
        rounds = (plans[i : i + _TOGETHER] for i in range(0, len(plans), _TOGETHER))
        return [outcome for some in rounds for outcome in _outcomes(place, some)]
    from perfmodel.analysis.sweep.dask_runner import connected, packed, told

    blob = packed(place)
    with connected(dask) as client, told("plans"):
        parts = [plans[i : i + AT_ONCE] for i in range(0, len(plans), AT_ONCE)]
        futures = [client.submit(_worker_steps, blob, part, pure=False) for part in parts]
        return [outcome for part in client.gather(futures) for outcome in part]


def _worker_steps(blob: bytes, plans: Sequence[Fields]) -> list[Step | PerfmodelError]:
    from perfmodel.analysis.sweep.dask_runner import unpacked

    return _outcomes(unpacked(blob), plans)


def _outcomes(place: Place, plans: Sequence[Fields]) -> list[Step | PerfmodelError]:
    network, device, system = place
    ready: list[Plan | PerfmodelError] = []
    for fields in plans:
        try:
            plan = Plan.over(**fields)
            check(network, plan, device, system)
            ready.append(plan)
        except PerfmodelError as error:
            ready.append(error)
    predicted = iter(_at_once(place, [plan for plan in ready if isinstance(plan, Plan)]))
    outcomes = [next(predicted) if isinstance(plan, Plan) else plan for plan in ready]
    if len(plans) == 1:
        return outcomes
    return [
        replace(each, timeline=None, tree=None) if isinstance(each, Step) else each
        for each in outcomes
    ]


def _at_once(place: Place, plans: Sequence[Plan]) -> list[Step | PerfmodelError]:
    """The steps of plans, predicted together; one by one where one of them has an error."""
    network, device, system = place
    try:
        return list(predict_steps(network, plans, device, system))
    except PerfmodelError as error:
        if len(plans) == 1:
            return [error]
        return [outcome for plan in plans for outcome in _at_once(place, [plan])]


def fastest(steps: Sequence[Step]) -> list[Step]:
    """For each number of each device the fastest plan that fits; if none fits, the one that lacks
    the least memory."""
    best: dict[tuple[str, int], Step] = {}
    for step in steps:
        key = step.device, step.plan.devices
        best[key] = min(best.get(key, step), step, key=_rank)
    order = list(dict.fromkeys(step.device for step in steps))
    return sorted(best.values(), key=lambda step: (order.index(step.device), step.plan.devices))


def _rank(step: Step) -> tuple[bool, float, float]:
    """Sort key, less is better: plans that fit, then least memory lacking, then least time."""
    return not step.memory.fits, step.memory.lacking_bytes, 1 / step.tokens_per_second
