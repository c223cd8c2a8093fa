"""Steps of many training plans, in this process or on a Dask scheduler (extra `dask`).

Plans keep their order: neighbours that share a setting reuse its predictions.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from perfmodel.analysis.sweep.plan import model_hash
from perfmodel.errors import OutputError, PerfmodelError
from perfmodel.hardware import Device, System
from perfmodel.networks.network import Network
from perfmodel.training.plan import Plan
from perfmodel.training.result import Step
from perfmodel.training.step import predict_step

AT_ONCE = 64
"""Plans sent to a worker at a time."""

Place = tuple[Network, Device, System | None]
"""The model that is trained and the system that it is trained on."""


def steps(
    place: Place, plans: Sequence[Plan], *, dask: str | None = None
) -> list[Step | PerfmodelError]:
    """The step of each plan, or the error of one that is not possible.

    `dask` is the address of a scheduler. With several plans, pipeline timelines are not kept.
    Raises `OutputError` for a scheduler that does not answer, or whose workers give up.
    """
    if dask is None:
        return _outcomes(place, plans)
    from perfmodel.analysis.sweep.dask_runner import connected

    blob = pickle.dumps((place, model_hash()))
    with connected(dask) as client:
        parts = [plans[i : i + AT_ONCE] for i in range(0, len(plans), AT_ONCE)]
        futures = [client.submit(_worker_steps, blob, part, pure=False) for part in parts]
        try:
            return [one for part in client.gather(futures) for one in part]
        except PerfmodelError:
            raise
        except Exception as error:  # any error of a worker
            message = " ".join(str(error).split())[:160]
            raise OutputError(f"the Dask workers gave plans up: {message}") from None


def _worker_steps(blob: bytes, plans: Sequence[Plan]) -> list[Step | PerfmodelError]:
    return _outcomes(_payload(blob), plans)


@lru_cache(maxsize=2)
def _payload(blob: bytes) -> Place:
    """The place, unpacked once in each worker; `OutputError` if the worker's model differs."""
    place, model = pickle.loads(blob)
    if model != model_hash():
        raise OutputError("a Dask worker has another version of perfmodel; install the same one")
    return place  # type: ignore[no-any-return]


def _outcomes(place: Place, plans: Sequence[Plan]) -> list[Step | PerfmodelError]:
    network, device, system = place
    outcomes: list[Step | PerfmodelError] = []
    for plan in plans:
        try:
            step = predict_step(network, plan, device, system)
        except PerfmodelError as error:
            outcomes.append(error)
        else:
            outcomes.append(step if len(plans) == 1 else replace(step, timeline=None))
    return outcomes


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
