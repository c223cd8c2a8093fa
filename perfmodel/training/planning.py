"""The fastest plans on so many devices: every legal plan, of which few have to be timed.

    legal     axes that divide devices, heads, layers, experts and the batch
    memory    weights, gradients and states alone exceed the device; or the whole step does
    time      no plan is faster than its operations at the peak, nor than its kernels end to end
    timed     in the order of their floors, until a floor is above the last of the best

Kernels of a micro-batch that take K seconds on one device take K/p on the average of p stages. In m
micro-batches the busiest stage works m·K/p or longer; where it waits for the first and the last one
(1F1B with one chunk) a step takes (m + p − 1)·K/p or longer. Exchanges, update and host only add.
So a search is exact: no legal plan that fits is faster than those that it names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.hardware import Device, System, systems
from perfmodel.networks.expand import expand, parameters
from perfmodel.networks.flops import flops_per_token
from perfmodel.networks.network import Mlp, Network
from perfmodel.networks.networktime import predict_network, predict_networks
from perfmodel.networks.setting import Setting
from perfmodel.training import optimisers
from perfmodel.training.plan import Plan, divisors, stages_fit
from perfmodel.training.result import Step
from perfmodel.training.step import predict_step, step_memory
from perfmodel.training.stepmemory import model_states
from perfmodel.training.weightupdate import parameters_of

AXES = (
    "tensor", "pipeline", "chunks", "context", "expert", "expert_tensor", "micro_batch", "zero",
    "recompute",
)  # fmt: skip
"""What a search varies, unless it is given."""
BEST = 5
"""Plans that a search names."""
_ZERO = (0, 1, 2, 3)
_RECOMPUTE = ("none", "full")
_MOST_MICRO = 16
_MOST_CONTEXT = 16
# Plans whose kernels are predicted together.
_AT_ONCE = 64


@dataclass(frozen=True)
class Found:
    """What a search finds."""

    best: tuple[Step, ...]
    """The fastest plans that fit, the fastest first."""
    legal: int
    """Plans that can be laid out."""
    too_large: int
    """Plans that do not fit into memory."""
    too_slow: int
    """Plans whose floor is above the time of the best."""
    next: tuple[Plan, float] | None = None
    """Of the plans that do not fit and could be faster, the one that lacks the least memory, and
    the bytes; None where there is none."""

    @property
    def timed(self) -> int:
        """Plans that were timed."""
        return self.legal - self.too_large - self.too_slow


def legal(
    network: Network, base: Plan, devices: int, batch: int, node: int, given: Mapping[str, Any]
) -> Iterator[Plan]:
    """Every plan like `base` over so many devices with a batch; `given` has the axes that are
    fixed, each with its values."""
    heads = [block.attention.kv_heads for block in network.blocks]
    experts = max((block.mlp.experts for block in network.blocks), default=0)
    sizes = divisors(devices)
    axes: dict[str, Sequence[Any]] = {
        "tensor": [n for n in sizes if n <= node and all(count % n == 0 for count in heads)],
        "pipeline": [n for n in sizes if n <= network.layers],
        "context": [
            n for n in sizes if n == 1 or (n <= _MOST_CONTEXT and base.seq % (2 * n * node) == 0)
        ],
        "expert": [n for n in sizes if n == 1 or (experts and experts % n == 0)],
        "expert_tensor": (0, 1) if experts else (0,),
        "chunks": (1, 2, 4, 8),
        "micro_batch": [n for n in divisors(batch) if n <= _MOST_MICRO],
        "zero": _ZERO,
        "recompute": _RECOMPUTE,
        **given,
    }
    every = (
        _plan(network, base, devices, batch, dict(zip(axes, values, strict=True)))
        for values in product(*axes.values())
    )
    yield from dict.fromkeys(plan for plan in every if plan is not None)


def _plan(
    network: Network, base: Plan, devices: int, batch: int, sizes: Mapping[str, Any]
) -> Plan | None:
    """The plan of these sizes; None where they do not divide, or say twice what another says."""
    shared = sizes["tensor"] * sizes["pipeline"] * sizes["context"]
    data = devices // shared
    if devices % shared or batch % (data * sizes["micro_batch"]):
        return None
    if sizes["pipeline"] == 1 and sizes["chunks"] > 1:
        return None
    if data * sizes["context"] == 1 and sizes["zero"]:
        return None
    if not stages_fit(network.layers, sizes["pipeline"] * sizes["chunks"]):
        return None
    split = sizes["expert_tensor"]
    if split not in (0, 1, sizes["tensor"]) or (sizes["expert"] > data and split != 1):
        return None
    if sizes["tensor"] == 1:  # says what the default does
        sizes = {**sizes, "expert_tensor": 0}
    if sizes["tensor"] > 1 and split == 1 and base.sequence is False:
        return None
    sharing = data * sizes["context"] * (sizes["tensor"] if split == 1 else 1)
    if sharing % sizes["expert"]:
        return None
    accumulation = batch // (data * sizes["micro_batch"])
    if sizes["chunks"] > 1 and accumulation % sizes["pipeline"]:
        return None
    if base.reshard and sizes["zero"] != 3:
        return None  # it is of weights in shards
    if sizes["pipeline"] > 1 and sizes["zero"] > 1 and base.reshard != "false":
        return None  # gradients and weights are needed by every micro-batch
    return replace(base, data=data, accumulation=accumulation, **sizes)


@dataclass(frozen=True)
class Floors:
    """Bounds of plans of a network on a device."""

    parameters: int
    """Parameters that train."""
    state_bytes: float
    """Bytes of the optimiser's states of all."""
    frozen_bytes: float
    """Bytes of frozen weights."""
    flops: float
    """Operations of a token, forward and backward."""
    peak: float
    """Operations a second of a device."""

    @classmethod
    def of(cls, network: Network, plan: Plan, device: Device) -> Floors:
        """Those of plans that differ from `plan` in axes, ZeRO and recomputation."""
        setting = Setting(1, 1, training=True, tuning=plan.tuning, stored=plan.stored)
        pairs = parameters(network, setting)
        trained = [pair for pair in pairs if pair[0].trains]
        states = 0.0
        if plan.optimiser != "none":
            states = optimisers.load(plan.optimiser).state_bytes(
                parameters_of(trained), plan.recipe
            )
        frozen = sum(plan.gathered_bytes(w) * n for w, n in pairs if not w.trains)
        # The busiest device may have fewer rows than the mean where tokens are dropped.
        least = _without_experts(network) if plan.drops else network
        flops = flops_per_token(least, plan.document, "causal", plan.tuning)
        peak = device.matrix_flops(plan.dtype)
        count = sum(w.elements * n for w, n in trained)
        return cls(count, states, frozen, flops, float(peak))

    def bytes(self, plan: Plan) -> float:
        """Least bytes of the fullest device: its share of weights, gradients and states. Experts'
        states lie on as few devices as those of other weights, or fewer."""
        shares = plan.tensor * plan.pipeline * plan.expert
        states = model_states(
            plan.recipe, self.parameters, self.state_bytes, stage=plan.zero,
            shards=plan.copies,
        )  # fmt: skip
        frozen = self.frozen_bytes / (plan.copies if plan.zero == 3 else 1)
        resident = sum(size for name, size in states.items() if name not in plan.hosted)
        return float(resident + frozen) / shares

    def seconds(self, plan: Plan) -> float:
        """Least seconds of a step, by its operations."""
        return _filled(plan, plan.real_tokens * self.flops / self.peak / plan.copies / plan.tensor)


