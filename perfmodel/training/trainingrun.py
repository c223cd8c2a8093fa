"""A whole training run: days, device hours, dollars and energy, with failures and checkpoints.

Failures of n devices come every M = mtbf / n on average. A checkpoint takes δ = bytes / storage,
is written every τ of work, and a failure costs the work since the last one and a restart R. With
exponential times between failures the run takes (Daly 2006, Future Generation Computer Systems 22,
eq. 20)

    T = W / τ · M · e^(R/M) · (e^((τ + δ)/M) − 1)            W: seconds of all steps

and is shortest near (Young 1974; Daly, eq. 37)

    τ = √(2δM) · (1 + √(δ/2M)/3 + δ/18M) − δ     for δ < 2M, else M

Goodput is W / T. A device draws its power limit (TDP) unless `watts` says otherwise.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated

from perfmodel.columns import DIFFERS, Column, Result
from perfmodel.errors import ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.hardware import Device
from perfmodel.networks.expand import parameters
from perfmodel.networks.setting import Setting
from perfmodel.plaintext import quoted
from perfmodel.training import optimisers
from perfmodel.training.result import Step
from perfmodel.training.weightupdate import parameters_of
from perfmodel.units import parse

PANEL = "Run"
"""Heading of the options."""
_DAY, _HOUR = 86400.0, 3600.0
_SCALES = {"": 1.0, "k": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_MOST = 30.0  # exponent beyond which a run does not end


def _tokens(text: str) -> float:
    """Tokens of a text such as 15T. Raises `ProblemError`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kMBT]?)", text.strip())
    tokens = float(match[1]) * _SCALES[match[2]] if match else 0.0
    if not 0.0 < tokens < 1e18:
        raise ProblemError(f"--tokens {quoted(text)} is no number of tokens; write 15T or 300B")
    return tokens


def _seconds(text: str) -> float:
    return parse(text, "time")


def _bandwidth(text: str) -> float:
    return parse(text, "bandwidth")


@dataclass(frozen=True)
class TrainingRun:
    """What a run is. Raises `ProblemError` for fields that do not go together."""

    tokens: Annotated[float | None, FieldOption(PANEL, "N", single=True, read=_tokens)] = None
    """Tokens of the whole run, as 15T: adds its days, device hours and energy."""
    price: Annotated[float | None, FieldOption(PANEL, "DOLLARS", least=0)] = None
    """Dollars of a device hour."""
    watts: Annotated[float | None, FieldOption(PANEL, "W", least=1)] = None
    """Power of a device with its share of host and cooling [default: the device's limit]."""
    mtbf: Annotated[float | None, FieldOption(PANEL, "HOURS", least=1)] = None
    """Device hours between two failures: Llama 3 had 50,000."""
    storage: Annotated[float | None, FieldOption(PANEL, "RATE", single=True, read=_bandwidth)] = (
        None
    )
    """Rate of all devices at which checkpoints are written, as 100GB/s."""
    interval: Annotated[float | None, FieldOption(PANEL, "TIME", single=True, read=_seconds)] = None
    """Work between two checkpoints, as 1800s [default: Daly's optimum]."""
    restart: Annotated[float, FieldOption(PANEL, "TIME", single=True, read=_seconds)] = 600.0
    """Time from a failure until training goes on, as 600s."""

    def __post_init__(self) -> None:
        given = [n for n in ("price", "watts", "mtbf", "storage", "interval") if getattr(self, n)]
        if given and self.tokens is None:
            raise ProblemError(f"{given[0]} is of a whole run; give its tokens, such as 15T")
        if bool(self.mtbf) != bool(self.storage):
            raise ProblemError("mtbf and storage go together: failures every so many device hours, "
                               "and the rate of checkpoints, such as 100GB/s")  # fmt: skip
        if self.interval and not self.storage:
            raise ProblemError("interval is between checkpoints; give storage, such as 100GB/s")


@dataclass(frozen=True)
class RunCost(Result):
    """What a run takes."""

    goodput: Annotated[float, Column("goodput", show="percent", when=DIFFERS)]
    """Share of the time that makes progress."""
    days: Annotated[float, Column("days", show="{:.3g}")]
    """Days from the first step to the last, failures included."""
    device_hours: Annotated[float, Column("device hours", show="count")]
    """Hours of all devices."""
    dollars: Annotated[float | None, Column("dollars", show="count", when="some")]
    """Price of the device hours; None where none is given."""
    energy_mwh: Annotated[float | None, Column("MWh", show="{:,.3g}", rank=2)]
    """Energy of all devices, in MWh; None where the spec has no power limit."""
    checkpoint_bytes: Annotated[float, Column()]
    """Bytes of a checkpoint: weights that the optimiser updates, and its states."""
    interval_seconds: Annotated[float | None, Column()]
    """Work between two checkpoints; None without failures."""
    failures: Annotated[float, Column()]
    """Expected failures of the run."""


def cost(run: TrainingRun, step: Step, device: Device) -> RunCost:
    """The cost of a run of such steps. Raises `ProblemError` for a run that does not end."""
    if run.tokens is None:
        raise ProblemError("a run needs tokens; give them, such as 15T")
    plan = step.plan
    work = run.tokens / step.tokens_per_second
    size = checkpoint_bytes(step)
    goodput, interval, failures = 1.0, None, 0.0
    if run.mtbf and run.storage:
        between = run.mtbf * _HOUR / plan.devices
        write = size / run.storage
        interval = run.interval or optimal_interval(write, between)
        goodput = share_of_progress(interval, write, between, run.restart)
        failures = work / goodput / between
    seconds = work / goodput
    hours = seconds * plan.devices / _HOUR
    watts = run.watts or device.tdp_watts
    return RunCost(
        goodput=goodput,
        days=seconds / _DAY,
        device_hours=hours,
        dollars=None if run.price is None else hours * run.price,
        energy_mwh=None if watts is None else hours * watts / 1e6,
        checkpoint_bytes=size,
        interval_seconds=interval,
        failures=failures,
    )


def checkpoint_bytes(step: Step) -> float:
    """Bytes of the weights that the optimiser updates, and of its states, each once."""
    plan = step.plan
    pairs = [
        (weight, repeat)
        for weight, repeat in parameters(step.network, Setting(1, 1, tuning=plan.tuning))
        if weight.trains
    ]
    recipe = plan.recipe
    kept = recipe.master_bytes or recipe.weight_bytes
    weights = kept * sum(weight.elements * repeat for weight, repeat in pairs)
    if plan.optimiser == "none":
        return weights
    return weights + optimisers.load(plan.optimiser).state_bytes(parameters_of(pairs), recipe)


def optimal_interval(write: float, between: float) -> float:
    """Daly's interval of work between checkpoints that take `write` seconds, with failures every
    `between` seconds."""
    if write >= 2.0 * between:
        return between
    ratio = write / (2.0 * between)
    return math.sqrt(2.0 * write * between) * (1.0 + math.sqrt(ratio) / 3.0 + ratio / 9.0) - write


def share_of_progress(interval: float, write: float, between: float, restart: float) -> float:
    """Goodput: work over time. Raises `ProblemError` where failures come too often to end."""
    exponent = (interval + write) / between
    if exponent + restart / between > _MOST:
        raise ProblemError(
            f"failures every {between:,.0f} s leave no progress beside checkpoints of "
            f"{write:,.0f} s and restarts of {restart:,.0f} s; raise mtbf or storage"
        )
    return interval / (between * math.exp(restart / between) * math.expm1(exponent))
