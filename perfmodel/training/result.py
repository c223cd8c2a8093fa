"""The prediction of a training step: seconds with a range, their breakdown, and memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

from perfmodel.columns import DIFFERS, HIGH, Column, Result, Row
from perfmodel.graph.live import Memory
from perfmodel.graph.tree import KINDS, Tree, together
from perfmodel.networks.expand import parameter_count
from perfmodel.networks.flops import USUAL, flops_per_token
from perfmodel.networks.network import Network
from perfmodel.training.copies import Copies
from perfmodel.training.plan import Plan
from perfmodel.training.stages import Part, exposed_seconds
from perfmodel.units import binary

if TYPE_CHECKING:
    from perfmodel.training.pipeline import Timeline


def fits(row: Row) -> str:
    """Whether a step fits into its device's memory, or the missing bytes."""
    lacking = row["memory_total_bytes"] - (row["capacity_bytes"] or row["memory_total_bytes"])
    return "yes" if row["fits"] else f"not by {binary(lacking)}"


@dataclass(frozen=True)
class Step(Result):
    """One training step. Times in seconds, of the busiest device."""

    network: Annotated[Network, Column("network", of="name", when=DIFFERS, number=False)]
    """The network."""
    plan: Annotated[
        Plan,
        Column(key="devices", of="devices"),
        Column(key="plan", of="settings"),
        Column(key="global_batch", of="global_batch"),
    ]
    """The plan."""
    device: Annotated[str, Column("device", when=DIFFERS)]
    """The device's slug."""
    seconds: Annotated[float, Column("step", key="step_us", scale=1e6)]
    """Seconds of one step, the optimiser's update included."""
    low_seconds: Annotated[float, Column(key="low_us", scale=1e6)]
    """Low end of its 80 % range."""
    high_seconds: Annotated[float, HIGH]
    """High end."""
    forward_seconds: Annotated[float, Column(key="forward_us", scale=1e6)]
    """Forward pass of one micro-batch by itself, through all layers."""
    backward_seconds: Annotated[float, Column(key="backward_us", scale=1e6)]
    """Backward pass of one micro-batch, with recomputation."""
    bubble_seconds: Annotated[float, Column(key="bubble_us", scale=1e6)]
    """Seconds that the busiest stage waits for other stages."""
    recompute_seconds: Annotated[float, Column(key="recompute_us", scale=1e6)]
    """Seconds of kernels that recomputation runs again, a part of their classes'."""
    classes: Annotated[Mapping[str, float], Column(key="by_class_us", scale=1e6)]
    """Seconds of a step by class; the remainder is `host`."""
    memory: Annotated[
        Memory,
        Column(key="memory_bytes", of="lines", place=1),
        Column("memory", key="memory_total_bytes", of="peak_bytes", place=1),
        Column(key="capacity_bytes", of="capacity_bytes", place=1),
        Column("fits", fits, number=False, key="fits", of="fits", place=1),
    ]
    """Memory of the fullest device."""
    peak_flops: float
    """The device's dense peak in the type of the products."""
    assumptions: Annotated[tuple[str, ...], Column(place=3)]
    """Assumptions, each once."""
    known_device: Annotated[str, Column(place=2)] = "none"
    """The level of knowledge about the device that most of the kernels' time has."""
    timeline: Timeline | None = None
    """A pipeline's tasks with their times; None with one stage."""

    @property
    def limiter(self) -> Annotated[str, Column("limiter", rank=3, place=2)]:
        """The class with the most seconds."""
        return max(self.classes, key=self.classes.__getitem__)

    @cached_property
    def tokens_per_second(self) -> Annotated[float, Column(key="tokens_per_s")]:
        """Real tokens a second of all devices."""
        return self.plan.real_tokens / self.seconds

    @cached_property
    def trained_parameters(self) -> Annotated[int, Column(place=2)]:
        """Parameters that train: of n × m adapters of rank r each r·(n + m)."""
        return parameter_count(self.network, self.plan.tuning, trained=True)

    @property
    def tokens_per_second_per_device(
        self,
    ) -> Annotated[float, Column("tokens/s a device", show="count", key="tokens_per_s_per_device")]:
        """Tokens a second of one device."""
        return self.tokens_per_second / self.plan.devices

    def flops_per_second_per_device(self, convention: str = USUAL) -> float:
        """Model FLOP/s of one device by a named convention."""
        plan = self.plan
        flops = flops_per_token(self.network, plan.document, convention, plan.tuning)
        return flops * self.tokens_per_second_per_device

    def mfu(self, convention: str = USUAL) -> float:
        """Model FLOP/s over the dense peak."""
        return self.flops_per_second_per_device(convention) / self.peak_flops

    @property
    def mfus(self) -> Annotated[Mapping[str, float], Column(key="mfu")]:
        """Model FLOP/s over the dense peak by each convention."""
        return {name: self.mfu(name) for name in ("causal", "megatron", "palm")}


