"""What if the hardware were different: elasticities, and answers to changes such as "HBM x2".

An elasticity is Δ ln t / Δ ln x, the per cent of time per per cent of a hardware number x. It is −1
for a rate that alone limits the time, 0 for a number without effect, and +1 for a latency that is
the whole time.

It is the secant of two predictions on copies of the device, with x ÷ 1.1 and x × 1.1. The time is
made of sums and maxima of work ÷ rate, so each rate's elasticity lies between −1 and 0, and those
of all rates minus those of all times add up to −1. A secant outside of that crosses a step: another
tile, number of slices or wave. Then the step is named, and there is no elasticity.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Annotated, Any

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.algorithms.matmul import FORMATS
from perfmodel.algorithms.problem import describe, length
from perfmodel.analysis.quantities import QUANTITIES, SPELLINGS, Quantity, Setting
from perfmodel.columns import DIFFERS, Column, Result, Row
from perfmodel.elements import ELEMENTS
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.frozen import dataclass
from perfmodel.hardware import Device
from perfmodel.plaintext import quoted, whole_number
from perfmodel.predict import predict_arrays
from perfmodel.quantities import signed
from perfmodel.timing.constants import Constants, default
from perfmodel.units import parse

SWING = 2.0
"""The factors by which each number is changed."""

NEAR = 1.1
"""The factor by which it is changed for an elasticity, up and down."""

_ROUNDING = 0.01  # elasticity beyond 0 and 1 that no other tile has to explain

MOST = 1e3
"""Largest factor by which a number may be changed, up or down."""

TOGETHER = "all together"
_NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_AMOUNT = re.compile(
    rf"(?P<name>.*?)\s*(?:[x×*]\s*(?P<times>{_NUMBER})|(?<=[\s\d])(?P<fold>{_NUMBER})\s*[x×]"
    rf"|/\s*(?P<divided>{_NUMBER})|(?P<percent>[+\-−]\s*{_NUMBER})\s*%"
    rf"|[\s=]\s*(?P<value>{_NUMBER}\s*[A-Za-zµ/]*))"
)
_HELP = 'write "HBM x2", "SRAM +50%", "SM 160", "clock 2 GHz" or "fp8"'


@dataclass(frozen=True)
class Change:
    """One change: a hardware number times a factor or set to a value, or another type."""

    text: str
    """The text of the request."""
    quantity: Quantity | None = None
    """The hardware number; None where the type changes."""
    factor: float | None = None
    """The factor; None if a value is set."""
    value: float | None = None
    """The new value in SI units; None if a factor is given."""
    dtype: str = ""
    """The new type; empty if a number changes."""

    @property
    def subject(self) -> str:
        """What it changes."""
        return self.quantity.label if self.quantity else "the type"

    @property
    def told(self) -> str:
        """The text; with the number's name where the text leaves it open: L2 x2 (L2 bandwidth)."""
        label = self.subject
        is_open = self.quantity is not None and label.lower() not in self.text.lower()
        return f"{self.text} ({label})" if is_open and "bandwidth" in label else self.text

    def applied(self, setting: Setting) -> Setting:
        """`setting` after the change; raises `ProblemError` if the spec lacks the number."""
        if self.quantity is None:
            return replace(setting, problem=setting.problem.having(dtype=self.dtype))
        factor = self.factor
        if factor is None:
            current = self.quantity.read(setting)
            # If the value is missing, `scaled` raises the error; a launch floor of zero stays zero.
            factor = _valid_factor((self.value or 0.0) / current, self.text) if current else 1.0
        return self.quantity.scaled(setting, factor)


@dataclass(frozen=True)
class Outcome:
    """Predictions of n cases."""

    seconds: np.ndarray
    """Seconds; infinite where no tile fits."""
    limiter: np.ndarray
    """Limiters."""
    layout: Mapping[str, np.ndarray] = field(default_factory=dict)
    """What may step, by name: kernel, slices, waves, blocks of the busiest unit, extents of the
    tile. Empty where no tile fits."""


