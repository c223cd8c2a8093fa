"""`perfmodel train NETWORK`: a training step on one device or many, one plan or a grid of plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Annotated, Any

import click

from perfmodel.analysis import plans
from perfmodel.cli import ranges, spellings
from perfmodel.cli.arguments import CHART, ONE, Corrected, Machines
from perfmodel.cli.build import Values, asking_for, command
from perfmodel.cli.combining import Grid
from perfmodel.cli.drawing import NUMBERS, Drawing
from perfmodel.cli.leftout import Asked as Question
from perfmodel.cli.leftout import answered, narrowed, settled
from perfmodel.cli.networkoptions import NETWORK, SomeSystems, Zip
from perfmodel.cli.output import PANEL, Shown, say
from perfmodel.cli.progress import waiting
from perfmodel.errors import ProblemError
from perfmodel.fieldoption import STEP, FieldOption
from perfmodel.hardware import Device, System, load
from perfmodel.networks.flops import CONVENTIONS, USUAL
from perfmodel.networks.network import Network
from perfmodel.render import steps as render
from perfmodel.render.chart import Chart
from perfmodel.render.page import Page
from perfmodel.render.refused import Refused
from perfmodel.training.plan import Plan
from perfmodel.training.result import Step
from perfmodel.training.scaling import WAYS, scaled
from perfmodel.training.trainingrun import TrainingRun, cost


def _network(text: str) -> Network:
    """The network of that name or file, or the module FILE.py:NAME."""
    if ".py:" not in text:
        return spellings.network(text)
    from perfmodel.tracing.tracednetwork import TracedNetwork

    return TracedNetwork.at(text)


MOST = 100_000
"""Limit on the plans of one command."""


@dataclass(frozen=True)
class Asked(Corrected):
    """What `train` is asked for beside the fields of a plan."""

    network: Annotated[
        Network,
        replace(
            NETWORK,
            read=_network,
            help="A network's name (perfmodel network list), YAML file, or module FILE.py:NAME.",
        ),
    ]
    """The network."""
    input: Annotated[list[str] | None, FieldOption(None, "NAME:TYPE[SIZES]", ("--input", "-i"))] = (
        None
    )
    """An input of a module FILE.py:NAME, repeats [default: int64[batch,seq]]."""
    device: Machines = ()
    """Devices, each in its usual system, with commas or repeated: a100,h100."""
    system: SomeSystems = ()
    """Systems, with commas or repeated: dgx-a100,dgx-h100 (perfmodel list systems)."""
    gpus: Annotated[ranges.Values, FieldOption()] = ONE
    """Number of devices: a size, list (8,16) or range (64:1024:x2)."""
    global_batch: Annotated[int | None, FieldOption(STEP, single=True)] = None
    """Sequences of a step [default: one micro-batch of every copy]."""
    pairs: Zip = False
    """Whether lists are paired element by element."""
    convention: Annotated[
        str, FieldOption(PANEL, "NAME", ("--mfu",), single=True, names=tuple(CONVENTIONS))
    ] = USUAL
    """Convention of FLOPs for the MFU."""
    by: Annotated[str, FieldOption(PANEL, "WHAT", single=True, names=render.BY)] = "class"
    """Of one plan what has a line: classes of time and memory, or every operator or kernel."""
    plan: Annotated[str | None, FieldOption(PANEL, "auto", single=True, names=("auto",))] = None
    """Search every legal plan of --gpus devices and --global-batch: the fastest that fit."""
    fastest: Annotated[bool, FieldOption(PANEL)] = False
    """Show only the fastest plan that fits, for each number of devices."""
    scaling: Annotated[str | None, FieldOption(PANEL, single=True, names=WAYS)] = None
    """How the fastest plans scale from the fewest devices on: strong keeps --global-batch, weak
    lets it grow with the devices."""
    dask: Annotated[str | None, FieldOption(PANEL, "ADDRESS")] = None
    """Predict the plans on this Dask scheduler: tcp://host:8786."""

    def __post_init__(self) -> None:
        """Raise `ProblemError` where the sequences of a step are needed and not given."""
        needs = {"--plan auto": self.plan, "--scaling": self.scaling}
        for option, value in needs.items():
            if value is not None and self.global_batch is None:
                raise ProblemError(
                    f"{option} needs a --global-batch, which all plans share; give one"
                )

    def batch(self, devices: int) -> int | None:
        """Sequences of a step on so many devices."""
        if self.scaling != "weak" or self.global_batch is None:
            return self.global_batch
        return self.global_batch * devices // min(self.gpus)

    def places(self) -> list[Device | System]:
        """Named systems, or devices in their usual systems. Raises `ProblemError` without any."""
        if bool(self.device) == bool(self.system):
            raise ProblemError(
                "name a device (-d h100-sxm) or a system (--system dgx-h100), one of them"
            )
        places: list[Device | System] = [*self.device, *self.system]
        return places if self.pairs else list({place.slug: place for place in places}.values())


