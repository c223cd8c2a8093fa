"""Recorded requests: CSV or JSON lines with a row a request.

A row has when it was sent, the tokens of its prompt and of its answer, and perhaps how many tokens
of the prompt were cached (`prefix`), hashes of its pieces, or a priority. The published traces have
columns of their own (`FORMS`):

    arrival, input, output[, prefix][, priority]        seconds; here
    timestamp, input_length, output_length, hash_ids    ms; Mooncake (2407.00079), pieces of 512
    TIMESTAMP, ContextTokens, GeneratedTokens           dates; Azure, 2023 and 2024
    Timestamp, Request tokens, Response tokens          s; BurstGPT (2401.17644)
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.plaintext import quoted
from perfmodel.serving.queue.traffic import MOST_REQUESTS, Arrivals


class Form(NamedTuple):
    """The columns of a trace."""

    arrival: str
    """When a request was sent."""
    inputs: str
    """Tokens of its prompt."""
    outputs: str
    """Tokens of its answer."""
    second: float = 1.0
    """Units of time in a second."""


FORMS = (
    Form("arrival", "input", "output"),
    Form("timestamp", "input_length", "output_length", 1e3),
    Form("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    Form("Timestamp", "Request tokens", "Response tokens"),
)
"""The forms that are read, by their columns."""
_PIECES = "hash_ids"


def read(path: str, most: int = 0) -> Arrivals:
    """The first `most` requests of a file, or all; those without an answer are left out.

    The first request is sent at second 0. Raises `ProblemError` for a file that is no trace.
    """
    rows = []
    form: Form | None = None
    for line, row in _rows(Path(path)):
        form = form or _form(row, path)
        try:
            request = _request(row, form)
        except (KeyError, TypeError, ValueError):
            raise ProblemError(
                f"{path}:{line}: {form.arrival}, {form.inputs} and {form.outputs} are numbers, "
                f"of which one is missing or none; correct the line"
            ) from None
        if request[2] > 0:
            rows.append(request)
        if len(rows) >= (most or MOST_REQUESTS):
            break
    if not rows:
        raise ProblemError(f"{path} has no requests; give a line each: arrival, input, output")
    rows.sort(key=lambda request: request[0])
    seconds, inputs, outputs, cached, priorities, pieces = zip(*rows, strict=True)
    return Arrivals(
        np.array(seconds) - seconds[0], np.array(inputs), np.array(outputs),
        np.minimum(cached, np.array(inputs) - 1), np.array(priorities),
        pieces if any(pieces) else (),
    )  # fmt: skip


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Rows with the numbers of their lines."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            if first.lstrip().startswith("{"):
                for number, text in enumerate(file, 1):
                    if text.strip():
                        yield number, json.loads(text)
            else:
                for number, row in enumerate(csv.DictReader(file), 2):
                    yield number, row
    except json.JSONDecodeError:
        raise ProblemError(f"{path}:{number}: no JSON object; correct or drop the line") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise ProblemError(f"{path}: {reason}; give a CSV or JSON-lines file") from None


def _form(row: Mapping[str, Any], path: str) -> Form:
    """The form with the columns of a row. Raises `ProblemError`."""
    for form in FORMS:
        if all(name in row for name in islice(form, 3)):
            return form
    raise ProblemError(
        f"{path}: no columns arrival, input, output, but {quoted(', '.join(map(str, row)))}; "
        "rename them (seconds, tokens, tokens)"
    )


def _request(
    row: Mapping[str, Any], form: Form
) -> tuple[float, int, int, int, int, tuple[int, ...]]:
    """Second, tokens in and out, cached tokens, priority, and pieces of a prompt."""
    seconds = _seconds(row[form.arrival]) / form.second
    numbers = [
        row[form.inputs],
        row[form.outputs],
        row.get("prefix") or 0,
        row.get("priority") or 0,
    ]
    inputs, outputs, cached, priority = (int(float(number)) for number in numbers)
    if not math.isfinite(seconds) or inputs < 0 or outputs < 0 or cached < 0:
        raise ValueError
    pieces = row.get(_PIECES) or ()
    return seconds, max(inputs, 1), outputs, cached, priority, tuple(map(int, pieces))


def _seconds(cell: Any) -> float:
    """A number, or a date as seconds."""
    try:
        return float(cell)
    except ValueError:
        text = str(cell).strip()
        date, point, fraction = text.partition(".")
        digits = len(fraction) - len(fraction.lstrip("0123456789"))
        start = datetime.fromisoformat(date + fraction[digits:])
        return start.timestamp() + (float(f"0.{fraction[:digits]}") if point else 0.0)