@dataclass(frozen=True)
class Sensitivity:
    """How the times of n cases depend on one hardware number."""

    quantity: Quantity
    """The number."""
    value: float
    """Its value now, in SI units."""
    elasticity: np.ndarray
    """Per cent of time per per cent of the number; NaN at a step, and where it cannot be
    changed."""
    step: tuple[str, ...]
    """What steps within ±10 % of the number, for each case: "waves 2→1"; empty at a slope."""
    halved: Outcome
    """Predictions with half the number."""
    doubled: Outcome
    """Predictions with twice the number."""


@dataclass(frozen=True)
class Effect:
    """The effect of a change on n cases."""

    change: str
    """The text of the change."""
    after: Outcome
    """The cases after it."""


def _slope(value: float | str) -> str:
    """An elasticity, or what steps in its place."""
    return value if isinstance(value, str) else signed(value)


def _now(row: Row) -> str | None:
    quantity = QUANTITIES.get(row["quantity"])
    return quantity.show(row["value"]) if quantity else None


@dataclass(frozen=True)
class CaseChange(Result):
    """A hardware number, or one change, and what it does to one case."""

    device: Annotated[str, Column("device", when=DIFFERS)]
    """The device's slug."""
    problem: Annotated[Mapping[str, Any], Column()]
    """Sizes and types of the problem."""
    what_if: Annotated[str, Column("what if")]
    """A doubled hardware number, or a change that was asked for."""
    seconds: Annotated[float, Column("time", key="time_us", scale=1e6, rank=2, place=1)]
    """Seconds now."""
    after_seconds: Annotated[float | None, Column("after", key="after_us", scale=1e6, place=1)]
    """Seconds after the change; None where nothing fits."""
    limiter: Annotated[str, Column("limiter", rank=1, place=3)]
    """The limiter now."""
    limiter_after: Annotated[str, Column(place=3)]
    """The limiter after the change; "does not fit" where nothing does."""
    quantity: Annotated[str | None, Column()] = None
    """The hardware number; None for a change that was asked for."""
    value: Annotated[float | None, Column(), Column("now", _now, rank=3)] = None
    """Its value now, in SI units."""
    elasticity: Annotated[
        float | None,
        Column(),
        Column("elasticity", lambda row: row["step"] or row["elasticity"], _slope),
    ] = None
    """Per cent of time per per cent of the number; None at a step."""
    step: Annotated[str | None, Column()] = None
    """What steps within 10 % of the number: waves 2→1; None at a slope."""
    halved_seconds: Annotated[float | None, Column(key="halved_us", scale=1e6)] = None
    """Seconds with half of it; None where nothing fits."""

    @property
    def speedup(self) -> Annotated[float | None, Column("speed-up", show="{:.2f}x", place=2)]:
        """Seconds now over those after the change."""
        return self.seconds / self.after_seconds if self.after_seconds else None


