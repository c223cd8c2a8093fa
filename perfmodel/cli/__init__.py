"""The command line: one file per command; each parses, calls and renders.

`main` is the entry point. A `PerfmodelError` becomes one line on standard error and exit code 2; a
gate that fails gives 1. Commands are imported when they are asked for, so that `predict` pays for
no other.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from perfmodel.cli.lazy import lazy_group
from perfmodel.errors import PerfmodelError

COMMANDS = {
    "predict": "Predict the time of an operator on a device.",
    "compare": "Compare predictions with measured runs.",
    "roofline": "Draw rooflines of devices, with predicted and measured kernels.",
    "whatif": "What each hardware number is worth, and what a change of it would do.",
    "sweep": "Predict a whole grid into Parquet files, and ask it questions.",
    "trend": "The memory wall: growth of compute, memory and links, with the shipped devices.",
    "explain": "Derive what an algorithm must move, and its best tiles, from its axes.",
    "map": "Search the fastest fusion, loop order and tiles of an algorithm.",
    "measure": "Time kernels and their rivals on this machine.",
    "calibrate": "Measure this machine and write its spec.",
    "counters": "Read hardware counters of other profilers.",
    "replay": "Run a bundled kernel's addresses against the counting rule, with no GPU.",
    "compile": "Compile bundled kernels for GPUs that are not here.",
    "hardware": "List, show, validate and compare hardware specs.",
    "demo": "Standard against tiled attention on A100, H100 and B200.",
}
_MODULES = {"map": "map_"}  # a module must not hide a built-in

app = typer.Typer(
    cls=lazy_group(
        {
            name: (f"perfmodel.cli.{_MODULES.get(name, name)}:app", said)
            for name, said in COMMANDS.items()
        }
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"perfmodel {version('perfmodel')}")
        except PackageNotFoundError:  # a bare checkout on the path
            typer.echo("perfmodel (not installed)")
        raise typer.Exit


@app.callback()
def perfmodel(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Predict GPU kernels over the memory hierarchy, compare with real runs, draw rooflines.

    \b
    perfmodel predict attention --device h100-sxm --heads 32 --seq 512:16k:x2 --causal
    perfmodel compare runs.csv --by op,device
    perfmodel roofline attention --device a100-sxm4-80gb --output roofline.svg
    perfmodel hardware list
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code: 0 done, 1 a gate failed, 2 bad input."""
    command = typer.main.get_command(app)
    try:
        code = command.main(args=arguments, prog_name="perfmodel", standalone_mode=False)
    except PerfmodelError as error:
        return _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        print("perfmodel: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        # Typer's usage errors; which class they are depends on the version, so ask what they can.
        if not hasattr(error, "format_message"):
            raise
        return _usage(error)
    return code if isinstance(code, int) else 0


def _usage(error: Any) -> int:
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":  # a bare `perfmodel predict`: help answers it
        print(message, file=sys.stderr)
        return 2
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "perfmodel"
    said = message[:1].lower() + message[1:].rstrip(".")
    return _fail(f"{said}; see '{path} --help'")


def _fail(message: str) -> int:
    print("perfmodel:", " ".join(message.splitlines()), file=sys.stderr)
    return 2
