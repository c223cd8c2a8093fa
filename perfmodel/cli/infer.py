"""`perfmodel infer NETWORK`: a served network, its latency and throughput, and what fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Annotated, Any, Literal

from perfmodel.cli.arguments import CHART, Corrected, Machines
from perfmodel.cli.build import Values, asking_for, command
from perfmodel.cli.deployments import Deployments, Lists
from perfmodel.cli.drawing import Drawing
from perfmodel.cli.leftout import Asked
from perfmodel.cli.loads import Load
from perfmodel.cli.networkoptions import NETWORK, NamedNetwork, OneSystem, Zip
from perfmodel.cli.output import PANEL, Shown
from perfmodel.cli.progress import waiting
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.fieldoption import PLAN, FieldOption
from perfmodel.networks.network import Network
from perfmodel.render import Report, serving
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.engine import Engine
from perfmodel.serving.queue.traffic import Traffic
from perfmodel.serving.search import Search
from perfmodel.serving.served import Served, serve
from perfmodel.serving.steps import Steps
from perfmodel.serving.targets import Targets

_MOST = 20_000
"""Limit on the loads of a command, over all devices and engines."""
_QUESTION = "Other questions"
"""Heading of the options that show something else than loads."""


@dataclass(frozen=True)
class Target:
    """What is served, and where."""

    network: NamedNetwork
    """The network."""
    device: Machines
    """Devices: slugs, aliases or spec files, as a100,h100 or repeated (perfmodel hardware list)."""


@dataclass(frozen=True)
class Charts(Drawing):
    """Charts of loads."""

    chart: Annotated[str | None, CHART] = None
    """Chart of throughput against latency (.svg, .pdf, .png)."""
    operators: Annotated[str | None, replace(CHART, spellings=())] = None
    """Chart of time by operation (.svg, .pdf, .png)."""

    @property
    def paths(self) -> tuple[str | None, ...]:
        """The files of both charts."""
        return self.chart, self.operators


@dataclass(frozen=True)
class Question(Corrected):
    """How lists combine, and what is shown of the deployments."""

    pairs: Zip = False
    """Whether lists are paired element by element."""
    overlap: Annotated[bool, FieldOption(PLAN, spellings=("--overlap", "--two-batch-overlap"))] = (
        False
    )
    """Run each step as two halves in turn: one computes while rows of the other are on their way to
    experts of other copies (SGLang, vLLM)."""
    system: OneSystem = None
    """System that joins the devices (perfmodel list systems) [default: the device's usual one]."""
    fit: Annotated[Literal["batch", "context"] | None, FieldOption(_QUESTION)] = None
    """Show the largest that fits, with every term of the memory."""
    draft: Annotated[Network | None, replace(NETWORK, panel=_QUESTION, argument=False, help="")] = (
        None
    )
    """Draft network for speculative decoding: show the best number of proposed tokens, and the
    speed-up."""
    accept: Annotated[str, FieldOption(_QUESTION, "CHANCES")] = "0.7"
    """Probability that a draft's token is accepted, with commas: 0.6,0.7,0.8."""
    terms: Annotated[bool, FieldOption(PANEL)] = False
    """Show the time between tokens by class of operation."""

    def other(self, load: Load, traffic: Traffic, drawing: Charts) -> str:
        """The option that asks for something else than loads; empty without one.

        Raises `ProblemError` for options that do not go together.
        """
        questions = {"fit": self.fit, "draft": self.draft}
        names = [f"--{name}" for name, value in questions.items() if value]
        queue = "--arrivals" if traffic.arrivals else "--requests" if traffic.requests else ""
        if not names and not queue:
            return ""
        of_loads: dict[str, Any] = {
            "terms": self.terms,
            "chart": drawing.chart,
            "operators": drawing.operators,
            "statistic": load.statistic != "mean",
        }
        if queue:
            names.insert(0, queue)
        else:
            of_loads |= {"cached": load.cached != "0", "vary": load.vary}
        names += [f"--{name}" for name, value in of_loads.items() if value]
        if len(names) > 1:
            raise ProblemError(f"{names[0]} and {names[1]} do not go together; drop one")
        if self.pairs and (
            "," in self.accept
            or any(len(values) > 1 for values in (load.sizes, *load.lengths.values()))
        ):
            raise ProblemError(f"--zip with {names[0]} pairs devices and plans; give one load")
        return names[0]


@asking_for(Deployment, without=("network", "device", "system", "prefill", "encoded"))
def infer(
    target: Target, load: Load, traffic: Traffic, targets: Targets, search: Search,
    values: Values, question: Question, shown: Shown, drawing: Charts,
) -> None:  # fmt: skip
    """Predict a served network: time to first token, time between tokens, tokens a second.

    \b
    perfmodel infer qwen3-32b -d h100-sxm --tensor 2 --engine vllm --concurrency 1:256:x2
    perfmodel infer llama-3-70b -d h100-sxm --tensor 4 --engine vllm --rate 1,2 --requests 10k
    perfmodel infer llama-3-70b -d h100,b200 --gpus 16 --plan auto --ttft 500ms --tpot 50ms
    perfmodel infer llama-3-8b -d rtx4090 --fit context --batch 1,8
    perfmodel infer llama-3-70b -d h100-sxm --tensor 4 --draft llama-3-8b --accept 0.7 --batch 1,16
    perfmodel infer llama-3-70b -d h100-sxm --tensor 4 --pools 2:1 --users 64 --engine vllm
    """
    devices = list(target.device)
    if not question.pairs:
        devices = list({device.slug: device for device in devices}.values())
    choices = {"device": devices, **values()}
    if question.overlap:
        choices["engine"] = _overlap_engines(choices)
    if {*choices["cached_at"]} - {"device"} and load.cached == "0":
        raise ProblemError("--cached-at is of cached tokens; give --cached 0.5")
    if search.plan is not None:
        from perfmodel.cli import inferways

        report, loads = inferways.searched(
            target.network, choices, question.system, load, targets, search
        )
        shown.emit(report)
        _draw(drawing, loads)
        return
    deployments = Deployments(
        target.network,
        choices,
        question.system,
        {"load": load.sizes, **load.lengths},
        question.pairs,
    )
    option = question.other(load, traffic, drawing)
    if option:
        with waiting("predicting"):
            report = _answer(option, deployments, load, traffic, targets, question)
        shown.emit(report)
        return
    if targets.given:
        raise ProblemError("--ttft and --tpot count requests one by one; give --requests 1000")
    deployments.loads.check(_MOST, "loads")
    with waiting("predicting loads"):
        loads, refused = deployments.answers(partial(_loads, load))
    shown.emit(serving.report(loads, refused, terms=question.terms))
    _draw(drawing, loads)


def _answer(
    option: str, deployments: Deployments, load: Load, traffic: Traffic, targets: Targets,
    question: Question,
) -> Report:  # fmt: skip
    """The answer to another question than loads."""
    from perfmodel.cli import inferways

    if option in ("--requests", "--arrivals"):
        return inferways.simulated(deployments, load, traffic, targets)
    if option == "--fit":
        return inferways.fitting(deployments, load, str(question.fit))
    assert question.draft is not None
    return inferways.drafted(deployments, load, question.draft, question.accept)


def _draw(drawing: Charts, loads: Sequence[Served]) -> None:
    """Write the charts that are asked for."""
    if not any(drawing.paths):
        return
    from perfmodel.render.html.figures import chart_of
    from perfmodel.render.spans import Spans

    report = serving.report(loads, terms=True)
    drawing.draw(lambda page: chart_of(report, page=page))
    if drawing.operators is not None:
        drawing.save(chart_of(report, Spans, drawing.page), drawing.operators)


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
