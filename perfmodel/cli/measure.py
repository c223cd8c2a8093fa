"""`perfmodel measure`: time kernels and library operators on this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

from perfmodel.cli import spellings
from perfmodel.cli.build import command
from perfmodel.cli.output import say
from perfmodel.cli.progress import progress, status
from perfmodel.errors import ProblemError
from perfmodel.fieldoption import FieldOption

if TYPE_CHECKING:
    from perfmodel.cases import Case
    from perfmodel.measured.measure import Tally
    from perfmodel.measured.timer import Policy

_SHOWN = 5  # reasons printed in full

Machine = Annotated[Literal["cpu", "cuda"] | None, FieldOption(spellings=("--device", "-d"))]


@dataclass(frozen=True)
class Asked:
    """What `measure` is asked for."""

    output: Annotated[str, FieldOption(None, "FILE", ("--output", "-o"))] = "runs.csv"
    """Table to write (.csv)."""
    device: Machine = None
    """Device to measure; cuda includes ROCm [default: cuda if this machine has a GPU]."""
    quick: bool = False
    """Measure a small grid of cases with short samples."""
    cases: Annotated[str | None, FieldOption(None, "GRID")] = None
    """Grid of cases: cpu-quick, cpu-full, quick, proof or full; or a table of cases (.csv)."""
    ops: Annotated[Sequence[str], FieldOption(None, "LIST", read=spellings.names)] = ()
    """Only these operations, with commas: attention,gemm."""
    resume: bool = False
    """Continue an existing table."""
    l2: Literal["cold", "warm"] | None = None
    """State of the caches at the start of a call [default: cold on cuda]."""
    timer: Annotated[
        str | None, FieldOption(None, "NAME", names="perfmodel.measured.timer:HARNESS")
    ] = None
    """Timer: graph or events (cuda), wall (cpu)."""
    samples: Annotated[int | None, FieldOption(least=3)] = None
    """Maximum samples per case."""
    limit_seconds: Annotated[float | None, FieldOption(None, "S", least=None)] = None
    """Start no further case after this many seconds."""
    only: Annotated[str, FieldOption(None, "TEXT")] = ""
    """Only implementations whose name contains this text."""
    tune: bool = False
    """Try each kernel's configs and time the fastest."""
    all_configs: Annotated[str | None, FieldOption(None, "FILE")] = None
    """With --tune: a second table, with every config tried (.csv)."""

    def __post_init__(self) -> None:
        if self.all_configs and not self.tune:
            raise ProblemError("--all-configs is the table of what --tune tries; add --tune")
        if self.all_configs and Path(self.all_configs).resolve() == Path(self.output).resolve():
            raise ProblemError(f"--output and --all-configs are both {self.output}; name two files")


def measure(asked: Asked) -> None:
    """Time bundled kernels and library kernels on this machine; results are checked first.

    Rows are appended and synced one by one; --resume continues an interrupted run. A case that
    fails is recorded as a row with its reason, and the run continues.

    \b
        perfmodel measure --device cpu --quick --output runs.csv
        perfmodel measure --cases full --ops attention,gemm --tune --output h200.csv
        perfmodel measure --tune --all-configs configs.csv --output h200.csv
        perfmodel measure --resume --output h200.csv
    """
    from perfmodel.measured import hostload, session, tuning
    from perfmodel.measured.journal import Journal
    from perfmodel.measured.measure import COLUMNS, KEY, plan
    from perfmodel.measured.measure import measure as run

    with status("measuring") as stage:
        stage("loading torch")
        target = asked.device or session.default_device()
    grid, policy = _grid(asked, target)
    with ExitStack() as tables:
        with status("measuring") as stage:
            stage("loading the kernels")
            bench = session.bench(target, policy, l2=asked.l2, timer=asked.timer)
            path = asked.all_configs
            configs = None if path is None else Journal(path, tuning.COLUMNS, tuning.KEY)
            tuner = session.tuner(bench, configs) if asked.tune else None
            contenders, skipped = session.contenders(bench.environment, tuner=tuner)
            others = hostload.others(os.cpu_count() or 1)
        selection = [each for each in contenders if asked.only in each.implementation]
        if not selection:
            raise ProblemError(
                f"--only {asked.only!r} matches no implementation; leave it out to see all"
            )
        if others.busy and target == "cpu":
            say(f"{others.said}, rows that show it are flagged {hostload.BUSY!r}")
        for line in skipped:
            say(f"skipped {line}")
        journals = [Journal(asked.output, COLUMNS, KEY), *([] if configs is None else [configs])]
        for journal in journals:
            tables.enter_context(journal.open(resume=asked.resume))
        for line in (line for journal in journals for line in journal.said):
            say(line)
        rows = journals[0]
        try:
            with progress("measuring") as report:
                jobs = plan(grid, selection)
                tally = run(jobs, bench, rows, report=report, limit_s=asked.limit_seconds)
        except KeyboardInterrupt:
            say(f"interrupted; {len(rows)} rows are in {asked.output}, --resume goes on from there")
            raise click.exceptions.Exit(130) from None
        _summary(tally, len(rows), asked.output)


def _grid(asked: Asked, target: str) -> tuple[Sequence[Case], Policy]:
    """The cases, and how long and how often each is timed."""
    from perfmodel.measured import grids, session

    small = asked.quick or asked.cases in ("quick", "cpu-quick")
    name = asked.cases or f"{'cpu-' if target == 'cpu' else ''}{'quick' if small else 'full'}"
    grid = grids.only(grids.grid(name), tuple(asked.ops))
    policy = session.QUICK if small else session.FULL
    if asked.samples is not None:
        least = min(asked.samples, policy.least_samples)
        policy = replace(policy, samples=asked.samples, least_samples=least)
    return grid, policy


def _summary(tally: Tally, rows: int, output: str) -> None:
    failed = f", {tally.failed} failed" if tally.failed else ""
    kept = f", {tally.kept} were there already" if tally.kept else ""
    say(f"wrote {output}: {rows} rows ({tally.measured} measured now{failed}{kept})")
    for reason, count in list(tally.reasons.items())[:_SHOWN]:
        say(f"  {count} failed: {reason}")
    if len(tally.reasons) > _SHOWN:
        say(f"  and {len(tally.reasons) - _SHOWN} more reasons, in the column 'reason'")
    if tally.left:
        say(f"{tally.left} cases left when the time was up; --resume goes on from there")


app = command(measure)
