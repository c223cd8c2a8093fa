"""`perfmodel offload NETWORK`: a network larger than its device, with host memory and disk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import Annotated

from perfmodel.cli import ranges
from perfmodel.cli.arguments import Devices, Host, Size
from perfmodel.cli.build import command
from perfmodel.cli.networkoptions import NamedNetwork, WeightFormat
from perfmodel.columns import Row
from perfmodel.compression import naming
from perfmodel.compression.compressed import Compressed
from perfmodel.errors import ProblemError, UnknownName, needs
from perfmodel.fieldoption import FieldOption
from perfmodel.hardware import Device
from perfmodel.offload import flexgen, recompute, search, sharing, streaming
from perfmodel.offload.layershape import Request, Stored, of_network
from perfmodel.offload.layertimes import Rates, predict_block
from perfmodel.offload.modelled import Disk, Modelled
from perfmodel.offload.policy import of_percent
from perfmodel.render import Report
from perfmodel.render import offload as render
from perfmodel.render.report import on_device
from perfmodel.units import parse

_ROOM = 0.9
"""Share of each memory that policies may fill."""
_OWN = "own"
_POLICIES = ("auto", "recompute", "stream", "layers")
_NO_GAIN = (
    "an activation is no smaller than the keys and values made of it, as with grouped or latent "
    "heads: recomputing any of them saves nothing"
)
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
    name, title, rows_of = _KINDS.get(asked.policy, _BLOCKS)
    rows, notes = list[Row](), list[str]()
    for device in asked.device:
        some, lines = rows_of(asked, device)
        rows += some
        notes += lines
    devices = on_device(device.slug for device in asked.device)
    values = {name: f"{getattr(asked, name):,}" for name in ("isl", "osl")}
    return render.report(name, rows, f"{asked.label}{devices}: {title.format(**values)}", notes)


_Rows = tuple[list[Row], list[str]]
"""Rows of a device, and lines below them."""


def _recomputed(asked: Asked, device: Device) -> _Rows:
    """How much of a cache in host memory to recompute, for one layer (KVPR)."""
    notes = list[str]()
    if asked.derive:
        needs("sympy", "--derive")
        from perfmodel.napkin.splitting import derived

        notes += derived().lines()
    rows, gains = list[Row](), True
    for batch, tokens in product(asked.batch or (1,), asked.context):
        plan = recompute.of_network(asked.network, device, batch, tokens)
        tree, gains = replace(plan.tree(plan.split), device=device.slug), plan.gains
        rows.append(
            tree.as_row(
                gains=gains,
                split=plan.split,
                share=plan.split / tokens,
                sent_us=plan.seconds(0) * 1e6,
                time_share=plan.time_share,
            )
        )
    return rows, [*notes, *([] if gains else [_NO_GAIN])]


def _streamed(asked: Asked, device: Device) -> _Rows:
    """Weights streamed over the link in every step."""
    rows = list[Row]()
    for tokens in asked.context:
        hiding = streaming.hiding_batch(asked.stored, device, tokens)
        for batch in asked.batch or (1,):
            tree = streaming.streamed(asked.stored, device, batch, tokens)
            link, work = (lane.seconds * 1e6 for lane in tree.children)
            rows.append(
                tree.as_row(
                    link_us=link,
                    work_us=work,
                    tokens_per_s=batch / tree.seconds,
                    hiding_batch=hiding,
                )
            )
    return rows, []


def _layers(asked: Asked, device: Device) -> _Rows:
    """Each number of layers that fits on the device."""
    batches, contexts = list(asked.batch or (1,)), list(asked.context)
    if len(batches) > 1 or len(contexts) > 1:
        raise ProblemError("--policy layers takes one --batch and one --seq")
    counts = range(asked.network.layers + 1)
    at = (device, asked.given_host)
    trees = [sharing.layers(asked.stored, *at, n, batches[0], contexts[0]) for n in counts]
    rows: list[Row] = [tree.as_row(tokens_per_s=batches[0] / tree.seconds) for tree in trees]
    fitting = [row for row in rows if row["fits"]]
    rest = len(rows) - len(fitting)
    return fitting, [f"{rest} further numbers of layers do not fit"] if rest else []


def _blocks(asked: Asked, device: Device) -> _Rows:
    """The fastest policy that fits, or the one of six percentages."""
    notes = ["rates: operators on device and host, the link's documented rate; nothing is fitted"]
    disk = None if asked.disk_rate is None else Disk(asked.disk_rate, asked.disk_size)
    host_bytes = asked.host_memory
    if host_bytes is None:
        host_bytes = asked.host.memory_bytes if asked.host is not None else 0.0
    rooms = {
        "hbm": _ROOM * device.memory_bytes,
        "host": _ROOM * host_bytes,
        "disk": disk.capacity_bytes if disk else 0.0,
    }
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
        policy = search.best(shape, request, rates, rooms, parts)
    else:
        policy = of_percent(next(iter(asked.batch or (1,))), asked.blocks, shares)
        if not search.fits(shape, request, policy, rooms):
            notes.append(
                f"by this count it needs more than {_ROOM:.0%} of a memory: it may not run"
            )
    tree = replace(predict_block(shape, request, policy, rates, rooms), device=device.slug)
    prefill, decode = tree.children
    row = tree.as_row(
        costs=asked.costs,
        tokens_per_s=policy.batch * request.generated / tree.seconds,
        prefill_limiter=prefill.limiter,
        decode_limiter=decode.limiter,
    )
    return [row], notes


_KINDS = {
    "recompute": ("recompute", "a layer's cache from host memory", _recomputed),
    "stream": ("streaming", "a step with weights from host memory", _streamed),
    "layers": ("layers", "a step with some layers on its host", _layers),
}
_BLOCKS = ("policies", "{isl} tokens in, {osl} out", _blocks)
"""Of a policy the name of its rows, its title, and what makes the rows of a device."""


def _shares(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        hint = "(or six percentages: 20,80,0,100,0,100)"
        raise UnknownName("policy", text, _POLICIES, hint) from None


app = command(offload)
