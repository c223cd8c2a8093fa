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
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from perfmodel.collectives import OPS, predict_collective
from perfmodel.columns import Column, Result
from perfmodel.count import compulsory_bytes
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.hardware import Device, System, systems
from perfmodel.predict import predict
from perfmodel.profile.convolutions import Work
from perfmodel.profile.kernelnames import short
from perfmodel.profile.matching import NAME, NONE, ORDER, SHAPE, Group, Matched
from perfmodel.profile.timeline import Timeline, check_host
from perfmodel.quantities import shown
from perfmodel.table import work
from perfmodel.table.records import COLUMNS, tidy
from perfmodel.validation.compare import predict_table

if TYPE_CHECKING:
    import pandas as pd


HARNESS = "profiler"
"""How the runs of a profile were timed."""
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


def _signed(micros: float) -> str:
    return f"{'-' * (micros < 0)}{shown(abs(micros), 'time')}"


@dataclass(frozen=True)
class Line(Result):
    """A group of calls with its prediction."""

    group: Group
    """The calls."""
    predicted_us: float | None
    """Predicted time of one call; None if there is none."""
    low_us: float | None
    """Lower end of its range."""
    high_us: float | None
    """Upper end of its range."""
    limiter: Annotated[str, Column("limiter", rank=3, place=1)]
    """Its limiter; empty without a prediction."""
    reason: str
    """Why there is no prediction; empty if there is one."""
    bytes: Annotated[float | None, Column(place=2)] = None
    """Bytes that one call reads and writes at least, of a collective its size; None if not
    known."""

    @property
    def operator(self) -> Annotated[str, Column("operator")]:
        """What the calls compute."""
        return self.group.kind

    @property
    def problem(self) -> Annotated[str, Column("problem", fold=20)]:
        """Their problem on one line; the kernel's short name if it is unknown."""
        return problem_text(self.group)

    @property
    def calls(self) -> Annotated[int, Column("calls", rank=2)]:
        """Number of calls."""
        return self.group.calls

    @property
    def total_us(self) -> Annotated[float, Column("measured", key="measured_us", show=_signed)]:
        """Measured time of all calls."""
        return self.group.total_ns / 1e3

    @property
    def total_predicted_us(
        self,
    ) -> Annotated[float | None, Column("predicted", key="predicted_us", show=_signed, rank=1)]:
        """Predicted time of all calls; None if there is none."""
        return None if self.predicted_us is None else self.predicted_us * self.calls

    @property
    def ratio(self) -> Annotated[float | None, Column("x", show="{:.2f}")]:
        """Measured over predicted time; None without a prediction."""
        return self.total_us / self.total_predicted_us if self.total_predicted_us else None

    @property
    def explained(self) -> bool:
        """Whether there is a prediction."""
        return self.predicted_us is not None

    @property
    def measured_us(self) -> float:
        """Median time of its calls."""
        return median(self.group.nanoseconds) / 1e3

    @property
    def lost_us(self) -> Annotated[float | None, Column("lost", show=_signed)]:
        """Measured minus predicted time of all calls; None without a prediction."""
        if self.total_predicted_us is None:
            return None
        return self.total_us - self.total_predicted_us

    @property
    def known_by(self) -> Annotated[str, Column("by", rank=4, place=1)]:
        """How their problem is known."""
        return self.group.how

    @property
    def kernel(self) -> Annotated[str, Column(place=2)]:
        """Name of the kernel."""
        return self.group.kernel

    @property
    def advice(self) -> Annotated[str, Column(place=2)]:
        """What would speed it up; empty if not known."""
        if self.predicted_us is None:
            return ""
        if self.measured_us > _POOR * self.predicted_us:
            if _is_exchange(self.group):
                return "its time holds the wait for the slowest device"
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
        lines = [x for x in self.lines if x.group.how in hows and (x.explained or not explained)]
        total = self.total_us
        return sum(x.group.total_ns for x in lines) / 1e3 / total if total else 0.0

    def calls(self, how: str) -> int:
        """Number of calls matched in the way `how`."""
        return sum(line.group.calls for line in self.lines if line.group.how == how)

    def coverage(self) -> str:
        """One line: the share of time explained, and the numbers of calls by way of matching."""
        total = self.total_us
        time = f"{total / 1e3:.1f} ms" if total >= 1e3 else f"{total:.0f} us"
        unit = "operators" if self.timeline.on_host else "launches"
        # Percent rounded down, so that 100% means everything.
        percents = math.floor(100 * self.share(SHAPE, ORDER, explained=True) + 1e-9)
        return (
            f"{percents}% of {time} explained: {unit} by shape "
            f"{self.calls(SHAPE)}, by order {self.calls(ORDER)}, named only {self.calls(NAME)}, "
            f"unknown {self.calls(NONE)}"
        )

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, without the lines."""
        return {
            "tool": self.timeline.tool,
            "device": self.device.slug,
            "total_us": self.total_us,
            "idle_us": self.gaps_us if self.timeline.clocked else None,
            "explained": self.share(SHAPE, ORDER, explained=True),
            "calls": {way: self.calls(way) for way in (SHAPE, ORDER, NAME, NONE)},
            "time_share": {way: self.share(way) for way in (SHAPE, ORDER, NAME, NONE)},
            "notes": list(self.notes),
        }


def judge(
    timeline: Timeline, matched: Matched, device: Device, system: System | None = None
) -> Judged:
    """Compare the groups of a profile with the model.

    Collectives are predicted on `system`; without one on the links of the device's own spec, within
    a node. Raises `TableError` where only the host was profiled and the device is a GPU.
    """
    if timeline.on_host:
        check_host("the profile", device)
    groups = [group for group in matched.groups if is_tabled(group)]
    lines = [Line(group, None, None, None, "", _NO_SIZES) for group in matched.groups
             if not group.row]  # fmt: skip
    if groups:
        table = tidy(rows(groups, device))
        predicted = predict_table(table, device=lambda _: device)
        volumes = work.of(table, "bandwidth")
        lines += [_line(group, predicted.iloc[i], volumes[i]) for i, group in enumerate(groups)]
    lines += [_call_line(group, device) for group in matched.groups if group.works]
    exchanges = [group for group in matched.groups if _is_exchange(group)]
    notes: list[str] = []
    if exchanges:
        lines += _collectives(exchanges, device, system, notes)
    lines.sort(
        key=lambda line: (line.lost_us is None, -(line.lost_us or line.group.total_ns / 1e3))
    )
    return Judged(timeline, device, tuple(lines), (*timeline.notes, *matched.notes, *notes))


_NO_SIZES = "its sizes are not known"


def _is_exchange(group: Group) -> bool:
    return group.row.get("op") in OPS


def is_tabled(group: Group) -> bool:
    """Whether the columns of the measured-run table state the problem."""
    return bool(group.row) and not group.works and not _is_exchange(group)


def _line(group: Group, row: Any, moved_bytes: float) -> Line:
    if row["reason"]:
        return Line(group, None, None, None, "", str(row["reason"]))
    predicted, low, high = (float(row[name]) for name in ("predicted_us", "low_us", "high_us"))
    volume = None if math.isnan(moved_bytes) else float(moved_bytes)
    return Line(group, predicted, low, high, str(row["limiter"]), "", volume)


def _call_line(group: Group, device: Device) -> Line:
    """A group whose call runs one problem after another."""
    names: Mapping[str, Any] = {"implementation": group.implementation or None, "harness": HARNESS}
    volume = sum(map(_tensor_bytes, group.works))
    try:
        parts = [predict(problem, device, reuse=reuse, **names) for problem, reuse in group.works]
    except PerfmodelError as error:
        return Line(group, None, None, None, "", str(error), volume)
    seconds, low, high = (
        sum(getattr(part, name) for part in parts)
        for name in ("seconds", "low_seconds", "high_seconds")
    )
    longest = max(parts, key=lambda part: part.seconds)
    return Line(group, seconds * 1e6, low * 1e6, high * 1e6, longest.limiter, "", volume)


def _tensor_bytes(call: Work) -> float:
    """Bytes of a problem's tensors, without the shares that are found in a cache."""
    problem, reuse = call
    total = float(compulsory_bytes(problem))
    tensors = problem.algorithm().tensors
    sizes, types = problem.sizes(), problem.elements()
    for name, hits in (reuse or {}).items():
        elements = math.prod(float(sizes[axis]) for axis in tensors[name].axes)
        share = sum(float(r.share) for r in hits)
        total -= share * elements * types[tensors[name].element].bytes
    return total


