"""The options of an operator: sizes, choices among names, and flags.

The command line makes its options from these and passes their values to `Operator.problem`. A sweep
takes their product in this order, the last one fastest.
"""

from __future__ import annotations

from collections.abc import Iterable

from perfmodel.algorithms.attention import DIRECTIONS
from perfmodel.elements import ELEMENTS
from perfmodel.frozen import dataclass


@dataclass(frozen=True)
class Size:
    """A whole number, or a list or range of them."""

    name: str
    """The problem's argument."""
    flags: tuple[str, ...]
    """Spellings of the option: `--batch`, `-m`."""
    default: str | None
    """Text where it is not given; None: see `source` and `follows`, else it is left out."""
    help: str
    """One line of help."""
    least: int = 1
    """Smallest value."""
    source: str | None = None
    """The option whose text is used where this one is not given but another with the same source
    is."""
    follows: str | None = None
    """The size that this one equals where it is not given."""
    argument: bool = True
    """Whether it is an argument of the problem; if not, it only serves as a `source`."""


@dataclass(frozen=True)
class Choice:
    """One name of several, or a list of them."""

    name: str
    """The problem's argument."""
    flags: tuple[str, ...]
    """Spellings of the option."""
    default: str | None
    """Text where it is not given; None: the argument is None."""
    help: str
    """One line of help."""
    metavar: str = "TYPE"
    """Name of the value in the help."""
    known: tuple[str, ...] | None = None
    """Allowed names; None: the problem itself checks them."""
    kind: str = ""
    """Word for a name in messages: direction."""


@dataclass(frozen=True)
class Flag:
    """True where it is given."""

    name: str
    """The problem's argument."""
    flags: tuple[str, ...]
    """Spellings of the option."""
    help: str
    """One line of help."""
    always: bool = False
    """Whether the argument is also passed when it is false."""


Option = Size | Choice | Flag


@dataclass(frozen=True)
class Multiple:
    """A size that must be a multiple of another one."""

    size: str
    """The multiple."""
    of: str
    """The divisor."""
    called: str
    """Words for the multiple in a message: query heads."""
    of_called: str
    """Words for the divisor: key-value heads."""

    def said(self, size: object = "", of: object = "") -> str:
        """The message that it is not a multiple, with the numbers where given."""
        return f"{size} {self.called} are not a multiple of {of} {self.of_called}".replace(
            "of  ", "of "
        ).strip()


_SIZE = "a size, list (8,16) or range (512:16k:x2)"


def size(name: str, *flags: str, default: str | None, help: str, **more: object) -> Size:
    """A size called `name`; its flag is `--name` where none is given."""
    names = flags or (f"--{name.replace('_', '-')}",)
    return Size(name, names, default, help.replace("{size}", _SIZE), **more)  # type: ignore[arg-type]


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
