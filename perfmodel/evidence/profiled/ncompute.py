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
    columns, skips, clock = Columns(), 0, 0.0
    for launch in profile.launches:
        if launch.seconds is None:
            skips += 1
            continue
        duration = launch.seconds * _NANO
        columns.add(What(launch.kernel, _operator(launch.ranges)), clock, duration)
        clock += duration
    if not columns.start:
        raise TableError(f"{where}: no launch has a time; ask ncu for gpu__time_duration.sum")
    notes = (*profile.said, *((f"{skips} launches without times left out",) if skips else ()))
    return columns.timeline(TOOL, notes=notes, clocked=False)


def _operator(ranges: Iterable[str]) -> Recorded | None:
    for text in ranges:
        match = _OPERATOR.search(text)
        if match is not None:
            return operations.from_text(match[0])
    return None
