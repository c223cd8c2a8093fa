"""Output of results: to standard output or a file, in the chosen format."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import click

from perfmodel.cli import completing
from perfmodel.cli.streams import PIPE_CLOSED, mute
from perfmodel.errors import OutputError, UnknownName, reason, say
from perfmodel.evidence.records.replacing import check_target, replacing
from perfmodel.fieldoption import FieldOption
from perfmodel.frozen import dataclass
from perfmodel.plaintext import LOOKALIKES
from perfmodel.render import RENDERERS, SUFFIXES, Renderer, Report

__all__ = ["Format", "Output", "Shown", "chosen_format", "emit", "say", "to_stdout", "write"]

PANEL = "Output"
"""Heading of the options on what is shown, and where."""

Format = Annotated[
    str | None,
    FieldOption(
        PANEL,
        "FORMAT",
        ("--format", "-f"),
        help="Output format: table, json, csv, markdown or latex.",
        complete=completing.formats,
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
class Shown:
    """Where results are written, and how: checked before any work is done."""

    format: Format = None
    """Output format."""
    output: Output = None
    """File to write."""

    def __post_init__(self) -> None:
        chosen_format(self.format, self.output)

    @property
    def form(self) -> str:
        """The name of the format."""
        return chosen_format(self.format, self.output)

    def emit(self, report: Report, *more: Report) -> None:
        """Render reports and write them, as `emit`."""
        emit(report, self.format, self.output, *more)


def chosen_format(wanted: str | None, output: str | None) -> str:
    """The named format, else the one of the file's suffix, else a table.

    Raises `UnknownName`, and `OutputError` for a file that cannot be written: before any work.
    """
    if output not in (None, "-"):
        check_target(Path(str(output)))
    if wanted is not None:
        if wanted not in RENDERERS:
            raise UnknownName("format", wanted, RENDERERS)
        return wanted
    if output in (None, "-"):
        return "table"
    suffix = Path(str(output)).suffix
    if suffix not in SUFFIXES:
        names = ", ".join(SUFFIXES)
        raise OutputError(f"{output}: unknown suffix {suffix!r}; use {names}, or add --format")
    return SUFFIXES[suffix]


def emit(report: Report, wanted: str | None, output: str | None, *more: Report) -> None:
    """Render reports and write them at once: after an error nothing is left behind.

    A table on a terminal has the terminal's width, and colours unless NO_COLOR is set.
    """
    render = RENDERERS[chosen_format(wanted, output)]
    if render is RENDERERS["table"] and output in (None, "-") and _is_terminal():
        render = _terminal_table
    write(_pieces(render, (report, *more)), output)


def _pieces(render: Renderer, reports: Sequence[Report]) -> Iterator[str]:
    """The text of each report, with an empty line between two."""
    for number, report in enumerate(reports):
        if number:
            yield "\n"
        yield from render(report)


def _is_terminal() -> bool:
    return sys.stdout is not None and not sys.stdout.closed and sys.stdout.isatty()


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
