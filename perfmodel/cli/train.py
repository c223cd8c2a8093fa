"""`perfmodel train NETWORK`: a training step on one device or many, one plan or a grid of plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Annotated, Any

import click

from perfmodel.analysis import plans
from perfmodel.cli import completing, known, ranges
from perfmodel.cli.arguments import ONE, Learned, NoLearned, SomeDevices
from perfmodel.cli.build import Values, asking_for, command
from perfmodel.cli.combining import Grid, Zip
from perfmodel.cli.networkoptions import NamedNetwork
from perfmodel.cli.output import PANEL, Shown, say
from perfmodel.cli.progress import waiting
from perfmodel.errors import PerfmodelError, ProblemError, SizeError
from perfmodel.fieldoption import STEP, FieldOption
from perfmodel.hardware import Device, System, load, systems
from perfmodel.networks.flops import CONVENTIONS, USUAL
from perfmodel.networks.network import Network
from perfmodel.render import steps as render
from perfmodel.render.refused import all_of
from perfmodel.training.plan import Plan
from perfmodel.training.result import Step

MOST = 100_000
"""Limit on the plans of one command."""


@dataclass(frozen=True)
class Place:
    """Where plans run."""

    device: Device
    """The device."""
    system: System | None
    """The system that joins devices; None: the device's usual one."""

    @property
    def slug(self) -> str:
        """Slug of the system, or of the device alone."""
        return (self.system or self.device).slug


@dataclass(frozen=True)
class Asked:
    """What `train` is asked for beside the fields of a plan."""

    network: NamedNetwork
    """The network."""
    device: SomeDevices = None
    """Devices, each in its usual system, with commas or repeated: a100,h100."""
    system: Annotated[
        list[str] | None,
        FieldOption(None, "NAMES", ("--system", "-s"), complete=completing.systems),
    ] = None
    """Systems, with commas or repeated: dgx-a100,dgx-h100 (perfmodel list systems)."""
    gpus: Annotated[ranges.Values, FieldOption()] = ONE
    """Number of devices: a size, list (8,16) or range (64:1024:x2)."""
    global_batch: Annotated[int | None, FieldOption(STEP, single=True)] = None
    """Sequences of a step [default: one micro-batch of every copy]."""
    learned: Learned = None
    """File of corrections."""
    no_learned: NoLearned = False
    """Whether nothing is corrected."""
    pairs: Zip = False
    """Whether lists are paired element by element."""
    convention: Annotated[
        str, FieldOption(PANEL, "NAME", ("--mfu",), single=True, names=tuple(CONVENTIONS))
    ] = USUAL
    """Convention of FLOPs for the MFU."""
    fastest: Annotated[bool, FieldOption(PANEL)] = False
    """Show only the fastest plan that fits, for each number of devices."""
    chart: Annotated[str | None, FieldOption(PANEL, "FILE")] = None
    """Chart (.svg, .pdf, .png): for one plan its pipeline's timeline, for several memory against
    speed."""
    dask: Annotated[str | None, FieldOption(PANEL, "ADDRESS")] = None
    """Predict the plans on this Dask scheduler: tcp://host:8786."""

    def __post_init__(self) -> None:
        known.named("MFU convention", self.convention, CONVENTIONS)

    def places(self) -> list[Place]:
        """Named systems, or devices in their usual systems. Raises `ProblemError` without any."""
        if bool(self.device) == bool(self.system):
            raise ProblemError(
                "name a device (-d h100-sxm) or a system (--system dgx-h100), one of them"
            )
        machines = [systems.load(name) for text in self.system or () for name in known.names(text)]
        if not self.pairs:
            machines = list({system.slug: system for system in machines}.values())
        devices = known.devices(self.device or (), repeats=self.pairs)
        return [
            *(Place(device, None) for device in devices),
            *(Place(load(system.device), system) for system in machines),
        ]


