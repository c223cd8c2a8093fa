"""Lists with impossible elements: the others are answered, and each impossible one is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from perfmodel.errors import PerfmodelError, SizeError, say
from perfmodel.render.refused import Refused, all_of, lines

Answer = TypeVar("Answer")
Asked = tuple[str, Callable[[], Answer]]
"""What distinguishes an element of a list, and the function that answers it."""


def answered(asked: Iterable[Asked[Answer]]) -> tuple[list[Answer], Refused]:
    """The answers that exist, and the label of each impossible element with the reason.

    Raises the only error, or `ProblemError` with the first reason, where no element has an answer.
    """
    answers: list[Answer] = []
    refused: list[tuple[str, str]] = []
    failure: PerfmodelError | None = None
    for label, answer in asked:
        try:
            answers.append(answer())
        except PerfmodelError as error:
            refused.append((label, str(error)))
            failure = error
    if answers or not refused:
        return answers, refused
    raise failure if failure is not None and len(refused) == 1 else all_of(refused)


def settled(outcome: Answer | PerfmodelError) -> Answer:
    """An outcome, raised where it is an error."""
    if isinstance(outcome, PerfmodelError):
        raise outcome
    return outcome


def narrowed(answer: Callable[[], Answer], check: Callable[[str, int], object]) -> Answer:
    """The answer; an error of sizes names those that `check` lets pass."""
    try:
        return answer()
    except SizeError as error:
        raise error.those(check) from None


def possible(asked: Iterable[Asked[Answer]]) -> list[Answer]:
    """The answers that exist; impossible elements are told on standard error. Raises as
    `answered`."""
    answers, refused = answered(asked)
    tell(refused)
    return answers


def tell(refused: Refused) -> None:
    """Print a line for each impossible element on standard error."""
    for line in lines(refused):
        say(f"perfmodel: {line}")
