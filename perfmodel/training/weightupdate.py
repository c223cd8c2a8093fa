"""The update at the end of a step: the optimiser's kernels, timed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from perfmodel.graph.asks import Ask, answers
from perfmodel.graph.tree import Tree
from perfmodel.hardware import Device
from perfmodel.networks.networktime import Held, Kept
from perfmodel.networks.segment import Segment
from perfmodel.networks.value import Weight
from perfmodel.operators import operator_of
from perfmodel.timing.constants import Constants
from perfmodel.training import optimisers
from perfmodel.training.parameter import Parameter
from perfmodel.training.plan import Plan
from perfmodel.training.precision import Precision

Parts = Sequence[tuple[Segment, int]]
"""Segments with their numbers of layers."""


def parameters_of(weights: Iterable[tuple[Weight, int]]) -> tuple[Parameter, ...]:
    """Parameters as optimisers see them: rows are a product's outputs."""
    return tuple(
        Parameter(weight.name, tuple(reversed(weight.shape)), weight.kind, weight.count * repeat)
        for weight, repeat in weights
        if weight.trains and not weight.shared
    )


def updates(
    stages: Sequence[tuple[Parts, Plan]], device: Device, constants: Constants | None
) -> list[tuple[Tree, ...]]:
    """Device seconds of each kind of kernel of the optimiser, for the stages of several plans,
    which are timed together; none where the host updates.

    Where states are sharded, each copy updates its share; experts' weights are sharded over the
    devices with that expert.
    """
    shares = [
        [
            ((*_setting(plan), own, Held(device)), copies)
            for own, copies in ([] if plan.offloads else _shared(parts, plan))
        ]
        for parts, plan in stages
    ]
    keys = [key for pairs in shares for key, _ in pairs]
    # Constants are no key of a cache.
    kept = _KERNELS if constants is None else Kept[_Key, tuple[Tree, ...]](0)
    kernels = iter(kept.of(keys, partial(_kernels, constants=constants)))
    return [
        tuple(spread.over(copies) for _, copies in pairs for spread in next(kernels))
        for pairs in shares
    ]


def host_traffic_bytes(parts: Parts, plan: Plan) -> float:
    """Bytes that the host's memory moves in the update of one device's share: every stream of the
    optimiser once, with the copy that returns (DeepSpeed's CPUAdam). The norm of the gradients is
    taken on the device."""
    optimiser = optimisers.load(plan.optimiser)
    return sum(
        optimiser.traffic_bytes(parameters, plan.recipe) / copies
        for parameters, copies in _shared(parts, plan)
    )


def _shared(parts: Parts, plan: Plan) -> list[tuple[tuple[Parameter, ...], int]]:
    """Parameters of the layers, and the devices that share their update; none without an
    optimiser."""
    if plan.optimiser == "none":
        return []
    weights = [(weight, count) for segment, count in parts for weight in segment.weights]
    if not plan.zero or plan.copies == plan.expert_copies:
        return [(parameters_of(weights), plan.copies if plan.zero else 1)]
    return [
        (parameters_of(pair for pair in weights if pair[0].expert is expert), copies)
        for expert, copies in ((False, plan.copies), (True, plan.expert_copies))
    ]


def _setting(plan: Plan) -> tuple[str, int, Precision, str]:
    """The optimiser, tokens, recipe and style of an update."""
    # Only statistics over tokens depend on the number of tokens.
    tokens = plan.tokens if optimisers.load(plan.optimiser).needs_tokens else 0
    return plan.optimiser, tokens, plan.recipe, plan.setting.stack.optimiser


_Key = tuple[str, int, Precision, str, tuple[Parameter, ...], Held[Device]]
_KERNELS = Kept[_Key, tuple[Tree, ...]](256)


def _kernels(keys: Sequence[_Key], constants: Constants | None) -> list[tuple[Tree, ...]]:
    """The update of all parameters of each key on one device."""
    work = [
        optimisers.load(optimiser).problems(
            parameters, precision, style=style, clip="apart", tokens=tokens
        )
        for optimiser, tokens, precision, style, parameters, _ in keys
    ]
    questions = [
        Ask(entry.name, entry.problem, entry.schedule, None, (), {})
        for own in work
        for entry in own
    ]
    device = keys[0][-1].own
    replies = iter(answers(questions, device, harness="kernel", constants=constants))
    return [
        tuple(
            Tree.of(
                entry.name,
                "optimiser",
                operator_of(entry.problem).family(entry.problem),
                next(replies),
                entry.repeat * float(entry.share_of_steps),
            )
            for entry in own
        )
        for own in work
    ]