@dataclass(frozen=True)
class Plans(Drawing):
    """A chart of plans; --data is a number of copies in other commands."""

    chart: Annotated[str | None, CHART] = None
    """Chart (.svg, .pdf, .png): for one plan its pipeline's timeline, for several memory against
    speed, with --scaling what takes the step by cause."""
    chart_data: Annotated[str | None, replace(NUMBERS, spellings=())] = None
    """Write the numbers of the chart (.csv or .json)."""


@asking_for(
    Plan,
    without=("accumulation", "sequence", "data", "dropout", "precision", "loss", "ends",
             "training"),
)  # fmt: skip
def train(asked: Asked, run: TrainingRun, values: Values, shown: Shown, drawing: Plans) -> None:
    """Predict a training step: time with a range, its breakdown, and memory by kind.

    Lists and ranges make a grid of plans; impossible plans are listed with numbers that would fit.

    \b
    perfmodel train llama-3-8b -d a100,h100 --seq 4k --recompute full --optimiser adam-8bit
    perfmodel train llama-3.1-405b --system dgx-h100 --gpus 8192 --tensor 8 --pipeline 16 \\
        --seq 8k --global-batch 2048
    perfmodel train gpt3-175b -s dgx-a100 --gpus 64:1024:x2 --tensor 1,2,4,8 --pipeline 1,2,4 \\
        --global-batch 1024 --fastest
    perfmodel train llama-3.1-405b -s dgx-h100 --gpus 512:131072:x4 --seq 8k --stack te \\
        --global-batch 2048 --plan auto --scaling strong
    perfmodel train my_module.py:Model -d h100-sxm --gpus 8 --zero 3 --seq 2k --stack compile
    """
    asked, given = _module(asked, values())
    grid = Grid(
        {"device": asked.places(), "devices": list(asked.gpus), **given},
        asked.pairs,
    )
    several = len(grid) > 1 or asked.plan is not None or asked.scaling is not None
    if several and asked.by != "class":
        raise ProblemError(f"--by {asked.by} is of one plan; give one of each list")
    refused: Refused = ()
    sentences: list[str] = []
    if asked.plan is not None:
        steps, sentences = _search(asked, given)
    else:
        grid.check(MOST, "plans")
        with waiting("predicting plans"):
            steps, refused = _steps(asked, grid)
    fits = any(step.memory.fits for step in steps)
    if asked.scaling:
        steps = plans.fastest(steps)
    drawing.draw(partial(_chart, asked, steps, several))
    if asked.fastest and several and asked.plan is None:
        steps = plans.fastest(steps)
    costs = [cost(run, step, load(step.device)) for step in steps if run.tokens]
    if several or shown.form == "json":
        against = scaled(steps) if asked.scaling else ()
        report = render.several(steps, refused, asked.convention, costs, against)
        shown.emit(replace(report, notes=[*report.notes, *sentences]))
    else:
        shown.emit(render.single(steps[0], asked.convention, costs, asked.by))
    if not fits and not several:
        say(f"perfmodel: the plan {render.fit(steps[0])}")
    if not fits and asked.fastest:
        if several:
            say("perfmodel: no plan fits; shown are those that lack the least memory")
        raise click.exceptions.Exit(1)


