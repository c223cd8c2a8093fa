"""The best deployments under targets: every plan and batch that meets them, ranked.

A *plan* is a copy of the network: device, engine, formats, tensor, pipeline and expert parallelism.
Its users are those of a closed loop (`requests.closed`), as many as meet the targets and fit;
copies fill the devices. Pools have copies for prompts and others for tokens (`disaggregated`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np

from perfmodel.columns import SOME, Column, Result
from perfmodel.errors import PerfmodelError, ProblemError, UnknownName
from perfmodel.fieldoption import FieldOption
from perfmodel.hardware import Device
from perfmodel.hardware import load as load_device
from perfmodel.networks.network import Network
from perfmodel.serving.cachememory import check_weights, fitting_batch
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.disaggregated import shared_out
from perfmodel.serving.served import Served, serve
from perfmodel.serving.steps import Steps
from perfmodel.serving.targets import Targets

PLANS = ("auto", "front")
"""What a search shows: the best plans, or the Pareto front of speed and throughput."""
_MOST_TENSOR = 16
_PIPELINES = (1, 2, 4)
_SIZES = 48
"""Numbers of users that each plan is asked for."""


@dataclass(frozen=True)
class Prices:
    """Dollars of a device hour."""

    every: float | None = None
    """Of every device; None: each has its own."""
    own: Mapping[str, float] = field(default_factory=dict)
    """By slug of the device."""

    def of(self, device: Device) -> float:
        """The device's price. Raises `ProblemError` where there is none."""
        price = self.own.get(device.slug, self.every)
        if price is None:
            raise ProblemError(f"no price of {device.slug}; give {device.slug}=DOLLARS too")
        return price


def _prices(text: str) -> Prices:
    """Prices of a text: 2.5, or by device h100=2.5,b200=4. Raises `ProblemError` and
    `UnknownName`."""
    every, own = None, {}
    for part in filter(None, text.split(",")):
        name, _, number = part.rpartition("=")
        try:
            dollars = float(number)
        except ValueError:
            dollars = math.nan
        if not 0.0 < dollars < 1e9:
            raise ProblemError(
                f"a price of {number.strip() or 'nothing'}: give dollars of a device hour above 0, "
                "such as 2.5 or h100=2.5,b200=4"
            )
        if name:
            own[load_device(name.strip()).slug] = dollars
        else:
            every = dollars
    return Prices(every, own)


@dataclass(frozen=True)
class Search:
    """What is searched."""

    plan: Annotated[str | None, FieldOption("Targets", "auto|front", single=True, names=PLANS)] = (
        None
    )
    """Search plans that meet --ttft and --tpot: the best of each device, or the Pareto front of
    tokens a second by user and by device."""
    gpus: Annotated[int, FieldOption("Targets", single=True)] = 8
    """Devices at most, with --plan."""
    price: Annotated[Prices | None, FieldOption("Targets", "DOLLARS", read=_prices)] = None
    """Dollars of a device hour, or by device as h100=2.5,b200=4: --plan auto ranks by them."""

    def __post_init__(self) -> None:
        if self.plan is not None and self.plan not in PLANS:
            raise UnknownName("plan", self.plan, PLANS)
        if self.price is not None and self.plan != "auto":
            raise ProblemError("--price ranks the plans of a search; give --plan auto")


@dataclass(frozen=True)
class Demand:
    """What the deployment is for."""

    isl: int
    """Tokens of a prompt."""
    osl: int
    """Tokens of an answer."""
    targets: Targets
    """Limits on latencies."""
    statistic: str = "mean"
    """Statistic of first tokens."""
    vary: float = 0.0
    """How much answers vary (`requests.Requests.vary`)."""
    cached: float = 0.0
    """Cached tokens of each prompt, or their share."""
    users: float = 0.0
    """Users to be served at a time; 0: as many as can be."""
    rate: float = 0.0
    """Requests a second to be served; 0: as many as can be."""
    prices: Prices | None = None
    """Dollars of device hours; None: unknown."""


