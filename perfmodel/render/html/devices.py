"""A page's devices: their numbers with their origin, as a table."""

from __future__ import annotations

import re
from collections.abc import Sequence

from perfmodel.columns import text
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import load
from perfmodel.render.html.sections import Row, Section
from perfmodel.render.roofline import STATUS
from perfmodel.render.specs import fact_rows

_SHOWN = (
    r"memory\.\w+\.(bandwidth|capacity\w*)|measured\.\w+_bandwidth|tdp"
    r"|compute\.(units|clocks\.boost|vector\.fp32)|(compute|measured)\.matrix\.({types})"
)
"""Paths of the facts that the page shows, with the types in use."""
_COLUMNS = tuple(text(key, key) for key in ("device", "fact", "value", "known", "source", "note"))


def section(slugs: Sequence[str], types: Sequence[str]) -> Section | None:
    """A line for each number of the devices, and the names of those without a spec."""
    rows: list[Row] = []
    paths = re.compile(_SHOWN.replace("{types}", "|".join(types)))
    for slug in slugs:
        try:
            device = load(slug)
        except PerfmodelError:
            rows.append({"device": slug, "fact": "no spec here, so no roofs"})
            continue
        rows += [
            {
                **row,
                "device": device.slug,
                "fact": row["fact"].replace(".", " ").replace("_", " "),
                "known": STATUS[row["status"]],
                "source": "; ".join(device.sources.get(key, key) for key in row["sources"]),
            }
            for row in fact_rows(device)
            if paths.fullmatch(row["fact"])
        ]
    return Section("Devices", rows, _COLUMNS, id="devices") if rows else None