@dataclass(frozen=True)
class WhatIf:
    """n cases on one device: as they are, their sensitivities, and after each change."""

    setting: Setting
    """The cases, device and other arguments."""
    now: Outcome
    """Predictions without a change."""
    sensitivities: tuple[Sensitivity, ...]
    """Sensitivity to each hardware number."""
    effects: tuple[Effect, ...]
    """The effect of each change."""
    missing: tuple[str, ...]
    """Hardware numbers that the spec does not state."""

    def rows(self) -> list[dict[str, Any]]:
        """A row per case and hardware number, then per case and change; times in microseconds."""
        cases = range(self.now.seconds.size)
        return [change.as_dict() for i in cases for change in self._case(i)]

    def _case(self, i: int) -> list[CaseChange]:
        device, problem = self.setting.device, describe(self.setting.problem, i)
        base, limiter = float(self.now.seconds[i]), str(self.now.limiter[i])

        def line(label: str, outcome: Outcome, **fields: Any) -> CaseChange:
            seconds = _finite(outcome.seconds[i])
            after = "does not fit" if seconds is None else str(outcome.limiter[i])
            return CaseChange(device.slug, problem, label, base, seconds, limiter, after, **fields)

        return [
            *(
                line(
                    f"{item.quantity.on(device)} x2", item.doubled, quantity=item.quantity.name,
                    value=item.value, elasticity=_finite(item.elasticity[i]),
                    step=item.step[i] or None, halved_seconds=_finite(item.halved.seconds[i]),
                )
                for item in self.sensitivities
            ),
            *(line(effect.change, effect.after) for effect in self.effects),
        ]  # fmt: skip


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def parse_change(text: str) -> Change:
    """The change in a user's text: "HBM x2", "SRAM +50%", "SM 160", "clock 2 GHz", "fp8".

    Raises `UnknownName`, with the nearest names, for an unknown hardware number, `ProblemError` for
    an invalid amount, and `UnitError` for a wrong unit.
    """
    phrase = " ".join(text.split())
    if phrase.lower() in (*ELEMENTS, *FORMATS):
        return Change(phrase, dtype=phrase.lower())
    match = _AMOUNT.fullmatch(phrase)
    name = (match["name"] if match else phrase).strip().lower().replace("_", " ")
    quantity = SPELLINGS.get(name)
    if quantity is None:
        if any(phrase.lower().startswith(f"{spelling} ") for spelling in SPELLINGS):
            raise ProblemError(f"{phrase!r} does not say by how much; {_HELP}")
        raise UnknownName("hardware number", name or phrase, [*SPELLINGS, *ELEMENTS], f"({_HELP})")
    if match is None:
        raise ProblemError(f"{phrase!r} does not say by how much; {_HELP}")
    if match["value"] is not None:
        return Change(phrase, quantity, value=_value(quantity, match["value"].strip(), phrase))
    factor = _factor(match)
    if not math.isfinite(factor) or factor < 0 or (factor == 0 and not quantity.is_launch):
        raise ProblemError(f"{quoted(phrase)} leaves nothing of the {quantity.label}; {_HELP}")
    return Change(phrase, quantity, factor=_valid_factor(factor, phrase))


def _valid_factor(factor: float, phrase: str) -> float:
    """`factor`, if it is between 1/`MOST` and `MOST`, or 0 (no launch overhead); else raises
    `ProblemError`."""
    if factor != 0 and not 1 / MOST <= factor <= MOST:
        raise ProblemError(
            f"{quoted(phrase)} is a change by a factor of {factor:.2g}; it may be 0.001 to 1000"
        )
    return factor


def _factor(match: re.Match[str]) -> float:
    if match["percent"] is not None:
        return 1 + float(match["percent"].replace("−", "-").replace(" ", "")) / 100
    if match["divided"] is not None:
        divisor = float(match["divided"])
        return 1 / divisor if divisor else math.inf
    return float(match["times"] or match["fold"])


def _value(quantity: Quantity, text: str, phrase: str) -> float:
    """An absolute value in SI units."""
    if quantity.dimension != "count":
        value = parse(text, quantity.dimension)
    elif (count := whole_number(text)) is not None:
        value = float(count)
    else:
        raise ProblemError(f"{phrase!r}: the {quantity.label} is a whole number; {_HELP}")
    if value == 0 and not quantity.is_launch:
        raise ProblemError(f"{phrase!r} leaves nothing of the {quantity.label}; {_HELP}")
    return value


def parse_changes(texts: Sequence[str]) -> list[Change]:
    """All changes; raises `ProblemError` if two of them change the same number."""
    changes: dict[str, Change] = {}
    for change in map(parse_change, texts):
        first = changes.setdefault(change.subject, change)
        if first is not change:
            conflict = f"{first.text!r} and {change.text!r} both change {change.subject}"
            raise ProblemError(f"{conflict}; ask them one at a time")
    return list(changes.values())


def whatif(
    problem: Problem,
    device: Device,
    changes: Sequence[Change] = (),
    *,
    constants: Constants | None = None,
    **options: Any,
) -> WhatIf:
    """Elasticities, and the effect of each of `changes` alone and, if several, of all together.

    `problem` may hold arrays. `options` (schedule, implementation, harness, place, mesh, stored)
    and errors are those of `predict`.
    """
    setting = Setting(problem, device, constants or default(), options)
    base = _outcome(setting)
    candidates = [quantity for quantity in QUANTITIES.values() if quantity.belongs(setting)]
    quantities = [quantity for quantity in candidates if quantity.read(setting) is not None]
    effects = [Effect(change.told, _outcome_after(setting, [change])) for change in changes]
    if len(changes) > 1:
        effects.append(Effect(TOGETHER, _outcome_after(setting, changes)))
    return WhatIf(
        setting,
        base,
        tuple(_sensitivity(setting, base, quantity) for quantity in quantities),
        tuple(effects),
        tuple(q.on(device) for q in candidates if q not in quantities),
    )


