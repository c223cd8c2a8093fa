"""The test bed for planning a measuring run on a machine without the GPU."""

from __future__ import annotations

from collections.abc import Sequence

from perfmodel.evidence.compiled.targets import target_of
from perfmodel.evidence.day.gpu import Gpu
from perfmodel.evidence.measured.contenders import Launcher, Menu, contenders
from perfmodel.evidence.measured.rivals import Contender, rivals
from perfmodel.evidence.measured.tuning import Tuner
from perfmodel.hardware import load


class Planned(Gpu):
    """A device known only by its hardware spec; nothing can be run on it."""

    def __init__(self, device: str) -> None:
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
