"""The plan of a measuring run: which configs to try, and the predicted time of each.

A config is dropped if its binary is known to spill or not to fit (`compilefacts`), if its predicted
time is more than 1.5 × that of the best of its menu, or if three others are predicted to be as
fast. The proof set thus takes minutes; the full grid tries the rest.

The plan is a table. It is written on a machine that can load the model, and read on a GPU machine
that may have only torch and triton. The predictions are stored beside the measured rows.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfmodel.cases import Case
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.measured.contenders import KernelContender, Launcher, Menu
from perfmodel.measured.measure import Job
from perfmodel.proof.compiled import compilefacts
from perfmodel.proof.compiled.targets import TARGETS
from perfmodel.proof.kernel import BundledKernel
from perfmodel.replacing import replacing

NAME = "plan.csv"
WITHIN = 1.5
"""A config is tried if its predicted time is at most this many times the best of its menu."""
MOST = 3
"""Number of configs of a menu that are tried in a planned case, fastest predicted first."""
COLUMNS = (
    "case", "implementation", "config", "predicted_us", "low_us", "high_us", "compiled_us", "keep",
    "reason",
)  # fmt: skip
_BESIDE = ("predicted_us", "low_us", "high_us", "compiled_us")
Row = Mapping[str, str]


class Forecast:
    """A plan that was read: predicted cells for each row, and menus without the dropped configs."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = {_key(row["case"], row["implementation"], row["config"]): row for row in rows}

    def __len__(self) -> int:
        return len(self._rows)

    def beside(self, case: Case, implementation: str, config: str) -> dict[str, str]:
        """The predicted cells of a row; empty where the plan has none."""
        row = self._rows.get(_key(case.label(), implementation, config), {})
        return {name: row.get(name, "") for name in _BESIDE}

    def menu(self, launcher: Launcher) -> Menu:
        """The kernels' menus on a launcher, without the configs that the plan or the compile facts
        drop."""

        def configs_of(case: Case, kernel: BundledKernel, problem: Any) -> Sequence[Any]:
            configs = fitting(kernel, problem, launcher)
            choices = [c for c in configs if self._is_wanted(case, kernel, c)]
            return choices or configs

        return configs_of

    def _is_wanted(self, case: Case, kernel: BundledKernel, config: Any) -> bool:
        row = self._rows.get(_key(case.label(), kernel.name, str(config)))
        return row is None or row["keep"] == "True"


def _key(case: str, implementation: str, config: str) -> tuple[str, str, str]:
    """A row's key, without library versions, since the plan may come from another machine."""
    return case, implementation.rpartition(":")[2], config


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


def read(path: Path) -> Forecast:
    """The plan in a file; an empty plan where the file does not exist."""
    if not path.exists():
        return Forecast(())
    with path.open(newline="", encoding="utf-8") as file:
        return Forecast(list(csv.DictReader(file)))


def write(path: Path, device: str, launcher: Launcher, jobs: Sequence[Job]) -> str:
    """Write the plan of some jobs on a device; returns one sentence about the result.

    Without the model, or without a spec of the device, there is no plan, and all configs are tried.
    """
    try:
        from perfmodel.hardware import load

        spec = load(device)
    except ImportError as error:
        return f"no plan: {error}; every config that fits is tried"
    except PerfmodelError:
        return f"no plan: there is no spec of {device}; every config that fits is tried"
    rows = [row for job in jobs if not job.repeat for row in _rows(job, spec, launcher)]
    with replacing(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    count = sum(row["keep"] == "True" for row in rows)
    return f"{len(rows)} predictions, {len(rows) - count} configs not worth trying"


def _rows(job: Job, device: Any, launcher: Launcher) -> Iterator[dict[str, str]]:
    """One row for a library's kernel; one row for each config of a bundled kernel."""
    case, contender = job.case, job.contender
    row = {"case": case.label(), "implementation": contender.implementation, "config": ""}
    if not isinstance(contender, KernelContender):
        yield row | _library(case, contender.implementation, device) | {"keep": "True"}
        return
    try:
        problem = contender.problem(case)
        configs = fitting(contender.kernel, problem, launcher)
    except ProblemError as error:
        yield row | {"keep": "False", "reason": str(error)}
        return
    times = {c: _kernel_row(contender.kernel, problem, c, device) for c in configs}
    best = min((_best_us(cells) for cells in times.values() if _best_us(cells)), default=0.0)
    first = sorted(configs, key=lambda config: _best_us(times[config]))[:MOST]  # menu order in ties
    for config, cells in times.items():
        reason = ""
        if _best_us(cells) > WITHIN * best:
            reason = f"predicted {WITHIN} x behind the best or more"
        elif config not in first:
            reason = f"{MOST} others are predicted to be as fast"
        keep = {"keep": str(not reason), "reason": reason or cells.get("reason", "")}
        yield row | {"config": str(config)} | cells | keep


def _best_us(cells: Row) -> float:
    """Predicted time of a config: as compiled, else as counted; 0 where there is neither."""
    return float(cells.get("compiled_us") or cells.get("predicted_us") or 0)


def _library(case: Case, implementation: str, device: Any) -> dict[str, str]:
    from perfmodel.predict import predict

    try:
        time = predict(case.problem(), device, implementation=implementation, harness="cuda_graph")
    except PerfmodelError as error:
        return {"reason": str(error)}
    return {
        "predicted_us": _micros(time.seconds),
        "low_us": _micros(time.low_seconds),
        "high_us": _micros(time.high_seconds),
    }


def _kernel_row(kernel: BundledKernel, problem: Any, config: Any, device: Any) -> dict[str, str]:
    from perfmodel.proof.compiled.compiledeffect import forecast

    try:
        prediction = forecast(problem, device, kernel, config)
    except PerfmodelError as error:
        return {"reason": str(error)}
    return {
        "predicted_us": _micros(prediction.assumed_seconds),
        "low_us": _micros(prediction.low_seconds),
        "high_us": _micros(prediction.high_seconds),
        "compiled_us": "" if prediction.seconds is None else _micros(prediction.seconds),
    }


def _micros(seconds: float) -> str:
    return f"{seconds * 1e6:.6g}"
