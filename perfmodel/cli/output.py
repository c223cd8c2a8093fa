"""Where results go: standard output or a whole file, in the format asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from perfmodel.errors import OutputError, UnknownName
from perfmodel.evidence.records import replacing
from perfmodel.render import RENDERERS, SUFFIXES, Report

Format = Annotated[
    str | None,
    typer.Option("--format", "-f", metavar="FORMAT", help="table, json, csv or markdown."),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write to FILE; .json, .csv, .md or .txt says how."
    ),
]
_IN_MEMORY = 2**26  # bytes of output held in memory before a temporary file takes over


def chosen_format(wanted: str | None, output: str | None) -> str:
    """The format named, else the one that the file's suffix means, else a table."""
    if wanted is not None:
        if wanted not in RENDERERS:
            raise UnknownName("format", wanted, RENDERERS)
        return wanted
    if output in (None, "-"):
        return "table"
    suffix = Path(str(output)).suffix
    if suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise OutputError(f"{output}: unknown suffix {suffix!r}; use {known}, or say --format")
    return SUFFIXES[suffix]


def emit(report: Report, wanted: str | None, output: str | None) -> None:
    """Render `report` and write it whole: an error on the way leaves nothing behind."""
    pieces = RENDERERS[chosen_format(wanted, output)](report)
    if output in (None, "-"):
        to_stdout(pieces)
        return
    with replacing(str(output)) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        file.writelines(pieces)
    say(f"wrote {output}")


def to_stdout(pieces: Iterator[str]) -> None:
    """Print all pieces once they are all there; a reader that has left is no error."""
    import shutil
    from tempfile import SpooledTemporaryFile

    with SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", newline="") as spool:
        spool.writelines(pieces)
        spool.seek(0)
        try:
            shutil.copyfileobj(spool, sys.stdout)
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that Python's own flush is quiet too
            raise typer.Exit(141) from None


def say(message: str) -> None:
    """A message for the person at the terminal, on standard error."""
    print(message, file=sys.stderr)
