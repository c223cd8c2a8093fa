"""Chooses a kernel's config on the device: every config is timed cold and recorded.

A tuner times configs in the way that the case itself will be timed (rotating inputs, a captured
graph), since the fastest config in a warm loop of launches need not be the fastest there. Each
config is a row of a separate table, failures included. A config with a row is not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfmodel.cases import Case
from perfmodel.measured.journal import Announce, Journal, unannounced
from perfmodel.measured.measure import FAILED, describe_failure, no_cells, times
from perfmodel.measured.measure import KEY as CASE_KEY
from perfmodel.measured.timer import Call, Samples
from perfmodel.proof.kernel import KernelError

KEY = (*(name for name in CASE_KEY if name not in ("l2", "threads", "repeat")), "config")
COLUMNS = (
    "device", *(name for name in KEY if name not in ("device", "config")), "config", "measured_us",
    "min_us", "p20_us", "p80_us", "samples", "timer", "registers", "spill_bytes", "shared_bytes",
    "predicted_us", "compiled_us", "flag", "reason",
)  # fmt: skip
"""A row for each config that was tried; `measured_us` is the median, empty where it failed."""


@dataclass(frozen=True)
class Trial:
    """A config to time."""

    config: Any
    """The config."""
    prepare: Callable[[], Sequence[Call]]
    """Makes its calls, one for each set of inputs, and runs the first."""
    resources: Callable[[], Mapping[str, int]] = dict
    """The binary's resources, known after it has run."""


@dataclass(frozen=True)
class Tuner:
    """Times trials and takes the fastest."""

    time: Callable[[Sequence[Call]], Samples]
    """Times calls."""
    device: str = ""
    """Slug of the device in the table."""
    journal: Journal | None = None
    """The table of trials."""
    announce: Announce = unannounced
    """Is told of each config before it runs."""
    settle: Callable[[], None] = lambda: None
    """Frees what a trial held."""
    beside: Callable[[Case, str, str], Mapping[str, str]] = no_cells
    """Further cells of a trial's row: what was predicted."""

    def fastest(self, case: Case, implementation: str, trials: Iterable[Trial]) -> Trial:
        """The fastest trial; raises `KernelError` with the last reason where none can run."""
        best: tuple[float, Trial] | None = None
        reason = "it has no configs"
        for trial in trials:
            row = self._row(case, implementation, trial)
            if row["flag"] == FAILED:
                reason = row["reason"]
            elif best is None or float(row["measured_us"]) < best[0]:
                best = (float(row["measured_us"]), trial)
        if best is None:
            raise KernelError(f"no config of {implementation} can be launched: {reason}")
        return best[1]

    def _row(self, case: Case, implementation: str, trial: Trial) -> Mapping[str, str]:
        """The row of a trial: from the table if it has one, else timed now."""
        identity = {
            **case.columns(),
            "device": self.device,
            "implementation": implementation,
            "config": str(trial.config),
        }
        if self.journal is not None and self.journal.has(identity):
            return self.journal.row(identity)
        self.announce("configs", identity)
        row = identity | dict(self.beside(case, implementation, identity["config"]))
        try:
            samples = self.time(trial.prepare())
        except Exception as error:  # too much shared memory, a feature that the device lacks, ...
            if is_out_of_memory(error):
                raise
            row |= {"flag": FAILED, "measured_us": "", "reason": describe_failure(error)}
        else:
            row |= times(samples) | {"flag": "", "reason": ""}
            row |= {name: str(value) for name, value in trial.resources().items()}
        self.settle()
        if self.journal is not None:
            self.journal.append(row)
        return row


def is_out_of_memory(failed: BaseException) -> bool:
    """Whether an error means out of memory (torch's class, or its message on a CPU)."""
    text = str(failed).lower()
    return (
        isinstance(failed, MemoryError)
        or type(failed).__name__ == "OutOfMemoryError"
        or "out of memory" in text
        or "can't allocate memory" in text
    )