def _without_experts(network: Network) -> Network:
    """The network with the shared part alone where a layer has experts."""
    blocks = (
        replace(
            block,
            mlp=Mlp(block.mlp.shared_inner, block.mlp.gated) if block.mlp.experts else block.mlp,
        )
        for block in network.blocks
    )
    return replace(network, blocks=tuple(blocks))


def kernel_seconds(network: Network, plan: Plan, device: Device) -> float:
    """Least seconds of a step, by its kernels."""
    prediction = predict_network(network, plan.setting, device)
    blocks = {s.name for s in expand(network, plan.setting) if s.block and s.active}
    seconds = 0.0
    for part in (part for part in prediction.children if part.children):
        runs = 2 if plan.recompute == "full" and part.kind == "forward" else 1
        seconds += part.seconds * (runs if part.name in blocks else 1)
    return _filled(plan, plan.accumulation * seconds)


def _filled(plan: Plan, seconds: float) -> float:
    """Seconds of a pipeline whose micro-batches take `seconds` on one device in all."""
    waits = plan.chunks == 1 and plan.schedule in ("1f1b", "gpipe")
    fill = 1.0 + (plan.pipeline - 1) / plan.accumulation if waits else 1.0
    return seconds * fill / plan.pipeline


def search(
    network: Network,
    base: Plan,
    devices: int,
    batch: int,
    device: Device,
    system: System | None = None,
    given: Mapping[str, Any] | None = None,
    best: int = BEST,
) -> Found:
    """The fastest plans that fit. Raises `ProblemError` where no plan can be laid out."""
    place = system or (systems.usual(device) if devices > 1 else None)
    node = place.node_devices if place is not None else 1
    plans = list(legal(network, base, devices, batch, node, given or {}))
    if not plans:
        raise ProblemError(
            f"no plan of {network.name} divides {devices:,} devices and a batch of {batch:,}; give "
            "another --gpus or --global-batch"
        )
    floors = Floors.of(network, base, device)
    capacity = device.memory_bytes or float("inf")
    small = [plan for plan in plans if floors.bytes(plan) <= capacity]
    fits: list[Step] = []
    too_large, timed = len(plans) - len(small), 0
    nearest: tuple[Plan, float] | None = None
    order = sorted(small, key=floors.seconds)
    for i, plan in enumerate(order):
        if not i % _AT_ONCE:
            with suppress(PerfmodelError):  # of a plan that the search may not come to
                settings = [each.setting for each in order[i : i + _AT_ONCE]]
                predict_networks(network, settings, device)
        slowest = fits[-1].seconds if len(fits) == best else float("inf")
        if floors.seconds(plan) >= slowest:
            break
        if kernel_seconds(network, plan, device) >= slowest:
            continue
        lacking = step_memory(network, plan, device).lacking_bytes
        if lacking:
            too_large += 1
            if nearest is None or lacking < nearest[1]:
                nearest = plan, lacking
            continue
        timed += 1
        step = replace(predict_step(network, plan, device, place), timeline=None)
        fits = sorted([*fits, step], key=lambda each: each.seconds)[:best]
    too_slow = len(plans) - too_large - timed
    return Found(tuple(fits), len(plans), too_large, too_slow, nearest)
