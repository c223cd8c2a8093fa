"""The device that the stages use: a CUDA or ROCm device of this machine, or a rehearsal's."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from perfmodel.cases import Case
from perfmodel.measured import grids, session
from perfmodel.measured.contenders import Launcher, Menu, contenders
from perfmodel.measured.environment import Environment, environment
from perfmodel.measured.measure import Bench
from perfmodel.measured.microbench import Readings
from perfmodel.measured.pulse import Pulse
from perfmodel.measured.rivals import Contender, rivals
from perfmodel.measured.tuning import Tuner
from perfmodel.proof.compiled.targets import target_of
from perfmodel.proof.kernel import BundledKernel

Beside = Callable[[Case, str, str], Mapping[str, str]]


class Gpu:
    """The device that torch calls `cuda`. Each method imports what it needs when called."""

    checked_cases: int | None = None
    """How many cases of each kernel the correctness stage checks; None: all."""

    def environment(self) -> Environment:
        """The device; raises `NoDevice` where torch finds none."""
        return environment("cuda")

    def spec(self) -> str:
        """The slug of the device's hardware spec."""
        return self.environment().device

    def launcher(self) -> Launcher:
        """What Triton kernels are launched on."""
        return session.launcher(self.environment())

    def runs(self, kernel: BundledKernel) -> bool:
        """Whether the kernel is written for the device's compile target."""
        return kernel.takes(self.launcher().target)

    def types(self, dtypes: Sequence[str]) -> tuple[str, ...]:
        """All of `dtypes`: a type that the device cannot multiply fails, which is recorded as a
        result."""
        return tuple(dtypes)

    def grid(self, name: str) -> tuple[Case, ...]:
        """The cases of a grid."""
        return grids.grid(name)

    def bench(self, pulse: Pulse, beside: Beside) -> Bench:
        """Cold caches, graph replay, short samples."""
        return session.bench("cuda", session.DAY, pulse=pulse, beside=beside)

    def contenders(
        self, tuner: Tuner | None, menu: Menu
    ) -> tuple[Sequence[Contender], tuple[str, ...]]:
        """The registered Triton kernels and torch's kernels."""
        return session.contenders(self.environment(), tuner=tuner, menu=menu)

    def compiler(self, folder: Path) -> Sequence[str] | None:
        """The command of a process that fills Triton's cache."""
        return [sys.executable, "-m", "perfmodel.measured.day.precompile", str(folder)]

    def readings(self, path: Path, pulse: Pulse) -> Readings:
        """Micro-benchmarks of the device."""
        from perfmodel.measured import gpu_probes

        return gpu_probes.take(
            self.environment(), quick=False, report=_report, partial=path, pulse=pulse
        )

    def profiler(self) -> str | None:
        """`ncu`, where it is on the PATH."""
        return shutil.which("ncu")


class Planned(Gpu):
    """A device known only by its hardware spec; nothing can be run on it. Needs the model."""

    def __init__(self, device: str) -> None:
        from perfmodel.hardware import load

        self._spec = load(device)

    def spec(self) -> str:
        """The device's slug."""
        return self._spec.slug

    def launcher(self) -> Launcher:
        """Its compile target and units; raises `ProblemError` for a device without a target."""
        return Launcher("cuda", target_of(self._spec).name, int(self._spec.units))

    def contenders(
        self, tuner: Tuner | None, menu: Menu
    ) -> tuple[Sequence[Contender], tuple[str, ...]]:
        """The implementations that would be timed on the device."""
        kernels, notes = contenders(self.launcher(), tuner, menu)
        return [*kernels, *rivals("cuda")], notes


def device(*, rehearsed: bool, faults: Mapping[str, str] | None = None) -> Gpu:
    """The GPU of this machine, or one that is rehearsed, with `faults` of its kernels."""
    if not rehearsed:
        return Gpu()
    from perfmodel.measured.day.rehearsal import Rehearsal

    return Rehearsal(faults)


def _report(text: str) -> None:
    print(f"  {text}", flush=True)
