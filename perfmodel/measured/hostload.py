"""Whether the machine was busy with something else while a CPU was measured.

    load = HostLoad()     # starts watching this process
    samples = ...
    load.seen(samples)    # whether these samples were disturbed by other programs

Either of two signs is enough: threads of this process waited for a processor, or the fastest sample
is far below the median. `Others` looks before anything is measured.

The data come from Linux's accounting in /proc. On other systems a thread's processor time is
compared with the wall clock, and only the load average is known of other programs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perfmodel.measured.timer import Samples

BUSY = "busy"
"""The flag of a row whose time was disturbed by other programs."""

COLUMNS = ("processor_share", "load_average")
"""Columns of a row about the host; see `Seen`."""

_LEAST_SHARE = 0.9  # of the time in which a thread could run: it must have run this share
_LEAST_MINIMUM = 0.6  # of the median: below it, most samples were slowed down
_OTHERS = 0.25  # processors that other programs may use without a warning
_LOOK_S = 0.2
_TASKS = Path("/proc/self/task")
_STAT = Path("/proc/stat")


@dataclass(frozen=True, slots=True)
class Reading:
    """Accumulated processor times at one moment, in seconds."""

    at_s: float
    """The moment."""
    process_s: float
    """Processor time of this process."""
    ran: Mapping[str, float] = field(default_factory=dict)
    """Time that each of its threads spent on a processor."""
    waited: Mapping[str, float] = field(default_factory=dict)
    """Time that each spent waiting for one."""
    busy_s: float | None = None
    """Processor time of the whole machine; None where it is not known."""


def read() -> Reading:
    """The accumulated times now."""
    ran, waited = {}, {}
    for name, cells in _schedules():
        ran[name], waited[name] = (float(cell) * 1e-9 for cell in cells[:2])
    if not ran:  # not Linux: this thread alone, taken to want all of the wall-clock time
        ran["this"] = time.thread_time()
        waited["this"] = time.perf_counter() - ran["this"]
    return Reading(time.perf_counter(), time.process_time(), ran, waited, _machine_s())


def _schedules() -> Iterable[tuple[str, list[str]]]:
    """Nanoseconds that each thread ran and waited, from Linux's schedstat."""
    try:
        tasks = list(_TASKS.iterdir())
    except OSError:
        return
    for task in tasks:
        try:
            cells = (task / "schedstat").read_text().split()
        except OSError:  # the thread has ended, or the kernel keeps no such account
            continue
        if len(cells) >= 2 and all(cell.isdigit() for cell in cells[:2]):
            yield task.name, cells


def _machine_s() -> float | None:
    """Processor time of everything but idling, by the first line of /proc/stat."""
    try:
        cells = _STAT.read_text().split("\n", 1)[0].split()
        user, nice, system, _, _, irq, soft = (int(cell) for cell in cells[1:8])
    except (OSError, ValueError):
        return None
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def load_average() -> float | None:
    """Programs that ran or waited, on average over the last minute; None where it is not kept."""
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return None


@dataclass(frozen=True, slots=True)
class Seen:
    """How the host was loaded while something was timed."""

    share: float | None = None
    """Share of the time in which this process's threads could run that they ran; None: not
    measured."""
    even: bool = True
    """Whether the fastest sample is near the median."""
    average: float | None = None
    """The load average."""

    @property
    def busy(self) -> bool:
        """Whether other programs disturbed the samples."""
        return not self.even or (self.share is not None and self.share < _LEAST_SHARE)

    def flagged(self, flag: str) -> str:
        """A row's flag: `busy`, unless it already has a flag that excludes it from scores."""
        return BUSY if self.busy and flag in ("", "l2_resident") else flag

    def cells(self) -> dict[str, str]:
        """The columns of a row."""
        return {
            "processor_share": "" if self.share is None else f"{self.share:.3f}",
            "load_average": "" if self.average is None else f"{self.average:.2f}",
        }


UNSEEN = Seen()
"""For times taken by the device's own clock, which the host does not affect."""


class HostLoad:
    """Watches the load of the host from its construction until `seen`."""

    def __init__(
        self,
        read: Callable[[], Reading] = read,
        average: Callable[[], float | None] = load_average,
    ) -> None:
        self._read = read
        self._average = average
        self._start = read()

    def seen(self, samples: Samples) -> Seen:
        """The host's load since construction, from processor times and from the samples."""
        uneven = min(samples.seconds) < _LEAST_MINIMUM * samples.median
        return Seen(self._share(self._read()), not uneven, self._average())

    def _share(self, end: Reading) -> float:
        start = self._start
        ran = sum(seconds - start.ran.get(name, 0.0) for name, seconds in end.ran.items())
        waited = sum(seconds - start.waited.get(name, 0.0) for name, seconds in end.waited.items())
        ran, waited = max(ran, 0.0), max(waited, 0.0)
        return ran / (ran + waited) if ran + waited > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Others:
    """Load by other programs."""

    processors: float | None
    """Processors that they use; None: not known."""
    average: float | None
    """The load average."""
    cores: int
    """Cores of the machine."""

    @property
    def busy(self) -> bool:
        """Whether times taken now would be disturbed."""
        if self.processors is not None:
            return self.processors > _OTHERS
        return self.average is not None and self.average > _OTHERS * self.cores

    @property
    def what(self) -> str:
        """The load in words; empty on an idle machine."""
        if not self.busy:
            return ""
        parts = []
        if self.processors is not None:
            parts.append(f"other programs use {self.processors:.1f} of {self.cores} cores")
        if self.average is not None:
            parts.append(f"load average {self.average:.1f}")
        return ", ".join(parts)

    @property
    def said(self) -> str:
        """A warning line; empty on an idle machine."""
        return f"this machine is busy ({self.what}): times may be too long" if self.busy else ""


def others(
    cores: int,
    read: Callable[[], Reading] = read,
    average: Callable[[], float | None] = load_average,
    sleep: Callable[[float], None] = time.sleep,
) -> Others:
    """The load on a machine with `cores` cores, measured for a moment while this process idles."""
    start = read()
    sleep(_LOOK_S)
    end = read()
    usage = None
    if start.busy_s is not None and end.busy_s is not None and end.at_s > start.at_s:
        process_s = end.process_s - start.process_s
        usage = max(end.busy_s - start.busy_s - process_s, 0.0) / (end.at_s - start.at_s)
    return Others(usage, average(), cores)
