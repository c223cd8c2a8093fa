"""`perfmodel measure`: time kernels and library operators on this machine."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perfmodel.cli import completing
from perfmodel.cli.output import say
from perfmodel.cli.progress import progress, status
from perfmodel.errors import ProblemError, UnknownName

if TYPE_CHECKING:
    from perfmodel.evidence.measured.measure import Tally

app = typer.Typer(rich_markup_mode=None, add_completion=False)
DEVICES = ("cpu", "cuda")
_SHOWN = 5  # reasons printed in full

DeviceOption = Annotated[
    str | None,
    typer.Option(
        "--device",
        "-d",
        metavar="cpu|cuda",
        help="Device to measure; cuda includes ROCm [default: cuda if this machine has a GPU].",
    ),
]


@app.command()
def measure(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Table to write (.csv).")
    ] = "runs.csv",
    device: DeviceOption = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure a small grid of cases with short samples.")
    ] = False,
    cases: Annotated[
        str | None,
        typer.Option(
            "--cases",
            metavar="GRID",
            help="Grid of cases: cpu-quick, cpu-full, quick, proof or full.",
        ),
    ] = None,
    ops: Annotated[
        str,
        typer.Option(
            "--ops", metavar="LIST", help="Only these operations, with commas: attention,gemm."
        ),
    ] = "",
    resume: Annotated[bool, typer.Option("--resume", help="Continue an existing table.")] = False,
    l2: Annotated[
        str | None,
        typer.Option(
            "--l2",
            metavar="cold|warm",
            help="State of the caches at the start of a call: cold or warm [default: cold on"
            " cuda].",
        ),
    ] = None,
    timer: Annotated[
        str | None,
        typer.Option(
            "--timer",
            metavar="NAME",
            help="Timer: graph or events (cuda), wall (cpu).",
            autocompletion=completing.timers,
        ),
    ] = None,
    samples: Annotated[
        int | None, typer.Option("--samples", metavar="N", min=3, help="Maximum samples per case.")
    ] = None,
    limit_seconds: Annotated[
        float | None,
        typer.Option(
            "--limit-seconds", metavar="S", help="Start no further case after this many seconds."
        ),
    ] = None,
    only: Annotated[
        str,
        typer.Option(
            "--only", metavar="TEXT", help="Only implementations whose name contains this text."
        ),
    ] = "",
    tune: Annotated[
        bool, typer.Option("--tune", help="Try each kernel's configs and time the fastest.")
    ] = False,
    all_configs: Annotated[
        str | None,
        typer.Option(
            "--all-configs",
            metavar="FILE",
            help="With --tune: a second table, with every config tried (.csv).",
        ),
    ] = None,
) -> None:
    """Time bundled kernels and library kernels on this machine; results are checked first.

    Rows are appended and synced one by one; --resume continues an interrupted run. A case that
    fails is recorded as a row with its reason, and the run continues.

    \b
        perfmodel measure --device cpu --quick --output runs.csv
        perfmodel measure --cases full --ops attention,gemm --tune --output h200.csv
        perfmodel measure --tune --all-configs configs.csv --output h200.csv
        perfmodel measure --resume --output h200.csv
    """
    target = _choice("--device", device, DEVICES)
    warmth: Any = _choice("--l2", l2, ("cold", "warm"))
    if all_configs and not tune:
        raise ProblemError("--all-configs is the table of what --tune tries; add --tune")
    if all_configs and Path(all_configs).resolve() == Path(output).resolve():
        raise ProblemError(f"--output and --all-configs are both {output}; name two files")
    from perfmodel.evidence.measured import grids, hostload, session, tuning
    from perfmodel.evidence.measured.journal import Journal
    from perfmodel.evidence.measured.measure import COLUMNS, KEY, plan
    from perfmodel.evidence.measured.measure import measure as run

    with status("measuring") as stage:
        stage("loading torch")
        target = target or session.default_device()
    small = quick or cases in ("quick", "cpu-quick")
    name = cases or f"{'cpu-' if target == 'cpu' else ''}{'quick' if small else 'full'}"
    names = tuple(part.strip() for part in ops.split(",") if part.strip())
    grid = grids.only(grids.grid(name), names)
    policy = session.QUICK if small else session.FULL
    if samples is not None:
        policy = _policy(policy, samples)
    configs = Journal(all_configs, tuning.COLUMNS, tuning.KEY) if all_configs else None
    with status("measuring") as stage:
        stage("loading the kernels")
        bench = session.bench(target, policy, l2=warmth, timer=timer)
        tuner = session.tuner(bench, configs) if tune else None
        contenders, skipped = session.contenders(bench.environment, tuner=tuner)
        others = hostload.others(os.cpu_count() or 1)
    selection = [each for each in contenders if only in each.implementation]
    if not selection:
        raise ProblemError(f"--only {only!r} matches no implementation; leave it out to see all")
    if others.busy and target == "cpu":
        say(f"{others.said}, rows that show it are flagged {hostload.BUSY!r}")
    for line in skipped:
        say(f"skipped {line}")
    with ExitStack() as tables:
        journal = tables.enter_context(Journal(output, COLUMNS, KEY).open(resume=resume))
        if configs is not None:
            tables.enter_context(configs.open(resume=resume))
        for line in (*journal.said, *(configs.said if configs else ())):
            say(line)
        try:
            with progress("measuring") as report:
                jobs = plan(grid, selection)
                tally = run(jobs, bench, journal, report=report, limit_s=limit_seconds)
        except KeyboardInterrupt:
            say(f"interrupted; {len(journal)} rows are in {output}, --resume goes on from there")
            raise typer.Exit(130) from None
        _summary(tally, len(journal), output)


def _choice(option: str, value: str | None, names: tuple[str, ...]) -> str | None:
    if value is not None and value not in names:
        raise UnknownName(f"choice for {option}", value, names, f"({' or '.join(names)})")
    return value


def _policy(policy: Any, samples: int) -> Any:
    from dataclasses import replace

    return replace(policy, samples=samples, least_samples=min(samples, policy.least_samples))


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
