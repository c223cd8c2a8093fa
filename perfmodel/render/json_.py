"""JSON: `schema_version`, title, notes and other members, and the rows under their name."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from perfmodel.render.report import Report

SCHEMA_VERSION = 1


def render(report: Report) -> Iterator[str]:
    """One document; rows are written as they come, one line each."""
    words = {"title": report.title, "notes": list(report.notes)}
    head = {"schema_version": SCHEMA_VERSION, **report.head}
    head |= {name: value for name, value in words.items() if value}
    yield _text(head)[:-1] + f', "{report.name}": ['
    separator = "\n"
    for row in report.rows:
        yield separator + _text(row)
        separator = ",\n"
    yield "\n]}\n"


def _text(value: Any) -> str:
    return json.dumps(_json_value(value), allow_nan=False)  # ASCII, which every encoding can carry


def _json_value(value: Any) -> Any:
    """`value` with null for numbers that JSON lacks."""
    if isinstance(value, dict):
        return {key: _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
