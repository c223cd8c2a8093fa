"""Sizes as users type them: numbers, lists and ranges.

    4096  1e3     one value                 16k  2M       binary multipliers: 1k = 1024, 1M = 1024²
    8,16,32       a list                    1:64          every value, both ends included
    256:65536:256 a step                    512:16k:x2    a factor (512, 1024, ... 16384)

A size is at most 1024G (2^40).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from perfmodel import units
from perfmodel.errors import ProblemError
from perfmodel.frozen import dataclass
from perfmodel.plaintext import quoted

if TYPE_CHECKING:
    import numpy as np

LIMIT = 10_000_000  # limit on the values of one option: more is a typing error
_NUMBER = re.compile(r"(-?)0*(\d+)(?:\.(\d{1,20})0*)?(?:[eE]\+?(\d{1,2}))?([kKmMgG]?)")
_GROUPS = re.compile(r"\d{1,3}(?:,\d{3})+(?!\d)")
_THOUSANDS = re.compile(r",0\d\d(?!\d)")
_SCALE = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_HELP = "write 4096, 8,16,32, 1:64, 256:65536:256 or 512:16k:x2"


@dataclass(frozen=True)
class Values:
    """The values of one option in the order given; counted without being expanded."""

    parts: tuple[Sequence[int], ...]
    """Ranges and single values, in the order given."""
    text: str = ""
    """What they were read from."""

    def __str__(self) -> str:
        return self.text

    def __iter__(self) -> Iterator[int]:
        return iter(self.array.tolist())

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @cached_property
    def array(self) -> np.ndarray:
        """All values, as int64."""
        import numpy as np  # slow to import; --help needs none

        parts = [np.arange(p.start, p.stop, p.step) if isinstance(p, range) else p
                 for p in self.parts]  # fmt: skip
        return np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])


def quantity(text: str, dimension: str, name: str) -> float:
    """The SI value of an option such as "2 GB/s", which a device may have. Raises `UnitError` and
    `ProblemError`."""
    value, bounds = units.parse(text, dimension), units.DIMENSIONS[dimension]
    if not bounds.least <= value <= bounds.most:
        raise ProblemError(
            f"{name} {quoted(text)}: no device has such a {dimension}; write {bounds.example}"
        )
    return value


def parse(text: str, name: str, least: int = 1) -> np.ndarray:
    """The int64 values of `text`; raises as `read`."""
    return read(text, name, least).array


def read(text: str, name: str, least: int = 1) -> Values:
    """The values of `text`, in the order given.

    Raises `ProblemError`, naming the option `name`, for a malformed or empty text, a value below
    `least` or beyond the largest size (`perfmodel.algorithms.sizes.LARGEST`), or more than `LIMIT`
    values.
    """
    _check_thousands(text, name)
    values = Values(tuple(_part(part.strip(), text, name) for part in text.split(",")), text)
    if len(values) > LIMIT:
        raise ProblemError(f"{name} {quoted(text)} has more than {LIMIT:,} values; narrow it")
    worst = min(part[0] for part in values.parts)
    if worst < least:
        raise ProblemError(f"{name} must be at least {least}, not {worst}; raise it")
    return values


def one(text: str, name: str, least: int = 1) -> int:
    """The single value of `text`; raises as `read`, and for a list or a range."""
    values = read(text, name, least)
    if len(values) != 1:
        raise ProblemError(f"{name} takes one size, not {quoted(text)}; choose one")
    return int(values.array[0])


def number(text: str, name: str, least: int = 1) -> float:
    """A size such as 8k, or a share such as 0.25. Raises `ProblemError` for another text."""
    if "." not in text:
        return one(text, name, least)
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not math.isfinite(share):
        raise ProblemError(f"{name} {quoted(text)} is no number; write 4096, 8k or 0.25")
    return share


def numbers(text: str, name: str, accepts: Callable[[float], bool], fault: str) -> list[float]:
    """The numbers of a list, with a share as 0.5 or 50%.

    Raises `ProblemError` with the `fault` of one that is not accepted.
    """
    values = []
    for part in text.split(","):
        try:
            value = float(part.rstrip("%")) / (100.0 if part.endswith("%") else 1.0)
        except ValueError:
            value = math.nan
        if not accepts(value):
            raise ProblemError(f"{name} {quoted(part)} {fault}")
        values.append(value)
    return values


def short(size: int) -> str:
    """A size as users type it: 8k for 8192."""
    scale, power = next(
        ((s, p) for s, p in (("G", 2**30), ("M", 2**20), ("k", 2**10)) if size and not size % p),
        ("", 1),
    )
    return f"{size // power}{scale}"


def _check_thousands(text: str, name: str) -> None:
    """Raise `ProblemError` for 4,096: nobody writes a list whose element is 096."""
    if not _THOUSANDS.search(text):
        return
    number = _GROUPS.sub(lambda match: match[0].replace(",", ""), text)
    values = ",".join(re.sub(r"^0+(?=\d)", "", part) for part in text.split(","))
    raise ProblemError(
        f"{name} {quoted(text)} may be one number or a list; write {number} or {values}"
    )


def _part(part: str, text: str, name: str) -> Sequence[int]:
    """One element of a list: a number, or an ascending range that is not empty."""
    ends = part.split(":")
    if len(ends) == 1:
        return (_number(part, text, name),)
    if len(ends) > 3:
        raise ProblemError(f"{name} {quoted(text)} is not a size, list or range; {_HELP}")
    start, stop = (_number(end, text, name) for end in ends[:2])
    if stop < start:
        raise ProblemError(f"{name} {quoted(text)} is an empty range: {stop} comes before {start}")
    step = ends[2].strip() if len(ends) == 3 else "1"
    if step[:1] in ("x", "X", "*"):
        return _geometric(start, stop, _number(step[1:], text, name), text, name)
    stride = _number(step, text, name)
    if stride < 1:
        raise ProblemError(f"{name} {quoted(text)} steps by {stride}; a step is at least 1")
    return range(start, stop + 1, stride)


def _geometric(start: int, stop: int, factor: int, text: str, name: str) -> Sequence[int]:
    if factor < 2 or start < 1:
        fault = "does not grow; start at 1 or more, times 2 or more"
        raise ProblemError(f"{name} {quoted(text)} {fault}")
    values = [start]
    while values[-1] * factor <= stop:
        values.append(values[-1] * factor)
    return values


def _number(part: str, text: str, name: str) -> int:
    match = _NUMBER.fullmatch(part.strip())
    if match is None:
        raise ProblemError(f"{name} {quoted(text)} is not a size, list or range; {_HELP}")
    sign, digits, decimals, power, scale = match.groups(default="")
    # 20 digits exceed any size; Python parses at most 4300.
    exact = Fraction(f"{sign}{digits[:20]}.{decimals or 0}e{power or 0}") * _SCALE[scale.lower()]
    value = int(exact)
    if value != exact:
        raise ProblemError(f"{name} {quoted(text)} is not a whole number; {_HELP}")
    from perfmodel.algorithms.sizes import LARGEST

    if abs(value) > LARGEST:
        raise ProblemError(f"{name} {quoted(text)} is beyond 2^40 (1024G); give a smaller size")
    return value
