"""Output of results: to standard output or a file, in the chosen format."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, ClassVar

import click

from perfmodel.cli.streams import PIPE_CLOSED, mute
from perfmodel.errors import OutputError, UnknownName, reason, say
from perfmodel.fieldoption import FieldOption
from perfmodel.frozen import dataclass
from perfmodel.plaintext import LOOKALIKES
from perfmodel.render import RENDERERS, SUFFIXES, Report
from perfmodel.replacing import check_target, replacing

__all__ = ["PANEL", "Format", "Output", "Printed", "Shown", "say", "to_stdout", "write"]

PANEL = "Output"
"""Heading of the options on what is shown, and where."""

Format = Annotated[
    str | None,
    FieldOption(
        PANEL,
        "FORMAT",
        ("--format", "-f"),
        help="Output format: table, json, csv, markdown or latex.",
        names="perfmodel.render:RENDERERS",
    ),
]
Output = Annotated[
    str | None,
    FieldOption(
        PANEL,
        "FILE",
        ("--output", "-o"),
        help="Write to FILE; its suffix sets the format: .json, .csv, .md, .tex or .txt.",
    ),
]
_IN_MEMORY = 2**26  # bytes of output held in memory before a temporary file is used


@dataclass(frozen=True)
class Printed:
    """How results are written: checked before any work is done."""

    format: Format = None
    """Output format."""
    forms: ClassVar[Collection[str]] = RENDERERS
    """The formats, the usual one first."""
    suffixes: ClassVar[Mapping[str, str]] = SUFFIXES
    """The format of each suffix of a file's name."""

    def __post_init__(self) -> None:
        """Raise `UnknownName`, and `OutputError` for a file that cannot be written."""
        if self.file not in (None, "-"):
            check_target(Path(str(self.file)))
        _ = self.form

    @property
    def file(self) -> str | None:
        """The file to write; None: standard output."""
        return None

    @property
    def form(self) -> str:
        """The named format, else the one of the file's suffix, else the usual one."""
        if self.format is not None:
            if self.format not in self.forms:
                raise UnknownName("format", self.format, self.forms)
            return self.format
        if self.file in (None, "-"):
            return next(iter(self.forms))
        suffix = Path(str(self.file)).suffix
        if suffix not in self.suffixes:
            names = ", ".join(self.suffixes)
            raise OutputError(
                f"{self.file}: unknown suffix {suffix!r}; use {names}, or add --format"
            )
        return self.suffixes[suffix]

    def emit(self, *reports: Report) -> None:
        """Render reports and write them at once: after an error nothing is left behind.

        A table on a terminal has the terminal's width, and colours unless NO_COLOR is set.
        """
        render = RENDERERS[self.form]
        terminal = sys.stdout is not None and not sys.stdout.closed and sys.stdout.isatty()
        if self.form == "table" and self.file in (None, "-") and terminal:
            render = _terminal_table

        def pieces() -> Iterator[str]:
            for number, report in enumerate(reports):
                if number:
                    yield "\n"
                yield from render(report)

        write(pieces(), self.file)


@dataclass(frozen=True)
class Shown(Printed):
    """Where results are written, and how."""

    output: Output = None
    """File to write."""

    @property
    def file(self) -> str | None:
        """The file to write; None: standard output."""
        return self.output


def _terminal_table(report: Report) -> Iterator[str]:
    """A table fitted to this terminal."""
    from shutil import get_terminal_size

    from perfmodel.render.table import at_terminal

    coloured = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return at_terminal(report, get_terminal_size().columns, coloured=coloured)


def write(pieces: Iterator[str], output: str | None) -> None:
    """Write all pieces to the file `output`, or to standard output where it is None or "-"."""
    if output in (None, "-"):
        to_stdout(pieces)
        return
    with (
        replacing(str(output)) as partial,
        partial.open("w", encoding="utf-8", errors=LOOKALIKES, newline="") as file,
    ):
        file.writelines(pieces)
    say(f"wrote {output}")


def to_stdout(pieces: Iterator[str]) -> None:
    """Print all pieces once they are complete.

    Raises `OutputError` where standard output is closed or full. A reader that has closed the pipe
    is no error: the program ends as if by the signal.
    """
    import shutil
    from tempfile import SpooledTemporaryFile

    with SpooledTemporaryFile(
        _IN_MEMORY, "w+", encoding="utf-8", errors="surrogatepass", newline=""
    ) as spool:
        spool.writelines(pieces)
        spool.seek(0)
        if sys.stdout is None:
            raise OutputError("standard output is closed; name a file with --output")
        try:
            shutil.copyfileobj(spool, sys.stdout)
            sys.stdout.flush()
        except BrokenPipeError:
            mute()
            raise click.exceptions.Exit(PIPE_CLOSED) from None
        except OSError as error:
            mute()
            raise OutputError(f"cannot write to standard output: {reason(error)}") from None
