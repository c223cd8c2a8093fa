"""`perfmodel offload NETWORK`: a network larger than its device, with host memory and disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer

from perfmodel.cli import completing, known, ranges, spellings
from perfmodel.cli.arguments import Devices, NetworkName
from perfmodel.cli.hold import Weights, stored_as
from perfmodel.cli.output import Format, Output, chosen_format, emit
from perfmodel.compression.network import Compressed
from perfmodel.errors import ProblemError, UnknownName, needs
from perfmodel.hardware import Device, load
from perfmodel.networks.network import Network
from perfmodel.offload import flexgen, search
from perfmodel.offload.layershape import Request, Stored, of_network
from perfmodel.offload.layertimes import Rates, answer
from perfmodel.offload.modelled import Disk, Modelled
from perfmodel.offload.policy import of_percent
from perfmodel.render import Report
from perfmodel.render import offload as render
from perfmodel.units import parse, si

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_ROOM = 0.9
"""Share of each memory that policies may fill."""
_OWN = "own"


@dataclass(frozen=True)
class _Query:
    """The parsed options."""

    network: Network
    stored: Stored
    device: Device
    host: Device | None
    policy: str
    costs: str
    batches: tuple[int, ...] | None
    blocks: int
    request: Request
    contexts: tuple[int, ...]
    room: search.Room
    disk: Disk | None
    derive: bool

    def with_host(self) -> Device:
        if self.host is None:
            raise ProblemError(
                f"--policy {self.policy} needs a host; name one with --host, such as xeon-gold-6242"
            )
        return self.host

    @property
    def label(self) -> str:
        """The network, with the format of its weights where they are not in 16 bits."""
        name, stored = self.network.name, self.stored
        return f"{name}, weights {stored.scheme.name}" if isinstance(stored, Compressed) else name


@app.command("offload")
def offload(
    network: NetworkName,
    device: Devices,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="NAME",
            help="CPU of the host: slug, alias or spec file.",
            autocompletion=completing.devices,
        ),
    ] = None,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="auto: the fastest of FlexGen's policies that fits; six percentages: "
            "FlexGen's policy (20,80,0,100,0,100: device and host for weights, for "
            "cache, for activations); recompute: part of the KV cache is recomputed; "
            "stream: weights over the link in each step; layers: some layers on the "
            "host.",
            autocompletion=completing.of_list(lambda: _WAYS),
        ),
    ] = "auto",
    costs: Annotated[
        str,
        typer.Option(
            "--costs",
            metavar="NAME",
            help="Rates for auto and six percentages: own (this model's), or FlexGen's fit t4-gcp.",
            autocompletion=completing.of_list(lambda: (_OWN, *flexgen.names())),
        ),
    ] = _OWN,
    weights: Weights = None,
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch", metavar="SIZES", help="Sequences that the device processes at a time."
        ),
    ] = None,
    blocks: Annotated[
        str,
        typer.Option(
            "--blocks",
            metavar="N",
            help="Batches that are processed for each load of a layer's weights.",
        ),
    ] = "1",
    isl: Annotated[
        str, typer.Option("--isl", metavar="TOKENS", help="Input length: tokens of a prompt.")
    ] = "512",
    osl: Annotated[
        str,
        typer.Option(
            "--osl", metavar="TOKENS", help="Output length: generated tokens of a request."
        ),
    ] = "32",
    context: Annotated[
        str,
        typer.Option(
            "--seq",
            "--context",
            metavar="TOKENS",
            help="Tokens of each sequence in the KV cache, for recompute, stream and layers.",
        ),
    ] = "1k",
    host_memory: Annotated[
        str | None,
        typer.Option(
            "--host-memory",
            metavar="SIZE",
            help='Size of host memory: "208 GB" [default: the host\'s spec].',
        ),
    ] = None,
    disk_rate: Annotated[
        str | None,
        typer.Option(
            "--disk-rate",
            metavar="RATE",
            help='Rate of a disk\'s reads and writes: "2 GB/s" [default: no disk].',
        ),
    ] = None,
    disk_size: Annotated[
        str, typer.Option("--disk-size", metavar="SIZE", help="Capacity of the disk.")
    ] = "1 TB",
    derive: Annotated[
        bool,
        typer.Option(
            "--derive", help="With --policy recompute: print the derivation of the formula."
        ),
    ] = False,
    format: Format = None,
    output: Output = None,
) -> None:
    """Predict networks larger than the device's memory: weights, cache, activations on the host.

    \b
    perfmodel offload opt-30b -d t4 --host xeon-gold-6242 --policy auto --isl 512 --osl 32
    perfmodel offload opt-6.7b -d a100-pcie-40gb --policy recompute --seq 1k,4k --batch 8,32
    perfmodel offload llama-2-13b -d rtx4090 --policy stream --batch 1,64,512 --weights w4a16
    perfmodel offload llama-2-13b -d rtx4070 --host xeon-8480plus --policy layers
    """
    chosen_format(format, output)
    cpu = load(host) if host is not None else None
    disk = None
    if disk_rate is not None:
        disk = Disk(
            ranges.quantity(disk_rate, "bandwidth", "--disk-rate"),
            ranges.quantity(disk_size, "capacity", "--disk-size"),
        )
    memory = _host_bytes(cpu, host_memory)
    net = spellings.network(network)
    stored = _storage(net, weights, policy)
    request = Request(ranges.one(isl, "--isl"), ranges.one(osl, "--osl"))
    batches = _sizes(batch, "--batch") if batch is not None else None
    passes, contexts = ranges.one(blocks, "--blocks"), _sizes(context, "--seq")
    queries = [
        _Query(
            net, stored, target, cpu, policy, costs, batches, passes, request, contexts,
            _room(target, memory, disk), disk, derive,
        )
        for target in known.devices(device)
    ]  # fmt: skip
    reports = [_WAYS.get(policy, _policy)(query) for query in queries]
    report = reports[0]
    if len(queries) > 1:
        names = [query.device.slug for query in queries]
        report = render.by_device(names, reports, queries[0].label)
    emit(report, format, output)


def _storage(network: Network, weights: str | None, policy: str) -> Stored:
    """The network under the named format or its own; 16 bits are those of the layers' products."""
    if weights is None and not network.weights:
        return network
    if weights is not None and policy == "recompute":
        raise ProblemError("--policy recompute divides a cache, not the weights; drop --weights")
    return Compressed(network, stored_as(network, weights))


