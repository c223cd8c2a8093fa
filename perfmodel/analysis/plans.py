"""Steps of many training plans, in this process or on a Dask scheduler (extra `dask`).

Plans keep their order, so those that share a setting come one after another and share what was
predicted of it.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from perfmodel.analysis.sweep.plan import model_hash
from perfmodel.errors import OutputError, PerfmodelError
from perfmodel.hardware import Device, System
from perfmodel.networks.network import Network
from perfmodel.training.plan import Plan
from perfmodel.training.result import Step
from perfmodel.training.step import predict_step

AT_ONCE = 64
"""Plans that a worker is given at a time."""

Place = tuple[Network, Device, System | None]
"""What is trained, and on what."""


def steps(place: Place, plans: Sequence[Plan], *, dask: str | None = None) -> list[Step | str]:
    """The step of each plan, or in a line why it cannot be laid out.

    `dask` is the address of a scheduler. Of several plans no pipeline's timeline is kept. Raises
    `OutputError` for a scheduler that does not answer, or whose workers give up.
    """
    if dask is None:
        return _several(place, plans)
    from perfmodel.analysis.sweep.dask_runner import connected

    blob = pickle.dumps((place, model_hash()))
    with connected(dask) as client:
        parts = [plans[i : i + AT_ONCE] for i in range(0, len(plans), AT_ONCE)]
        asked = [client.submit(_apart, blob, part, pure=False) for part in parts]
        try:
            return [one for part in client.gather(asked) for one in part]
        except PerfmodelError:
            raise
        except Exception as error:  # whatever a worker died of
            said = " ".join(str(error).split())[:160]
            raise OutputError(f"the Dask workers gave plans up: {said}") from None


def _apart(blob: bytes, plans: Sequence[Plan]) -> list[Step | str]:
    return _several(_unpacked(blob), plans)


@lru_cache(maxsize=2)
def _unpacked(blob: bytes) -> Place:
    """The place, unpacked once for each worker; `OutputError` where its model is another one."""
    place, model = pickle.loads(blob)
    if model != model_hash():
        raise OutputError("a Dask worker has another version of perfmodel; install the same one")
    found: Any = place
    return found  # type: ignore[no-any-return]


def _several(place: Place, plans: Sequence[Plan]) -> list[Step | str]:
    network, device, system = place
    found: list[Step | str] = []
    for plan in plans:
        try:
            step = predict_step(network, plan, device, system)
        except PerfmodelError as error:
            found.append(str(error))
        else:
            found.append(step if len(plans) == 1 else replace(step, timeline=None))
    return found
