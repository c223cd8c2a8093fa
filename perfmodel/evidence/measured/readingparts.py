"""Readings taken one by one: each is saved at once, and a failed one does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from perfmodel.evidence.measured.microbench import Curve, Readings, Report, read
from perfmodel.evidence.measured.pulse import Pulse
from perfmodel.evidence.records.replacing import replacing

MISSING = "not measured"
Load = tuple[tuple[float, float, float | None, float | None], ...]
Part = dict[str, float | Curve | Load]
"""One reading: rates, a curve, or points of (seconds, FLOP/s, MHz, W) under load."""


def take(
    empty: Readings,
    parts: Mapping[str, Callable[[], Part]],
    *,
    report: Report,
    methods: Mapping[str, str],
    partial: Path | None = None,
    pulse: Pulse | None = None,
    settle: Callable[[], None] = lambda: None,
) -> Readings:
    """`empty` with every part that can be read; a failed part has its reason in `methods`.

    With `partial`, each reading is saved in that file, and those already in it are not taken again.
    `pulse` records what is being read. `settle` frees a reading's memory and raises if the device
    is lost, which ends the readings. `methods` are the methods of rates, by the rate's name or its
    first word.
    """
    pulse = pulse or Pulse()
    found = read(partial) if partial is not None and partial.exists() else empty
    lost = pulse.claim()
    if lost is not None:
        found = _without(found, lost.running.get("reading", ""), lost.reason)
        _keep(found, partial)
    for name, reading in parts.items():
        if name in found.methods:
            continue
        report(name)
        pulse.beat({"reading": name})
        found = _with(found, name, reading, methods)
        _keep(found, partial)
        settle()
        pulse.rest()
    return found


def _keep(found: Readings, path: Path | None) -> None:
    if path is not None:
        with replacing(path) as partial:
            partial.write_text(found.dump(), encoding="utf-8")


def _without(found: Readings, name: str, reason: str) -> Readings:
    return replace(found, methods={**found.methods, name: f"{MISSING}: {reason}"})


def _with(
    found: Readings, name: str, reading: Callable[[], Part], methods: Mapping[str, str]
) -> Readings:
    """The readings with one more part, or with the reason why it failed."""
    try:
        part = reading()
    except Exception as failed:  # a library or a device that lacks something: the rest goes on
        return _without(found, name, " ".join(f"{type(failed).__name__}: {failed}".split())[:200])
    rates = {key: value for key, value in part.items() if isinstance(value, float)}
    curves = {key: value for key, value in part.items() if isinstance(value, Curve)}
    loads = [value for value in part.values() if isinstance(value, tuple)]
    how = {key: methods.get(key) or methods.get(key.partition(".")[0], "") for key in rates}
    return replace(
        found,
        rates={**found.rates, **rates},
        curves={**found.curves, **curves},
        load=loads[0] if loads else found.load,
        methods={**found.methods, name: "", **how},
    )


def missing(found: Readings) -> dict[str, str]:
    """The failed readings with their reasons."""
    return {name: how for name, how in found.methods.items() if how.startswith(MISSING)}
