"""`perfmodel offload NETWORK`: a network larger than its device, with host memory and disk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated

from perfmodel.cli import ranges
from perfmodel.cli.arguments import Devices, Host, Size
from perfmodel.cli.build import command
from perfmodel.cli.networkoptions import NamedNetwork, WeightFormat
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
_POLICIES = ("auto", "recompute", "stream", "layers")
_CONTEXT = ranges.read("1k", "")
_capacity = partial(ranges.quantity, dimension="capacity", name="--disk-size")
_rate = partial(ranges.quantity, dimension="bandwidth", name="--disk-rate")


@dataclass(frozen=True)
class Asked:
    """What `offload` is asked for."""

    network: NamedNetwork
    """The network."""
    device: Devices
    """The devices."""
    host: Host = None
    """CPU of the host: slug, alias or spec file."""
    policy: Annotated[str, FieldOption(metavar="NAME", names="perfmodel.cli.offload:_POLICIES")] = (
        "auto"
    )
    """auto: the fastest of FlexGen's policies that fits; six percentages: FlexGen's policy
    (20,80,0,100,0,100: device and host for weights, for cache, for activations); recompute: part of
    the KV cache is recomputed; stream: weights over the link in each step; layers: some layers on
    the host."""
    costs: Annotated[
        str, FieldOption(metavar="NAME", single=True, names=(_OWN, *flexgen.names()))
    ] = _OWN
    """Rates for auto and six percentages: this model's own, or a fit of FlexGen's."""
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
    host_memory: Annotated[
        float | None, FieldOption(None, "SIZE", read=partial(parse, dimension="capacity"))
    ] = None
    """Size of host memory: "208 GB" [default: the host's spec]."""
    disk_rate: Annotated[float | None, FieldOption(metavar="RATE", read=_rate)] = None
    """Rate of a disk's reads and writes: "2 GB/s" [default: no disk]."""
    disk_size: Annotated[float, FieldOption(metavar="SIZE", read=_capacity)] = 1e12
    """Capacity of the disk [default: 1 TB]."""
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

    @property
    def given_host(self) -> Device:
        """The host. Raises `ProblemError` where none is named."""
        if self.host is None:
            raise ProblemError(
                f"--policy {self.policy} needs a host; name one with --host, such as xeon-gold-6242"
            )
        return self.host


def offload(asked: Asked) -> Report:
    """Predict networks larger than the device's memory: weights, cache, activations on the host.

    \b
    perfmodel offload opt-30b -d t4 --host xeon-gold-6242 --policy auto --isl 512 --osl 32
    perfmodel offload opt-6.7b -d a100-pcie-40gb --policy recompute --seq 1k,4k --batch 8,32
    perfmodel offload llama-2-13b -d rtx4090 --policy stream --batch 1,64,512 --weights w4a16
    perfmodel offload llama-2-13b -d rtx4070 --host xeon-8480plus --policy layers
    """
    reports = [_report(asked, device) for device in asked.device]
    names = [device.slug for device in asked.device]
    return reports[0] if len(reports) == 1 else render.by_device(names, reports, asked.label)


def _report(asked: Asked, device: Device) -> Report:
    """The answer for a device."""
    on, contexts = f"{asked.label} on {device.slug}", list(asked.context)
    batches = list(asked.batch or (1,))
    if asked.policy == "recompute":
        notes: list[str] = []
        if asked.derive:
            needs("sympy", "--derive")
            from perfmodel.napkin.splitting import derived

            notes = list(derived().lines())
        title = f"{on}: a layer's cache from host memory"
        return render.recomputed(asked.network, device, batches, contexts, title, notes)
    if asked.policy == "stream":
        title = f"{on}: a step with weights from host memory"
        return render.streaming(asked.stored, device, batches, contexts, title)
    if asked.policy == "layers":
        host = asked.given_host
        if len(batches) > 1 or len(contexts) > 1:
            raise ProblemError("--policy layers takes one --batch and one --seq")
        title = f"{asked.label}: layers on {device.slug}, the rest on {host.slug}"
        return render.layers(asked.stored, device, host, batches[0], contexts[0], title)
    return _policy(asked, device)


def _policy(asked: Asked, device: Device) -> Report:
    """The fastest policy that fits, or the one of six percentages."""
    notes = ["rates: operators on device and host, the link's documented rate; nothing is fitted"]
    disk = None if asked.disk_rate is None else Disk(asked.disk_rate, asked.disk_size)
    host_bytes = asked.host_memory
    if host_bytes is None:
        host_bytes = asked.host.memory_bytes if asked.host is not None else 0.0
    disk_bytes = disk.capacity_bytes if disk else 0.0
    room = search.Room(_ROOM * device.memory_bytes, _ROOM * host_bytes, disk_bytes)
    shape, request = of_network(asked.stored), Request(asked.isl, asked.osl)
    shares = None if asked.policy == "auto" else _shares(asked.policy)
    if shares is not None and (asked.batch is None or len(asked.batch) != 1):
        raise ProblemError("a policy of six numbers needs --batch, one size, and --blocks")
    rates: Rates
    if asked.costs == _OWN:
        rates = Modelled(asked.stored, device, asked.given_host, disk)
    else:
        fitted = rates = flexgen.load(asked.costs)
        notes[0] = f"rates: {fitted.source}"
        if fitted.device != device.slug:
            raise ProblemError(
                f"--costs {asked.costs} was fitted on {fitted.device}, not on {device.slug}; "
                f"take --costs {_OWN}"
            )
    if shares is None:
        parts = tuple(asked.batch) if asked.batch else search.PARTS
        plan = search.best(shape, request, rates, room, parts)
    else:
        policy = of_percent(next(iter(asked.batch or (1,))), asked.blocks, shares)
        plan = answer(shape, request, policy, rates)
        if not room.holds(shape, request, policy):
            notes.append(
                f"by this count it needs more than {_ROOM:.0%} of a memory: it may not run"
            )
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
        hint = "(or six percentages: 20,80,0,100,0,100)"
        raise UnknownName("policy", text, _POLICIES, hint) from None


app = command(offload)
