"""The update at the end of a step: the optimiser's kernels, timed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from typing import Any

from perfmodel.graph.asks import Ask, answers
from perfmodel.graph.tree import Tree
from perfmodel.hardware import Device
from perfmodel.networks.networktime import Held
from perfmodel.networks.segment import Segment
from perfmodel.networks.value import Weight
from perfmodel.operators import operator_of
from perfmodel.timing.constants import Constants
from perfmodel.training import optimisers
from perfmodel.training.parameter import Parameter
from perfmodel.training.plan import Plan
from perfmodel.training.precision import Precision


def parameters_of(weights: Iterable[tuple[Weight, int]]) -> tuple[Parameter, ...]:
    """Parameters as optimisers see them: rows are a product's outputs."""
    return tuple(
        Parameter(weight.name, tuple(reversed(weight.shape)), weight.kind, weight.count * repeat)
        for weight, repeat in weights
        if weight.trains and not weight.shared
    )


def update(
    parts: Sequence[tuple[Segment, int]],
    plan: Plan,
    device: Device,
    constants: Constants | None,
) -> tuple[Tree, ...]:
    """Device seconds of each kind of kernel of the optimiser; segments come with their layers.

    Where states are sharded, each copy updates its share; experts' weights are sharded over the
    devices with that expert.
    """
    if plan.optimiser == "none":
        return ()
    # Constants are no key of a cache.
    kernels = _kernels if constants is None else partial(_kernels.__wrapped__, constants=constants)
    # Only statistics over tokens depend on the number of tokens.
    tokens = plan.tokens if optimisers.load(plan.optimiser).needs_tokens else 0
    setting = (plan.optimiser, tokens, plan.recipe, plan.setting.stack.optimiser)
    return tuple(
        spread.over(copies)
        for parameters, copies in _shared(parts, plan)
        for spread in kernels(*setting, parameters, Held(device))
    )


def host_traffic_bytes(parts: Sequence[tuple[Segment, int]], plan: Plan) -> float:
    """Bytes that the host's memory moves in the update of one device's share: every stream of the
    optimiser once, with the copy that returns (DeepSpeed's CPUAdam). The norm of the gradients is
    taken on the device."""
    optimiser = optimisers.load(plan.optimiser)
    return sum(
        optimiser.traffic_bytes(parameters, plan.recipe) / copies
        for parameters, copies in _shared(parts, plan)
    )


def _shared(
    parts: Sequence[tuple[Segment, int]], plan: Plan
) -> list[tuple[tuple[Parameter, ...], int]]:
    """Parameters of the layers, and the devices that share their update."""
    weights = [(weight, count) for segment, count in parts for weight in segment.weights]
    if not plan.zero or plan.copies == plan.expert_copies:
        return [(parameters_of(weights), plan.copies if plan.zero else 1)]
    return [
        (parameters_of(pair for pair in weights if pair[0].expert is expert), copies)
        for expert, copies in ((False, plan.copies), (True, plan.expert_copies))
    ]


@lru_cache(maxsize=256)
def _kernels(
    optimiser: str,
    tokens: int,
    precision: Precision,
    style: str,
    parameters: tuple[Parameter, ...],
    key: Held[Device],
    constants: Any = None,
) -> tuple[Tree, ...]:
    """The update of all parameters on one device."""
    work = optimisers.load(optimiser).problems(
        parameters, precision, style=style, clip="apart", tokens=tokens
    )
    questions = [Ask(entry.name, entry.problem, entry.schedule, None, (), {}) for entry in work]
    replies = answers(questions, key.own, harness="kernel", constants=constants)
    return tuple(
        Tree.of(
            entry.name,
            "optimiser",
            operator_of(entry.problem).family(entry.problem),
            reply,
            entry.repeat * float(entry.share_of_steps),
        )
        for entry, reply in zip(work, replies, strict=True)
    )
