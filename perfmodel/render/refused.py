"""Impossible entries of a list, which are reported beside the results of the others."""

from __future__ import annotations

from collections.abc import Sequence

from perfmodel.errors import ProblemError
from perfmodel.render.report import Row

Refused = Sequence[tuple[str, str]]
"""A label for each, and the reason."""

SHOWN = 8
"""Limit on the entries that are listed in full."""


def lines(refused: Refused) -> list[str]:
    """Notes under a table."""
    notes = [f"left out: {words}: {reason}" for words, reason in refused[:SHOWN]]
    if len(refused) > SHOWN:
        notes.append(f"left out: {len(refused) - SHOWN:,} more (--format json lists all)")
    return notes


def head(refused: Refused, what: str) -> Row:
    """Members beside the rows in JSON."""
    return {"refused": [{what: words, "reason": reason} for words, reason in refused]}


def all_of(refused: Refused) -> ProblemError:
    """The error if all are impossible: the first reason, and the number of further ones."""
    words, reason = refused[0]
    if len(refused) == 1:
        return ProblemError(reason)
    return ProblemError(f"{words}: {reason} (and {len(refused) - 1:,} more)")
