"""Progress of long commands: a line on standard error that is overwritten on a terminal.

Where standard error is no terminal nothing is written: logs contain results only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

PATIENCE = 2.0
"""Seconds of work after which `waiting` shows itself."""


@contextmanager
def _line(title: str, *columns: str) -> Iterator[Callable[..., None]]:
    """A line of rich's columns, by their names; yields what updates it."""
    if sys.stderr is None or sys.stderr.closed or not sys.stderr.isatty():
        yield lambda **_values: None
        return
    from rich import progress
    from rich.console import Console

    parts: list[Any] = [progress.TextColumn(title), *(getattr(progress, c)() for c in columns)]
    texts = [*parts, progress.TextColumn("{task.description}")]
    with progress.Progress(*texts, console=Console(stderr=True), transient=True) as line:
        task = line.add_task("", total=None)
        yield lambda **values: line.update(task, **values)


@contextmanager
def progress(title: str) -> Iterator[Callable[..., None]]:
    """A bar with the remaining time, for work that reports the parts done, all parts and a text."""
    with _line(title, "BarColumn", "MofNCompleteColumn", "TimeRemainingColumn") as update:

        def report(done: int, total: int, what: str = "") -> None:
            update(completed=done, total=total, description=what)

        yield report


@contextmanager
def status(title: str) -> Iterator[Callable[[str], None]]:
    """The current step, for work of unknown length."""
    with _line(title, "SpinnerColumn", "TimeElapsedColumn") as update:
        yield lambda what: update(description=what)


@contextmanager
def waiting(title: str) -> Iterator[None]:
    """A spinner from the third second on, for work that is mostly short."""
    done = Event()

    def spin() -> None:
        if not done.wait(PATIENCE):
            with status(title):
                done.wait()

    spinner = Thread(target=spin, daemon=True)
    spinner.start()
    try:
        yield
    finally:
        done.set()
        spinner.join()
