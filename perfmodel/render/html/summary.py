"""The summary of predictions in sentences: their number, limiters, and what fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from perfmodel.units import seconds


def sentences(cases: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every sentence of predictions, the most general first."""
    return [*_cases(cases), *_limiters(cases), *_faster(cases), *_rooms(cases)]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _cases(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not cases:
        return
    devices = len({case["device"] for case in cases})
    names = ", ".join(dict.fromkeys(str(case["algorithm"]) for case in cases if case["algorithm"]))
    times = [case["time_us"] for case in cases if case.get("time_us") is not None]
    span = ""
    if times:
        low, high = (seconds(value / 1e6) for value in (min(times), max(times)))
        span = f", from {low} to {high}" if low != high else f", {low}"
    of = f" of {names}" if names else ""
    yield f"{_count(len(cases), 'prediction')}{of} on {_count(devices, 'device')}{span}."


def _limiters(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for device in dict.fromkeys(case["device"] for case in cases):
        mine = [case for case in cases if case["device"] == device and case.get("limiter")]
        if not mine:
            continue
        counts = Counter(_called(case, str(case["limiter"])) for case in mine)
        said = ", ".join(f"{name} {count}" for name, count in counts.most_common())
        yield f"On {device}, cases are limited by: {said}."


def _called(case: Mapping[str, Any], term: str) -> str:
    """The name of a level on the case's device."""
    return str((case.get("levels") or {}).get(term, term))


def _faster(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Speed-up of the fastest device on the cases that all devices ran."""
    times: dict[str, dict[str, float]] = {}
    for case in cases:
        same = f"{case['algorithm']} {case.get('schedule')} {sorted(case['problem'].items())}"
        if case.get("time_us"):
            times.setdefault(case["device"], {})[same] = case["time_us"]
    common = set.intersection(*map(set, times.values())) if len(times) > 1 else set()
    if not common:
        return
    order = sorted(times, key=lambda device: sum(times[device][same] for same in common))
    first = times[order[0]]
    for device in order[1:]:
        ratio = float(np.median([times[device][same] / first[same] for same in common]))
        yield (
            f"{order[0]} takes 1/{ratio:.2f} of the time of {device} "
            f"(median of {_count(len(common), 'case')} that both ran)."
        )


def _rooms(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    beyond = sum(case.get("fits") is False for case in cases)
    if beyond:
        need = "needs" if beyond == 1 else "need"
        yield f"{_count(beyond, 'case')} {need} more memory than the device has: not runnable."
