"""`perfmodel train NETWORK`: a training step on one device or many, one plan or a grid of plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer

from perfmodel.cli import completing, known, ranges, spellings
from perfmodel.cli.arguments import NetworkName
from perfmodel.cli.build import Values, asking_for
from perfmodel.cli.combining import Zip, combined, count
from perfmodel.cli.output import PANEL, Format, Output, chosen_format, emit, say
from perfmodel.cli.progress import waiting
from perfmodel.errors import PerfmodelError, ProblemError, SizeError
from perfmodel.fieldoption import STEP
from perfmodel.hardware import Device, System, load, systems
from perfmodel.networks.flops import CONVENTIONS, USUAL
from perfmodel.networks.network import Network
from perfmodel.render import steps as render
from perfmodel.render.refused import all_of
from perfmodel.training.plan import Plan
from perfmodel.training.result import Step

MOST = 100_000
"""Limit on the plans of one command."""

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
@asking_for(
    Plan,
    without=("accumulation", "sequence", "data", "dropout", "precision", "loss", "ends",
             "training"),
    after={"global_batch": "seq", "micro_batch": "expert", "pairs": "expert"},
)  # fmt: skip
def train(
    network: NetworkName,
    *,
    device: Annotated[
        list[str] | None,
        typer.Option(
            "--device",
            "--gpu",
            "-d",
            metavar="NAMES",
            help="Devices, each in its usual system, with commas or repeated: a100,h100.",
            autocompletion=completing.devices,
        ),
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(
            "--system",
            "-s",
            metavar="NAMES",
            help="Systems, with commas or repeated: dgx-a100,dgx-h100 (perfmodel list systems).",
            autocompletion=completing.systems,
        ),
    ] = None,
    gpus: Annotated[
        str,
        typer.Option(
            "--gpus",
            metavar="N",
            help="Number of devices: a size, list (8,16) or range (64:1024:x2).",
        ),
    ] = "1",
    values: Values,
    global_batch: Annotated[
        str | None,
        typer.Option(
            "--global-batch",
            metavar="N",
            help="Sequences of a step [default: one micro-batch of every copy].",
            rich_help_panel=STEP,
        ),
    ] = None,
    pairs: Zip = False,
    convention: Annotated[
        str,
        typer.Option(
            "--mfu",
            metavar="NAME",
            help=f"Convention of FLOPs for the MFU: {', '.join(CONVENTIONS)}.",
            autocompletion=completing.of_list(lambda: CONVENTIONS),
            rich_help_panel=PANEL,
        ),
    ] = USUAL,
    fastest: Annotated[
        bool,
        typer.Option(
            "--fastest",
            help="Show only the fastest plan that fits, for each number of devices.",
            rich_help_panel=PANEL,
        ),
    ] = False,
    chart: Annotated[
        str | None,
        typer.Option(
            "--chart",
            metavar="FILE",
            help="Chart (.svg, .pdf, .png): for one plan its pipeline's timeline, for "
            "several memory against speed.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            "--dask",
            metavar="ADDRESS",
            help="Predict the plans on this Dask scheduler: tcp://host:8786.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    format: Format = None,
    output: Output = None,
) -> None:
    """Predict a training step: time with a range, its breakdown, and memory by kind.

    Lists and ranges make a grid of plans; impossible plans are listed with numbers that would fit.

    \b
    perfmodel train llama-3-8b -d a100,h100 --seq 4k --recompute full --optimiser adam-8bit
    perfmodel train llama-3.1-405b --system dgx-h100 --gpus 8192 --tensor 8 --pipeline 16 \\
        --seq 8k --global-batch 2048
    perfmodel train gpt3-175b -s dgx-a100 --gpus 64:1024:x2 --tensor 1,2,4,8 --pipeline 1,2,4 \\
        --global-batch 1024 --fastest
    """
    form = chosen_format(format, output)
    known.named("MFU convention", convention, CONVENTIONS)
    places = _places(device or [], system or [], repeats=pairs)
    axes = {"devices": ranges.parse(gpus, "--gpus").tolist(), **values()}
    batch = None if global_batch is None else ranges.one(global_batch, "--global-batch")
    grid = _Grid({**axes, "global_batch": [batch]}, pairs)
    net = spellings.network(network)
    with waiting("predicting plans"):
        steps, refused = _steps(net, grid, places, dask)
    if not steps:
        raise all_of(refused)
    several = grid.count(places) > 1
    if chart is not None:
        _draw(steps, chart, several=several)
    if not several:
        _single(steps[0], form, convention, format, output)
        if fastest and not steps[0].memory.fits:
            raise typer.Exit(1)
        return
    if fastest:
        steps = _fastest(steps)
    table = render.several(steps, refused, convention)
    emit(render.data(steps, refused) if form == "json" else table, format, output)
    if fastest and not any(step.memory.fits for step in steps):
        say("perfmodel: no plan fits; shown are those that lack the least memory")
        raise typer.Exit(1)


_Candidate = tuple[str, dict[str, Any], Plan | PerfmodelError]
"""What distinguishes a plan, its sizes, and the plan, or the error of an impossible one."""


@dataclass(frozen=True)
class _Grid:
    """All requested plans."""

    axes: dict[str, list[Any]]
    """Values of each field, of `devices` and `global_batch`."""
    pairs: bool
    """Whether they are paired element by element."""

    def count(self, places: list[_Place]) -> int:
        """Number of plans in all places; raises `ProblemError` for lists that do not pair."""
        return count({"device": places, **self.axes}, pairs=self.pairs)

    def plans(self, places: list[_Place]) -> list[tuple[_Place, list[_Candidate]]]:
        """The plans of each place."""
        if not self.pairs:
            candidates = [self._candidate(sizes) for sizes in combined(self.axes, pairs=False)]
            return [(place, candidates) for place in places]
        paired = combined({"device": places, **self.axes}, pairs=True)
        return [(each.pop("device"), [self._candidate(each)]) for each in paired]

    def _candidate(self, sizes: dict[str, Any]) -> _Candidate:
        """A plan with a label of what distinguishes it, or the error of an impossible one."""
        names = [name for name, values in self.axes.items() if len(values) > 1]
        words = ", ".join(f"{name} {sizes[name]}" for name in names)
        try:
            return words, sizes, self.plan(sizes)
        except PerfmodelError as error:
            return words, sizes, error

    def plan(self, sizes: Mapping[str, Any]) -> Plan:
        """The plan with these sizes. Raises `SizeError` for those that are no multiples."""
        fields = {name: value for name, value in sizes.items() if name in self.axes}
        devices, batch = fields.pop("devices"), fields.pop("global_batch")
        shared = fields["tensor"] * fields["pipeline"] * fields["context"]
        if devices % shared:
            raise SizeError(
                f"{devices:,} devices are no multiple of tensor x pipeline x context = {shared}",
                {"devices": _multiples(shared, devices)}
                | {name: _divisors(devices) for name in ("tensor", "pipeline", "context")},
            )
        data = devices // shared
        step = fields["micro_batch"] * data
        batch = batch or step
        if batch % step:
            raise SizeError(
                f"global batch {batch:,} does not divide by micro-batch {fields['micro_batch']} x "
                f"data {data}",
                {"global_batch": _multiples(step, batch), "micro_batch": _divisors(batch)},
            )
        return Plan(**fields, data=data, accumulation=batch // step)


def _multiples(size: int, near: int) -> list[int]:
    """The multiples of a size below and above a number."""
    lower = near // size * size
    return [n for n in (lower, lower + size) if n]


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


@dataclass(frozen=True)
class _Place:
    device: Device
    system: System | None


def _places(devices: list[str], names: list[str], *, repeats: bool) -> list[_Place]:
    """Where plans run: named systems, or devices in their default systems."""
    if bool(devices) == bool(names):
        raise ProblemError(
            "name a device (-d h100-sxm) or a system (--system dgx-h100), one of them"
        )
    machines = [systems.load(name) for text in names for name in known.names(text)]
    unique = list({system.slug: system for system in machines}.values())
    return [
        *(_Place(device, None) for device in known.devices(devices, repeats=repeats)),
        *(_Place(load(system.device), system) for system in (machines if repeats else unique)),
    ]


def _steps(
    network: Network, grid: _Grid, places: list[_Place], dask: str | None
) -> tuple[list[Step], list[tuple[str, str]]]:
    """Steps of the plans; for each impossible plan, its label and the reason."""
    plans = grid.count(places)
    if plans > MOST:
        raise ProblemError(f"{plans:,} plans are more than {MOST:,}; narrow a range")
    steps: list[Step] = []
    refused: list[tuple[str, str]] = []
    for place, candidates in grid.plans(places):
        prefix = [(place.system or place.device).slug] if len(places) > 1 else []
        for words, answer in _answers(network, grid, candidates, place, dask):
            if isinstance(answer, str):
                refused.append((", ".join(filter(None, [*prefix, words])), answer))
            else:
                steps.append(answer)
    return steps, refused


def _answers(
    network: Network,
    grid: _Grid,
    candidates: list[_Candidate],
    place: _Place,
    dask: str | None,
) -> Iterator[tuple[str, Step | str]]:
    """The label of each plan with its step in a place, or with the reason why there is none."""
    from perfmodel.analysis.plans import steps

    plans = [plan for _, _, plan in candidates if isinstance(plan, Plan)]
    answers = iter(steps((network, place.device, place.system), plans, dask=dask))
    for words, sizes, plan in candidates:
        answer = next(answers) if isinstance(plan, Plan) else plan
        if isinstance(answer, SizeError):
            answer = answer.those(partial(_check, network, grid, place, sizes))
        yield words, answer if isinstance(answer, Step) else str(answer)


def _check(
    network: Network, grid: _Grid, place: _Place, sizes: dict[str, Any], name: str, size: int
) -> None:
    """Raise `PerfmodelError` where a plan with another size is impossible too."""
    from perfmodel.training.step import check

    check(network, grid.plan({**sizes, name: size}), place.device, place.system)


def _single(step: Step, form: str, convention: str, format: str | None, output: str | None) -> None:
    report = render.data([step], []) if form == "json" else render.single(step, convention)
    emit(report, format, output)
    if not step.memory.fits:
        say(f"perfmodel: the plan {render.fit(step)}")


def _draw(steps: list[Step], path: str, *, several: bool) -> None:
    """A chart of a grid of plans, or of one plan's pipeline."""
    from perfmodel.render.chart import chart_suffix, save
    from perfmodel.render.timeline import timeline_chart
    from perfmodel.render.tradeoff import tradeoff_chart

    chart_suffix(path)
    if several:
        save(tradeoff_chart(steps), path)
    elif steps and steps[0].timeline is not None:
        save(timeline_chart(steps[0].timeline), path)
    else:
        raise ProblemError(
            "one plan without a pipeline has no timeline; give lists for a chart of plans, or "
            "--pipeline 2"
        )
    say(f"wrote {path}")


def _fastest(steps: list[Step]) -> list[Step]:
    """For each number of each device the fastest plan that fits; if none fits, the one that lacks
    the least memory."""
    best: dict[tuple[str, int], Step] = {}
    for step in steps:
        key = step.device, step.plan.devices
        best[key] = min(best.get(key, step), step, key=_rank)
    order = list(dict.fromkeys(step.device for step in steps))
    return sorted(best.values(), key=lambda step: (order.index(step.device), step.plan.devices))


def _rank(step: Step) -> tuple[bool, float, float]:
    """Sort key, less is better: plans that fit, then least memory lacking, then least time."""
    return not step.memory.fits, step.memory.lacking_bytes, 1 / step.tokens_per_second
