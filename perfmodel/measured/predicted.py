"""What the model says before a case is timed: which configs are worth trying, and their times.

A config is dropped if its binary is known to spill or not to fit (`compilefacts`), if its predicted
time is more than 1.5 × that of the best of its menu, or if three others are predicted to be as
fast. The proof set thus takes minutes. Predictions need PyYAML and a spec of the device;
where one of them is missing, every config that fits is tried and the cells stay empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perfmodel.cases import Case
from perfmodel.errors import PerfmodelError
from perfmodel.measured.contenders import Launcher
from perfmodel.proof.compiled import compilefacts
from perfmodel.proof.compiled.targets import TARGETS
from perfmodel.proof.kernel import BundledKernel

WITHIN = 1.5
"""A config is tried if its predicted time is at most this many times the best of its menu."""
MOST = 3
"""Number of configs of a menu that are tried, fastest predicted first."""
Cells = Mapping[str, str]


def fitting(kernel: BundledKernel, problem: Any, launcher: Launcher) -> Sequence[Any]:
    """The kernel's menu without configs known to spill or not to fit; the whole menu if all are.

    Configs with tensor descriptors come last, since descriptors have failed on some devices.
    """
    menu = kernel.menu(problem, launcher.target, launcher.units)
    target = TARGETS.get(launcher.target)
    if target is None:
        return menu
    facts = {config: compilefacts.table().of(kernel, problem, config, target) for config in menu}
    choices = [c for c in menu if facts[c] is None or all(f.usable for f in facts[c] or ())]
    return sorted(choices or menu, key=lambda config: bool(getattr(config, "descriptors", False)))


class Predictions:
    """Predictions on a device, named by its spec; `note` says why there are none."""

    def __init__(self, launcher: Launcher, device: str) -> None:
        self._launcher = launcher
        self._device: Any = None
        self._cells: dict[tuple[Case, str, str], Cells] = {}
        self.note = ""
        try:
            from perfmodel.hardware import load

            self._device = load(device)
        except ImportError as error:
            self.note = f"no predictions: {error}; every config that fits is tried"
        except PerfmodelError:
            self.note = f"no predictions: no spec of {device}; every config that fits is tried"

    def menu(self, case: Case, kernel: BundledKernel, problem: Any) -> Sequence[Any]:
        """The configs of a kernel that are worth trying; raises `ProblemError` if it has none."""
        configs = fitting(kernel, problem, self._launcher)
        if self._device is None:
            return configs
        times = {}
        for config in configs:
            cells = _kernel_cells(kernel, problem, config, self._device)
            self._cells[case, kernel.name, str(config)] = cells
            times[config] = float(cells.get("compiled_us") or cells.get("predicted_us") or 0)
        best = min(filter(None, times.values()), default=0.0)
        first = sorted(configs, key=lambda config: times[config])[:MOST]  # menu order in ties
        return [c for c in configs if c in first and times[c] <= WITHIN * best] or configs

    def cells(self, case: Case, implementation: str, config: str) -> Cells:
        """The predicted cells of a row; empty where there is no prediction."""
        key = (case, implementation.rpartition(":")[2], config)
        if key not in self._cells:
            self._cells[key] = self._library_cells(case, implementation) if not config else {}
        return self._cells[key]

    def _library_cells(self, case: Case, implementation: str) -> Cells:
        if self._device is None:
            return {}
        from perfmodel.predict import predict

        try:
            time = predict(
                case.problem(), self._device, implementation=implementation, harness="cuda_graph"
            )
        except PerfmodelError:
            return {}
        return _ranged(time.seconds, time)


def _kernel_cells(kernel: BundledKernel, problem: Any, config: Any, device: Any) -> Cells:
    from perfmodel.proof.compiled.compiledeffect import forecast

    try:
        prediction = forecast(problem, device, kernel, config)
    except PerfmodelError:
        return {}
    compiled = "" if prediction.seconds is None else _micros(prediction.seconds)
    return {**_ranged(prediction.assumed_seconds, prediction), "compiled_us": compiled}


def _ranged(seconds: float, limits: Any) -> dict[str, str]:
    return {
        "predicted_us": _micros(seconds),
        "low_us": _micros(limits.low_seconds),
        "high_us": _micros(limits.high_seconds),
    }


def _micros(seconds: float) -> str:
    return f"{seconds * 1e6:.6g}"
