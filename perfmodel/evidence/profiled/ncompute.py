"""Nsight Compute's CSV: launches in order, each with its duration.

The profiler replays and serialises launches, so there are no start times and no gaps between
launches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from perfmodel.errors import TableError
from perfmodel.evidence.importers.profiles import Profile
from perfmodel.evidence.profiled import operations
from perfmodel.evidence.profiled.timeline import Columns, Recorded, Timeline, What

TOOL = "Nsight Compute"
_NANO = 1e9
_OPERATOR = re.compile(r"[\w.]+::[\w.]+(?:, seq = \d+)?(?:, op_id = \d+)?, sizes = \[.*\]")


def read(profile: Profile, where: str) -> Timeline:
    """Every launch with a time; raises `TableError` where there is none."""
    columns, skipped, now = Columns(), 0, 0.0
    for launch in profile.launches:
        if launch.seconds is None:
            skipped += 1
            continue
        spent = launch.seconds * _NANO
        columns.add(What(launch.kernel, _recorded(launch.ranges)), now, spent)
        now += spent
    if not columns.start:
        raise TableError(f"{where}: no launch has a time; ask ncu for gpu__time_duration.sum")
    notes = (*profile.said, *((f"{skipped} launches without times left out",) if skipped else ()))
    return columns.timeline(TOOL, notes=notes, clocked=False)


def _recorded(ranges: Iterable[str]) -> Recorded | None:
    for text in ranges:
        found = _OPERATOR.search(text)
        if found is not None:
            return operations.from_text(found[0])
    return None
