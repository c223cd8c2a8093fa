"""Run one input in this process and say what is wrong with how it ended."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from inputs import Input

CODES = (0, 1, 2)
SECONDS = 20.0  # of processor time that a command may take


class TooLong(BaseException):
    """The command exceeded its processor time."""


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Ended:
    """How a command ended; `error` is an exception that it did not catch."""

    code: int | None
    out: bytes
    err: str
    error: BaseException | None
    seconds: float


def judged(one: Input, folder: Path, seconds: float = SECONDS) -> tuple[list[str], Ended]:
    """Faults of a run of `one` in the empty `folder`, one line each, and how it ended."""
    one.place(folder)
    before = set(_files(folder))
    ended = _run(one, folder, seconds)
    found = [*_ending(one, ended), *_left(ended, set(_files(folder)) - before)]
    if ended.code in (0, 1) and one.encoding == "utf-8":
        found += _unreadable(ended.out.decode("utf-8", "replace"))
    return found, ended


def _files(folder: Path) -> Iterator[str]:
    return (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def _run(one: Input, folder: Path, seconds: float) -> Ended:
    from perfmodel.cli import run

    stream = _Terminal if one.terminal else io.TextIOWrapper
    out, err = io.BytesIO(), io.BytesIO()
    code, error = None, None
    began = time.process_time()
    with _connected(stream(out, one.encoding), io.TextIOWrapper(err, "utf-8"), one.stdin, folder):
        try:
            with _limited(seconds):
                code = run(list(one.arguments))
        except BaseException as escaped:
            error = escaped
        with suppress(ValueError, OSError, UnicodeError):
            sys.stdout.flush()
        sys.stderr.flush()
        text = err.getvalue().decode("utf-8", "replace")
        return Ended(code, out.getvalue(), text, error, time.process_time() - began)


@contextmanager
def _connected(out: object, err: object, stdin: bytes, folder: Path) -> Iterator[None]:
    before = sys.stdin, sys.stdout, sys.stderr, os.getcwd()
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    sys.stdout, sys.stderr = out, err  # type: ignore[assignment]
    os.chdir(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = _warned
        try:
            yield
        finally:
            sys.stdin, sys.stdout, sys.stderr, place = before
            os.chdir(place)


def _warned(message: Warning | str, category: type[Warning], name: str, line: int,
            *_: object) -> None:  # fmt: skip
    sys.stderr.write(warnings.formatwarning(message, category, name, line, ""))


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise `TooLong` after so many seconds of processor time."""

    def ring(*_: object) -> None:
        raise TooLong

    old = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)


def _ending(one: Input, ended: Ended) -> Iterator[str]:
    """Exit code and standard error."""
    if isinstance(ended.error, TooLong):
        yield f"hang: more than the processor time allowed, at {site(ended.error)}"
        return
    if ended.error is not None:
        yield f"traceback: {type(ended.error).__name__} at {site(ended.error)}"
        return
    if ended.code not in CODES:
        place = re.search(r"\((\w+) in ([^:)]+:\d+)", ended.err)
        said = f"{place[1]} at {place[2]}" if place else ended.err[:200]
        yield f"traceback: {said}" if ended.code == 70 else f"exit code {ended.code}"
        return
    lines = ended.err.splitlines()
    if "Traceback" in ended.err:
        yield "traceback printed"
    for line in lines:
        place = re.search(r"perfmodel/(\S+:\d+): (\w*Warning)", line)
        if place or "Warning: " in line:
            yield f"warning: {place[2]} at {place[1]}" if place else f"warning: {line[:100]}"
            return
    if "not enough memory" in ended.err:
        yield "memory: not enough"
    listed = {"hardware", "validate"} <= set(one.arguments) or ended.err.startswith("Usage:")
    said = [line for line in lines if not re.match(r"\d+%  ", line)]  # how far a sweep was
    if ended.code == 2 and not listed and (
        len(said) != 1 or not said[0].startswith("perfmodel: ")
    ):  # fmt: skip
        yield f"exit code 2 with {len(lines)} lines on standard error: {ended.err[:200]!r}"
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f\x9b]", ended.err):
        yield "control characters on standard error"


def site(error: BaseException) -> str:
    """Where in the package an error came from, as file:line."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "/perfmodel/" in f.filename and "/fuzz/" not in f.filename]
    if not ours:
        return "?"
    return f"{ours[-1].filename.rpartition('/perfmodel/')[2]}:{ours[-1].lineno}"


def _left(ended: Ended, new: set[str]) -> Iterator[str]:
    """Files that are there and should not be."""
    for name in sorted(new):
        last = name.rpartition("/")[2]
        if last == ".lock":
            continue
        if last.startswith("."):
            yield "partial file left: a hidden one"
        elif ended.code not in (0, 1) and "/" not in name:
            yield f"partial file left: {Path(name).suffix} after exit code {ended.code}"


def _unreadable(out: str) -> Iterator[str]:
    """JSON and CSV outputs that cannot be parsed."""
    if out.startswith('{"schema_version"'):
        try:
            json.loads(out, parse_constant=_no_number)
        except ValueError as error:
            yield f"json: {str(error)[:80]}"
    elif out.startswith(("device,", "op,")):
        rows = list(csv.reader(io.StringIO(out)))
        if len({len(row) for row in rows if row}) > 1:
            yield "csv: rows of different lengths"
    if "\x1b" in out.replace("\x1b[1m", "").replace("\x1b[0m", "") and not out.startswith("{"):
        yield "terminal escapes on standard output"


def _no_number(name: str) -> float:
    raise ValueError(f"{name} in JSON")
