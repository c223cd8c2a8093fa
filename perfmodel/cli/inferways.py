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
from perfmodel.render import Report, serving, servingways

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
    found, refused = deployments.answers(lambda one, _load: [("", lambda: [one])])
    if what == "batch":
        lengths = [i + o for i in tokens[0].tolist() for o in tokens[1].tolist()]
        return serving.fitting_batch_report(found, lengths, refused)
    _of_batches(kind, "--fit context")
    return serving.fitting_context_report(found, [int(size) for size in sizes], refused)


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
    _of_batches(kind, "--draft")
    chances = [_chance(part) for part in accept.split(",")]
    past = [i + o // 2 for i in tokens[0].tolist() for o in tokens[1].tolist()]

    def parts(one: Deployment, _load: Load) -> Iterator[Asked[list[Drafted]]]:
        from perfmodel.serving.speculative import best
        from perfmodel.serving.steps import Steps

        own = one.weights == replace(one, weights="").weights  # then the draft has its own too
        other = replace(one, network=draft, weights="" if own else one.weights)
        target, small = Steps(one), Steps(other)

        def answer(length: int, size: int, chance: float) -> list[Drafted]:
            return [(one, length, chance, best(target, small, chance, size, length))]

        for length, size, chance in product(past, map(int, sizes), chances):
            label = f"batch {size}, past {length:,}, accept {chance:g}"
            yield label, partial(answer, length, size, chance)

    found, refused = deployments.answers(parts)
    return servingways.drafts(found, draft.name, refused)


def pooled(deployments: Deployments, tokens: Sequence[np.ndarray]) -> Report:
    """Prompts and tokens on devices of their own, in balance."""
    lengths = [(i, o) for i in tokens[0].tolist() for o in tokens[1].tolist()]

    def parts(
        one: Deployment, _load: Load
    ) -> Iterator[Asked[list[tuple[Deployment, int, int, Pools]]]]:
        from perfmodel.serving.disaggregated import pools
        from perfmodel.serving.steps import Steps

        steps = Steps(one)

        def answer(isl: int, osl: int) -> list[tuple[Deployment, int, int, Pools]]:
            return [(one, isl, osl, pools(steps, steps, isl, osl))]

        for isl, osl in lengths:
            yield f"isl {isl:,}, osl {osl:,}", partial(answer, isl, osl)

    found, refused = deployments.answers(parts)
    return servingways.pools(found, refused)


def _of_batches(kind: str, option: str) -> None:
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
