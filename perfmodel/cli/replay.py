"""`perfmodel replay KERNEL`: a kernel's memory accesses against the counting rule, without a
GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import click

from perfmodel.cli import kerneloptions
from perfmodel.cli.arguments import SomeDevices
from perfmodel.cli.build import PASS_ON, command
from perfmodel.cli.kerneloptions import problems
from perfmodel.cli.output import Shown
from perfmodel.cli.progress import progress
from perfmodel.fieldoption import FieldOption
from perfmodel.render.report import Column, Report, text
from perfmodel.units import binary

if TYPE_CHECKING:
    from perfmodel.proof.replay.replay import Replay

# Triton's interpreter multiplies bf16 matrices wrongly; their bytes are still right.
_TYPES = ("fp16", "fp32")


@dataclass(frozen=True)
class Asked(kerneloptions.Asked):
    """What `replay` is asked for."""

    device: SomeDevices = ()
    """Also simulate the L2 cache of these devices: a100,h100 or repeated."""
    seed: Annotated[int, FieldOption(least=None)] = 0
    """Seed of the random inputs."""


def replay(context: click.Context, asked: Asked, shown: Shown) -> None:
    """Run a kernel in Triton's interpreter and compare its bytes with the counting rule.

    Exit code 1 where a byte differs, where the kernel reads other elements than it has to, and
    where its result is wrong against its reference.

    The problem's sizes are options as in predict; without any, the kernel's first test case runs.
    With --device, the accesses also run through a model of its L2 cache.

    \b
        perfmodel replay attention-tiled --batch 1 --heads 2 --seq 200 --head-dim 64 --causal
        perfmodel replay matmul -m 300 -n 200 -k 130 --device a100-sxm4-80gb
        perfmodel replay softmax --rows 64 --cols 1000 --dtype fp16 --format json
        perfmodel replay ./double.py:KERNEL --rows 3 --cols 1001
    """
    # Triton decides on its first import whether kernels are interpreted.
    os.environ.setdefault("TRITON_INTERPRET", "1")
    program = asked.loaded()
    from perfmodel.proof.replay.replay import replay as run

    cases: list[Any] = problems(program, context.args, _TYPES) if context.args else [None]
    devices: list[Any] = [*asked.device] or [None]
    config = asked.configured(program.configs[0]) if asked.config or context.args else None
    first, _ = program.cases[0]
    with progress("replaying blocks") as tell:
        replays = [
            run(
                asked.kernel,
                problem,
                config,
                device,
                seed=asked.seed,
                check=getattr(problem or first, "dtype", "") != "bf16",
                progress=tell,
            )
            for problem, device in product(cases, devices)
        ]
    rows = [row for item in replays for row in _rows(item)]
    notes = [note for item in replays for note in _notes(item)]
    title = f"{program.name}: {program.summary}"
    shown.emit(Report("replayed", rows, _COLUMNS, title=title, notes=notes))
    if any(item.wrong or item.misread or not item.equal for item in replays):
        raise click.exceptions.Exit(1)


_WAYS = ("read", "write", "atomic")


def _rows(run: Replay) -> Iterator[dict[str, Any]]:
    """One row per tensor and launch; the cache's figures are repeated for every tensor of a
    launch."""
    cache = {item.kernel: item for item in run.cache}
    for row in run.tensors:
        simulated = cache.get(row.kernel)
        yield {
            "kernel": run.kernel,
            "launch": row.kernel,
            "tensor": row.tensor,
            **{f"asked_{way}_bytes": getattr(row.asked, f"{way}_bytes") for way in _WAYS},
            **{f"counted_{way}_bytes": getattr(row.counted, f"{way}_bytes") for way in _WAYS},
            "equal": row.equal,
            "problem": asdict(run.problem),
            "config": asdict(run.config),
            "device": run.device,
            "hbm_bytes_simulated": simulated.simulated_bytes if simulated else None,
            "hbm_bytes_model": simulated.model_bytes if simulated else None,
            "l2_hit_rate": simulated.hit_rate if simulated else None,
        }


def _notes(run: Replay) -> Iterator[str]:
    verdict = "equal, byte for byte" if run.equal else "NOT EQUAL"
    yield (
        f"{run.blocks} blocks, {run.accesses} accesses in {run.seconds:.1f} s: asked "
        f"{binary(run.asked_bytes)}, counted {binary(run.counted_bytes)}: {verdict}"
    )
    for row in run.misread:
        yield (
            f"WRONG ELEMENTS: {row.kernel} reads {row.distinct_read_bytes:,.0f} different bytes of "
            f"{row.tensor}, and has to read {row.least_read_bytes:,.0f}"
        )
    if run.largest_error is not None:
        yield (
            f"{'WRONG RESULT: ' if run.wrong else ''}largest relative error against the "
            f"reference: {run.largest_error:.2g}, {run.tolerance:g} allowed"
        )
    for item in run.cache:
        yield (
            f"{item.kernel} on {run.device}: memory {binary(item.simulated_bytes)} simulated, "
            f"{binary(item.model_bytes)} modelled ({item.error:+.1%}); L2 hits "
            f"{item.hit_rate:.1%}"
        )


_COLUMNS = [
    text("launch", "launch"),
    text("tensor", "tensor"),
    *(
        Column(f"{source} {way}", f"{source}_{way}_bytes", "{:,.0f}".format,
              rank=1 if way == "atomic" else 0)
        for way in _WAYS
        for source in ("asked", "counted")
    ),
    Column("equal", lambda row: "yes" if row["equal"] else "NO", number=False,
           style=lambda row: "" if row["equal"] else "bold red"),
]  # fmt: skip


app = command(replay, settings=PASS_ON)
