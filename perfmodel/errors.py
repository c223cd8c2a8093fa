"""Every error that a user can cause, as one tree, and the report of a program that one ends.

    PerfmodelError            base: one line saying what, which, and what to do
    ├── UnknownName           a device, schedule, kernel or type that is not there (nearest named)
    ├── SpecError             a hardware spec that cannot be read or breaks physics (file and line)
    ├── ProblemError          a problem that has no meaning: zero heads, a type without a rate
    │   └── SizeError         sizes that do not fit together, with sizes that do
    ├── TableError            a measured-run table that is damaged or lacks a column
    ├── OutputError           a path that cannot be written
    └── MissingExtra          an optional package that is not installed (the extra named)

`report` turns the error that ended a program into one line on standard error and an exit code. The
command line and the modules that run alone use it through `exit_code`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from perfmodel.plaintext import printable, quoted

BAD_INPUT = 2
"""Exit code where the input or the machine does not allow the request."""

FAULT = 70
"""Exit code of a fault of perfmodel itself (EX_SOFTWARE of sysexits.h)."""

DEBUG = "PERFMODEL_DEBUG"
"""Environment variable: where it is set, `report` prints the traceback before its line."""

_MISSPELT = 0.85  # likeness of two names from which one is the other misspelt: vlm and vllm
_LISTED = 120  # characters of the names that an error lists
_LONGEST = 3000  # characters of a message, which may quote what it is about

EXTRAS = {
    "sympy": "explain",
    "pyarrow": "parquet",
    "scipy": "fit",
    "distributed": "dask",
    "torch": "gpu",
    "triton": "gpu",
    "pynvml": "gpu",
}
"""Optional package → the extra that it comes with: pip install 'perfmodel[extra]'."""


class PerfmodelError(Exception):
    """Base of all errors that a user can cause; `str(error)` is one complete line."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The hint for an unknown name: the nearest known names, else all of them."""
    names = sorted(set(known))
    matches = _matches(name, names, 0.5)
    return f"did you mean {' or '.join(matches)}?" if matches else f"known: {_short_list(names)}"


def _matches(name: str, names: Iterable[str], likeness: float) -> list[str]:
    from difflib import get_close_matches  # only needed for errors

    spellings = {spelling.lower(): spelling for spelling in names}
    matches = get_close_matches(name[:100].lower(), spellings, n=3, cutoff=likeness)
    return [spellings[spelling] for spelling in matches]


def _short_list(names: list[str]) -> str:
    """The names, as many as fit into a short line."""
    head = names
    while len(head) > 1 and len(", ".join(head)) > _LISTED:
        head = head[:-1]
    rest = len(names) - len(head)
    return ", ".join(head) + (f" and {rest} more" if rest else "")


def unpredicted(word: str) -> str:
    """For a well-known word that perfmodel has no name or option for: what is nearest to it; empty
    for any other word."""
    from perfmodel import yamltable  # only needed for errors

    words = yamltable.read(Path(__file__).with_name("unpredicted.yaml"))["words"]
    answer = words.get(word.strip().lstrip("-").lower().replace("_", "-"))
    return f"not predicted; nearest: {answer}" if answer else ""


