"""The update at the end of a step: the optimiser's kernels, timed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from perfmodel.graph.asks import Ask, answers
from perfmodel.graph.graphspread import Spread
from perfmodel.hardware import Device
from perfmodel.networks.networktime import Held
from perfmodel.networks.value import Weight
from perfmodel.operators import operator_of
from perfmodel.timing.constants import Constants
from perfmodel.training import optimisers
from perfmodel.training.parameter import Parameter
from perfmodel.training.plan import Plan
from perfmodel.training.precision import Precision


@dataclass(frozen=True)
class Update:
    """One update of all parameters on a device."""

    spreads: tuple[Spread, ...]
    """Device seconds of each kind of kernel, with their range."""
    launches: float
    """Kernel launches of a step."""

    @property
    def seconds(self) -> float:
        """Device time."""
        return sum(spread.seconds for spread in self.spreads)

    def shared(self, copies: int) -> Update:
        """The share of one of `copies`."""
        if copies == 1:
            return self
        spreads = (
            Spread(s.family, s.seconds / copies, s.low_seconds / copies, s.high_seconds / copies)
            for s in self.spreads
        )
        return Update(tuple(spreads), self.launches)

    def then(self, other: Update) -> Update:
        """This update followed by another one."""
        return Update((*self.spreads, *other.spreads), self.launches + other.launches)


def parameters_of(weights: Iterable[tuple[Weight, int]]) -> tuple[Parameter, ...]:
    """Parameters as optimisers see them: rows are a product's outputs."""
    return tuple(
        Parameter(weight.name, tuple(reversed(weight.shape)), weight.kind, weight.count * repeat)
        for weight, repeat in weights
        if weight.trains and not weight.shared
    )


def update(
    weights: Sequence[tuple[Weight, int]],
    plan: Plan,
    device: Device,
    constants: Constants | None,
) -> Update:
    """The optimiser's kernels for weights, each with its number of layers.

    Where states are sharded, each copy updates its share; experts' weights are sharded over the
    devices with that expert.
    """
    if plan.optimiser == "none":
        return Update((), 0.0)

    def kernels(pairs: Sequence[tuple[Weight, int]]) -> Update:
        # Only statistics over tokens depend on the number of tokens.
        tokens = plan.tokens if optimisers.load(plan.optimiser).needs_tokens else 0
        style = plan.setting.stack.optimiser
        key = (plan.optimiser, tokens, parameters_of(pairs), plan.recipe, style)
        if constants is None:
            return _device_update(*key, Held(device))
        return _update(*key, device, constants)

    if not plan.zero:
        return kernels(weights)
    if plan.copies == plan.expert_copies:
        return kernels(weights).shared(plan.copies)
    experts = kernels([w for w in weights if w[0].expert]).shared(plan.expert_copies)
    return kernels([w for w in weights if not w[0].expert]).shared(plan.copies).then(experts)


@lru_cache(maxsize=256)
def _device_update(
    optimiser: str,
    tokens: int,
    parameters: tuple[Parameter, ...],
    precision: Precision,
    style: str,
    key: Held[Device],
) -> Update:
    return _update(optimiser, tokens, parameters, precision, style, key.device, None)


def _update(
    optimiser: str,
    tokens: int,
    parameters: tuple[Parameter, ...],
    precision: Precision,
    style: str,
    device: Device,
    constants: Constants | None,
) -> Update:
    """The update of all parameters on one device."""
    work = optimisers.load(optimiser).problems(
        parameters, precision, style=style, clip="apart", tokens=tokens
    )
    questions = [Ask(entry.name, entry.problem, entry.schedule, None, (), {}) for entry in work]
    replies = answers(questions, device, harness="kernel", constants=constants)
    runs = [entry.repeat * float(entry.share_of_steps) for entry in work]
    spreads = (
        Spread.of(operator_of(entry.problem).family(entry.problem), reply, count)
        for entry, reply, count in zip(work, replies, runs, strict=True)
    )
    return Update(tuple(spreads), sum(runs))
