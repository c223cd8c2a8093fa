"""Runs a sweep in this process, part by part, or on a Dask scheduler."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perfmodel.analysis.sweep import store
from perfmodel.analysis.sweep.chunk import chunk_table
from perfmodel.analysis.sweep.plan import Sweep
from perfmodel.units import seconds

if TYPE_CHECKING:
    import pyarrow as pa

Progress = Callable[[int, int], None]
"""Called with the finished points and all points."""


@dataclass(frozen=True)
class Written:
    """The state of the folder after a run."""

    points: int
    """Points."""
    files: int
    """Files."""
    fresh: int
    """Points that this run wrote."""
    unpredicted: int
    """Points without a time."""


def run(
    sweep: Sweep,
    folder: str | Path,
    *,
    dask: str | None = None,
    progress: Progress = lambda done, total: None,
) -> Written:
    """Write the missing parts of `sweep` in `folder`, which resumes a stopped run.

    `dask` is the address of a scheduler whose workers share the folder. Raises `OutputError` for a
    folder with other contents and for a scheduler that does not answer.
    """
    folder = Path(folder).absolute()
    if dask is not None:
        from perfmodel.analysis.sweep import dask_runner

        with dask_runner.connected(dask) as client:
            return _run(
                sweep, folder, lambda todo: dask_runner.write(client, sweep, folder, todo), progress
            )
    return _run(
        sweep, folder, lambda todo: (store.write_part(sweep, folder, i) for i in todo), progress
    )


def _run(
    sweep: Sweep,
    folder: Path,
    write: Callable[[list[int]], Iterator[int]],
    progress: Progress,
) -> Written:
    with store.opened(sweep, folder) as todo:
        points = sum(sweep.part(i).stop - sweep.part(i).start for i in todo)
        done = sweep.points - points
        progress(done, sweep.points)
        for rows in write(todo):
            done += rows
            progress(done, sweep.points)
        failures = store.unpredicted(folder, sweep)
    return Written(sweep.points, sweep.parts, points, failures)


def tables(sweep: Sweep, progress: Progress = lambda done, total: None) -> Iterator[pa.Table]:
    """The tables of all parts, predicted one by one, without a folder."""
    done = 0
    for i in range(sweep.parts):
        part = sweep.part(i)
        yield store.with_device(chunk_table(sweep, part), part.device.slug)
        done += part.stop - part.start
        progress(done, sweep.points)


class Meter:
    """Progress as lines of text: share, points, rate and time left.

    `say` is called with a line at most every `interval` seconds. Points of an earlier run count for
    the share and not for the rate.
    """

    def __init__(self, say: Callable[[str], None], interval: float = 1.0) -> None:
        self._say = say
        self._interval = interval
        self._began: tuple[float, int] | None = None
        self._last = 0.0

    def __call__(self, done: int, total: int) -> None:
        """Report that `done` of `total` points are finished."""
        clock = time.monotonic()
        if self._began is None:
            self._began = (clock, done)
            self._last = clock
            return
        if clock - self._last < self._interval and done < total:
            return
        self._last = clock
        self._say(self.line(done - self._began[1], clock - self._began[0], done, total))

    @staticmethod
    def line(fresh: int, elapsed: float, done: int, total: int) -> str:
        """The line after `fresh` new points in `elapsed` seconds, when `done` of `total` are
        finished."""
        rate = fresh / elapsed if elapsed > 0 else 0.0
        eta = f"{_span((total - done) / rate)} left" if rate > 0 else "time left unknown"
        return f"{done / total:4.0%}  {done:,} of {total:,} points, {rate:,.0f} a second, {eta}"


def _span(value: float) -> str:
    """A remaining time in words."""
    if value < 60:
        return seconds(value, 2) if 0 < value < 10 else f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