class UnknownName(PerfmodelError):
    """A name that is not in its catalogue; the message has the nearest ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        names = sorted(set(known))
        is_misspelt = bool(_matches(name, names, _MISSPELT))
        advice = "" if is_misspelt else unpredicted(name)
        if not advice:
            advice = f"{nearest(name, names)}{f' {hint}' if hint else ''}"
        super().__init__(f"no {kind} named {quoted(name)}; {advice}")


class SpecError(PerfmodelError):
    """A hardware spec that cannot be used; the message starts with file and line."""


class ProblemError(PerfmodelError):
    """A problem, schedule or tile that has no meaning or does not fit."""


class SizeError(ProblemError):
    """Sizes that do not fit together; the message names sizes that would, by option.

    Who finds the fault gives candidates, as in `{"tensor": (1, 2, 4)}`. Who knows more of the other
    sizes keeps `those` that work with them too.
    """

    def __init__(self, fault: str, sizes: Mapping[str, Iterable[int]]) -> None:
        super().__init__(fault, {option: tuple(some) for option, some in sizes.items()})

    def __str__(self) -> str:
        fault, sizes = self.args
        hints = [
            f"{option.replace('_', ' ')} of {', '.join(map(str, some))}"
            for option, some in sizes.items()
            if some
        ]
        return f"{fault}; {' or '.join(hints)} would" if hints else f"{fault}; change another size"

    def those(self, check: Callable[[str, int], object]) -> SizeError:
        """The error with the sizes for which `check` raises no `PerfmodelError`."""
        fault, sizes = self.args
        options = {
            option: [size for size in some if _passes(check, option, size)]
            for option, some in sizes.items()
        }
        return SizeError(fault, options)


def _passes(check: Callable[[str, int], object], option: str, size: int) -> bool:
    try:
        check(option, size)
    except PerfmodelError:
        return False
    return True


class TableError(PerfmodelError):
    """A measured-run table that cannot be read."""


class OutputError(PerfmodelError):
    """An output that cannot be written."""


class MissingExtra(PerfmodelError):
    """`what` needs an optional package that is not installed."""

    def __init__(self, what: str, package: str) -> None:
        super().__init__(
            f"{what} needs {package}, which is not installed; "
            f"pip install 'perfmodel[{EXTRAS[package]}]'"
        )


def needs(package: str, what: str) -> None:
    """Raise `MissingExtra` where `package`, which `what` needs, is not installed; imports
    nothing."""
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise MissingExtra(what, package)


def reason(error: OSError | ValueError) -> str:
    """Why a file could not be used, in the system's words: "no space left on device"."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def say(message: str) -> None:
    """Print a line on standard error; dropped where that is closed."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(printable(message), file=sys.stderr)


def exit_code(program: str, run: Callable[[], None]) -> int:
    """0 after `run`, or the exit code of the error that ended it, after `report` has printed it."""
    try:
        run()
    except Exception as error:  # every error becomes one line and an exit code
        return report(program, error)
    return 0


def report(program: str, error: Exception) -> int:
    """Print in one line what ended `program`; returns the exit code, `BAD_INPUT` or `FAULT`."""
    if os.environ.get(DEBUG, "0") not in ("", "0"):
        import traceback

        traceback.print_exception(error)
    line = _cause(error)
    if line is not None:
        say(f"{program}: {line if len(line) <= _LONGEST else line[:_LONGEST] + '...'}")
        return BAD_INPUT
    cause = f"{type(error).__name__} in {_place(error)}"
    text = " ".join(str(error).split())
    cause += f": {text if len(text) <= 200 else text[:200] + '...'}" if text else ""
    say(
        f"{program}: this is a fault of perfmodel, not of your input ({cause}); please report it "
        f"with the command, its input files, perfmodel --version and what {DEBUG}=1 makes it print"
    )
    return FAULT


def _cause(error: Exception) -> str | None:
    """The line for an error caused by input or machine; None for a fault of perfmodel."""
    if isinstance(error, PerfmodelError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").split(".")[0]
        return str(MissingExtra("this command", package)) if package in EXTRAS else None
    if isinstance(error, OSError):
        place = f"{error.filename}: " if isinstance(error.filename, str) else ""
        return f"{place}{reason(error)}; check the path, its permissions and the space left"
    if isinstance(error, UnicodeError):
        return f"text in another encoding ({error}); write it as UTF-8"
    if isinstance(error, MemoryError):
        return "not enough memory; ask for fewer cases or for smaller sizes"
    if isinstance(error, RecursionError):
        return "the input is nested too deeply; make it flatter"
    return None


def _place(error: Exception) -> str:
    """File and line of the innermost frame in our own code."""
    place, trace = "perfmodel", error.__traceback__
    root = Path(__file__).parent
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if path.is_relative_to(root):
            place = f"{path.relative_to(root).as_posix()}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
