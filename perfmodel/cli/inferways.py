"""What `perfmodel infer` says beside loads: what fits, what a draft is worth, separate pools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product

from perfmodel.cli import ranges
from perfmodel.cli.deployments import Deployments, Lists
from perfmodel.cli.leftout import Asked
from perfmodel.cli.loads import Load
from perfmodel.errors import ProblemError
from perfmodel.networks.network import Network
from perfmodel.render import Report, serving
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.disaggregated import Pools, pools
from perfmodel.serving.queue import trace
from perfmodel.serving.queue.loop import simulate
from perfmodel.serving.queue.outcome import Outcome
from perfmodel.serving.queue.traffic import Arrivals, Traffic
from perfmodel.serving.speculative import Speculation, best
from perfmodel.serving.steps import Steps
from perfmodel.serving.targets import Targets

Drafted = tuple[Deployment, int, float, Speculation]
"""A deployment, tokens in its cache, the chance of acceptance, and what drafts are worth."""
Pooled = tuple[Deployment, int, int, Pools]
"""A deployment, input and output length, and its pools."""

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


def fitting(deployments: Deployments, load: Load, question: str) -> Report:
    """What fits, and every term of the memory."""
    plans, refused = deployments.answers(lambda plan, _load: [("", lambda: [plan])])
    if question == "batch":
        lengths = [i + o for i, o in product(load.isl, load.osl)]
        return serving.fitting_batches(plans, lengths, refused)
    return serving.fitting_contexts(plans, load.batches("--fit context"), refused)


def drafted(deployments: Deployments, load: Load, draft: Network, accept: str) -> Report:
    """The best number of drafts for each batch and chance that one is accepted.

    Requests are in the middle of their answer: the prompt and half of the answer are cached.
    """
    sizes = load.batches("--draft")
    fault = "is no chance; write 0 to 1, such as 0.7"
    chances = ranges.numbers(accept, "--accept", lambda chance: 0.0 <= chance <= 1.0, fault)
    past = [i + o // 2 for i, o in product(load.isl, load.osl)]

    def questions(plan: Deployment, _load: Lists) -> Iterator[Asked[list[Drafted]]]:
        usual = plan.weights == replace(plan, weights="").weights  # then the draft has its own too
        draft_plan = replace(plan, network=draft, weights="" if usual else plan.weights)
        target, small = Steps(plan), Steps(draft_plan)

        def answer(length: int, size: int, chance: float) -> list[Drafted]:
            return [(plan, length, chance, best(target, small, chance, size, length))]

        for length, size, chance in product(past, sizes, chances):
            label = f"batch {size}, past {length:,}, accept {chance:g}"
            yield label, partial(answer, length, size, chance)

    answers, refused = deployments.answers(questions)
    return serving.drafts(answers, draft.name, refused)


def pooled(deployments: Deployments, load: Load) -> Report:
    """Prompts and tokens on devices of their own, in balance."""

    def questions(plan: Deployment, _load: Lists) -> Iterator[Asked[list[Pooled]]]:
        steps = Steps(plan)

        def answer(isl: int, osl: int) -> list[Pooled]:
            return [(plan, isl, osl, pools(steps, steps, isl, osl))]

        for isl, osl in product(load.isl, load.osl):
            yield f"isl {isl:,}, osl {osl:,}", partial(answer, isl, osl)

    answers, refused = deployments.answers(questions)
    return serving.pools(answers, refused)
