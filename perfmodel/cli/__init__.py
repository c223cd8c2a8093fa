"""The command line: one file per command; each parses, calls and renders.

`main` is the entry point. Every error becomes one line on standard error: bad input gives exit code
2, a fault of perfmodel 70, a gate that fails 1. Commands are imported when they are asked for, so
that `predict` pays for no other.
"""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from perfmodel.cli import streams
from perfmodel.cli.lazy import lazy_group
from perfmodel.cli.plainoptions import built
from perfmodel.errors import BAD_INPUT, report, say
from perfmodel.plaintext import printable

COMMANDS = {
    "predict": "Predict the time of an operator on a device.",
    "collective": "Predict exchanges among devices: all-reduce, all-to-all, ...; links as roofs.",
    "graph": "Predict operators joined by tensors: a layer, a chain of kernels.",
    "trace": "Trace a PyTorch module, and predict its kernels.",
    "network": "Published transformers, and config.json files, as networks.",
    "train": "Predict a training step of a network on one device or many, and its memory.",
    "infer": "Predict a served network: first token, pace, tokens a second, what fits.",
    "compress": "What weights in fewer bytes do to a network's decoding step.",
    "hold": "How many devices hold a network; watts, cost, and steps of on-chip memories.",
    "embedding": "Look-ups in embedding tables on CPUs and GPUs, wherever the tables lie.",
    "offload": "Run a network larger than its device, with host memory and disk.",
    "compare": "Compare predictions with measured runs.",
    "roofline": "Draw rooflines of devices, with predicted and measured kernels.",
    "report": "One page of results for a browser: charts, terms, tables, what-ifs.",
    "whatif": "What each hardware number is worth, and what a change of it would do.",
    "sweep": "Predict a whole grid into Parquet files, and ask it questions.",
    "trend": "The memory wall: growth of compute, memory and links, with the shipped devices.",
    "explain": "Derive what an algorithm must move, and its best tiles, from its axes.",
    "map": "Search the fastest fusion, loop order and tiles of an algorithm.",
    "measure": "Time kernels and their rivals on this machine.",
    "calibrate": "Measure this machine and write its spec.",
    "profile": "Hold every kernel of a profile against the model.",
    "counters": "Read hardware counters of other profilers.",
    "replay": "Run a bundled kernel's addresses against the counting rule, with no GPU.",
    "compile": "Compile bundled kernels for GPUs that are not here.",
    "hardware": "List, show, validate and compare hardware specs.",
    "schema": "The JSON Schema of a file format, for editors.",
    "validate": "Check specs, libraries, algorithms and graphs.",
    "list": "List the names that options take.",
    "show": "Show what is known of a name, with sources: a library's kernel, a harness.",
    "demo": "Standard against tiled attention on A100, H100 and B200.",
}
# A module must hide neither a built-in nor what this one imports.
_MODULES = {"map": "map_", "list": "list_", "report": "report_"}

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

        from perfmodel.cli.output import to_stdout

        try:
            said = version("perfmodel")
        except PackageNotFoundError:  # a bare checkout on the path
            said = "(not installed)"
        to_stdout(iter([f"perfmodel {said}\n"]))
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
    streams.occupy()
    warnings.formatwarning = _as_a_line
    code = run(arguments)
    gc.freeze()  # else Python looks for garbage on its way out, for a tenth of a prediction's time
    sys.exit(code)


def _as_a_line(message: Warning | str, *_where: Any, **_line: Any) -> str:
    """A warning as a line of standard error, without the place in the source that raised it."""
    return f"perfmodel: {printable(str(message))}\n"


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code.

    0 done, 1 a gate failed, 2 bad input (`perfmodel.errors.BAD_INPUT`), 70 a fault of perfmodel
    (`FAULT`), 130 interrupted, 141 nobody reads standard output any more.
    """
    with streams.lenient():
        try:
            code = built(app).main(args=arguments, prog_name="perfmodel", standalone_mode=False)
            streams.flush()
        except (KeyboardInterrupt, typer.Abort):
            say("perfmodel: interrupted")
            return 130
        except BrokenPipeError:
            streams.mute()
            return streams.PIPE_CLOSED
        except Exception as error:  # the guard: every error becomes one line and an exit code
            if isinstance(error, OSError):
                streams.mute()
            # Typer's usage errors; which class they are depends on the version, so ask what they
            # can.
            return _usage(error) if hasattr(error, "format_message") else report("perfmodel", error)
        return code if isinstance(code, int) else 0


def _usage(error: Any) -> int:
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":  # a bare `perfmodel predict`: help answers it
        print(message, file=sys.stderr)
        return BAD_INPUT
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "perfmodel"
    said = message[:1].lower() + message[1:].rstrip(".")
    say(f"perfmodel: {said}; see '{path} --help'")
    return BAD_INPUT
