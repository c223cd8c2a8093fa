"""The interface to a device that the stages use (a test bed), and the two test beds by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from perfmodel.evidence.cases import Case
from perfmodel.evidence.kernel import BundledKernel
from perfmodel.evidence.measured.contenders import Launcher, Menu
from perfmodel.evidence.measured.environment import Environment
from perfmodel.evidence.measured.measure import Bench
from perfmodel.evidence.measured.microbench import Readings
from perfmodel.evidence.measured.pulse import Pulse
from perfmodel.evidence.measured.rivals import Contender
from perfmodel.evidence.measured.tuning import Tuner

Beside = Callable[[Case, str, str], Mapping[str, str]]


class Bed(Protocol):
    """A device for a measuring run. Each method imports what it needs when called.

    The correctness stage checks the first `checked_cases` cases of each kernel, or all if None.
    """

    checked_cases: int | None

    def environment(self) -> Environment:
        """The device; raises `NoDevice` where it is not there."""

    def spec(self) -> str:
        """The name of the hardware spec that predictions are made for."""

    def launcher(self) -> Launcher:
        """Device, compile target and compute units for Triton's kernels."""

    def runs(self, kernel: BundledKernel) -> bool:
        """Whether a kernel can be run here at all."""

    def types(self, dtypes: Sequence[str]) -> tuple[str, ...]:
        """The types among `dtypes` that this device can multiply."""

    def grid(self, name: str) -> tuple[Case, ...]:
        """The cases of a grid."""

    def bench(self, pulse: Pulse, beside: Beside) -> Bench:
        """The stopwatches and settings with which cases are timed."""

    def contenders(
        self, tuner: Tuner | None, menu: Menu
    ) -> tuple[Sequence[Contender], tuple[str, ...]]:
        """The implementations to time, and a line for each kernel that could not be loaded."""

    def compiler(self, folder: Path) -> Sequence[str] | None:
        """The command of a process that compiles a share of the binaries; None where nothing is
        compiled."""

    def readings(self, path: Path, pulse: Pulse) -> Readings:
        """Readings of the micro-benchmarks, each saved in `path` as it is taken."""

    def profiler(self) -> str | None:
        """Nsight Compute's command; None where there is none."""


def bed(name: str, faults: Mapping[str, str] | None = None) -> Bed:
    """The test bed called `gpu` or `rehearsal`; `faults` are for the latter."""
    if name == "rehearsal":
        from perfmodel.evidence.day.rehearsal import Rehearsal

        return Rehearsal(faults)
    from perfmodel.evidence.day.gpu import Gpu

    return Gpu()
