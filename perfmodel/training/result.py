"""The answer for a training step: seconds with a range, where they go, and what memory holds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from perfmodel.graph.spread import Spread, together
from perfmodel.networks.flops import flops_per_token
from perfmodel.networks.network import Network
from perfmodel.networks.recorder import KINDS
from perfmodel.training.copies import Copies
from perfmodel.training.memory import Memory
from perfmodel.training.plan import Plan
from perfmodel.training.stages import Part, exposed_seconds
from perfmodel.training.weightupdate import Update

if TYPE_CHECKING:
    from perfmodel.training.pipeline import Timeline
    from perfmodel.training.step import Timed


@dataclass(frozen=True)
class Step:
    """One training step. Times in seconds, of the busiest device."""

    network: Network
    """What trains."""
    plan: Plan
    """How."""
    device: str
    """The device's slug."""
    seconds: float
    """One optimiser step."""
    low_seconds: float
    """Low end of its 80 % range."""
    high_seconds: float
    """High end."""
    forward_seconds: float
    """Forward pass of one micro-batch by itself, through all layers."""
    backward_seconds: float
    """Its backward pass, with what runs again."""
    bubble_seconds: float
    """What the busiest stage waits for others."""
    classes: Mapping[str, float]
    """Seconds of a step by class; what is left over is `host`."""
    memory: Memory
    """What the fullest device holds."""
    peak_flops: float
    """The device's dense peak in the type of the products."""
    assumptions: tuple[str, ...]
    """What was assumed, each once."""
    known_device: str = "none"
    """How much is known of the device, by most of the kernels' time."""
    timeline: Timeline | None = None
    """A pipeline's tasks as they ran; None where there is one stage."""

    @property
    def limiter(self) -> str:
        """The class with the most seconds."""
        return max(self.classes, key=self.classes.__getitem__)

    @cached_property
    def tokens_per_second(self) -> float:
        """Of all devices."""
        return self.plan.tokens / self.seconds

    @property
    def tokens_per_second_per_device(self) -> float:
        """Of one."""
        return self.tokens_per_second / self.plan.devices

    def flops_per_second_per_device(self, convention: str = "megatron") -> float:
        """Model FLOP/s of one device by a named convention."""
        each = flops_per_token(self.network, self.plan.seq, convention)
        return each * self.tokens_per_second_per_device

    def mfu(self, convention: str = "megatron") -> float:
        """Model FLOP/s over the dense peak."""
        return self.flops_per_second_per_device(convention) / self.peak_flops

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: the unit in every name that needs one."""
        plan = {name: value for name, value in vars(self.plan).items() if value not in (None, "")}
        return {
            "network": self.network.name,
            "device": self.device,
            "devices": self.plan.devices,
            "plan": plan,
            "global_batch": self.plan.global_batch,
            "step_us": self.seconds * 1e6,
            "low_us": self.low_seconds * 1e6,
            "high_us": self.high_seconds * 1e6,
            "forward_us": self.forward_seconds * 1e6,
            "backward_us": self.backward_seconds * 1e6,
            "bubble_us": self.bubble_seconds * 1e6,
            "by_class_us": {name: value * 1e6 for name, value in self.classes.items()},
            "limiter": self.limiter,
            "tokens_per_s": self.tokens_per_second,
            "tokens_per_s_per_device": self.tokens_per_second_per_device,
            "mfu": {name: self.mfu(name) for name in ("megatron", "causal", "palm")},
            "memory_bytes": dict(self.memory.lines),
            "memory_total_bytes": self.memory.total_bytes,
            "capacity_bytes": self.memory.capacity_bytes,
            "fits": self.memory.fits,
            "known_device": self.known_device,
            "assumptions": list(self.assumptions),
        }


def classes(
    stage: Sequence[Part],
    plan: Plan,
    copies: Copies,
    last: Update,
    timed: Timed,
    seconds: float,
) -> dict[str, float]:
    """Seconds of a step by class, on one stage; what is left over is the host's.

    Communication is what kernels wait for: exchanges between those of a layer, what exchanges that
    run beside layers add to them, and what nothing hides at the end.
    """
    found: dict[str, float] = {}
    for one in (work for part in stage for work in part.work):
        for kernel, runs in one.kernels():
            taken = plan.accumulation * one.repeat * runs * kernel.seconds
            found[kernel.kind] = found.get(kernel.kind, 0.0) + taken
        exchanged = plan.accumulation * one.repeat * one.exchanged(copies.links.seconds)
        found["communication"] = found.get("communication", 0.0) + exchanged
    found["communication"] += sum(
        exposed_seconds(part, timed.host, copies, plan.accumulation) for part in stage
    )
    if plan.training:
        found["communication"] += copies.exit_seconds([pair for p in stage for pair in p.segments])
    found["optimiser"] = last.seconds
    found["bubble"] = timed.bubble_seconds
    found["host"] = max(seconds - sum(found.values()), 0.0)
    return {kind: found[kind] for kind in KINDS if found.get(kind)}


def ranged(
    stage: Sequence[Part],
    plan: Plan,
    copies: Copies,
    last: Update,
    seconds: float,
) -> tuple[float, float]:
    """Low and high end of the 80 % range: kernels by family, exchanges, and what joins them."""
    spreads = [*_spreads(stage, plan), *last.spreads, *_exchanged(stage, plan, copies)]
    low, high = together(spreads)
    further = _further(copies)
    down = math.hypot(_SHARED * math.log(1.0 / low), further)
    up = math.hypot(_SHARED * (high - 1.0), further)
    return seconds * math.exp(-down), seconds * (1.0 + up)


# Share of a kernel's range that a step has of it: shapes of one family err apart to some degree.
_SHARED = 0.8
# ln of what no kernel's range holds, by what joins the devices: the least with which four fifths of
# the published steps lie in their ranges, each source counting alike (docs/accuracy.md, "Whole
# networks"): 53 steps and passes of one device, 1,006 of one node, 54 over several nodes, 10 with
# experts over devices.
_ALONE, _NODE, _NODES, _EXPERTS = 0.05, 0.05, 0.18, 0.66


def _further(copies: Copies) -> float:
    """How far a step may lie beside its kernels: by how they, the host and the links join."""
    plan, links = copies.plan, copies.links
    if plan.expert > 1:
        return _EXPERTS
    if plan.devices == 1:
        return _ALONE
    return _NODE if plan.devices <= links.node_devices else _NODES


def _spreads(stage: Sequence[Part], plan: Plan) -> Iterable[Spread]:
    """Every kernel's seconds in a step, with their range."""
    for one in (work for part in stage for work in part.work):
        for kernel, runs in one.kernels():
            times = plan.accumulation * one.repeat * runs
            yield Spread(
                kernel.spread.family,
                times * kernel.seconds,
                times * kernel.spread.low_seconds,
                times * kernel.spread.high_seconds,
            )


def _exchanged(stage: Sequence[Part], plan: Plan, copies: Copies) -> Iterable[Spread]:
    """Exchanges between the kernels of layers, with their range."""
    for one in (work for part in stage for work in part.work):
        both = [one.forward, *([one.backward] if one.backward is not None else [])]
        for each in (exchange for way in both for exchange in way.exchanges):
            times = plan.accumulation * one.repeat
            found = copies.links.between(each)
            yield Spread(
                "collective",
                times * found.seconds,
                times * found.low_seconds,
                times * found.high_seconds,
            )
