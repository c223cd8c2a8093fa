"""What-if devices: "an H100 with twice the memory bandwidth".

Each factor multiplies all facts that belong together, so that the copy still passes the spec's
physical checks. `units` and `clock` scale the peaks too, `matrix` the structure of the matrix unit,
a bandwidth also its measured value (the achieved fraction stays). Every changed fact has a note,
and the slug has the factors. Latencies, L2 and main memory do not follow `clock`: they have other
clocks. `power` is the board's limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware.blocks import FlopPerClock
from perfmodel.hardware.facts import Count, Quantity, Sourced
from perfmodel.hardware.levels import LINKS
from perfmodel.units import dimension_of, exact, parse

if TYPE_CHECKING:
    from perfmodel.hardware.device import Device

SOURCE = "what-if"
_TITLE = "A what-if copy: the published value times a factor"
_PEAKS = ("compute.matrix", "compute.vector", "measured.matrix", "measured.vector")
_MATRIX = ("compute.matrix", "compute.matrix_flop_per_clock_per_unit", "measured.matrix")
_VECTOR = ("compute.vector", "compute.vector_flop_per_clock_per_unit", "measured.vector")
_SPECIAL = ("compute.special_function", "measured.special_function")
_SHARED = ("memory.shared.bandwidth_per_unit", "measured.shared_bandwidth")

# Factor name to the parts of the spec that it multiplies; the first one is required.
PARTS: Mapping[str, tuple[str, ...]] = {
    "hbm_bandwidth": ("memory.hbm.bandwidth", "measured.hbm_bandwidth"),
    "hbm_capacity": ("memory.hbm.capacity",),
    "l2_bandwidth": ("memory.l2.bandwidth", "memory.l2.bytes_per_clock", "measured.l2_bandwidth"),
    "l2_capacity": ("memory.l2.capacity",),
    "llc_bandwidth": (
        "memory.llc.bandwidth",
        "memory.llc.bytes_per_clock",
        "measured.llc_bandwidth",
    ),
    "llc_capacity": ("memory.llc.capacity",),
    **{
        f"{name}_bandwidth": (f"links.{entry}.bandwidth_per_direction",)
        for name, entry in LINKS.items()
    },
    "shared_bandwidth": _SHARED,
    "shared_capacity": ("memory.shared.capacity_per_unit", "memory.shared.max_per_block"),
    "matrix": _MATRIX,
    "vector": _VECTOR,
    "special": _SPECIAL,
    "clock": ("compute.clocks", *_PEAKS, "measured.special_function"),
    "latency": ("latency",),
    "power": ("tdp",),
    "units": ("compute.units", *_PEAKS, "measured.special_function", "measured.shared_bandwidth"),
}
_MOST_COUNT, _MOST_FLOP = 10**9, 10**12  # as in a file


def scaled(device: Device, factors: Mapping[str, float]) -> Device:
    """`device` with each named quantity multiplied; names are the keys of `PARTS`.

    Raises `UnknownName` for another name, and `ProblemError` for a factor that is not a positive
    number or a quantity that the spec does not have. A number of units is rounded to a whole one.
    """
    for name, factor in factors.items():
        device = _scale_once(device, name, factor)
    return device


def _scale_once(device: Device, name: str, factor: float) -> Device:
    if name not in PARTS:
        raise UnknownName("quantity to scale", name, PARTS)
    if not (math.isfinite(factor) and factor > 0):
        raise ProblemError(f"{name}={factor!r}: a factor is a positive number")
    ratio = factor
    if name == "units":
        ratio = _count(device.units * factor) / device.units
    copy, changed = device, False
    for part in PARTS[name]:
        update = _update(copy, part.split("."), lambda fact: _times(fact, ratio))
        changed, copy = changed or update is not copy, update
    if not changed:
        raise ProblemError(f"{device.slug} has no {name} to scale")
    slug = f"{device.slug}({name}×{factor:g})"
    sources = {**copy.sources, SOURCE: _TITLE}
    clone = replace(copy, slug=slug, sources=sources)
    clone.__dict__["published"] = device.published
    return clone


def _update(block: Any, path: list[str], change: Callable[[Any], Any]) -> Any:
    """`block` with the part at `path` changed; the same block if there is no such part."""
    child = getattr(block, path[0])
    if child is None or child == {}:
        return block
    update = change(child) if len(path) == 1 else _update(child, path[1:], change)
    return block if update is child else replace(block, **{path[0]: update})


def _times(part: Any, factor: float) -> Any:
    """A fact, a table of facts or a block of facts, with each value multiplied."""
    if isinstance(part, dict):
        return {key: _times(item, factor) for key, item in part.items()}
    if isinstance(part, Sourced):
        return _fact_times(part, factor)
    values = {item.name: getattr(part, item.name) for item in fields(part)}
    return replace(
        part, **{name: _times(item, factor) for name, item in values.items() if item is not None}
    )


def _fact_times(fact: Sourced, factor: float) -> Sourced:
    source = fact.source if SOURCE in fact.source else (*fact.source, SOURCE)
    changes: dict[str, Any] = {"source": source, "status": "derived"}
    if isinstance(fact, Quantity):
        symbol = _symbol(fact)
        changes["value"] = exact(_stated_value(fact, symbol) * factor, symbol)
        changes["note"] = f"{fact.text} × {factor:g}"
    elif isinstance(fact, Count):
        changes["value"] = _count(fact.value * factor)
        changes["note"] = f"{fact.text} × {factor:g}"
    elif isinstance(fact, FlopPerClock):
        changes["values"] = {key: _count(value * factor) for key, value in fact.values.items()}
    product = replace(fact, **changes)
    if not _is_of_a_device(product):
        text = getattr(fact, "text", "a count")
        raise ProblemError(f"{text} × {factor:g} is beyond any device; change it by less")
    return product


def _is_of_a_device(fact: Sourced) -> bool:
    """Whether a scaled fact is within the range of real devices, as in a file."""
    if isinstance(fact, Quantity):
        dimension = dimension_of(fact.value)
        return dimension.allows(parse(fact.value, dimension.name))
    if isinstance(fact, FlopPerClock):
        return all(value <= _MOST_FLOP for value in fact.values.values())
    return not isinstance(fact, Count) or fact.value <= _MOST_COUNT


def _count(value: float) -> int:
    return max(1, round(value))


def _stated_value(fact: Quantity, symbol: str) -> float:
    """The value in the unit that `fact` is written in: a latency may be in cycles."""
    return parse(fact.value, "cycles") if symbol == "cycles" else fact.si


def _symbol(fact: Quantity) -> str:
    """The unit that `fact` is written in, without its prefix; the longest that fits."""
    symbols = dimension_of(fact.value).symbols
    return max((symbol for symbol in symbols if fact.text.endswith(symbol)), key=len)
