"""Published training runs (published.csv), and the one nearest to a step.

The table is a training-run table with the address of each document: figures that papers and makers
print, of plans that they state in full.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from perfmodel import published
from perfmodel.elements import element
from perfmodel.hardware import Device
from perfmodel.hardware import load as load_device
from perfmodel.learned.groups import architecture_name
from perfmodel.networks.expand import parameter_count
from perfmodel.networks.network import Network
from perfmodel.published import Nearest, Point, Run
from perfmodel.training.metrics import value
from perfmodel.training.plan import Plan
from perfmodel.training.result import Step
from perfmodel.training.runnetwork import Cells, network_of
from perfmodel.training.step import predict_step
from perfmodel.training.trainingrows import plan_of

_AXES = ("tensor", "pipeline", "data", "context", "expert")


def nearest(step: Step) -> Nearest | None:
    """The published run nearest to a step; None where none is near."""
    point = _point(step.network, step.plan, load_device(step.device))
    return published.nearest(point, runs(point.words), _predicted)


@lru_cache(maxsize=64)
def runs(words: tuple[str, ...]) -> tuple[Run, ...]:
    """The shipped runs of a family and generation (`Point.words`)."""
    return published.together(
        _run(i, row)
        for i, row in enumerate(table())
        if _words(network_of(Cells(row)), load_device(row["device"])) == words
    )


@lru_cache(maxsize=1)
def table() -> tuple[dict[str, Any], ...]:
    """The rows of the table; empty cells are left out."""
    return published.rows("perfmodel.training", "published.csv")


def _run(index: int, row: dict[str, Any]) -> Run:
    ask = plan_of(row)
    plan = ask.plan
    axes = {name: getattr(plan, name) for name in _AXES if getattr(plan, name) > 1}
    words = [
        f"{ask.network.name} on {plan.devices:,} x {row['device']}",
        f"{plan.stack} {row['dtype']}",
        *(f"{name} {size}" for name, size in axes.items()),
        f"recompute {plan.recompute}",
        f"seq {plan.seq}",
        f"global batch {plan.global_batch}",
    ]
    values = {row["metric"]: (float(row["value"]), index)}
    point = _point(ask.network, plan, load_device(row["device"]))
    return Run(", ".join(words), row["source"], row["url"], point, values)


def _words(network: Network, device: Device, *features: str) -> tuple[str, ...]:
    return network.family or network.name, architecture_name(device), *features


def _point(network: Network, plan: Plan, device: Device) -> Point:
    """Where a step is."""
    features = ["adapters"] * (plan.tuning is not None) + ["offload"] * bool(plan.offloads)
    sizes = {
        "parameters": _parameters(network),
        "memory_bandwidth": device.hbm_bytes_per_s,
        "bits": float(element(plan.dtype).bits),
        "devices": float(plan.devices),
        "seq": float(plan.seq),
        "global_batch": float(plan.global_batch),
    }
    kinds = plan.stack, plan.recompute, str(plan.zero), *(str(getattr(plan, n)) for n in _AXES)
    return Point(_words(network, device, *features), sizes, kinds)


@lru_cache(maxsize=64)
def _parameters(network: Network) -> float:
    return float(parameter_count(network))


@lru_cache(maxsize=64)
def _predicted(index: int) -> float:
    """The metric of a row of the table, in its unit."""
    row = table()[index]
    ask = plan_of(row)
    return value(predict_step(ask.network, ask.plan, load_device(row["device"])), row)[0]