def elasticities(problem: Problem, device: Device, **options: Any) -> dict[str, np.ndarray]:
    """Elasticity of each hardware number of the spec, by name; arguments as for `whatif`."""
    answer = whatif(problem, device, **options)
    return {item.quantity.name: item.elasticity for item in answer.sensitivities}


def _outcome(setting: Setting) -> Outcome:
    answer = predict_arrays(
        setting.problem, setting.device, constants=setting.constants, **setting.options
    )
    slices = {name: answer.tile[name] for name in ("slices", "splits") if name in answer.tile}
    layout = {
        "kernel": np.array([kernel for _, kernel, *_ in answer.kinds])[answer.kind],
        **slices,
        "waves": np.ceil(answer.waves),
        "blocks a unit": np.ceil(answer.waves * answer.occupancy),
        **answer.tile,
    }
    return Outcome(answer.seconds, answer.limiter, layout)


def _outcome_after(setting: Setting, changes: Sequence[Change]) -> Outcome:
    """The outcome after `changes`; a type that the device lacks raises an error."""
    for change in changes:
        setting = change.applied(setting)
    retyped = any(change.quantity is None for change in changes)
    return _outcome(setting) if retyped else tried(setting)


def tried(setting: Setting) -> Outcome:
    """The outcome, infinite where no tile fits on chip."""
    try:
        return _outcome(setting)
    except ProblemError:
        n = length(setting.problem)
        return Outcome(np.full(n, np.inf), np.full(n, ""))


def _sensitivity(setting: Setting, base: Outcome, quantity: Quantity) -> Sensitivity:
    """The sensitivity of cases that are `base` to one number."""
    value = float(quantity.read(setting) or 0.0)
    ends = _ends(quantity, value)
    lower, upper = (tried(quantity.scaled(setting, factor)) for factor in ends)
    # If nothing fits on one side, a one-sided difference is taken.
    low, high = (
        np.where(np.isfinite(end.seconds), end.seconds, base.seconds) for end in (lower, upper)
    )
    left, right = (
        np.where(np.isfinite(end.seconds), math.log(factor), 0.0)
        for end, factor in zip((lower, upper), ends, strict=True)
    )
    run = right - left
    slope = np.log(high / low) / np.where(run == 0, np.nan, run)
    steps = tuple(step(lower, upper, i, quantity, each) for i, each in enumerate(slope))
    slope = np.where([bool(text) for text in steps], np.nan, slope)
    halved, doubled = (tried(quantity.scaled(setting, f)) for f in (1 / SWING, SWING))
    return Sensitivity(quantity, value, slope, steps, halved, doubled)


def step(before: Outcome, after: Outcome, i: int, quantity: Quantity, slope: float) -> str:
    """What the i-th case steps by, "waves 2→1" or "m 64→128", where it changes by more than one
    resource can be worth; empty at a slope."""
    gain = slope if quantity.is_better_smaller else -slope
    if not math.isfinite(slope) or -_ROUNDING <= gain <= 1 + _ROUNDING:
        return ""
    for name, values in before.layout.items():
        ends = [
            str(part[i]).removesuffix(".0") for part in (values, after.layout.get(name, values))
        ]
        if ends[0] != ends[1] and "nan" not in ends:
            return f"{name} {'→'.join(ends)}"
    # Units take whole blocks, of the second of two kernels too.
    return "blocks" if quantity.dimension == "count" else ""


def _ends(quantity: Quantity, value: float) -> tuple[float, float]:
    """The factors below and above 1 of the secant."""
    if quantity.dimension != "count":
        return 1 / NEAR, NEAR
    units = max(1, round(value * (NEAR - 1)))
    return max(1.0, value - units) / value, (value + units) / value
