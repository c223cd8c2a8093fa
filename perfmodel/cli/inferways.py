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
from perfmodel.networks.network import Network
from perfmodel.render import Report, serving
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.disaggregated import Pools, pools
from perfmodel.serving.speculative import Speculation, best
from perfmodel.serving.steps import Steps

Drafted = tuple[Deployment, int, float, Speculation]
"""A deployment, tokens in its cache, the chance of acceptance, and what drafts are worth."""
Pooled = tuple[Deployment, int, int, Pools]
"""A deployment, input and output length, and its pools."""


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
