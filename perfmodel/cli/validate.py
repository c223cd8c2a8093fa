"""`perfmodel validate FILE...`: check files of any format, as an editor's hook would."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from perfmodel.cli import completing
from perfmodel.cli.build import command
from perfmodel.cli.output import say, to_stdout
from perfmodel.fieldoption import FieldOption
from perfmodel.formats import check


def validate(
    files: Annotated[list[str], FieldOption(metavar="FILE...", help="YAML files.", argument=True)],
    format: Annotated[
        str | None,
        FieldOption(
            metavar="FORMAT",
            spellings=("--as",),
            help="Format of the files [default: by their keys].",
            complete=completing.schemas,
        ),
    ] = None,
) -> None:
    """Check files: specs of devices, facts of libraries, algorithms, graphs.

    Prints a line per problem, with file and line number; exit code 2 if there is any.

    \b
    perfmodel validate my-gpu.yaml my-layer.yaml
    perfmodel validate --as hardware specs/*.yaml
    """
    bad = 0
    for path in files:
        problems = check(Path(path), format)
        bad += bool(problems)
        for problem in problems:
            say(problem)
    if bad:
        if len(files) > 1:
            say(f"{bad} of {len(files)} files cannot be used")
        raise click.exceptions.Exit(2)
    to_stdout(iter([f"{len(files)} {'file is' if len(files) == 1 else 'files are'} valid\n"]))


app = command(validate)
