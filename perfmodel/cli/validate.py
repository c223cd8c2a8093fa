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
class Files:
    """Files to check."""

    files: Annotated[list[str], FieldOption(None, "FILE...", argument=True)]
    """YAML files."""
    warnings: bool = False
    """Also print warnings about specs of devices, with which a spec is still usable."""

    def check(self, format: str | None) -> None:
        """Print a line per problem, and end with exit code 2 if there is any.

        Files are of the `format`, or of the one that their keys say.
        """
        bad = lines = 0
        for path in self.files:
            problems = check(Path(path), format)
            bad, lines = bad + bool(problems), lines + len(problems)
            for problem in problems:
                say(problem)
            if self.warnings and not problems and (format or format_of(Path(path))) == "hardware":
                from perfmodel.hardware import load
                from perfmodel.hardware.physics import check as findings

                for finding in findings(load(path if "/" in path else f"./{path}")):
                    say(f"{path}: warning: {finding.message}")
        if bad:
            if lines > 1:
                say(f"{bad} of {len(self.files)} files cannot be used")
            raise click.exceptions.Exit(2)
        valid = "file is" if len(self.files) == 1 else "files are"
        to_stdout(iter([f"{len(self.files)} {valid} valid\n"]))


def validate(
    files: Files,
    format: Annotated[
        str | None,
        FieldOption(
            metavar="FORMAT",
            spellings=("--as",),
            help="Format of the files [default: by their keys].",
            names="perfmodel.formats:FORMATS",
        ),
    ] = None,
) -> None:
    """Check files: specs of devices, facts of libraries, algorithms, graphs.

    Prints a line per problem, with file and line number; exit code 2 if there is any.

    \b
    perfmodel validate my-gpu.yaml my-layer.yaml
    perfmodel validate --as hardware specs/*.yaml
    """
    files.check(format)


app = command(validate)
