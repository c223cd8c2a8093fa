"""How commands take a field of a dataclass: declared once, beside its type, default and meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from perfmodel.frozen import dataclass

PLAN, STEP, PASS = "Plan", "Step", "Pass"
"""Headings: how a network is split over devices, what one step computes, how a pass runs."""


@dataclass(frozen=True)
class FieldOption:
    """The option of a field, where it is `Annotated`.

    The docstring of the field is the help, or in a grid its first sentence.
    Functions are given by name: a lambda in an annotation does not see the names of its module.
    """

    panel: str | None = None
    """Heading in the help; None: the usual one."""
    metavar: str | None = "N"
    """What stands for the value in the help."""
    spellings: tuple[str, ...] = ()
    """Spellings; empty: the name of the field."""
    least: int | None = 1
    """Least value of a number; None: any."""
    most: int | None = None
    """Largest value of a number; None: any."""
    single: bool = False
    """Whether the option takes one value, not a list or range."""
    names: tuple[str, ...] | str | Callable[[], Iterable[str]] = ()
    """Known values, to complete; a tuple stands in the help too. "module:names" is imported when
    it is needed."""
    read: Callable[[Any], Any] | None = None
    """What reads a name, and raises `PerfmodelError` for an unknown one; None: any text. A text
    field keeps the name of what was read."""
    help: str = ""
    """Help; empty: the docstring."""
    argument: bool = False
    """Whether it is an argument, without a flag before it."""
    repeats: bool = False
    """Whether it may be given several times, as a list field's may; `read` gets all texts."""
    example: str = ""
    """Of a mapping, one of its pairs; `metavar` is their form and `read` gets all of them."""
