"""Progress of long commands: a line on standard error that is overwritten on a terminal.

Where standard error is no terminal nothing is written: logs contain results only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfmodel.evidence.measured.measure import Reporter

PATIENCE = 2.0
"""Seconds of work after which `waiting` shows itself."""


def _is_terminal() -> bool:
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


@contextmanager
def progress(title: str) -> Iterator[Reporter | None]:
    """A bar with the remaining time; None where standard error is no terminal."""
    if not _is_terminal():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def report(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)

        yield report


@contextmanager
def counted(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar for work that reports how many of its parts are done; silent without a terminal."""
    with progress(title) as bar:
        yield lambda done, total: bar(done, total, "") if bar is not None else None


@contextmanager
def status(title: str) -> Iterator[Callable[[str], None]]:
    """The current step, for work of unknown length; silent without a terminal."""
    if not _is_terminal():
        yield lambda what: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn(title),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as line:
        task = line.add_task("", total=None)

        def report(what: str) -> None:
            line.update(task, description=what)

        yield report


@contextmanager
def waiting(title: str) -> Iterator[None]:
    """A spinner from the third second on, for work that is mostly short; silent without a
    terminal."""
    if not _is_terminal():
        yield
        return
    from threading import Event, Thread

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
