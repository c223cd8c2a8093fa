"""What `perfmodel infer` says beside loads: what fits, what a draft is worth, the best plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from perfmodel.cli import ranges
from perfmodel.cli.combining import Grid
from perfmodel.cli.deployments import Deployments, Lists
from perfmodel.cli.leftout import Asked
from perfmodel.cli.loads import Load
from perfmodel.cli.progress import progress
from perfmodel.errors import ProblemError
from perfmodel.hardware import System
from perfmodel.networks.network import Network
from perfmodel.render import Report, serving
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.engine import load as load_engine
from perfmodel.serving.queue import trace
from perfmodel.serving.queue.loop import simulate
from perfmodel.serving.queue.outcome import Outcome
from perfmodel.serving.queue.traffic import Arrivals, Traffic
from perfmodel.serving.search import Demand, Search, front, plans, search
from perfmodel.serving.served import Served
from perfmodel.serving.speculative import Speculation, best
from perfmodel.serving.steps import Steps
from perfmodel.serving.targets import Targets

Drafted = tuple[Deployment, int, float, Speculation]
"""A deployment, tokens in its cache, the chance of acceptance, and what drafts are worth."""
Simulated = tuple[Deployment, float, Outcome]
"""A deployment, the size of its load, and what clients saw."""


def simulated(deployments: Deployments, load: Load, traffic: Traffic, targets: Targets) -> Report:
    """Requests one by one, drawn or of a trace, and what of them meets the targets."""
    if traffic.arrivals is None and load.kind not in ("rate", "concurrency"):
        raise ProblemError("--requests needs to know when they come; give --rate or --users")
    if traffic.arrivals is not None and load.kind != "static batch":
        raise ProblemError("a trace has its own arrivals; drop --rate and --users")
    recorded = trace.read(traffic.arrivals, traffic.requests or 0) if traffic.arrivals else None

    def questions(plan: Deployment, lists: Lists) -> Iterator[Asked[list[Simulated]]]:
        if plan.cached_outside:
            raise ProblemError("requests one by one are cached on the device; drop --cached-at")
        steps = Steps(plan)

        def answer(size: float, arrivals: Arrivals) -> list[Simulated]:
            return [(plan, size, simulate(steps, arrivals))]

        if recorded is not None:
            yield "", partial(answer, 0.0, recorded)
            return
        for size, isl, osl, cached in product(
            *(lists[x] for x in ("load", "isl", "osl", "cached"))
        ):
            clients = int(size) if load.kind == "concurrency" else 0
            arrivals = traffic.arriving(
                isl, osl, rate=size, clients=clients, cached=cached, vary=load.vary
            )
            yield f"{load.kind} {size:g}, isl {isl:,}, osl {osl:,}", partial(answer, size, arrivals)

    answers, refused = deployments.answers(questions)
    kind = "trace" if recorded is not None else load.kind
    return serving.simulated(answers, kind, targets, refused)


_SERVER = "vllm"
"""The engine of a search that names none: the ideal one has no command."""


def searched(
    network: Network, choices: Lists, system: System | None, load: Load, targets: Targets,
    asked: Search,
) -> tuple[Report, Sequence[Served]]:  # fmt: skip
    """The best plans under targets, or their Pareto front, and the loads of the front."""
    grid = Grid({**load.lengths, "load": load.sizes})
    if len(grid) > 1:
        raise ProblemError("--plan searches for one load; give one size and one of each length")
    if load.kind == "full" or load.batch is not None:
        raise ProblemError("--plan asks for --users or --rate, or for neither: as many as can be")
    (load_asked,) = grid
    demand = Demand(
        load_asked["isl"], load_asked["osl"], targets, load.statistic, load.vary,
        load_asked["cached"], load_asked["load"] if load.concurrency else 0.0,
        load_asked["load"] if load.rate else 0.0, asked.price,
    )  # fmt: skip
    if asked.price is not None:
        for device in choices["device"]:
            asked.price.of(device)
    tensors = choices["tensor"] if list(choices["tensor"]) != [1] else ()
    bases: list[Deployment] = []
    names = ("device", "engine", "cache", "cached_at", "disk_rate")
    for device, engine, cache, place, rate in product(*(choices[name] for name in names)):
        server = load_engine(_SERVER) if engine.name == "ideal" else engine
        narrow = ["fp8"] if "fp8" in device.matrix_types and not network.weights else []
        weights = ["", *narrow] if list(choices["weights"]) == [""] else choices["weights"]
        bases += [
            Deployment(
                network, device, server, w, cache, system=system, cached_at=place, disk_rate=rate
            )
            for w in weights
        ]
    candidates = [Steps(plan) for plan in plans(network, bases, asked.gpus, tensors)]
    with progress("plans") as report:
        options, misses, loads = search(candidates, demand, asked.gpus, report)
    meeting = front(loads, targets)
    if asked.plan == "front":
        return serving.report(meeting, terms=False), meeting
    return serving.options(options, misses, demand, asked.gpus, len(loads)), meeting


def fitting(deployments: Deployments, load: Load, question: str) -> Report:
    """What fits, and every term of the memory."""
    plans, refused = deployments.answers(lambda plan, _load: [("", lambda: [plan])])
    sizes = (
        [i + o for i, o in product(load.isl, load.osl)]
        if question == "batch"
        else load.batches("--fit context")
    )
    return serving.fitting(plans, question, sizes, refused)


def drafted(deployments: Deployments, load: Load, draft: Network, accept: str) -> Report:
    """The best number of drafts for each batch and chance that one is accepted.

    Requests are in the middle of their answer: the prompt and half of the answer are cached.
    """
    sizes = load.batches("--draft")
    fault = "is no chance; write 0 to 1, such as 0.7"
    chances = ranges.numbers(accept, "--accept", lambda chance: 0.0 <= chance <= 1.0, fault)
    lengths = [(i, o // 2) for i, o in product(load.isl, load.osl)]

    def questions(plan: Deployment, _load: Lists) -> Iterator[Asked[list[Drafted]]]:
        usual = plan.weights == replace(plan, weights="").weights  # then the draft has its own too
        weights = "" if usual else plan.weights
        draft_plan = replace(plan, network=draft, weights=weights, images=0)

        def answer(tokens: int, past: int, size: int, chance: float) -> list[Drafted]:
            target, small = (Steps(each.reading(tokens)[0]) for each in (plan, draft_plan))
            return [(plan, past, chance, best(target, small, chance, size, past))]

        for (tokens, half), size, chance in product(lengths, sizes, chances):
            past = plan.reading(tokens)[1] + half
            label = f"batch {size}, past {past:,}, accept {chance:g}"
            yield label, partial(answer, tokens, past, size, chance)

    answers, refused = deployments.answers(questions)
    return serving.drafts(answers, draft.name, refused)
