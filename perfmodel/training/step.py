"""Network × plan × device → a training step: seconds, split, memory.

    micro-batch   Σ layers: forward; again and backward, with the exchanges between their kernels
    step          micro-batches (through a pipeline's stages), gradient exchanges that nothing
                  hides, the optimiser

Host and device run side by side (`perfmodel.networks.dispatch`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from perfmodel.graph.spread import Spread, together
from perfmodel.hardware import Device
from perfmodel.networks.dispatch import Stretch, joined
from perfmodel.networks.expand import expand, parameters
from perfmodel.networks.flops import flops_per_token
from perfmodel.networks.network import Network
from perfmodel.networks.prediction import NetworkPrediction
from perfmodel.networks.predict import predict_network
from perfmodel.networks.recorder import KINDS
from perfmodel.timing.constants import Constants
from perfmodel.training import recipe
from perfmodel.training.fabric import Fabric
from perfmodel.training.layers import LayerWork, layers
from perfmodel.training.memory import Memory, memory
from perfmodel.training.plan import Plan
from perfmodel.training.update import Update, parameters_of, update


@dataclass(frozen=True)
class Step:
    """One training step. Times in seconds, of a device."""

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
    """Forward passes of one micro-batch by themselves."""
    backward_seconds: float
    """Backward passes of one micro-batch, with what runs again."""
    classes: Mapping[str, float]
    """Seconds of a step by class, of the busiest stage; what is left over is `host`."""
    memory: Memory
    """What the fullest device holds."""
    peak_flops: float
    """The device's dense peak in the type of the products."""
    assumptions: tuple[str, ...]
    """What was assumed, each once."""

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


def predict_step(
    network: Network,
    plan: Plan,
    device: Device,
    fabric: Fabric | None = None,
    *,
    constants: Constants | None = None,
) -> Step:
    """Predict one step. Raises `ProblemError` for a plan that cannot be laid out."""
    plan.check(network)
    links = fabric or Fabric(plan)
    segments = expand(network, plan.setting)
    found = predict_network(network, plan.setting, device, constants=constants)
    work = layers(found, segments, plan)
    host = found.host
    ahead = joined(one.stretch("forward", host, links.seconds).times(one.repeat) for one in work)
    back = joined(_back(one, found, links).times(one.repeat) for one in reversed(work))
    precision = recipe.of(plan)
    owned = parameters_of(parameters(network, plan.setting))
    last = update(owned, plan, precision, plan.setting.stack, device, constants)
    micro = ahead.then(back)
    seconds = micro.times(plan.accumulation).seconds + last.seconds
    spreads = [*_spreads(work, plan.accumulation), *last.spreads]
    low, high = together(spreads)
    held = memory(segments, plan, precision, device.hbm_capacity_bytes)
    return Step(
        network=network,
        plan=plan,
        device=device.slug,
        seconds=seconds,
        low_seconds=seconds * low,
        high_seconds=seconds * high,
        forward_seconds=ahead.seconds,
        backward_seconds=micro.seconds - ahead.seconds,
        classes=_classes(work, plan, links, last, seconds),
        memory=held,
        peak_flops=_peak(device, plan),
        assumptions=found.assumptions,
    )


def _back(one: LayerWork, found: NetworkPrediction, links: Fabric) -> Stretch:
    again = one.stretch("again", found.host, links.seconds)
    return again.then(one.stretch("backward", found.host, links.seconds))


def _spreads(work: Sequence[LayerWork], times: int) -> list[Spread]:
    """Every kernel's seconds in a step, with their range."""
    return [
        Spread(
            kernel.spread.family,
            times * one.repeat * runs * kernel.seconds,
            times * one.repeat * runs * kernel.spread.low_seconds,
            times * one.repeat * runs * kernel.spread.high_seconds,
        )
        for one in work
        for kernel, runs in one.kernels()
    ]


def _classes(
    work: Sequence[LayerWork], plan: Plan, links: Fabric, last: Update, seconds: float
) -> dict[str, float]:
    """Seconds of a step by class; what is left over is the host's."""
    found: dict[str, float] = {}
    for one in work:
        for kernel, runs in one.kernels():
            taken = plan.accumulation * one.repeat * runs * kernel.seconds
            found[kernel.kind] = found.get(kernel.kind, 0.0) + taken
        exchanged = plan.accumulation * one.repeat * one.exchanged(links.seconds)
        found["communication"] = found.get("communication", 0.0) + exchanged
    found["optimiser"] = last.seconds
    found["host"] = seconds - sum(found.values())
    return {kind: found[kind] for kind in KINDS if found.get(kind)}


def _peak(device: Device, plan: Plan) -> float:
    """The dense rate of the products' type."""
    from perfmodel.timing.machine import machine

    here = machine(device)
    dtype = plan.dtype
    return float(here.matrix_per_unit(dtype) * here.units)
