"""What a user sets of an operator: sizes, choices among names, and flags.

The command line makes its options from these and hands their values to `Operator.problem`; a sweep
takes their product in this order, the last one fastest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from perfmodel.elements import ELEMENTS

DIRECTIONS = ("fwd", "bwd", "fwdbwd")
"""Forward, backward, and both."""


@dataclass(frozen=True)
class Size:
    """A whole number, or a list or range of them."""

    name: str
    """The problem's argument."""
    flags: tuple[str, ...]
    """How the option is written: `--batch`, `-m`."""
    default: str | None
    """Its text where it is not given; None: see `source` and `follows`, else it is left out."""
    help: str
    """One line."""
    least: int = 1
    """The smallest value."""
    source: str | None = None
    """The option whose text stands in where this one is not given and another one with it is."""
    follows: str | None = None
    """The size that this one equals where it is not given."""
    argument: bool = True
    """Whether it is the problem's; else it only stands in for others (`source`)."""


@dataclass(frozen=True)
class Choice:
    """One name of several, or a list of them."""

    name: str
    """The problem's argument."""
    flags: tuple[str, ...]
    """How the option is written."""
    default: str | None
    """Its text where it is not given; None: the argument is None."""
    help: str
    """One line."""
    metavar: str = "TYPE"
    """What the value is called in the help."""
    known: tuple[str, ...] | None = None
    """The names there are; None: the problem itself checks them."""
    kind: str = ""
    """What a name is called in a message: direction."""


@dataclass(frozen=True)
class Flag:
    """True where it is given."""

    name: str
    """The problem's argument."""
    flags: tuple[str, ...]
    """How the option is written."""
    help: str
    """One line."""
    always: bool = False
    """Whether the argument is also passed while it is false."""


Option = Size | Choice | Flag


@dataclass(frozen=True)
class Multiple:
    """A size that must be a multiple of another one, or there is no such problem."""

    size: str
    """The larger size."""
    of: str
    """What must divide it."""
    called: str
    """The larger one in a message: query heads."""
    of_called: str
    """The other one: key-value heads."""

    def said(self, size: object = "", of: object = "") -> str:
        """That it is none, with the numbers where they are given."""
        return f"{size} {self.called} are not a multiple of {of} {self.of_called}".replace(
            "of  ", "of "
        ).strip()


_SIZE = "a size, list (8,16) or range (512:16k:x2)"


def size(name: str, *flags: str, default: str | None, help: str, **more: object) -> Size:
    """A size called `name`; its flag is `--name` where none is given."""
    written = flags or (f"--{name.replace('_', '-')}",)
    return Size(name, written, default, help.replace("{size}", _SIZE), **more)  # type: ignore[arg-type]


def dtype(names: Iterable[str]) -> Choice:
    """The type of a problem, one of `names` or a list of them."""
    return Choice("dtype", ("--dtype",), "bf16", f"Types, with commas: {', '.join(names)}.")


DTYPE = dtype(ELEMENTS)
DIRECTION = Choice(
    "direction",
    ("--direction",),
    "fwd",
    "Passes, with commas: fwd, bwd, fwdbwd.",
    metavar="WAY",
    known=DIRECTIONS,
    kind="direction",
)
