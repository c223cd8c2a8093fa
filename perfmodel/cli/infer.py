"""`perfmodel infer NETWORK`: a served network, its latency and throughput, and what fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perfmodel.cli import completing, known, ranges, spellings
from perfmodel.cli.arguments import Devices, NetworkName
from perfmodel.cli.build import Values, asking_for
from perfmodel.cli.combining import Zip
from perfmodel.cli.deployments import Deployments
from perfmodel.cli.leftout import Asked
from perfmodel.cli.output import PANEL, Format, Output, chosen_format, emit, say
from perfmodel.cli.progress import waiting
from perfmodel.cli.requests import (
    Batch,
    Cached,
    Concurrency,
    Isl,
    Load,
    Osl,
    Rate,
    Statistic,
    Vary,
    parts,
    requested,
)  # fmt: skip
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.fieldoption import PLAN
from perfmodel.serving.deployment import Deployment

if TYPE_CHECKING:
    from perfmodel.serving.engine import Engine
    from perfmodel.serving.served import Served

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_MOST = 20_000
"""Limit on the loads of a command, over all devices and engines."""
_TOKENS = "1k"
_QUESTION = "Other questions"
"""Heading of the options that show something else than loads."""


Engines = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAMES",
        help="Inference engines, with commas: ideal, tensorrt-llm, vllm, sglang, llama.cpp "
        "and others (perfmodel list engines).",
        autocompletion=completing.engines,
        rich_help_panel=PLAN,
    ),
]
Joined = Annotated[
    str | None,
    typer.Option(
        "--system",
        metavar="NAME",
        help="System that joins the devices (perfmodel list systems) [default: the device's "
        "usual one].",
        autocompletion=completing.systems,
        rich_help_panel=PLAN,
    ),
]
Overlap = Annotated[
    bool,
    typer.Option(
        "--overlap",
        "--two-batch-overlap",
        help="Run each step as two halves in turn: one computes while rows of the other are on "
        "their way to experts of other copies (SGLang, vLLM).",
        rich_help_panel=PLAN,
    ),
]
Fit = Annotated[
    str | None,
    typer.Option(
        "--fit",
        metavar="WHAT",
        help="Show the largest batch or context that fits, with every term of the memory.",
        rich_help_panel=_QUESTION,
    ),
]
Terms = Annotated[
    bool,
    typer.Option(
        "--terms", help="Show the time between tokens by class of operation.", rich_help_panel=PANEL
    ),
]
Draft = Annotated[
    str | None,
    typer.Option(
        "--draft",
        metavar="NETWORK",
        help="Draft network for speculative decoding: show the best number of proposed "
        "tokens, and the speed-up.",
        autocompletion=completing.networks,
        rich_help_panel=_QUESTION,
    ),
]
Accept = Annotated[
    str,
    typer.Option(
        "--accept",
        metavar="CHANCES",
        help="Probability that a draft's token is accepted, with commas: 0.6,0.7,0.8.",
        rich_help_panel=_QUESTION,
    ),
]
Pools = Annotated[
    bool,
    typer.Option(
        "--pools",
        help="Prefill and decode on separate, balanced pools of devices.",
        rich_help_panel=_QUESTION,
    ),
]
Front = Annotated[
    str | None,
    typer.Option(
        "--chart",
        metavar="FILE",
        help="Chart of throughput against latency (.svg, .pdf, .png).",
        rich_help_panel=PANEL,
    ),
]
Bars = Annotated[
    str | None,
    typer.Option(
        "--operators",
        metavar="FILE",
        help="Chart of time by operation (.svg, .pdf, .png).",
        rich_help_panel=PANEL,
    ),
]


@app.command()
@asking_for(Deployment, without=("network", "device", "engine", "system"))
def infer(
    network: NetworkName,
    *,
    device: Devices,
    isl: Isl = _TOKENS,
    osl: Osl = _TOKENS,
    batch: Batch = None,
    concurrency: Concurrency = None,
    rate: Rate = None,
    load: Load = None,
    cached: Cached = "0",
    vary: Vary = 0.0,
    statistic: Statistic = "mean",
    engine: Engines = "ideal",
    values: Values,
    pairs: Zip = False,
    overlap: Overlap = False,
    system: Joined = None,
    fit: Fit = None,
    draft: Draft = None,
    accept: Accept = "0.7",
    pools: Pools = False,
    terms: Terms = False,
    chart: Front = None,
    operators: Bars = None,
    format: Format = None,
    output: Output = None,
) -> None:
    """Predict a served network: time to first token, time between tokens, tokens a second.

    \b
    perfmodel infer llama-3-8b -d h100-sxm --batch 1:256:x2 --engine tensorrt-llm --terms
    perfmodel infer llama-3-70b -d h200-sxm --tensor 1,2,4 --load full --weights bf16,fp8
    perfmodel infer llama-3-70b -d h100,mi300x,b200 --tensor 4,8,2 --zip
    perfmodel infer qwen3-32b -d h100-sxm --tensor 2 --engine vllm --concurrency 1:256:x2
    perfmodel infer llama-3-8b -d rtx4090 --fit context --batch 1,8
    perfmodel infer llama-3-70b -d h100-sxm --tensor 4 --draft llama-3-8b --accept 0.7 --batch 1,16
    perfmodel infer llama-3-70b -d h100-sxm --tensor 4 --pools --isl 2k --osl 256 --engine vllm
    """
    from perfmodel.serving.engine import load as load_engine

    chosen_format(format, output)
    _check_charts(chart, operators)
    kind, sizes = requested(batch, concurrency, rate, load)
    tokens = [ranges.parse(text, name) for text, name in ((isl, "--isl"), (osl, "--osl"))]
    choices: dict[str, Sequence[Any]] = {
        "device": known.devices(device, repeats=pairs),
        "engine": [load_engine(each) for each in known.names(engine)],
        **values(),
    }
    if overlap:
        choices = {**choices, "engine": _overlap_engines(choices)}
    load_axes = {
        "load": sizes, "isl": tokens[0].tolist(), "osl": tokens[1].tolist(),
        "cached": parts(cached),
    }  # fmt: skip
    deployments = _deployments(network, choices, system, load_axes, pairs=pairs)
    questions = {"--fit": fit, "--draft": draft, "--pools": pools}
    if names := [name for name, value in questions.items() if value]:
        _refuse(names, terms=terms, chart=chart, operators=operators, cached=cached != "0",
                vary=vary, statistic=statistic != "mean")  # fmt: skip
        if pairs and ("," in accept or any(len(values) > 1 for values in load_axes.values())):
            raise ProblemError(f"--zip with {names[0]} pairs devices and plans; give one load")
        from perfmodel.cli import inferways

        if fit is not None:
            answer = inferways.fitting(deployments, fit, kind, sizes, tokens)
        elif draft is not None:
            small = spellings.network(draft)
            answer = inferways.drafted(deployments, small, accept, kind, sizes, tokens)
        else:
            answer = inferways.pooled(deployments, tokens)
        emit(answer, format, output)
        return
    if deployments.loads > _MOST:
        raise ProblemError(f"{deployments.loads:,} loads are more than {_MOST:,}; narrow a range")
    from perfmodel.render import serving, servingcharts

    with waiting("predicting loads"):
        loads, refused = deployments.answers(
            lambda plan, values: _loads(plan, kind, **values, vary=vary, statistic=statistic)
        )
    charts = (
        (chart, servingcharts.pareto_chart),
        (operators, servingcharts.operator_chart),
    )
    figures = [(path, draw(loads)) for path, draw in charts if path is not None]
    emit(serving.report(loads, refused, terms=terms), format, output)
    for path, figure in figures:
        from perfmodel.render.chart import save

        save(figure, path)
        say(f"wrote {path}")


def _overlap_engines(choices: Mapping[str, Sequence[Any]]) -> list[Engine]:
    """The engines with --overlap. Raises `ProblemError` where there is nothing to overlap."""
    if not any(
        expert > 1 and copies % expert == 0
        for expert in choices["expert"]
        for copies in choices["data"]
    ):
        raise ProblemError(
            "--overlap hides exchanges between copies that share experts, and there are none; "
            "give both, such as --expert 8 --data 8, or drop --overlap"
        )
    return [engine.overlapping() for engine in choices["engine"]]


def _deployments(
    network: str,
    choices: Mapping[str, Sequence[Any]],
    system: str | None,
    load: Mapping[str, Sequence[Any]],
    *,
    pairs: bool,
) -> Deployments:
    from perfmodel.hardware import systems

    machine = None if system is None else systems.load(system)
    return Deployments(spellings.network(network), choices, machine, load, pairs)


def _loads(
    deployment: Deployment,
    kind: str,
    load: Sequence[float],
    isl: Sequence[int],
    osl: Sequence[int],
    cached: Sequence[float],
    *,
    vary: float,
    statistic: str,
) -> Iterator[Asked[list[Served]]]:
    """The loads of a deployment: those of equal lengths together, or each alone where one of them
    is impossible."""
    from perfmodel.serving.served import serve
    from perfmodel.serving.steps import Steps

    steps = Steps(deployment)
    ask = partial(serve, steps, kind, vary=vary, statistic=statistic)
    for prompt, answer, part in product(isl, osl, cached):
        lengths = f"isl {prompt:,}, osl {answer:,}" if len(isl) * len(osl) > 1 else ""
        if len(cached) > 1:
            lengths = ", ".join(filter(None, [lengths, f"cached {part:g}"]))
        try:
            group = ask(load, prompt, answer, cached=part)
        except PerfmodelError:
            for size in load:
                words = f"{kind} {size:g}" if len(load) > 1 else ""
                label = ", ".join(filter(None, [lengths, words]))
                yield label, partial(ask, [size], prompt, answer, cached=part)
        else:
            yield lengths, partial(list, group)


def _refuse(questions: Sequence[str], **options: object) -> None:
    """Raise errors for options that do not combine."""
    names = [*questions, *(f"--{name}" for name, value in options.items() if value)]
    if len(names) > 1:
        raise ProblemError(f"{names[0]} and {names[1]} do not go together; drop one")


def _check_charts(*paths: str | None) -> None:
    """Check file names of charts before any work is done."""
    if any(path is not None for path in paths):
        from perfmodel.render.chart import chart_suffix

        for path in filter(None, paths):
            chart_suffix(path)
