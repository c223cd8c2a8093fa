"""What was asked for in a list and cannot be: said beside what can."""

from __future__ import annotations

from collections.abc import Sequence

from perfmodel.errors import ProblemError
from perfmodel.render.report import Row

Refused = Sequence[tuple[str, str]]
"""Words of each, and why it cannot be."""

SHOWN = 8
"""As many are said in full."""


def lines(refused: Refused) -> list[str]:
    """Notes under a table."""
    found = [f"left out: {words}: {reason}" for words, reason in refused[:SHOWN]]
    if len(refused) > SHOWN:
        found.append(f"left out: {len(refused) - SHOWN:,} more (--format json lists all)")
    return found


def head(refused: Refused, what: str) -> Row:
    """What stands beside the rows in JSON."""
    return {"refused": [{what: words, "reason": reason} for words, reason in refused]}


def all_of(refused: Refused) -> ProblemError:
    """The error where none can be: the first reason, and how many more there are."""
    words, reason = refused[0]
    if len(refused) == 1:
        return ProblemError(reason)
    return ProblemError(f"{words}: {reason} (and {len(refused) - 1:,} more)")
