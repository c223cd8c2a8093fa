"""A device on the page: its numbers with their origin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfmodel.errors import PerfmodelError
from perfmodel.hardware import Device, load
from perfmodel.hardware.facts import walk
from perfmodel.render.html.markup import Markup, section, tag
from perfmodel.render.roofline import STATUS

_FACTS = {
    "memory.hbm.bandwidth": "memory bandwidth",
    "measured.hbm_bandwidth": "memory bandwidth, measured",
    "memory.hbm.capacity": "memory",
    "memory.llc.bandwidth": "last-level cache bandwidth",
    "memory.l2.bandwidth": "L2 bandwidth",
    "measured.l2_bandwidth": "L2 bandwidth, measured",
    "memory.l2.capacity": "L2",
    "memory.shared.capacity_per_unit": "shared memory a unit",
    "compute.units": "units",
    "compute.clocks.boost": "boost clock",
    "tdp": "board power",
}
"""Facts of a spec that the page shows, besides the rates of the types in use."""


def cards(slugs: Sequence[str], types: Sequence[str]) -> Markup | str:
    """The section of devices: a card each, and the names of those without a spec."""
    specs: dict[str, Device] = {}
    for slug in slugs:
        try:
            specs[slug] = load(slug)
        except PerfmodelError:
            continue
    unknown = [slug for slug in slugs if slug not in specs]
    if not slugs:
        return ""
    return section(
        "devices", "Devices",
        tag("div", [_card(slug, device, types) for slug, device in specs.items()], class_="cards"),
        tag("p", f"Without a spec here, and so without roofs: {', '.join(unknown)}.", class_="note")
        if unknown else "",
    )  # fmt: skip


def _card(slug: str, device: Device, types: Sequence[str]) -> Markup:
    facts = tag("dl", _facts(device, [name for name in types if name in device.matrix_types]))
    heading = tag("strong", device.name), " ", tag("span", slug, class_="note")
    return tag("div", *heading, facts, class_="card")


def _facts(device: Device, types: Sequence[str]) -> Iterator[Markup]:
    """The numbers of a device; pointing at one tells its origin."""
    labels = {
        **_FACTS,
        **{f"compute.matrix.{name}": f"{name} matrix" for name in types},
        **{f"measured.matrix.{name}": f"{name} matrix, measured" for name in types},
        "compute.vector.fp32": "fp32 vector",
    }
    facts = {".".join(path): fact for path, fact in walk(device)}
    for path, label in labels.items():
        fact = facts.get(path)
        if fact is None:
            continue
        value = str(getattr(fact, "text", "") or getattr(fact, "value", ""))
        lines = [f"{label}: {value}", f"known: {STATUS[fact.status]}",
                *([f"note: {fact.note}"] if fact.note else []),
                *(f"source: {device.sources.get(key, key)}" for key in fact.source)]  # fmt: skip
        button = tag("button", value, type="button", class_="fact", data_tip="\n".join(lines))
        yield tag("dt", label)
        yield tag("dd", button)
