"""What `perfmodel infer` says beside loads: what fits, what a draft is worth, separate pools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from perfmodel.cli import known
from perfmodel.cli.deployments import Deployments, Load
from perfmodel.cli.leftout import Asked
from perfmodel.errors import ProblemError
from perfmodel.plaintext import quoted
from perfmodel.render import Report, serving

if TYPE_CHECKING:
    import numpy as np

    from perfmodel.networks.network import Network
    from perfmodel.serving.deployment import Deployment
    from perfmodel.serving.disaggregated import Pools
    from perfmodel.serving.speculative import Speculation


Drafted = tuple["Deployment", int, float, "Speculation"]
"""A deployment, tokens in its cache, the chance of acceptance, and what drafts are worth."""


def fitting(
    deployments: Deployments,
    what: str,
    kind: str,
    sizes: Sequence[float],
    tokens: Sequence[np.ndarray],
) -> Report:
    """What fits, and every term of the memory."""
    known.named("question of --fit", what, ("batch", "context"))
    plans, refused = deployments.answers(lambda plan, _load: [("", lambda: [plan])])
    if what == "batch":
        lengths = [i + o for i in tokens[0].tolist() for o in tokens[1].tolist()]
        return serving.fitting_batches(plans, lengths, refused)
    _check_batches(kind, "--fit context")
    return serving.fitting_contexts(plans, [int(size) for size in sizes], refused)


def drafted(
    deployments: Deployments,
    draft: Network,
    accept: str,
    kind: str,
    sizes: Sequence[float],
    tokens: Sequence[np.ndarray],
) -> Report:
    """The best number of drafts for each batch and chance that one is accepted.

    Requests are in the middle of their answer: the prompt and half of the answer are cached.
    """
    _check_batches(kind, "--draft")
    chances = [_chance(part) for part in accept.split(",")]
    past = [i + o // 2 for i in tokens[0].tolist() for o in tokens[1].tolist()]

    def parts(plan: Deployment, _load: Load) -> Iterator[Asked[list[Drafted]]]:
        from perfmodel.serving.speculative import best
        from perfmodel.serving.steps import Steps

        usual = plan.weights == replace(plan, weights="").weights  # then the draft has its own too
        draft_plan = replace(plan, network=draft, weights="" if usual else plan.weights)
        target, small = Steps(plan), Steps(draft_plan)

        def answer(length: int, size: int, chance: float) -> list[Drafted]:
            return [(plan, length, chance, best(target, small, chance, size, length))]

        for length, size, chance in product(past, map(int, sizes), chances):
            label = f"batch {size}, past {length:,}, accept {chance:g}"
            yield label, partial(answer, length, size, chance)

    answers, refused = deployments.answers(parts)
    return serving.drafts(answers, draft.name, refused)


def pooled(deployments: Deployments, tokens: Sequence[np.ndarray]) -> Report:
    """Prompts and tokens on devices of their own, in balance."""
    lengths = [(i, o) for i in tokens[0].tolist() for o in tokens[1].tolist()]

    def parts(
        plan: Deployment, _load: Load
    ) -> Iterator[Asked[list[tuple[Deployment, int, int, Pools]]]]:
        from perfmodel.serving.disaggregated import pools
        from perfmodel.serving.steps import Steps

        steps = Steps(plan)

        def answer(isl: int, osl: int) -> list[tuple[Deployment, int, int, Pools]]:
            return [(plan, isl, osl, pools(steps, steps, isl, osl))]

        for isl, osl in lengths:
            yield f"isl {isl:,}, osl {osl:,}", partial(answer, isl, osl)

    answers, refused = deployments.answers(parts)
    return serving.pools(answers, refused)


def _check_batches(kind: str, option: str) -> None:
    if kind not in ("static batch", "concurrency"):
        raise ProblemError(f"{option} is of --batch or --concurrency; give one")


def _chance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise ProblemError(f"--accept {quoted(text)} is no chance; write 0 to 1, such as 0.7")
    return value