def _collectives(
    groups: Sequence[Group], device: Device, system: System | None, notes: list[str]
) -> list[Line]:
    """Exchanges on a system, or by the device's own links within a node."""
    if system is None:
        notes.append(
            f"collectives are taken for those of one node of {device.slug}; name the system by "
            "--system where it is another"
        )
    lines = []
    for group in groups:
        size = float(group.row["bytes"])
        try:
            lines.append(_exchange(group, size, _system(group, device, system)))
        except PerfmodelError as error:
            lines.append(Line(group, None, None, None, "", str(error), size))
    return lines


def _system(group: Group, device: Device, system: System | None) -> System:
    target = system if system is not None else systems.usual(device)
    if group.collective is None:
        raise ProblemError("how many devices exchange was not recorded (Group size)")
    ranks = int(np.max(group.collective.ranks))
    if system is None and ranks > target.node_devices:
        raise ProblemError(
            f"{ranks} devices are more than one node's {target.node_devices}; name the system by "
            "--system"
        )
    return target


def _exchange(group: Group, size: float, system: System) -> Line:
    assert group.collective is not None
    time = predict_collective(group.collective, system).one(0)
    seconds, low, high = (
        float(s) * 1e6 for s in (time.seconds, time.low_seconds, time.high_seconds)
    )
    return Line(group, seconds, low, high, time.limiter, "", size)


