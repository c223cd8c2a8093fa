"""Dimensions as people type them: numbers, lists and ranges.

4096          one value                 16k  2M       binary multipliers: 1k = 1024, 1M = 1024²
8,16,32       a list                    1:64          every value, both ends included
256:65536:256 a step                    512:16k:x2    a factor (512, 1024, ... 16384)
"""

from __future__ import annotations

import re

import numpy as np

from perfmodel.errors import ProblemError

LIMIT = 10_000_000  # values in one range: more is a slip of the keyboard
_LARGEST = 2**62
_NUMBER = re.compile(r"(-?\d+)([kKmMgG]?)")
_SCALE = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_HELP = "write 4096, 8,16,32, 1:64, 256:65536:256 or 512:16k:x2"


def parse(text: str, name: str, least: int = 1) -> np.ndarray:
    """The int64 values that `text` stands for, in the order given.

    Raises `ProblemError`, naming the option `name`, for anything malformed, empty or below `least`.
    """
    parts = [part.strip() for part in text.split(",")]
    values = np.concatenate([_part(part, text, name) for part in parts])
    if values.min() < least:
        raise ProblemError(f"{name} must be at least {least}, not {values.min()}; raise it")
    return values


def _part(part: str, text: str, name: str) -> np.ndarray:
    """One element of a list: a number or a range."""
    ends = part.split(":")
    if len(ends) == 1:
        return np.array([_number(part, text, name)], dtype=np.int64)
    if len(ends) > 3:
        raise ProblemError(f"{name} {text!r} is not a size, list or range; {_HELP}")
    start, stop = (_number(end, text, name) for end in ends[:2])
    if stop < start:
        raise ProblemError(f"{name} {text!r} is an empty range: {stop} comes before {start}")
    step = ends[2].strip() if len(ends) == 3 else "1"
    if step[:1] in ("x", "X", "*"):
        return _geometric(start, stop, _number(step[1:], text, name), text, name)
    return _arithmetic(start, stop, _number(step, text, name), text, name)


def _arithmetic(start: int, stop: int, step: int, text: str, name: str) -> np.ndarray:
    if step < 1:
        raise ProblemError(f"{name} {text!r} steps by {step}; a step is at least 1")
    if (stop - start) // step >= LIMIT:
        raise ProblemError(f"{name} {text!r} has more than {LIMIT} values; take a larger step")
    return np.arange(start, stop + 1, step, dtype=np.int64)


def _geometric(start: int, stop: int, factor: int, text: str, name: str) -> np.ndarray:
    if factor < 2 or start < 1:
        raise ProblemError(f"{name} {text!r} does not grow; start at 1 or more, times 2 or more")
    values = [start]
    while values[-1] * factor <= stop:
        values.append(values[-1] * factor)
    return np.array(values, dtype=np.int64)


def _number(part: str, text: str, name: str) -> int:
    match = _NUMBER.fullmatch(part.strip())
    if match is None:
        raise ProblemError(f"{name} {text!r} is not a size, list or range; {_HELP}")
    value = int(match[1]) * _SCALE[match[2].lower()]
    if abs(value) > _LARGEST:
        raise ProblemError(f"{name} {text!r} is beyond 2^62; give a smaller size")
    return value
