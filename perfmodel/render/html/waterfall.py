"""How the terms of a case join: what runs beside each other, what is added behind, and the sum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perfmodel.render.terms import ABOUT
from perfmodel.units import seconds

_SERIAL = ("blocks", "gap", "launch", "included", "exchange")
_SLACK = "time at the power limit; slack, for it does not hold the clocks down"
_OTHERS = "the terms beside the longest overlap with it imperfectly"
_TINY = 1e-3  # of the time: what the others add is not told below this share

Line = tuple[str, str, str, float, float, str]
"""A row of the waterfall: name, what it is, its time, start and end of its bar, its colour."""


def _slack(case: Mapping[str, Any], name: str) -> bool:
    return name == "power" and case.get("limiter") != "power"


def _parts(
    case: Mapping[str, Any],
) -> tuple[list[tuple[str, float]], list[tuple[str, float]], float, float]:
    """Terms beside each other, terms before and behind, the longest of the former, and what the
    others add to it."""
    terms = [(name, time) for name, time in (case.get("terms_us") or {}).items() if time > 0]
    serial = [(name, time) for name, time in terms if name in _SERIAL]
    beside = sorted((each for each in terms if each[0] not in _SERIAL), key=lambda e: -e[1])
    if case.get("limiter") in _SERIAL:
        longest = next((time for name, time in beside if not _slack(case, name)), 0.0)
    else:
        longest = dict(terms).get(str(case.get("limiter")), 0.0)
    rest = case["time_us"] - longest - sum(time for _, time in serial)
    return beside, serial, longest, rest if abs(rest) > _TINY * case["time_us"] else 0.0


def lines(case: Mapping[str, Any]) -> Iterator[Line]:
    """The rows of the waterfall."""
    beside, serial, at, rest = _parts(case)
    for name, time in beside:
        yield _line(case, name, time, 0.0, "sky")
    if rest:
        low, high = sorted((at, at + rest))
        yield "what the others add", _OTHERS, seconds(rest / 1e6), low, high, "ochre"
        at += rest
    for name, time in serial:
        yield _line(case, name, time, at, "grey", "+ ")
        at += time
    yield "= time", "", seconds(case["time_us"] / 1e6), 0.0, case["time_us"], "ink"


def _line(
    case: Mapping[str, Any], name: str, time: float, start: float, colour: str, sign: str = ""
) -> Line:
    slack, limits = _slack(case, name), name == case.get("limiter")
    words = case["levels"].get(name, name) + (", the limiter" * limits or ", slack" * slack)
    about = _SLACK if slack else ABOUT.get(name, "traffic")
    colour = "vermilion" if limits else colour
    return sign + words, about, seconds(time / 1e6), start, start + time, colour


def joined(case: Mapping[str, Any]) -> str | None:
    """How the terms join, in a line."""
    if not case.get("terms_us"):
        return None
    _, serial, longest, rest = _parts(case)
    parts = (
        (longest, ""),
        (rest, " by the others beside it"),
        (sum(time for _, time in serial), " before and behind"),
    )
    return " + ".join(f"{seconds(time / 1e6)}{words}" for time, words in parts if time)


def told(case: Mapping[str, Any]) -> str:
    """Time, range, kernel and what is known of a case, behind its name."""
    if not case.get("terms_us"):
        return "This case was given without terms."
    ends = [case.get(name) for name in ("low_us", "high_us")]
    span = f", range {' to '.join(seconds(end / 1e6) for end in ends if end)}" if all(ends) else ""
    tile = " ".join(f"{name}={size:g}" for name, size in (case.get("tile") or {}).items())
    ran = ", tile ".join(filter(None, [case.get("implementation"), tile]))
    known = ", ".join(f"{name} {value}" for name, value in (case.get("known") or {}).items())
    return (
        f"{seconds(case['time_us'] / 1e6)}{span}"
        + (f", by {ran}" if ran else "")
        + (f". Known: {known}." if known else ".")
    )