def classes(
    stage: Sequence[Part],
    copies: Copies,
    update: Sequence[Tree],
    bubble_seconds: float,
    seconds: float,
) -> dict[str, float]:
    """Seconds of a step by class, on one stage; the remainder is the host's.

    Communication counts as far as kernels wait for it: exchanges between kernels of a layer, the
    time that overlapped exchanges add, and exposed exchanges at the end.
    """
    plan, split = copies.plan, dict[str, float]()
    for layer in (work for part in stage for work in part.work):
        for kernel, runs in layer.kernels():
            total = plan.accumulation * layer.repeat * runs * kernel.seconds
            split[kernel.kind] = split.get(kernel.kind, 0.0) + total
        waits = plan.accumulation * layer.repeat * layer.exchanged(copies.links.seconds)
        split["communication"] = split.get("communication", 0.0) + waits
    split["communication"] += sum(exposed_seconds(part, copies) for part in stage)
    if plan.training:
        split["communication"] += copies.exit_seconds([pair for p in stage for pair in p.segments])
    split["optimiser"] = sum(spread.seconds for spread in update)
    split["bubble"] = bubble_seconds
    split["host"] = max(seconds - sum(split.values()), 0.0)
    return {kind: split[kind] for kind in KINDS if split.get(kind)}


def recompute_seconds(stage: Sequence[Part], plan: Plan) -> float:
    """Seconds of the kernels that recomputation runs again in a step, on one stage."""
    return sum(
        plan.accumulation * layer.repeat * layer.forward.children[i].seconds
        for part in stage
        for layer in part.work
        for i in layer.again
    )


def ranged(
    stage: Sequence[Part], copies: Copies, update: Sequence[Tree], seconds: float
) -> tuple[float, float]:
    """Low and high end of the 80 % range. It combines kernels by family, exchanges, and a term for
    how these join."""
    spreads = [*_spreads(stage, copies), *update, *_exchange_spreads(stage, copies)]
    low, high = together(spreads)
    extra = _extra_spread(copies)
    down = math.hypot(_SHARED * math.log(1.0 / low), extra)
    up = math.hypot(_SHARED * (high - 1.0), extra)
    return seconds * math.exp(-down), seconds * (1.0 + up)


# Share of a kernel's range that enters a step's: errors of one family's shapes partly cancel.
_SHARED = 0.8
# Extra spread (natural logarithm) that no kernel's range covers, by what joins the devices. It is
# the least with which four fifths of the published steps lie in their ranges, each source weighted
# equally (docs/accuracy.md, "Whole networks"): 53 steps and passes of one device, 1,006 of one
# node, 54 over several nodes, 10 with experts over devices.
_ALONE, _NODE, _NODES, _EXPERTS = 0.05, 0.05, 0.18, 0.66


def _extra_spread(copies: Copies) -> float:
    """Extra spread of a step beyond its kernels', from how kernels, host and links join."""
    plan, links = copies.plan, copies.links
    if plan.expert > 1:
        return _EXPERTS
    if plan.devices == 1:
        return _ALONE
    return _NODE if plan.devices <= links.node_devices else _NODES


def _spreads(stage: Sequence[Part], copies: Copies) -> Iterable[Tree]:
    """Seconds of every kernel in a step, with their range."""
    for layer in (work for part in stage for work in part.work):
        for kernel, runs in layer.kernels():
            yield kernel.times(copies.plan.accumulation * layer.repeat * runs)


def _exchange_spreads(stage: Sequence[Part], copies: Copies) -> Iterable[Tree]:
    """Exchanges between the kernels of layers, with their range."""
    for layer in (work for part in stage for work in part.work):
        for transfer in (each for _, line in (layer.first, *layer.second) for each in line):
            runs = copies.plan.accumulation * layer.repeat
            yield copies.links.between(transfer).times(runs)
