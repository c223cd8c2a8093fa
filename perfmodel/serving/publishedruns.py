"""Published runs of served networks (published.csv), and the one nearest to a load.

The table is a serving-run table with the address of each document: figures that makers, papers and
benchmarks print, of settings that they state in full.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from perfmodel import published
from perfmodel.elements import element
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.hardware import load as load_device
from perfmodel.learned.groups import architecture_name
from perfmodel.networks.expand import parameter_count
from perfmodel.networks.library import load as load_network
from perfmodel.networks.network import Network
from perfmodel.published import Nearest, Point, Run
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.served import Served
from perfmodel.serving.servingrows import SIZES, answers, asked


def nearest(load: Served) -> Nearest | None:
    """The published run nearest to a load; None where none is near."""
    sizes = {"load": load.size, "isl": load.isl, "osl": load.osl}
    point = _point(load.of, load.kind, sizes, cached=load.cached > 0)
    return published.nearest(point, runs(point.words), _predicted)


@lru_cache(maxsize=64)
def runs(words: tuple[str, ...]) -> tuple[Run, ...]:
    """The shipped runs of a family, generation and kind of load (`Point.words`)."""
    return published.together(
        _run(i, row)
        for i, row in enumerate(table())
        if _words(load_network(row["network"]), load_device(row["device"]), row["load"]) == words
    )


@lru_cache(maxsize=1)
def table() -> tuple[dict[str, Any], ...]:
    """The rows of the table; empty cells are left out."""
    return published.rows("perfmodel.serving", "published.csv")


def _run(index: int, row: dict[str, Any]) -> Run:
    ask = asked(row)
    plan, lengths = ask.deployment, {key: row[key] for key in ("isl", "osl") if key in row}
    words = [
        f"{plan.network.name} on {plan.devices} x {plan.device.slug}",
        plan.engine.name,
        f"weights {plan.weights}, cache {plan.cache_type}",
        f"{SIZES[ask.load]} {ask.size:g}" if ask.size else "full load",
        *(f"{key} {length}" for key, length in lengths.items()),
    ]
    sizes = {"load": ask.size} | {key: float(length) for key, length in lengths.items()}
    metric = ask.metric + ("_per_device" if ask.per_device else "")
    values = {metric: (float(row["value"]), index)}
    return Run(", ".join(words), row["source"], row["url"], _point(plan, ask.load, sizes), values)


def _words(network: Network, device: Device, kind: str, *features: str) -> tuple[str, ...]:
    return network.family or network.name, architecture_name(device), kind, *features


def _point(
    plan: Deployment, kind: str, sizes: Mapping[str, float], *, cached: bool = False
) -> Point:
    """Where a load of a deployment is; a full load has no size."""
    features = {
        "pools": plan.pools, "drafts": plan.drafted, "images": plan.images, "cached": cached,
    }  # fmt: skip
    own = {
        "parameters": _parameters(plan.network),
        "memory_bandwidth": plan.device.hbm_bytes_per_s,
        "devices": float(plan.devices),
        "weight_bits": float(plan.format.bits),
        "cache_bits": float(element(plan.cache_type).bits),
    }
    return Point(
        _words(plan.network, plan.device, kind, *(name for name, each in features.items() if each)),
        own | {name: size for name, size in sizes.items() if size},
        (plan.engine.name, plan.weights, str(plan.tensor)),
    )


@lru_cache(maxsize=64)
def _parameters(network: Network) -> float:
    return float(parameter_count(network))


@lru_cache(maxsize=256)
def _predicted(index: int) -> float:
    """The metric of a row of the table, in its unit."""
    (value,) = answers([asked(table()[index])])
    if isinstance(value, str):
        raise ProblemError(value)
    return value.value