@dataclass(frozen=True)
class Option(Result):
    """A plan that meets the targets, at one number of users."""

    served: Served
    """A copy at its users."""
    copies: Annotated[int, Column("copies")]
    """Copies."""
    stops: Annotated[str, Column("stop", key="stops_at", rank=1, place=1)]
    """What more users would break."""
    price: float | None = None
    """Dollars of a device hour; None: unknown."""

    @property
    def of(self) -> Deployment:
        """The copy."""
        return self.served.of

    @property
    def devices(self) -> Annotated[int, Column("devices", rank=2)]:
        """Devices of all copies."""
        return self.of.devices * self.copies

    @property
    def requests_per_s(self) -> Annotated[float, Column()]:
        """Requests a second of all copies."""
        return self.served.requests_per_s * self.copies

    @property
    def output_tokens_per_s(self) -> Annotated[float, Column("tokens/s", rank=3)]:
        """Output tokens a second of all copies."""
        return self.requests_per_s * self.served.osl

    @property
    def per_device(
        self,
    ) -> Annotated[float, Column("a device", key="output_tokens_per_s_per_device")]:
        """Output tokens a second of a device."""
        return self.output_tokens_per_s / self.devices

    @property
    def launch(self) -> Annotated[str, Column(place=1)]:
        """The command that starts a copy; of pools, one for tokens. Empty: none is known."""
        copy = self.of
        sequences = math.ceil(self.served.size / copy.copies)
        sizes = {name: getattr(copy, name) for name in ("tensor", "pipeline", "data", "expert")}
        return copy.engine.launch.line(
            copy.network.name, {**sizes, "sequences": sequences}, weights=copy.weights,
            cache=copy.cache_type,
        )  # fmt: skip

    @property
    def dollars_per_million_tokens(
        self,
    ) -> Annotated[float | None, Column("dollars/M", show="{:,.3g}", when=SOME)]:
        """Dollars of device hours for a million output tokens; None without a price."""
        return None if self.price is None else self.price / self.per_device / 3600.0 * 1e6

    @property
    def tokens_per_joule(
        self,
    ) -> Annotated[float | None, Column("tokens/J", key="output_tokens_per_joule", rank=4)]:
        """Output tokens for a joule at the power limit; None where the spec has none."""
        watts = self.of.device.tdp_watts
        return self.per_device / watts if watts else None


@dataclass(frozen=True)
class Miss:
    """A plan that meets no target, or cannot be."""

    of: Deployment
    """The copy."""
    reason: str
    """Why, in a few words."""
    excess: float = math.inf
    """Largest ratio of a latency of one user to its target."""


def plans(
    network: Network, base: Iterable[Deployment], gpus: int, tensors: Sequence[int] = ()
) -> Iterator[Deployment]:
    """Copies of each deployment on at most `gpus` devices: tensor sizes as far as heads divide and
    a node reaches, stages across nodes, experts on the devices of a copy or on those of copies."""
    heads = [block.attention.heads for block in network.blocks]
    routed = any(block.mlp.experts for block in network.blocks)
    sizes = tensors or [2**k for k in range(int(math.log2(_MOST_TENSOR)) + 1)]
    for first in base:
        each = replace(first, system=first.fabric)
        node = each.fabric.node_devices
        for tensor in sizes:
            if tensor > min(node, gpus) or any(count % tensor for count in heads):
                continue
            for pipeline in _PIPELINES:
                if tensor * pipeline <= gpus and (pipeline == 1 or tensor == min(node, gpus)):
                    yield replace(each, tensor=tensor, pipeline=pipeline)
                    if routed and tensor > 1 and pipeline == 1:
                        yield replace(each, tensor=tensor, expert=tensor)
            if routed:
                for data in (2, 4, 8, 16, 32, 64):
                    if tensor * data <= gpus and tensor <= 2:
                        yield replace(each, tensor=tensor, data=data, expert=data)


