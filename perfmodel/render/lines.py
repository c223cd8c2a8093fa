"""Lines of what is made of kernels: networks by class, graphs by node, traces by module.

A line adds up its kernels; gaps, waits and the total are lines too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from perfmodel.columns import DIFFERS, HIGH, SOME, Column, Result, columns_of
from perfmodel.prediction import Prediction
from perfmodel.render.report import around, span

_AROUND = Column("range", around)


Ends = tuple[float, float | None, float | None]
"""Seconds and the ends of their range."""


@dataclass(frozen=True)
class Part:
    """A kernel with all its runs."""

    line: str
    """The line that it is in."""
    runs: int
    """Number of runs."""
    seconds: float
    """Seconds of all runs."""
    low_seconds: float
    """Low end of their range."""
    high_seconds: float
    """High end of it."""
    limiter: str
    """What limits it, as the device calls it."""
    run: Prediction
    """The prediction of one run."""
    work: float
    """Operations of all runs, as rates count them."""
    operator: str = ""
    """Its operator, where lines have one each."""
    aten: str = ""
    """The ATen operators that it computes, where a line has one kernel."""
    live_bytes: float = 0.0
    """Bytes alive while it runs."""


@dataclass(frozen=True)
class Line(Result):
    """Some parts of a whole together."""

    device: Annotated[str, Column("device", when=DIFFERS)]
    """Slug of the device."""
    label: Annotated[str, Column(key="line")]
    """What is on the line."""
    parts: Sequence[Part]
    """The parts; of a gap or a wait none."""
    whole_seconds: float
    """Seconds of the whole."""
    ends: Ends
    """Seconds of the line, and their range, which a wait has not."""

    @property
    def operator(self) -> Annotated[str, Column("operator", when=SOME, rank=3)]:
        """The operator of its kernels, where it is one."""
        names = {part.operator for part in self.parts}
        return names.pop() if len(names) == 1 else ""

    @property
    def aten(self) -> Annotated[str, Column("ATen operators", when=SOME, wrap=40)]:
        """What its one kernel computes, by ATen's names."""
        return self.parts[0].aten if len(self.parts) == 1 else ""

    @property
    def kernels(self) -> Annotated[int | None, Column("kernels", rank=4)]:
        """Runs of kernels."""
        return sum(part.runs for part in self.parts) or None

    @property
    def seconds(self) -> Annotated[float, Column("time", key="time_us", scale=1e6)]:
        """Seconds."""
        return self.ends[0]

    @property
    def share(self) -> Annotated[float, Column("share", rank=1)]:
        """Share of the whole."""
        return self.seconds / self.whole_seconds

    @property
    def low_seconds(
        self,
    ) -> Annotated[
        float | None, Column("range", span, rank=2, brief=_AROUND, key="low_us", scale=1e6)
    ]:
        """Low end of the 80 % range."""
        return self.ends[1]

    @property
    def high_seconds(self) -> Annotated[float | None, HIGH]:
        """High end of it."""
        return self.ends[2]

    @property
    def limiter(self) -> Annotated[str, Column("limiter")]:
        """What limits the most of its time; the whole has none."""
        if self.seconds == self.whole_seconds:
            return ""
        seconds: Counter[str] = Counter()
        for part in self.parts:
            seconds[part.limiter] += part.seconds  # type: ignore[assignment]
        return max(seconds, key=seconds.__getitem__, default="")

    @property
    def work(self) -> Annotated[float | None, Column("operations", key="useful_flops", rank=3)]:
        """Operations, as rates count them."""
        return sum(part.work for part in self.parts) or None

    @property
    def rate(self) -> Annotated[float | None, Column("rate", key="flops_per_s", rank=5)]:
        """Operations a second."""
        return self.work / self.seconds if self.work else None

    @property
    def hbm_bytes(self) -> Annotated[float | None, Column("memory traffic", rank=3)]:
        """Bytes that cross into the device's memory."""
        return sum(part.runs * part.run.bytes["hbm"] for part in self.parts) or None

    @property
    def intensity(self) -> Annotated[float | None, Column("FLOP/B", rank=6)]:
        """Operations a byte."""
        return self.work / self.hbm_bytes if self.work and self.hbm_bytes else None

    @property
    def live_bytes(
        self,
    ) -> Annotated[float | None, Column("live", show="binary", when=SOME, rank=5)]:
        """The most bytes alive at once."""
        return max((part.live_bytes for part in self.parts), default=0.0) or None


def lines(
    device: str,
    parts: Iterable[Part],
    ends: Ends,
    waits: Mapping[str, float],
    *,
    ranked: bool = False,
) -> list[Line]:
    """The lines of a whole, the longest first where they are `ranked`; then waits and the total.

    `ends` are the whole's seconds and their range, `waits` seconds without a kernel by name.
    """
    groups: dict[str, list[Part]] = {}
    for part in parts:
        groups.setdefault(part.line, []).append(part)
    every = [part for group in groups.values() for part in group]

    def line(label: str, group: Sequence[Part], ends: Ends) -> Line:
        return Line(device, label, group, whole_seconds, ends)

    whole_seconds = ends[0]
    own = [line(label, group, _summed(group)) for label, group in groups.items()]
    if ranked:
        own.sort(key=lambda each: -each.seconds)
    idle = [line(label, [], (seconds, None, None)) for label, seconds in waits.items()]
    return [*own, *idle, line("all", every, ends)]


def _summed(parts: Sequence[Part]) -> Ends:
    return (
        sum(part.seconds for part in parts),
        sum(part.low_seconds for part in parts),
        sum(part.high_seconds for part in parts),
    )


def columns_by(by: str, key: str, *without: str) -> tuple[Column, ...]:
    """The columns of lines, headed by what a line is for, without those under some keys."""
    return tuple(
        replace(column, header=by, key=key, get=key) if column.key == "line" else column
        for column in columns_of(Line)
        if column.key not in (*without, *([by] if by == "operator" else []))
    )
