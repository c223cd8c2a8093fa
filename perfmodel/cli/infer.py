"""`perfmodel infer NETWORK`: a served network, its latency and throughput, and what fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Annotated, Any

from perfmodel.cli import completing, known, spellings
from perfmodel.cli.arguments import Devices, Learned, NoLearned
from perfmodel.cli.build import Values, asking_for, command
from perfmodel.cli.combining import Zip
from perfmodel.cli.deployments import Deployments, Lists
from perfmodel.cli.leftout import Asked
from perfmodel.cli.loads import Load
from perfmodel.cli.networkoptions import NamedNetwork
from perfmodel.cli.output import PANEL, Shown, say
from perfmodel.cli.progress import waiting
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.fieldoption import PLAN, FieldOption
from perfmodel.hardware import System, systems
from perfmodel.render import Report, serving
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.engine import Engine
from perfmodel.serving.served import Served, serve
from perfmodel.serving.steps import Steps

_MOST = 20_000
"""Limit on the loads of a command, over all devices and engines."""
_QUESTION = "Other questions"
"""Heading of the options that show something else than loads."""


@dataclass(frozen=True)
class Target:
    """What is served, and where."""

    network: NamedNetwork
    """The network."""
    device: Devices
    """The devices."""


@dataclass(frozen=True)
class Question:
    """How lists combine, and what is shown of the deployments."""

    learned: Learned = None
    """File of corrections."""
    no_learned: NoLearned = False
    """Whether nothing is corrected."""
    pairs: Zip = False
    """Whether lists are paired element by element."""
    overlap: Annotated[bool, FieldOption(PLAN, spellings=("--overlap", "--two-batch-overlap"))] = (
        False
    )
    """Run each step as two halves in turn: one computes while rows of the other are on their way to
    experts of other copies (SGLang, vLLM)."""
    system: Annotated[
        System | None,
        FieldOption(PLAN, "NAME", single=True, read=systems.load, complete=completing.systems),
    ] = None
    """System that joins the devices (perfmodel list systems) [default: the device's usual one]."""
    fit: Annotated[str | None, FieldOption(_QUESTION, "WHAT")] = None
    """Show the largest batch or context that fits, with every term of the memory."""
    draft: Annotated[
        str | None, FieldOption(_QUESTION, "NETWORK", complete=completing.networks)
    ] = None
    """Draft network for speculative decoding: show the best number of proposed tokens, and the
    speed-up."""
    accept: Annotated[str, FieldOption(_QUESTION, "CHANCES")] = "0.7"
    """Probability that a draft's token is accepted, with commas: 0.6,0.7,0.8."""
    pools: Annotated[bool, FieldOption(_QUESTION)] = False
    """Prefill and decode on separate, balanced pools of devices."""
    terms: Annotated[bool, FieldOption(PANEL)] = False
    """Show the time between tokens by class of operation."""
    chart: Annotated[str | None, FieldOption(PANEL, "FILE")] = None
    """Chart of throughput against latency (.svg, .pdf, .png)."""
    operators: Annotated[str | None, FieldOption(PANEL, "FILE")] = None
    """Chart of time by operation (.svg, .pdf, .png)."""

    def __post_init__(self) -> None:
        for path in filter(None, (self.chart, self.operators)):
            from perfmodel.render.chart import chart_suffix

            chart_suffix(path)

    def other(self, load: Load) -> str:
        """The option that asks for something else than loads; empty without one.

        Raises `ProblemError` for options that do not go together.
        """
        questions = {"fit": self.fit, "draft": self.draft, "pools": self.pools}
        names = [f"--{name}" for name, value in questions.items() if value]
        if not names:
            return ""
        of_loads = {
            "terms": self.terms,
            "chart": self.chart,
            "operators": self.operators,
            "cached": load.cached != "0",
            "vary": load.vary,
            "statistic": load.statistic != "mean",
        }
        names += [f"--{name}" for name, value in of_loads.items() if value]
        if len(names) > 1:
            raise ProblemError(f"{names[0]} and {names[1]} do not go together; drop one")
        if self.pairs and (
            "," in self.accept
            or any(len(values) > 1 for values in (load.sizes, *load.lengths.values()))
        ):
            raise ProblemError(f"--zip with {names[0]} pairs devices and plans; give one load")
        return names[0]


@asking_for(Deployment, without=("network", "device", "system"))
def infer(target: Target, load: Load, values: Values, question: Question, shown: Shown) -> None:
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
    choices = {"device": known.devices(target.device, repeats=question.pairs), **values()}
    if question.overlap:
        choices["engine"] = _overlap_engines(choices)
    deployments = Deployments(
        target.network,
        choices,
        question.system,
        {"load": load.sizes, **load.lengths},
        question.pairs,
    )
    option = question.other(load)
    if option:
        shown.emit(_answer(option, deployments, load, question))
        return
    deployments.loads.check(_MOST, "loads")
    with waiting("predicting loads"):
        loads, refused = deployments.answers(partial(_loads, load))
    shown.emit(serving.report(loads, refused, terms=question.terms))
    _draw(question, loads)


def _answer(option: str, deployments: Deployments, load: Load, question: Question) -> Report:
    """The answer to another question than loads."""
    from perfmodel.cli import inferways

    if option == "--fit":
        return inferways.fitting(deployments, load, str(question.fit))
    if option == "--draft":
        draft = spellings.network(str(question.draft))
        return inferways.drafted(deployments, load, draft, question.accept)
    return inferways.pooled(deployments, load)


def _draw(question: Question, loads: Sequence[Served]) -> None:
    """Write the charts that are asked for."""
    if question.chart is question.operators is None:
        return
    from perfmodel.render.bars import Bars
    from perfmodel.render.chart import save
    from perfmodel.render.dots import Dots
    from perfmodel.render.html.figures import chart_of

    report = serving.report(loads, terms=True)
    for path, kind in ((question.chart, Dots), (question.operators, Bars)):
        if path is not None:
            save(chart_of(report, kind), path)
            say(f"wrote {path}")


def _overlap_engines(choices: Mapping[str, Sequence[Any]]) -> list[Engine]:
    """The engines with --overlap. Raises `ProblemError` where there is nothing to overlap."""
    if not any(
        expert > 1 and copies % expert == 0
        for expert, copies in product(choices["expert"], choices["data"])
    ):
        raise ProblemError(
            "--overlap hides exchanges between copies that share experts, and there are none; "
            "give both, such as --expert 8 --data 8, or drop --overlap"
        )
    return [engine.overlapping() for engine in choices["engine"]]


def _loads(load: Load, deployment: Deployment, lists: Lists) -> Iterator[Asked[list[Served]]]:
    """The loads of a deployment: those of equal lengths together, or each alone where one of them
    is impossible."""
    ask = partial(serve, Steps(deployment), load.kind, vary=load.vary, statistic=load.statistic)
    several = len(lists["isl"]) * len(lists["osl"]) > 1
    for prompt, answer, part in product(lists["isl"], lists["osl"], lists["cached"]):
        words = [f"isl {prompt:,}, osl {answer:,}"] if several else []
        words += [f"cached {part:g}"] if len(lists["cached"]) > 1 else []
        sizes = lists["load"]
        try:
            group = ask(sizes, prompt, answer, cached=part)
        except PerfmodelError:
            for size in sizes:
                label = [*words, f"{load.kind} {size:g}"] if len(sizes) > 1 else words
                yield ", ".join(label), partial(ask, [size], prompt, answer, cached=part)
        else:
            yield ", ".join(words), partial(list, group)


app = command(infer)