@asking_for(
    Plan,
    without=("accumulation", "sequence", "data", "dropout", "precision", "loss", "ends",
             "training"),
    after={"global_batch": "seq", "micro_batch": "expert", "pairs": "expert"},
)  # fmt: skip
def train(asked: Asked, values: Values, shown: Shown) -> None:
    """Predict a training step: time with a range, its breakdown, and memory by kind.

    Lists and ranges make a grid of plans; impossible plans are listed with numbers that would fit.

    \b
    perfmodel train llama-3-8b -d a100,h100 --seq 4k --recompute full --optimiser adam-8bit
    perfmodel train llama-3.1-405b --system dgx-h100 --gpus 8192 --tensor 8 --pipeline 16 \\
        --seq 8k --global-batch 2048
    perfmodel train gpt3-175b -s dgx-a100 --gpus 64:1024:x2 --tensor 1,2,4,8 --pipeline 1,2,4 \\
        --global-batch 1024 --fastest
    """
    grid = Grid(
        {
            "device": asked.places(),
            "devices": list(asked.gpus),
            **values(),
            "global_batch": [asked.global_batch],
        },
        asked.pairs,
    )
    grid.check(MOST, "plans")
    with waiting("predicting plans"):
        steps, refused = _steps(asked, grid)
    several = len(grid) > 1
    if not steps:
        raise all_of(refused)
    if asked.chart is not None:
        _draw(steps, asked.chart, several=several)
    fits = any(step.memory.fits for step in steps)
    if several and asked.fastest:
        steps = plans.fastest(steps)
    if shown.form == "json":
        shown.emit(render.data(steps, refused))
    elif several:
        shown.emit(render.several(steps, refused, asked.convention))
    else:
        shown.emit(render.single(steps[0], asked.convention))
    if not fits and not several:
        say(f"perfmodel: the plan {render.fit(steps[0])}")
    if not fits and asked.fastest:
        if several:
            say("perfmodel: no plan fits; shown are those that lack the least memory")
        raise click.exceptions.Exit(1)


def _steps(asked: Asked, grid: Grid) -> tuple[list[Step], list[tuple[str, str]]]:
    """Steps of the plans; for each impossible plan, its label and the reason."""
    steps: list[Step] = []
    refused: list[tuple[str, str]] = []
    for place, group in groupby(grid, key=itemgetter("device")):
        candidates = [(sizes, _candidate(sizes)) for sizes in group]
        ready = [plan for _, plan in candidates if isinstance(plan, Plan)]
        model = (asked.network, place.device, place.system)
        answers = iter(plans.steps(model, ready, dask=asked.dask))
        for sizes, plan in candidates:
            answer: Any = next(answers) if isinstance(plan, Plan) else plan
            if isinstance(answer, SizeError):
                answer = answer.those(partial(_check, asked.network, sizes))
            if isinstance(answer, Step):
                steps.append(answer)
            else:
                refused.append((grid.label(sizes), str(answer)))
    return steps, refused


def _plan(sizes: Mapping[str, Any]) -> Plan:
    return Plan.over(**{name: value for name, value in sizes.items() if name != "device"})


def _candidate(sizes: Mapping[str, Any]) -> Plan | PerfmodelError:
    """A plan, or the error of an impossible one."""
    try:
        return _plan(sizes)
    except PerfmodelError as error:
        return error


def _check(network: Network, sizes: dict[str, Any], name: str, size: int) -> None:
    """Raise `PerfmodelError` where a plan with another size is impossible too."""
    from perfmodel.training.step import check

    place = sizes["device"]
    check(network, _plan({**sizes, name: size}), place.device, place.system)


def _draw(steps: list[Step], path: str, *, several: bool) -> None:
    """A chart of a grid of plans, or of one plan's pipeline."""
    from perfmodel.render.chart import chart_suffix, save
    from perfmodel.render.html.figures import chart_of
    from perfmodel.render.timeline import timeline_chart

    chart_suffix(path)
    if several:
        save(chart_of(render.data(steps, [])), path)
    elif steps and steps[0].timeline is not None:
        save(timeline_chart(steps[0].timeline), path)
    else:
        raise ProblemError(
            "one plan without a pipeline has no timeline; give lists for a chart of plans, or "
            "--pipeline 2"
        )
    say(f"wrote {path}")


app = command(train)
