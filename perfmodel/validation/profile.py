"""Compares a profile with the model: the share that is explained, and where time is lost.

    found = judge(timeline, grouped(timeline), load("h100-sxm"))
    found.coverage()           # calls and time by shape, by order, named only, unknown
    found.lines                # one line a group of calls, most lost time first

A group is *explained* if its problem is known and the model predicts it. Its lost time is the
measured minus the predicted time of its calls; it may be negative. Idle time of the device between
the first and last launch is attributed to the host.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from perfmodel.evidence.profiled.kernelnames import short
from perfmodel.evidence.profiled.matching import NAME, NONE, ORDER, SHAPE, Group, Matched
from perfmodel.evidence.profiled.timeline import Timeline
from perfmodel.evidence.records.records import COLUMNS, tidy
from perfmodel.hardware import Device
from perfmodel.validation.compare import predict_table

if TYPE_CHECKING:
    import pandas as pd


_POOR = 1.5
"""A kernel is called slow from this ratio of measured over predicted time."""
_SHORT_US = 10.0
"""Microseconds; a shorter launch is mostly launch overhead."""
ADVICE: Mapping[str, str] = {
    "matrix": "its matrix products bind it: a narrower type, or fewer operations",
    "hbm": "its bytes bind it: fuse it with its neighbours, or a narrower type",
    "l2": "what passes the L2 binds it: larger tiles, or operands that fit",
    "shared": "shared memory binds it: larger tiles a warp",
    "special": "special functions bind it: another exponential, or fewer of them",
    "vector": "element-wise arithmetic binds it: fuse, or fewer passes",
    "power": "the power limit binds it: a narrower type, or fewer bytes",
}
"""What would speed up a kernel that runs as predicted, by its limiter."""


@dataclass(frozen=True)
class Line:
    """A group of calls with its prediction."""

    group: Group
    """The calls."""
    predicted_us: float | None
    """Predicted time of one call; None if there is none."""
    low_us: float | None
    """Lower end of its range."""
    high_us: float | None
    """Upper end of its range."""
    limiter: str
    """Its limiter; empty without a prediction."""
    reason: str
    """Why there is no prediction; empty if there is one."""

    @property
    def explained(self) -> bool:
        """Whether there is a prediction."""
        return self.predicted_us is not None

    @property
    def measured_us(self) -> float:
        """Median time of its calls."""
        return median(self.group.nanoseconds) / 1e3

    @property
    def lost_us(self) -> float | None:
        """Measured minus predicted time of all calls; None without a prediction."""
        if self.predicted_us is None:
            return None
        return self.group.total_ns / 1e3 - self.group.calls * self.predicted_us

    def advice(self) -> str:
        """What would speed it up; empty if not known."""
        if self.predicted_us is None:
            return ""
        if self.measured_us > _POOR * self.predicted_us:
            if self.measured_us < _SHORT_US:
                return "short launches: fuse them, or capture them in a graph"
            times = self.measured_us / self.predicted_us
            return f"{times:.1f} x a good kernel's time: another implementation, or its tile"
        return ADVICE.get(self.limiter, "")


@dataclass(frozen=True)
class Judged:
    """A profile compared with the model."""

    timeline: Timeline
    """Its launches."""
    device: Device
    """The device of the predictions."""
    lines: tuple[Line, ...]
    """Most lost time first; groups without a prediction follow, longest first."""
    notes: tuple[str, ...]
    """Lines about what was left out."""

    @property
    def total_us(self) -> float:
        """Sum of all launches' times, with overlapping launches counted in full."""
        return sum(line.group.total_ns for line in self.lines) / 1e3

    @property
    def gaps_us(self) -> float:
        """Idle time between the first and the last launch."""
        return (self.timeline.span_ns - self.timeline.busy_ns) / 1e3

    def share(self, *hows: str, explained: bool = False) -> float:
        """Share of the time of groups matched in one of the ways `hows`; with `explained`, only
        explained ones."""
        kept = [x for x in self.lines if x.group.how in hows and (x.explained or not explained)]
        whole = self.total_us
        return sum(x.group.total_ns for x in kept) / 1e3 / whole if whole else 0.0

    def calls(self, how: str) -> int:
        """Number of calls matched in the way `how`."""
        return sum(line.group.calls for line in self.lines if line.group.how == how)

    def coverage(self) -> str:
        """One line: the share of time explained, and the numbers of calls by way of matching."""
        whole = self.total_us
        said = f"{whole / 1e3:.1f} ms" if whole >= 1e3 else f"{whole:.0f} us"
        unit = "operators" if self.timeline.on_host else "launches"
        # Percent rounded down, so that 100% means everything.
        percents = math.floor(100 * self.share(SHAPE, ORDER, explained=True) + 1e-9)
        return (
            f"{percents}% of {said} explained: {unit} by shape "
            f"{self.calls(SHAPE)}, by order {self.calls(ORDER)}, named only {self.calls(NAME)}, "
            f"unknown {self.calls(NONE)}"
        )

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, without the lines."""
        return {
            "tool": self.timeline.tool,
            "device": self.device.slug,
            "total_us": self.total_us,
            "idle_us": self.gaps_us,
            "explained": self.share(SHAPE, ORDER, explained=True),
            "calls": {how: self.calls(how) for how in (SHAPE, ORDER, NAME, NONE)},
            "time_share": {how: self.share(how) for how in (SHAPE, ORDER, NAME, NONE)},
            "notes": list(self.notes),
        }


def judge(timeline: Timeline, matched: Matched, device: Device) -> Judged:
    """Compare the groups of a profile with the model."""
    known = [group for group in matched.groups if group.row]
    predicted = predict_table(tidy(rows(known, device)), device=lambda _: device) if known else None
    lines = []
    place = 0
    for group in matched.groups:
        if not group.row or predicted is None:
            lines.append(Line(group, None, None, None, "", "its sizes are not known"))
            continue
        lines.append(_line(group, predicted.iloc[place]))
        place += 1
    lines.sort(
        key=lambda line: (line.lost_us is None, -(line.lost_us or line.group.total_ns / 1e3))
    )
    return Judged(timeline, device, tuple(lines), (*timeline.notes, *matched.notes))


def _line(group: Group, row: Any) -> Line:
    if row["reason"]:
        return Line(group, None, None, None, "", str(row["reason"]))
    predicted, low, high = (float(row[name]) for name in ("predicted_us", "low_us", "high_us"))
    return Line(group, predicted, low, high, str(row["limiter"]), "")


def rows(groups: Sequence[Group], device: Device) -> pd.DataFrame:
    """Groups with a problem as a measured-run table, with the median time of each group's calls."""
    import pandas as pd

    found = []
    for group in groups:
        ordered = sorted(group.nanoseconds)
        found.append(
            {
                "source": "perfmodel profile", "device": device.slug, "harness": "profiler",
                "implementation": group.implementation, "flag": "", **group.row,
                "measured_us": median(ordered) / 1e3, "min_us": ordered[0] / 1e3,
                "p20_us": _quantile(ordered, 0.2) / 1e3, "p80_us": _quantile(ordered, 0.8) / 1e3,
                "samples": len(ordered), "how": group.how, "estimated": group.estimated,
                "kernel_name": group.kernel, "operator": group.operator,
            }
        )  # fmt: skip
    table = pd.DataFrame(found)
    return table if len(table) else pd.DataFrame(columns=[*COLUMNS, "how"])


def _quantile(ordered: Sequence[float], share: float) -> float:
    """A quantile of sorted values, interpolated between the two nearest."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def problem_text(group: Group) -> str:
    """A problem on one line (m=4096 n=4096 k=1024 bf16); the kernel's short name if it is
    unknown."""
    if not group.row:
        return short(group.kernel)
    row = group.row
    left = {
        name: row[name]
        for name in row
        if name
        not in ("op", "dtype", "direction", "phase", "causal", "variant", "outputs", "inputs")
    }
    if left.get("batch") == 1 and row["op"] == "gemm":
        del left["batch"]
    words = [f"{_SHORT.get(name, name)}={value}" for name, value in left.items()]
    said = [str(row["variant"])] if row.get("variant") else []
    flags = ["causal"] if row.get("causal") else []
    return " ".join([*said, *words, *flags, str(row["dtype"])])


_SHORT = {
    "batch": "b", "heads_q": "h", "heads_kv": "hkv", "seq_q": "sq", "seq_kv": "skv",
    "head_dim": "d", "head_dim_v": "dv",
}  # fmt: skip
