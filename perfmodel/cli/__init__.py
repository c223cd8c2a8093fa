"""The command line: one file per command; each parses, calls and renders.

`main` is the entry point. Every error becomes one line on standard error: bad input gives exit code
2, a fault of perfmodel 70, a gate that fails 1. Commands are imported when they are asked for, so
that `predict` pays for no other.
"""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import click

from perfmodel.cli import shellcompletion, streams
from perfmodel.cli.build import Group
from perfmodel.cli.helppages import Option, folded
from perfmodel.errors import BAD_INPUT, report, say, unpredicted
from perfmodel.plaintext import printable

_GROUPS = {
    "Predict": {
        "predict": "Predict the time of an operator on a device.",
        "graph": "Predict operators joined by tensors: a layer, a chain of kernels.",
        "trace": "Trace a PyTorch module, and predict its kernels.",
        "network": "List, show and import whole transformers, and predict passes over them.",
        "collective": "Predict exchanges among devices (all-reduce, ...), and the roofs of links.",
        "embedding": "Predict look-ups in embedding tables: in CPU memory, HBM, caches, shards.",
        "roofline": "Draw rooflines of devices, with predicted and measured kernels.",
        "sweep": "Predict a whole grid into Parquet files, and query it.",
        "explain": "Derive an algorithm's traffic, best tiles and bounds from its axes.",
        "map": "Search the fastest fusion, loop order and tiles of an algorithm.",
    },
    "Plan": {
        "train": "Predict a training step of a network on one device or many, and its memory.",
        "infer": "Predict a served network: time to first token, tokens a second, what fits.",
        "compress": "Compare weight formats and sparsity by a network's decode step.",
        "hold": "Count the devices that hold a network: watts, cost, steps of on-chip memories.",
        "offload": "Predict a network larger than its device, with host memory and disk.",
    },
    "Compare with runs": {
        "compare": "Compare predictions with measured runs.",
        "learn": "Learn corrections of the model from measured runs of your own.",
        "profile": "Compare every kernel of a profile with the model.",
        "counters": "Read hardware counters of other profilers.",
        "measure": "Time bundled kernels and library kernels on this machine.",
        "calibrate": "Measure this machine and write its spec.",
        "replay": "Compare a bundled kernel's memory accesses with the counting rule; no GPU.",
        "compile": "Compile bundled kernels for a GPU, without having one.",
        "demo": "Compare standard with tiled attention on A100, H100 and B200.",
    },
    "Hardware": {
        "hardware": "List, show, validate and compare hardware specs.",
        "whatif": "Show how sensitive time is to each hardware number, and what a change does.",
        "trend": "Show the memory wall: growth of compute, memory and links over the years.",
    },
    "Names, files and reports": {
        "list": "List the names that options take.",
        "show": "Show what is known of a name, with sources: a library's kernel, a harness.",
        "report": "Write results as one page for a browser: charts, terms, tables, what-ifs.",
        "schema": "Print the JSON Schema of a file format, for editors.",
        "validate": "Check specs, libraries, algorithms and graphs.",
    },
}
COMMANDS = {name: text for group in _GROUPS.values() for name, text in group.items()}
INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 + SIGINT."""

# Module names must hide neither a built-in nor a name imported here.
_MODULES = {"map": "map_", "list": "list_", "report": "report_"}


def _print_version(context: click.Context, _option: Any, flag: bool) -> None:
    if flag:
        from importlib.metadata import PackageNotFoundError, version

        from perfmodel.cli.output import to_stdout
        from perfmodel.compiled.variants import described

        try:
            release = version("perfmodel")
        except PackageNotFoundError:  # without installation, from a checkout on the path
            release = "(not installed)"
        to_stdout(iter([f"perfmodel {release}\n", f"{described()}\n"]))
        context.exit()


def _flag(name: str, help: str, callback: Callable[[Any, Any, bool], None]) -> Option:
    """A flag that does something, and ends the program."""
    settings: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False}
    return Option([name], lambda: help, callback=callback, **settings)


class _Commands(Group):
    """All commands."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; click itself would tell of an interrupt and of a closed pipe otherwise."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            streams.mute()
            ctx.exit(streams.PIPE_CLOSED)


