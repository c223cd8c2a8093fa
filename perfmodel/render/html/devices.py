"""A page's devices: their numbers with their origin, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfmodel.columns import Row, text
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import Device, load
from perfmodel.hardware.facts import walk
from perfmodel.render.html.sections import Rows, Section
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
_COLUMNS = (
    text("device", "device"), text("fact", "fact"), text("value", "value"),
    text("known", "known"), text("source", "source"), text("note", "note"),
)  # fmt: skip


def section(slugs: Sequence[str], types: Sequence[str]) -> Section | None:
    """A line for each number of the devices, and the names of those without a spec."""
    specs: dict[str, Device] = {}
    for slug in slugs:
        try:
            specs[slug] = load(slug)
        except PerfmodelError:
            continue
    rows = [row for device in specs.values() for row in _rows(device, types)]
    rows += [{"device": slug, "fact": "no spec here, so no roofs"} for slug in slugs
             if slug not in specs]  # fmt: skip
    return Section("Devices", rows, _COLUMNS, [Rows()], id="devices") if rows else None


def _rows(device: Device, types: Sequence[str]) -> Iterator[Row]:
    matrix = [name for name in types if name in device.matrix_types]
    labels = {
        **_FACTS,
        **{f"compute.matrix.{name}": f"{name} matrix" for name in matrix},
        **{f"measured.matrix.{name}": f"{name} matrix, measured" for name in matrix},
        "compute.vector.fp32": "fp32 vector",
    }
    facts = {".".join(path): fact for path, fact in walk(device)}
    for path in filter(facts.__contains__, labels):
        fact = facts[path]
        yield {
            "device": device.slug,
            "fact": labels[path],
            "value": str(getattr(fact, "text", "") or getattr(fact, "value", "")),
            "known": STATUS[fact.status],
            "source": "; ".join(device.sources.get(key, key) for key in fact.source),
            "note": fact.note or "",
        }
