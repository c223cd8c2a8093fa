"""Nsight Compute's CSV: launches in order, each with its duration.

The profiler replays and serialises launches, so there are no start times and no gaps between
launches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from perfmodel.errors import TableError
from perfmodel.evidence.importers import profileformats
from perfmodel.evidence.profiled import operations
from perfmodel.evidence.profiled.timeline import Columns, Recorded, Timeline, What

TOOL = "Nsight Compute"
_NANO = 1e9
_OPERATOR = re.compile(r"[\w.]+::[\w.]+(?:, seq = \d+)?(?:, op_id = \d+)?, sizes = \[.*\]")


def read(path: str | Path) -> Timeline:
    """Every launch with a time; raises `TableError` where there is none."""
    profile = profileformats.read(path)
    if profile.tool != "ncu":
        raise TableError(
            f"{path}: a table of {profile.tool} without launches in order; give its SQLite file, "
            "or for its sums perfmodel counters import"
        )
    columns, skipped, now = Columns(), 0, 0.0
    for launch in profile.launches:
        if launch.seconds is None:
            skipped += 1
            continue
        spent = launch.seconds * _NANO
        columns.add(What(launch.kernel, _recorded(launch.ranges)), now, spent)
        now += spent
    if not columns.start:
        raise TableError(f"{path}: no launch has a time; ask ncu for gpu__time_duration.sum")
    notes = (*profile.said, *((f"{skipped} launches without times left out",) if skipped else ()))
    return columns.timeline(TOOL, notes=notes)


def _recorded(ranges: Iterable[str]) -> Recorded | None:
    for text in ranges:
        found = _OPERATOR.search(text)
        if found is not None:
            return operations.from_text(found[0])
    return None
