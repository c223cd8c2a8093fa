"""One chart of stacked bars: times by class, memory by kind, coverage of a profile.

The longest pieces over all bars have a colour each, the rest are grey. A bar may have a range below
it and a limit across it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfmodel.quantities import shown
from perfmodel.render.page import COLOURS
from perfmodel.render.spans import Lane, Span, Spans

_MOST = 1e60  # what is larger is no time or size, and too large for an axis
_COLOURED = 6  # number of pieces with a colour
_ROW = 0.5  # inches of a bar and its label


@dataclass(frozen=True)
class Bar:
    """One bar: lengths by name."""

    label: str
    """Text above it."""
    lengths: Mapping[str, float]
    """The length of each piece."""
    low: float | None = None
    """Lower end of the range of the sum."""
    high: float | None = None
    """Upper end of the range of the sum."""
    limit: float | None = None
    """Upper limit for the sum."""
    note: str = ""
    """Text after the sum."""

    def __post_init__(self) -> None:
        """Raise `TypeError` for a length that is no number, or too large for an axis."""
        ends = {"low": self.low, "high": self.high, "limit": self.limit}
        for name, value in (ends | dict(self.lengths)).items():
            missing = value is None and name in ends
            if not missing and not (isinstance(value, int | float) and abs(value) < _MOST):
                raise TypeError(f"{name} is {value!r}, not a number that can be drawn")

    @property
    def total(self) -> float:
        """The sum of its pieces."""
        return sum(value for value in self.lengths.values() if value > 0)


def stacked(
    title: str, kind: str, bars: Sequence[Bar], limit_name: str = "limit", *, ranked: bool = True
) -> Spans:
    """Bars of lengths of that kind as lanes: the longest pieces over all bars first, or with
    `ranked` off as they are given."""
    sums: dict[str, float] = {}
    for bar in bars:
        for name, value in bar.lengths.items():
            if value > 0:
                sums[name] = sums.get(name, 0.0) + value
    names = sorted(sums, key=lambda name: -sums[name]) if ranked else list(sums)
    own = names if len(names) <= _COLOURED + 1 else names[:_COLOURED]
    rest = names[len(own) :]
    colours = dict(zip(own, COLOURS, strict=False)) | dict.fromkeys(rest, "grey")
    keys = {name: name for name in own} | {name: f"{len(rest)} more" for name in rest[:1]}
    lanes = [_lane(bar, names, kind, limit_name) for bar in bars]
    return Spans(title, kind, lanes, colours, keys, beside=False, limit_name=limit_name,
                 inches=_ROW)  # fmt: skip


def _lane(bar: Bar, names: Sequence[str], kind: str, limit_name: str) -> Lane:
    """A bar with its sum and its note, its range and its limit."""
    left = 0.0
    note = ", ".join(filter(None, [shown(bar.total, kind), bar.note]))
    ends = (bar.low, bar.high) if bar.low and bar.high else None
    spans = []
    for name in names:
        value = bar.lengths.get(name, 0.0)
        if value <= 0:
            continue
        row = {"title": f"{bar.label}: {name}", "length": shown(value, kind),
               "share": value / bar.total, "sum": note}  # fmt: skip
        row |= {"range": " to ".join(shown(end, kind) for end in ends)} if ends else {}
        row |= {limit_name: shown(bar.limit, kind)} if bar.limit else {}
        spans.append(Span(left, left + value, name, row, name))
        left += value
    return Lane(bar.label, spans, note, ends, bar.limit)
