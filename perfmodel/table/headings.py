"""Parses column headings: "Latency [us]", time_ms, "Triton (TFLOPS)", "avg GB/s"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfmodel.table.vocabulary import Unit, normal, vocabulary

_BRACKETS = re.compile(r"[(\[{<]([^)\]}>]*)[)\]}>]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SPLIT = re.compile(r"[^\w/%µ\u03bc]+|_+")
_SHARE = frozenset({"%", "percent", "pct", "x", "ratio"})
_SHORT = frozenset({"s", "b"})  # units that are column names if they are the whole heading
_PER_SECOND = re.compile(r"[ _]?per[ _]?s(?:ec(?:ond)?)?\b", re.IGNORECASE)
_SECOND = frozenset({"s", "sec", "second"})
_LONGEST = 200  # characters of a heading


@dataclass(frozen=True)
class Measure:
    """A measurement named by a heading."""

    kind: str
    """time, flops or bandwidth."""
    unit: Unit | None
    """Its unit; None where the heading names none."""
    statistic: str
    """median, mean, min, max, std, p10 ...; empty if not stated."""
    other: str
    """The other words as written, such as an implementation's name."""


def words(heading: str) -> tuple[list[str], list[str]]:
    """The words of a heading outside of brackets, and those inside."""
    text = _PER_SECOND.sub("/s", heading[:_LONGEST])
    inside = [word for part in _BRACKETS.findall(text) for word in _words(part)]
    return _words(_BRACKETS.sub(" ", text)), inside


def _words(text: str) -> list[str]:
    parts = []
    for word in _SPLIT.split(text.strip()):
        for part in _pieces(word):
            parts += [part] if _unit(part) or _is_rate(part) else part.split("/")
    return [word for word in parts if word]


def _pieces(word: str) -> list[str]:
    """The parts of a word in camel case if one part is a measurement's word: timeMs, not cuBLAS."""
    parts = _CAMEL.sub(" ", word).split()
    core = vocabulary().words["core"]
    is_measure = any(_unit(part) or _statistic(part) or part.lower() in core for part in parts)
    return parts if is_measure and _unit(word) is None else [word]


def _is_rate(word: str) -> bool:
    """Whether a word is a rate per second, such as tokens/s, and not a time in seconds."""
    numerator, _, divisor = word.lower().rpartition("/")
    return bool(numerator) and divisor in _SECOND and numerator not in vocabulary().words["time"]


def _unit(word: str) -> Unit | None:
    return vocabulary().units.get(word.lower())


def without_unit(heading: str) -> tuple[str, Unit | None]:
    """The normalised heading without its unit of bytes or time, and that unit."""
    outside, inside = words(heading)
    for word in inside:
        if (unit := _unit(word)) is not None:
            return normal("".join(outside)), unit
    if len(outside) > 1 and (unit := _unit(outside[-1])) is not None:
        return normal("".join(outside[:-1])), unit
    return normal("".join((*outside, *inside))), None


def measure(heading: str) -> Measure | None:
    """The measurement that a heading names; None if it names none.

    A heading with a unit is a measurement. One without is a time if all its words are those of
    times.
    """
    vocab = vocabulary().words
    outside, inside = words(heading)
    both = [*outside, *inside]
    lowers = [word.lower() for word in both]
    if not both or any(word in vocab["foreign"] or word in _SHARE for word in lowers):
        return None
    place = _unit_place(outside, inside)
    unit = None if place is None else _unit(both[place])
    if unit is not None and unit.kind == "bytes":
        return None
    kind = "time" if unit is None else unit.kind
    rest = [word for i, word in enumerate(both) if i != place]
    statistic = next((_statistic(word) for word in rest if _statistic(word)), "")
    other = [word for word in rest if not _statistic(word) and word.lower() not in vocab[kind]]
    if unit is None and (other or not vocab["core"] & set(lowers)):
        return None
    return Measure(kind, unit, statistic, "_".join(other))


def _unit_place(outside: list[str], inside: list[str]) -> int | None:
    """The index of the unit among the words: the last unit. A heading "s" alone is a column's
    name."""
    both = [*outside, *inside]
    for i in range(len(both) - 1, -1, -1):
        unit = _unit(both[i])
        if unit is None:
            continue
        bracketed = i >= len(outside)
        if both[i].lower() in _SHORT and not bracketed and (len(both) == 1 or i < len(outside) - 1):
            continue
        return i
    return None


def _statistic(word: str) -> str:
    lower = word.lower()
    statistics = vocabulary().words["statistics"].items()
    return next((name for name, spelt in statistics if lower in spelt), "")