app = _Commands(
    commands={name: f"perfmodel.cli.{_MODULES.get(name, name)}:app" for name in COMMANDS},
    summaries=lambda: COMMANDS,
    headings=_GROUPS,
    name="perfmodel",
    params=[
        _flag(
            "--version",
            "Print the version, and what computes arrays of predictions.",
            _print_version,
        ),
        _flag(
            "--install-completion",
            "Install completion for the current shell.",
            shellcompletion.install,
        ),
        _flag(
            "--show-completion",
            "Show completion for the current shell, to copy it or customize the installation.",
            shellcompletion.show,
        ),
    ],
    context_settings={"help_option_names": ["-h", "--help"]},
    help=folded(
        """Predict GPU kernels over the memory hierarchy, compare with real runs, draw rooflines.

\b
perfmodel predict attention --device h100-sxm --heads 32 --seq 512:16k:x2 --causal
perfmodel compare runs.csv --by op,device
perfmodel roofline attention --device a100-sxm4-80gb --output roofline.svg
perfmodel hardware list
"""
    ),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code."""
    streams.occupy()
    warnings.formatwarning = _warning_line
    code = run(arguments)
    gc.freeze()  # otherwise garbage collection at exit takes a tenth of a prediction's time
    sys.exit(code)


def _warning_line(message: Warning | str, *_where: Any, **_line: Any) -> str:
    """A warning as a line of standard error, without its place in the source."""
    return f"perfmodel: {printable(str(message))}\n"


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code.

    0 done, 1 a gate failed, 2 bad input (`perfmodel.errors.BAD_INPUT`), 70 a fault of perfmodel
    (`FAULT`), 130 interrupted, 141 nobody reads standard output any more.
    """
    with streams.lenient():
        try:
            code = app.main(args=arguments, prog_name="perfmodel", standalone_mode=False)
            streams.flush()
        except (KeyboardInterrupt, click.Abort):
            code = INTERRUPTED
        except BrokenPipeError:
            streams.mute()
            return streams.PIPE_CLOSED
        except click.UsageError as error:
            return _usage(error)
        except Exception as error:  # the guard: every error becomes one line and an exit code
            if isinstance(error, OSError):
                streams.mute()
            return report("perfmodel", error)
    if code == INTERRUPTED:
        say("perfmodel: interrupted")
    return code if isinstance(code, int) else 0


def _usage(error: click.UsageError) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # a bare `perfmodel predict`
        print(error.format_message(), file=sys.stderr)
        return BAD_INPUT
    message = error.format_message()
    sentence = message[:1].lower() + message[1:].rstrip(".")
    if sentence.startswith("got unexpected extra argument"):
        sentence += "; sizes and names are options, as in -m 4096"
    if isinstance(error, click.NoSuchOption):
        sentence = f"no such option: {error.option_name}{_hint(error)}"
    path = error.ctx.command_path if error.ctx is not None else "perfmodel"
    say(f"perfmodel: {sentence}; see '{path} --help'")
    return BAD_INPUT


def _hint(error: click.NoSuchOption) -> str:
    """What to write in place of an option that does not exist."""
    from difflib import get_close_matches

    if answer := unpredicted(error.option_name):
        return f"; {answer}"
    flags = [flag for param in error.ctx.command.params for flag in param.opts] if error.ctx else []
    parts = set(error.option_name.strip("-").split("-"))
    alike = [flag for flag in flags if parts & set(flag.strip("-").split("-"))]
    matches = get_close_matches(error.option_name, flags, cutoff=0.7) or alike[:3]
    return f"; did you mean {' or '.join(matches)}?" if matches else ""
