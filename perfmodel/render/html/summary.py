"""The summary of predictions in sentences: their number, limiters, and what fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.plaintext import listed
from perfmodel.render.html.kinds import KINDS
from perfmodel.render.problem import spoken
from perfmodel.render.terms import ABOUT
from perfmodel.units import seconds

if TYPE_CHECKING:
    from perfmodel.render.html.results import Results


_SUBJECTS = {
    "loads": "Serving",
    "fits": "What fits",
    "steps": "Training",
    "networks": "Time",
    "graphs": "Time",
    "kernels": "Profile",
    "runs": "Measured runs",
}
"""What a page with results of a kind is about; other kinds are called by their names."""


def sentences(cases: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every sentence of predictions, the most general first."""
    return [*_cases(cases), *_limiters(cases), *_faster(cases), *_rooms(cases)]


def headline(results: Results) -> str:
    """A title: what was predicted, on which devices; empty without rows of a known kind."""
    cases = [case for case in results.cases if not case.get("label")]
    subjects = [spoken(operator, fields) for operator, fields in shared_problems(cases).items()]
    kinds = {name: each for name, each in results.documents.items() if KINDS[name].sectioned}
    for name, documents in kinds.items():
        networks = [row.get("network") or row.get("graph") for d in documents for row in d.rows]
        names = listed(list(dict.fromkeys(str(name) for name in networks if name)), 40)
        subject = _SUBJECTS.get(name, name)
        subjects.append(f"{subject} of {names}" if names else subject)
    devices = listed(results.devices, 60)
    return "; ".join(subjects[:3]) + (f" on {devices}" if devices else "") if subjects else ""


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
    suffix = f" of {names}" if names else ""
    yield f"{_count(len(cases), 'prediction')}{suffix} on {_count(devices, 'device')}{span}."


def shared_problems(cases: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """For each operator, the fields of the problem that are the same in all of its cases."""
    problems: dict[str, list[Mapping[str, Any]]] = {}
    for case in cases:
        problems.setdefault(str(case["algorithm"]), []).append(case["problem"])
    return {
        operator: {
            name: value
            for name, value in group[0].items()
            if all(name in p and p[name] == value for p in group)
        }
        for operator, group in problems.items()
    }


def _limiters(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for device in dict.fromkeys(case["device"] for case in cases):
        group = [case for case in cases if case["device"] == device and case.get("limiter")]
        if not group:
            continue
        counts = Counter(_limiter(case) for case in group)
        text = ", ".join(f"{name} {count}" for name, count in counts.most_common())
        yield f"On {device}, cases are limited by: {text}."


def _limiter(case: Mapping[str, Any]) -> str:
    """The limiter: a memory level by its name on the device, another term with what it is."""
    term = str(case["limiter"])
    name = str((case.get("levels") or {}).get(term, term))
    about = ABOUT.get(term)
    return f"{name} ({about})" if about and name == term else name


def _faster(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Speed-up of the fastest device on the cases that all devices ran."""
    times: dict[str, dict[str, float]] = {}
    for case in cases:
        key = f"{case['algorithm']} {case.get('schedule')} {sorted(case['problem'].items())}"
        if case.get("time_us"):
            times.setdefault(case["device"], {})[key] = case["time_us"]
    common = set.intersection(*map(set, times.values())) if len(times) > 1 else set()
    if not common:
        return
    order = sorted(times, key=lambda device: sum(times[device][key] for key in common))
    first = times[order[0]]
    for device in order[1:]:
        ratio = float(np.median([times[device][key] / first[key] for key in common]))
        yield (
            f"{order[0]} takes 1/{ratio:.2f} of the time of {device} "
            f"(median of {_count(len(common), 'case')} that both ran)."
        )


def _rooms(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    count = sum(case.get("fits") is False for case in cases)
    if count:
        need = "needs" if count == 1 else "need"
        yield f"{_count(count, 'case')} {need} more memory than the device has: not runnable."