def rows(groups: Sequence[Group], device: Device) -> pd.DataFrame:
    """Groups with a problem as a measured-run table, with the median time of each group's calls."""
    import pandas as pd

    lines = []
    for group in groups:
        times = sorted(group.nanoseconds)
        lines.append(
            {
                "source": "perfmodel profile", "device": device.slug, "harness": HARNESS,
                "implementation": group.implementation, "flag": "", **group.row,
                "measured_us": median(times) / 1e3, "min_us": times[0] / 1e3,
                "p20_us": np.quantile(times, 0.2) / 1e3, "p80_us": np.quantile(times, 0.8) / 1e3,
                "samples": len(times), "how": group.how, "estimated": group.estimated,
                "kernel_name": group.kernel, "operator": group.operator,
            }
        )  # fmt: skip
    table = pd.DataFrame(lines)
    return table if len(table) else pd.DataFrame(columns=[*COLUMNS, "how"])


def problem_text(group: Group) -> str:
    """A problem on one line (m=4096 n=4096 k=1024 bf16); the kernel's short name if it is
    unknown."""
    if not group.row:
        return short(group.kernel)
    row = group.row
    sizes = {
        name: row[name]
        for name in row
        if name
        not in ("op", "dtype", "direction", "phase", "causal", "variant", "outputs", "inputs")
        and row[name] is not None
    }
    if sizes.get("batch") == 1 and row["op"] == "gemm":
        del sizes["batch"]
    words = [f"{_SHORT.get(name, name)}={value}" for name, value in sizes.items()]
    variant = [str(row["variant"])] if row.get("variant") else []
    flags = ["causal"] if row.get("causal") else []
    flags += ["backward"] if row.get("direction") == "bwd" else []
    return " ".join([*variant, *words, *flags, str(row["dtype"])])


_SHORT = {
    "batch": "b", "heads_q": "h", "heads_kv": "hkv", "seq_q": "sq", "seq_kv": "skv",
    "head_dim": "d", "head_dim_v": "dv",
}  # fmt: skip
