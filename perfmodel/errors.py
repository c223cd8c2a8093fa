"""Every error a user can cause, as one tree.

    PerfmodelError            base: one line saying what, which, and what to do
    ├── UnknownName           a device, schedule, kernel or type that is not there (nearest named)
    ├── SpecError             a hardware spec that cannot be read or breaks physics (file and line)
    ├── ProblemError          a problem that has no meaning: zero heads, a type without a rate
    ├── TableError            a measured-run table that is damaged or lacks a column
    └── OutputError           a path that cannot be written

The command line catches the base class once, prints the line and exits with code 2, and so do the
modules that are run by themselves (`exit_code`). Anything else that escapes is a bug of ours and
shows its traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable


class PerfmodelError(Exception):
    """Base of all errors that a user can cause; `str(error)` is one complete line."""


class UnknownName(PerfmodelError):
    """A name that is not in its catalogue; the message offers the nearest ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        from difflib import get_close_matches  # only needed once something has gone wrong

        names = sorted(set(known))
        near = get_close_matches(name.lower(), names, n=3, cutoff=0.5)
        said = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names[:60])}"
        super().__init__(f"no {kind} named {name!r}; {said}{f' {hint}' if hint else ''}")


class SpecError(PerfmodelError):
    """A hardware spec that cannot be used; the message starts with file and line."""


class ProblemError(PerfmodelError):
    """A problem, schedule or tile that has no meaning or does not fit."""


class TableError(PerfmodelError):
    """A measured-run table that cannot be read."""


class OutputError(PerfmodelError):
    """An output that cannot be written."""


def exit_code(program: str, run: Callable[[], None]) -> int:
    """0 after `run`, or 2 and one line on standard error where the user's input is at fault."""
    try:
        run()
    except PerfmodelError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2
    return 0