def _room(device: Device, host_bytes: float, disk: Disk | None) -> search.Room:
    disk_bytes = disk.capacity_bytes if disk else 0.0
    return search.Room(_ROOM * device.memory_bytes, _ROOM * host_bytes, disk_bytes)


def _host_bytes(host: Device | None, size: str | None) -> float:
    if size is not None:
        return parse(size, "capacity")
    return host.memory_bytes if host is not None else 0.0


def _sizes(text: str, name: str) -> tuple[int, ...]:
    return tuple(int(value) for value in ranges.parse(text, name))


def _rates(query: _Query) -> Rates:
    if query.costs == _OWN:
        return Modelled(query.stored, query.device, query.with_host(), query.disk)
    known.named("costs", query.costs, (_OWN, *flexgen.names()))
    rates = flexgen.load(query.costs)
    if rates.device != query.device.slug:
        raise ProblemError(
            f"--costs {query.costs} was fitted on {rates.device}, not on {query.device.slug}; "
            f"take --costs {_OWN}"
        )
    return rates


def _policy(query: _Query) -> Report:
    """The fastest policy that fits, or the one of six percentages."""
    shape, request = of_network(query.stored), query.request
    notes = ["rates: operators on device and host, the link's documented rate; nothing is fitted"]
    if query.policy == "auto":
        parts = query.batches or search.PARTS
        plan = search.best(shape, request, _rates(query), query.room, parts)
    else:
        shares = _shares(query.policy)
        if not query.batches or len(query.batches) != 1:
            raise ProblemError("a policy of six numbers needs --batch, one size, and --blocks")
        policy = of_percent(query.batches[0], query.blocks, shares)
        plan = answer(shape, request, policy, _rates(query))
        if not query.room.holds(shape, request, policy):
            notes.append(
                f"by this count it needs more than {_ROOM:.0%} of a memory: it may not run"
            )
    if query.costs != _OWN:
        notes[0] = f"rates: {flexgen.load(query.costs).source}"
    link = query.device.level("host")
    rate = f", {si(link.bytes_per_s, 'B/s')} to its host" if link and link.bytes_per_s else ""
    title = (
        f"{query.label} on {query.device.slug}{rate}: {request.prompt:,} tokens in, "
        f"{request.generated:,} out"
    )
    return render.policy(shape, request, plan, query.costs, title, notes)


def _shares(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UnknownName(
            "policy", text, _WAYS, "(or six percentages: 20,80,0,100,0,100)"
        ) from None


def _recompute(query: _Query) -> Report:
    notes: list[str] = []
    if query.derive:
        needs("sympy", "--derive")
        from perfmodel.napkin.splitting import derived

        notes = list(derived().lines())
    title = f"{query.label} on {query.device.slug}: a layer's cache from host memory"
    batches = query.batches or (1,)
    return render.recomputed(query.network, query.device, batches, query.contexts, title, notes)


def _stream(query: _Query) -> Report:
    title = f"{query.label} on {query.device.slug}: a step with weights from host memory"
    batches = query.batches or (1,)
    return render.streaming(query.stored, query.device, batches, query.contexts, title)


def _layers(query: _Query) -> Report:
    host = query.with_host()
    batches, contexts = query.batches or (1,), query.contexts
    if len(batches) != 1 or len(contexts) != 1:
        raise ProblemError("--policy layers takes one --batch and one --seq")
    title = f"{query.label}: layers on {query.device.slug}, the rest on {host.slug}"
    return render.layers(query.stored, query.device, host, batches[0], contexts[0], title)


_WAYS: dict[str, Callable[[_Query], Report]] = {
    "auto": _policy,
    "recompute": _recompute,
    "stream": _stream,
    "layers": _layers,
}
