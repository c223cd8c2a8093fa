"""All-reduce kernels of frameworks, and the sizes at which NCCL runs instead.

One-shot: each rank reads every rank's buffer and sums it. Two-shot: each rank sums its share, then
fetches the other shares. Multimem: the switch sums (`custom.yaml` has limits and sources).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from perfmodel import yamltable
from perfmodel.collectives.nccl import Method
from perfmodel.collectives.route import Route
from perfmodel.hardware import Device
from perfmodel.plaintext import whole_number


@lru_cache(maxsize=1)
def table() -> Mapping[str, Any]:
    """`custom.yaml`, parsed."""
    document: Mapping[str, Any] = yamltable.read(Path(__file__).with_name("custom.yaml"))
    return document


def libraries() -> Mapping[str, Mapping[str, Any]]:
    """Libraries with kernels of their own, by name."""
    entries: Mapping[str, Mapping[str, Any]] = table()["libraries"]
    return entries


def family(library: str) -> str:
    """The library without its version: vllm for vllm-0.19."""
    return str(libraries().get(library, {}).get("of", library))


def spelt(name: str, version: str = "") -> str:
    """The library with this name in tables, at a version; without one, the oldest."""
    word = name.lower()
    library = next((k for k, v in libraries().items() if word in v.get("aliases", ())), word)
    releases = {_order(v["since"]): k for k, v in libraries().items() if v.get("of") == library}
    orders = [order for order in releases if order <= _order(version)]
    return releases[max(orders)] if orders else library


def _order(version: str) -> tuple[int, ...]:
    """A version's whole numbers, so that 0.5.14 comes after 0.5.9."""
    numbers = map(whole_number, version.split("."))
    return tuple(number for number in numbers if number is not None)


def kernels(library: str, op: str, route: Route, architecture: str) -> list[tuple[Method, float]]:
    """The library's own kernels on these links in the order in which it asks, each with the number
    of bytes from which it does not run."""
    if op != "all-reduce" or not route.on_fabric:
        return []
    pairs = []
    for entry in libraries()[library]["kernels"]:
        limits = entry.get("by", {}).get(architecture, entry["below"])
        if entry["algorithm"] != "multimem" or route.inner.level.reduces:
            method = Method(
                entry["algorithm"],
                entry["protocol"],
                entry.get("in_flight_bytes", table()["in_flight_bytes"]),
                entry.get("gathers", entry["protocol"]),
                entry.get("copies", 0),
            )
            pairs.append((method, limits.get(route.ranks, 0)))
    return pairs


def choice(limits: list[float], bytes_: np.ndarray) -> np.ndarray:
    """Index of the first kernel whose limit is above the bytes; -1 where there is none."""
    runs = np.asarray(bytes_)[None, :] < np.reshape(limits, (-1, 1))
    return np.where(runs.any(axis=0), runs.argmax(axis=0), -1)


def call_seconds(device: Device, library: str, method: Method) -> float:
    """Host time of an eager call, by the link to the host's processor, the library and the kernels
    that copy."""
    by_link: Mapping[str, float] = table()["call_seconds"]
    link = device.links.host if device.links else None
    seconds = by_link.get(link.name if link else "", by_link["usual"])
    call = libraries().get(library, {}).get("call", 1.0)
    return float(seconds * (call + table()["copy_call"] * method.copies))
