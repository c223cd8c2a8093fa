"""`perfmodel validate FILE...`: check files of any format, as an editor's hook would."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from perfmodel.cli.build import command
from perfmodel.cli.output import say, to_stdout
from perfmodel.fieldoption import FieldOption
from perfmodel.formats import check, format_of


@dataclass(frozen=True)
class Asked:
    """Files to check."""

    files: Annotated[list[str], FieldOption(None, "FILE...", argument=True)]
    """YAML files."""
    format: Annotated[
        str | None, FieldOption(None, "FORMAT", ("--as",), names="perfmodel.formats:FORMATS")
    ] = None
    """Format of the files [default: by their keys]."""
    warnings: bool = False
    """Also print warnings about specs of devices, with which a spec is still usable."""


def validate(asked: Asked) -> None:
    """Check files: specs of devices, facts of libraries, algorithms, graphs.

    Prints a line per problem, with file and line number; exit code 2 if there is any.

    \b
    perfmodel validate my-gpu.yaml my-layer.yaml
    perfmodel validate --as hardware --warnings specs/*.yaml
    """
    bad = 0
    for path in asked.files:
        problems = check(Path(path), asked.format)
        bad += bool(problems)
        for problem in problems:
            say(problem)
        kind = asked.format or (format_of(Path(path)) if asked.warnings and not problems else "")
        if asked.warnings and not problems and kind == "hardware":
            from perfmodel.hardware import load
            from perfmodel.hardware.physics import check as findings

            for finding in findings(load(path if "/" in path else f"./{path}")):
                say(f"{path}: warning: {finding.message}")
    if bad:
        if len(asked.files) > 1:
            say(f"{bad} of {len(asked.files)} files cannot be used")
        raise click.exceptions.Exit(2)
    valid = "file is" if len(asked.files) == 1 else "files are"
    to_stdout(iter([f"{len(asked.files)} {valid} valid\n"]))


app = command(validate)
