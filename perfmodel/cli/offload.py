"""`perfmodel offload NETWORK`: a network larger than its device, with host memory and disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated

from perfmodel.cli import completing, known, ranges
from perfmodel.cli.arguments import DeviceSpec, DeviceSpecs, Size
from perfmodel.cli.build import command
from perfmodel.cli.networkoptions import NamedNetwork, WeightFormat
from perfmodel.cli.output import Shown
from perfmodel.compression import naming
from perfmodel.compression.compressed import Compressed
from perfmodel.errors import ProblemError, UnknownName, needs
from perfmodel.fieldoption import FieldOption
from perfmodel.hardware import Device
from perfmodel.offload import flexgen, search
from perfmodel.offload.layershape import Request, Stored, of_network
from perfmodel.offload.layertimes import Rates, answer
from perfmodel.offload.modelled import Disk, Modelled
from perfmodel.offload.policy import of_percent
from perfmodel.render import Report
from perfmodel.render import offload as render
from perfmodel.units import parse, si

_ROOM = 0.9
"""Share of each memory that policies may fill."""
_OWN = "own"
_POLICIES = completing.of_list("perfmodel.cli.offload:_WAYS")
_RATE = partial(ranges.quantity, dimension="bandwidth", name="--disk-rate")
_CAPACITY = partial(parse, dimension="capacity")
_CONTEXT = ranges.read("1k", "")

Contexts = Annotated[ranges.Values, FieldOption(None, "TOKENS", ("--seq", "--context"))]


def _costs() -> list[str]:
    return [_OWN, *flexgen.names()]


@dataclass(frozen=True)
class Asked:
    """What `offload` is asked for."""

    network: NamedNetwork
    """The network."""
    device: DeviceSpecs
    """The devices."""
    host: DeviceSpec = None
    """CPU of the host: slug, alias or spec file."""
    policy: Annotated[str, FieldOption(metavar="NAME", complete=_POLICIES)] = "auto"
    """auto: the fastest of FlexGen's policies that fits; six percentages: FlexGen's policy
    (20,80,0,100,0,100: device and host for weights, for cache, for activations); recompute: part of
    the KV cache is recomputed; stream: weights over the link in each step; layers: some layers on
    the host."""
    costs: Annotated[str, FieldOption(metavar="NAME", names=_costs)] = _OWN
    """Rates for auto and six percentages: own (this model's), or FlexGen's fit t4-gcp."""
    weights: WeightFormat = None
    """Weight format of the layers (perfmodel compress lists them) [default: the network's own, or
    16 bits]."""
    batch: Annotated[ranges.Values | None, FieldOption(metavar="SIZES")] = None
    """Sequences that the device processes at a time."""
    blocks: Size = 1
    """Batches that are processed for each load of a layer's weights."""
    isl: Annotated[int, FieldOption(metavar="TOKENS", single=True)] = 512
    """Input length: tokens of a prompt."""
    osl: Annotated[int, FieldOption(metavar="TOKENS", single=True)] = 32
    """Output length: generated tokens of a request."""
    context: Annotated[ranges.Values, FieldOption(None, "TOKENS", ("--seq", "--context"))] = (
        _CONTEXT
    )
    """Tokens of each sequence in the KV cache, for recompute, stream and layers."""
    host_memory: Annotated[float | None, FieldOption(metavar="SIZE", read=_CAPACITY)] = None
    """Size of host memory: "208 GB" [default: the host's spec]."""
    disk_rate: Annotated[float | None, FieldOption(metavar="RATE", read=_RATE)] = None
    """Rate of a disk's reads and writes: "2 GB/s" [default: no disk]."""
    disk_size: Annotated[str, FieldOption(metavar="SIZE")] = "1 TB"
    """Capacity of the disk."""
    derive: bool = False
    """With --policy recompute: print the derivation of the formula."""

    def __post_init__(self) -> None:
        if self.weights is not None and self.policy == "recompute":
            raise ProblemError(
                "--policy recompute divides a cache, not the weights; drop --weights"
            )

    @cached_property
    def stored(self) -> Stored:
        """The network under the named format or its own; 16 bits are those of the layers'
        products."""
        if self.weights is None and not self.network.weights:
            return self.network
        return Compressed(self.network, self.weights or naming.scheme(self.network.weights))

    @property
    def label(self) -> str:
        """The network, with the format of its weights where they are not in 16 bits."""
        name, stored = self.network.name, self.stored
        return f"{name}, weights {stored.scheme.name}" if isinstance(stored, Compressed) else name

    @cached_property
    def batches(self) -> list[int]:
        """Sequences that the device processes at a time."""
        return list(self.batch or (1,))

    @cached_property
    def disk(self) -> Disk | None:
        """The disk, if there is one."""
        if self.disk_rate is None:
            return None
        size = ranges.quantity(self.disk_size, "capacity", "--disk-size")
        return Disk(self.disk_rate, size)

    @property
    def given_host(self) -> Device:
        """The host. Raises `ProblemError` where none is named."""
        if self.host is None:
            raise ProblemError(
                f"--policy {self.policy} needs a host; name one with --host, such as xeon-gold-6242"
            )
        return self.host

    def room(self, device: Device) -> search.Room:
        """What may be filled of each memory."""
        host = self.host_memory
        if host is None:
            host = self.host.memory_bytes if self.host is not None else 0.0
        disk = self.disk.capacity_bytes if self.disk else 0.0
        return search.Room(_ROOM * device.memory_bytes, _ROOM * host, disk)

    def rates(self, device: Device) -> Rates:
        """This model's rates, or the named fit."""
        if self.costs == _OWN:
            return Modelled(self.stored, device, self.given_host, self.disk)
        rates = flexgen.load(known.named("costs", self.costs, _costs()))
        if rates.device != device.slug:
            raise ProblemError(
                f"--costs {self.costs} was fitted on {rates.device}, not on {device.slug}; "
                f"take --costs {_OWN}"
            )
        return rates


def offload(asked: Asked, shown: Shown) -> None:
    """Predict networks larger than the device's memory: weights, cache, activations on the host.

    \b
    perfmodel offload opt-30b -d t4 --host xeon-gold-6242 --policy auto --isl 512 --osl 32
    perfmodel offload opt-6.7b -d a100-pcie-40gb --policy recompute --seq 1k,4k --batch 8,32
    perfmodel offload llama-2-13b -d rtx4090 --policy stream --batch 1,64,512 --weights w4a16
    perfmodel offload llama-2-13b -d rtx4070 --host xeon-8480plus --policy layers
    """
    reports = [_WAYS.get(asked.policy, _policy)(asked, device) for device in asked.device]
    several = len(reports) > 1
    names = [device.slug for device in asked.device]
    shown.emit(render.by_device(names, reports, asked.label) if several else reports[0])


def _policy(asked: Asked, device: Device) -> Report:
    """The fastest policy that fits, or the one of six percentages."""
    request = Request(asked.isl, asked.osl)
    shape, room = of_network(asked.stored), asked.room(device)
    notes = ["rates: operators on device and host, the link's documented rate; nothing is fitted"]
    if asked.policy == "auto":
        parts = tuple(asked.batch) if asked.batch else search.PARTS
        plan = search.best(shape, request, asked.rates(device), room, parts)
    else:
        shares = _shares(asked.policy)
        if asked.batch is None or len(asked.batch) != 1:
            raise ProblemError("a policy of six numbers needs --batch, one size, and --blocks")
        policy = of_percent(asked.batches[0], asked.blocks, shares)
        plan = answer(shape, request, policy, asked.rates(device))
        if not room.holds(shape, request, policy):
            notes.append(
                f"by this count it needs more than {_ROOM:.0%} of a memory: it may not run"
            )
    if asked.costs != _OWN:
        notes[0] = f"rates: {flexgen.load(asked.costs).source}"
    link = device.level("host")
    rate = f", {si(link.bytes_per_s, 'B/s')} to its host" if link and link.bytes_per_s else ""
    title = (
        f"{asked.label} on {device.slug}{rate}: {request.prompt:,} tokens in, "
        f"{request.generated:,} out"
    )
    return render.policy(shape, request, plan, asked.costs, title, notes)


def _shares(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UnknownName(
            "policy", text, _WAYS, "(or six percentages: 20,80,0,100,0,100)"
        ) from None


def _recompute(asked: Asked, device: Device) -> Report:
    notes: list[str] = []
    if asked.derive:
        needs("sympy", "--derive")
        from perfmodel.napkin.splitting import derived

        notes = list(derived().lines())
    title = f"{asked.label} on {device.slug}: a layer's cache from host memory"
    contexts = list(asked.context)
    return render.recomputed(asked.network, device, asked.batches, contexts, title, notes)


def _stream(asked: Asked, device: Device) -> Report:
    title = f"{asked.label} on {device.slug}: a step with weights from host memory"
    return render.streaming(asked.stored, device, asked.batches, list(asked.context), title)


def _layers(asked: Asked, device: Device) -> Report:
    host = asked.given_host
    (batch, *batches), (context, *contexts) = asked.batches, asked.context
    if batches or contexts:
        raise ProblemError("--policy layers takes one --batch and one --seq")
    title = f"{asked.label}: layers on {device.slug}, the rest on {host.slug}"
    return render.layers(asked.stored, device, host, batch, context, title)


_WAYS: dict[str, Callable[[Asked, Device], Report]] = {
    "auto": _policy,
    "recompute": _recompute,
    "stream": _stream,
    "layers": _layers,
}

app = command(offload)
