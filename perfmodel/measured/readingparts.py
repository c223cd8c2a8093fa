"""Readings taken one by one: each is saved at once, and a failed one does not stop the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from perfmodel.measured.journal import Announce, unannounced
from perfmodel.measured.microbench import Curve, Readings, Report, read
from perfmodel.replacing import replacing

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
    announce: Announce = unannounced,
    settle: Callable[[], None] = lambda: None,
) -> Readings:
    """`empty` with every part that can be read; a failed part has its reason in `methods`.

    With `partial`, each reading is saved in that file, and those already in it are not taken again.
    `announce` is told of each before it is read. `settle` frees a reading's memory and raises if
    the device is lost, which ends the readings. `methods` are the methods of rates, by the rate's
    name or its first word.
    """
    readings = read(partial) if partial is not None and partial.exists() else empty
    _save(readings, partial)
    for name, reading in parts.items():
        if name in readings.methods:
            continue
        report(name)
        announce("readings", {"reading": name})
        readings = _with_part(readings, name, reading, methods)
        _save(readings, partial)
        settle()
    return readings


def record_lost(path: Path, name: str, reason: str) -> None:
    """Note in a file of readings why one that took its process along is missing."""
    document = json.loads(path.read_text(encoding="utf-8"))
    document["methods"].setdefault(name, f"{MISSING}: {reason}")
    with replacing(path) as partial:
        partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _save(readings: Readings, path: Path | None) -> None:
    if path is not None:
        with replacing(path) as partial:
            partial.write_text(readings.dump(), encoding="utf-8")


def _note(readings: Readings, name: str, reason: str) -> Readings:
    return replace(readings, methods={**readings.methods, name: f"{MISSING}: {reason}"})


def _with_part(
    readings: Readings, name: str, reading: Callable[[], Part], methods: Mapping[str, str]
) -> Readings:
    """The readings with one more part, or with the reason why it failed."""
    try:
        part = reading()
    except Exception as error:  # a library or a device that lacks something: the rest goes on
        return _note(readings, name, " ".join(f"{type(error).__name__}: {error}".split())[:200])
    rates = {key: value for key, value in part.items() if isinstance(value, float)}
    curves = {key: value for key, value in part.items() if isinstance(value, Curve)}
    loads = [value for value in part.values() if isinstance(value, tuple)]
    notes = {key: methods.get(key) or methods.get(key.partition(".")[0], "") for key in rates}
    return replace(
        readings,
        rates={**readings.rates, **rates},
        curves={**readings.curves, **curves},
        load=loads[0] if loads else readings.load,
        methods={**readings.methods, name: "", **notes},
    )


def missing(found: Readings) -> dict[str, str]:
    """The failed readings with their reasons."""
    return {name: note for name, note in found.methods.items() if note.startswith(MISSING)}
