"""Operands that lie outside the device's own memory, behind one of its links.

A kernel reads them in place, each load over the link and past the L2, as with zero-copy reads of
pinned host memory and loads from a peer. A copy ahead of the kernel would move the same bytes at
the same rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import Device, Level
from perfmodel.timing.machine import Link
from perfmodel.timing.plan import Part, Plan
from perfmodel.units import seconds, si

OWN = "hbm"
"""The level that operands lie in by default: the device's own memory."""

# Round trip of a load to host memory over PCIe 3: 1.0 to 1.6 us (Min et al., EMOGI, VLDB 2020).
_ROUND_TRIP = 1e-6


def placed(
    plans: Sequence[Plan], place: Mapping[str, str], device: Device
) -> tuple[list[Plan], tuple[str, ...]]:
    """The plans with operands placed, and a sentence for each link on what was assumed.

    `place` maps an operand, by its tensor's name (K) or its role (kv), to a level.

    Raises `UnknownName` for an unknown operand or level. Raises `ProblemError` where the spec has
    no bandwidth of the link, where an operand is placed twice or shares another's memory, and for
    unfused attention, whose operators read copies.
    """
    links: dict[str, Link] = {}
    assumptions: list[str] = []
    for name in place.values():
        if name != OWN and name not in links:
            links[name] = _link(device, name, assumptions)
    if not place:
        return list(plans), ()
    if any(plan.schedule.startswith("standard") for plan in plans):
        raise ProblemError(
            "unfused attention copies its operands first, so none can be placed; "
            "take a tiled schedule"
        )
    levels = _tensor_levels([part for plan in plans for part in plan.parts], place)
    operand_links = {name: links[level] for name, level in levels.items() if level != OWN}
    return [
        replace(plan, parts=tuple(_placed_part(part, operand_links) for part in plan.parts))
        for plan in plans
    ], tuple(assumptions)


def _placed_part(part: Part, links: Mapping[str, Link]) -> Part:
    """A part with its own inputs placed."""
    return replace(part, placed={name: links[name] for name in part.inputs if name in links})


def _tensor_levels(parts: Sequence[Part], place: Mapping[str, str]) -> dict[str, str]:
    """The level of each placed tensor."""
    roles: dict[str, set[str]] = {}
    for part in parts:
        for name in part.inputs:
            roles.setdefault(part.schedule.algorithm.tensors[name].element, set()).add(name)
    operands = sorted({name for names in roles.values() for name in names})
    levels: dict[str, str] = {}
    for operand, level in place.items():
        names = {operand} if operand in operands else roles.get(operand, set())
        if not names:
            aliases = {name for part in parts for name in part.style.shared}
            if operand in aliases:
                raise ProblemError(f"{operand} lies in another operand's memory; place that one")
            raise UnknownName("operand", operand, [*operands, *roles])
        for name in sorted(names):
            if levels.setdefault(name, level) != level:
                raise ProblemError(f"{name} is placed in {levels[name]} and in {level}; choose one")
    return levels


def _link(device: Device, name: str, assumptions: list[str]) -> Link:
    """The link to a level; adds a sentence to `assumptions` on values that its spec lacks."""
    links = {level.name: level for level in device.levels() if level.scope == "link"}
    if name not in links:
        inner = device.level(name)
        if inner is not None:
            raise ProblemError(
                f"operands are placed in {OWN} or beyond, not in {name} ({inner.label}); "
                f"{device.slug} has {', '.join((OWN, *links))}"
            )
        raise UnknownName(f"level of {device.slug} to place operands in", name, (OWN, *links))
    level = links[name]
    if level.bytes_per_s is None:
        raise ProblemError(
            f"the spec of {device.slug} has no bandwidth of {level.label}, so nothing can be "
            f"placed in {name}; add bandwidth_per_direction"
        )
    assumptions.append(_sentence(level, level.bytes_per_s))
    return Link(name, level.bytes_per_s, level.latency_seconds or _ROUND_TRIP)


def _sentence(level: Level, rate: float) -> str:
    waits = "" if level.latency_seconds else f", {seconds(_ROUND_TRIP)} a load"
    return (
        f"{level.name} is read over {level.label} at its documented {si(rate, 'B/s')}{waits}, "
        "which no measured run was compared with"
    )