def _module(asked: Asked, values: dict[str, list[Any]]) -> tuple[Asked, dict[str, list[Any]]]:
    """What is asked for, with a module's inputs, and its stack PyTorch's where none is named."""
    from perfmodel.tracing.tracednetwork import TracedNetwork

    network = asked.network
    if not isinstance(network, TracedNetwork):
        if asked.input:
            raise ProblemError("--input is of a module FILE.py:NAME; drop it")
        return asked, values
    if asked.plan is not None:
        raise ProblemError("--plan auto splits layers, which a traced module does not; name a plan")
    if asked.input:
        network = replace(network, inputs=tuple(asked.input))
    usual = Plan().stack
    stacks = ["eager" if stack == usual else stack for stack in values["stack"]]
    return replace(asked, network=network), {**values, "stack": stacks}


def _machine(place: Device | System) -> tuple[Device, System | None]:
    """The device of a place, and the system where one is named."""
    return (load(place.device), place) if isinstance(place, System) else (place, None)


def _search(asked: Asked, values: Mapping[str, list[Any]]) -> tuple[list[Step], list[str]]:
    """The fastest plans on each number of devices of each place, and how each search ended; to see
    how they scale, the fastest alone."""
    from perfmodel.training import planning

    usual = {each.name: each.default for each in fields(Plan)}
    given = {
        name: sizes for name, sizes in values.items()
        if name in planning.AXES and sizes != [usual[name]]
    }  # fmt: skip
    for name, sizes in values.items():
        if name not in planning.AXES and len(sizes) > 1:
            raise ProblemError(
                f"--plan auto takes lists of {', '.join(planning.AXES)}; give one {name}"
            )
    base = Plan(**{name: sizes[0] for name, sizes in values.items() if name not in planning.AXES})
    steps, sentences = list[Step](), list[str]()
    with waiting("searching plans"):
        for place in asked.places():
            device, system = _machine(place)
            for devices in asked.gpus:
                result = planning.search(
                    asked.network, base, devices, asked.batch(devices) or 1, device, system, given,
                    1 if asked.scaling else planning.BEST,
                )  # fmt: skip
                steps += result.best
                sentences.append(render.searched(result, device.slug, devices))
    if not steps:
        say("\n".join(f"perfmodel: {sentence}" for sentence in sentences))
        raise click.exceptions.Exit(1)
    return steps, sentences


def _steps(asked: Asked, grid: Grid) -> tuple[list[Step], Refused]:
    """Steps of the plans; for each impossible plan, its label and the reason. Raises as
    `answered`."""
    from perfmodel.training.step import check

    def fields_of(sizes: Mapping[str, Any]) -> dict[str, Any]:
        own = {name: value for name, value in sizes.items() if name != "device"}
        return {"global_batch": asked.batch(sizes["devices"]), **own}

    def checked(sizes: dict[str, Any], name: str, size: int) -> None:
        """Raise `PerfmodelError` where a plan with another size is impossible too."""
        if name in (*Plan.__dataclass_fields__, "devices", "global_batch"):
            plan = Plan.over(**fields_of({**sizes, name: size}))
            check(asked.network, plan, *_machine(sizes["device"]))

    def questions() -> Iterator[Question[Step]]:
        for place, group in groupby(grid, key=itemgetter("device")):
            cases = list(group)
            model = asked.network, *_machine(place)
            outcomes = plans.steps(model, list(map(fields_of, cases)), dask=asked.dask)
            for sizes, outcome in zip(cases, outcomes, strict=True):
                yield (
                    grid.label(sizes),
                    partial(narrowed, partial(settled, outcome), partial(checked, sizes)),
                )

    return answered(questions())


def _chart(asked: Asked, steps: list[Step], several: bool, page: Page) -> Chart:
    """The chart of a grid of plans, of one plan's pipeline, or of how plans scale."""
    from perfmodel.render.html.figures import chart_of
    from perfmodel.render.timeline import timeline_chart

    if asked.scaling:
        return render.scaling_chart(steps, scaled(steps), asked.scaling, page)
    if several:
        return chart_of(render.several(steps, [], USUAL), page=page)
    if steps[0].timeline is not None:
        return timeline_chart(steps[0].timeline, page)
    raise ProblemError(
        "one plan without a pipeline has no timeline; give lists for a chart of plans, or "
        "--pipeline 2"
    )


app = command(train)