def search(
    candidates: Sequence[Steps], demand: Demand, gpus: int,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[list[Option], list[Miss], list[Served]]:  # fmt: skip
    """The plans that meet the targets, best first; those that do not, the nearest first; and every
    load that was predicted of those that fit.

    `report` is told how many candidates are done, and of how many.
    """
    options: list[Option] = []
    misses: list[Miss] = []
    loads: list[Served] = []
    able: list[Steps] = []
    for i, steps in enumerate(candidates):
        copy = steps.of
        report(i, len(candidates))
        try:
            served = _loads(steps, demand)
        except PerfmodelError as error:
            misses.append(Miss(copy, str(error)))
            continue
        loads += served
        able.append(steps)
        best = _best(served, demand, gpus)
        (options if isinstance(best, Option) else misses).append(best)  # type: ignore[arg-type]
    for served in _pools(able, demand, gpus):
        best = _best(served, demand, gpus)
        options += [best] if isinstance(best, Option) else []
    options.sort(key=lambda option: _rank(option, demand))
    misses.sort(key=lambda miss: miss.excess)
    return options, misses, loads


def _loads(steps: Steps, demand: Demand) -> list[Served]:
    """Loads of a copy, from one user of each device group to as many as fit."""
    copy = steps.of
    check_weights(copy)
    kept, prompt = copy.reading(demand.isl)
    most = max(fitting_batch(kept, prompt + demand.osl // 2), 1)
    users = np.unique(np.geomspace(1, most, _SIZES).round()) * copy.copies
    return serve(
        steps, "concurrency", users, demand.isl, demand.osl, cached=demand.cached,
        vary=demand.vary, statistic=demand.statistic,
    )  # fmt: skip


def excess(load: Served, targets: Targets) -> tuple[float, str]:
    """The largest ratio of a latency to its target, and its name."""
    ttft, tpot = targets.limits
    return max((load.ttft_seconds / ttft, "TTFT"), (load.tpot_seconds / tpot, "TPOT"))


def _best(served: Sequence[Served], demand: Demand, gpus: int) -> Option | Miss:
    """The load with most requests a second that meets the targets."""
    ratios = [excess(load, demand.targets) for load in served]
    meeting = [i for i, (ratio, _) in enumerate(ratios) if ratio <= 1.0]
    copy = served[0].of
    if not meeting:
        (ratio, name), first = ratios[0], served[0]
        value = first.metric(f"{name.lower()}_ms").value
        return Miss(copy, f"{name} {value:.4g} ms with one user", ratio)
    i = max(meeting, key=lambda k: served[k].requests_per_s)
    stops = "memory" if i + 1 == len(served) else ratios[i + 1][1]
    if i + 1 < len(served) and ratios[i + 1][0] <= 1.0:
        stops = "throughput"
    price = None if demand.prices is None else demand.prices.of(copy.device)
    return _sized(Option(served[i], gpus // copy.devices, stops, price), demand)


def _sized(option: Option, demand: Demand) -> Option | Miss:
    """As many copies as the demand needs. A demand that the devices do not meet is a miss."""
    copies = option.copies
    if demand.users:
        copies = math.ceil(demand.users / option.served.size)
    if demand.rate:
        copies = math.ceil(demand.rate / option.served.requests_per_s)
    if copies > option.copies:
        needed = copies * option.of.devices
        return Miss(option.of, f"{needed} devices would be needed", needed / option.devices)
    return replace(option, copies=max(copies, 1))


def _rank(option: Option, demand: Demand) -> tuple[float, float]:
    """Fewest devices where a demand is given, else most tokens a second of all; with prices the
    fewest dollars, of all devices for a demand, else of a token."""
    devices = option.devices if demand.users or demand.rate else 0.0
    cost = devices
    if option.price is not None:
        cost = devices * option.price or option.price / option.per_device
    return cost, -option.output_tokens_per_s


def _pools(able: Sequence[Steps], demand: Demand, gpus: int) -> Iterator[list[Served]]:
    """Loads of the best pools of each device, engine and formats."""
    groups: dict[tuple[object, ...], list[Steps]] = {}
    for steps in able:
        copy = steps.of
        groups.setdefault(
            (copy.device.slug, copy.engine.name, copy.weights, copy.cache_type), []
        ).append(steps)
    for group in groups.values() if not demand.users else ():
        limits = demand.targets.limits
        pooled = shared_out(group, demand.isl, demand.osl, limits, gpus, demand.rate)
        if pooled is not None:
            yield _loads(Steps(pooled), demand)


def front(loads: Iterable[Served], targets: Targets) -> list[Served]:
    """The Pareto front: no other load that meets the first token's target has more tokens a second
    of a device and of a user."""
    meeting = [load for load in loads if excess(load, replace(targets, tpot=None))[0] <= 1.0]
    meeting.sort(key=lambda load: load.tpot_seconds)
    rows: list[Served] = []
    best = 0.0
    for load in meeting:
        rate = load.metric("output_tokens_per_s").value / load.of.devices
        if rate > best:
            rows.append(load)
            best = rate
    return rows
