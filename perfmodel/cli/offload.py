"""`perfmodel offload NETWORK`: a network larger than its device, with host memory and disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from perfmodel.cli import completing, known, ranges, spellings
from perfmodel.cli.arguments import NetworkName
from perfmodel.cli.hold import Weights, stored_as
from perfmodel.cli.output import Format, Output, chosen_format, emit
from perfmodel.cli.predict import Devices
from perfmodel.compression.network import Compressed
from perfmodel.errors import ProblemError, UnknownName, needs
from perfmodel.hardware import Device, load
from perfmodel.networks.network import Network
from perfmodel.offload import flexgen, search, ways
from perfmodel.offload.layershape import Request, Stored, of_network
from perfmodel.offload.layertimes import Rates, answer
from perfmodel.offload.modelled import Disk, Modelled
from perfmodel.offload.policy import of_percent
from perfmodel.render import Report
from perfmodel.render import offload as render
from perfmodel.render.report import text
from perfmodel.units import parse, si

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_ROOM = 0.9
"""Share of each memory that policies may fill."""
_OWN = "own"


@dataclass(frozen=True)
class _Asked:
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
    found = load(host) if host is not None else None
    disk = None
    if disk_rate is not None:
        disk = Disk(
            ranges.quantity(disk_rate, "bandwidth", "--disk-rate"),
            ranges.quantity(disk_size, "capacity", "--disk-size"),
        )
    memory = _host_bytes(found, host_memory)
    of = spellings.network(network)
    stored = _stored(of, weights, policy)
    request = Request(ranges.one(isl, "--isl"), ranges.one(osl, "--osl"))
    batches = _sizes(batch, "--batch") if batch is not None else None
    passes, contexts = ranges.one(blocks, "--blocks"), _sizes(context, "--seq")
    every = [
        _Asked(
            of, stored, on, found, policy, costs, batches, passes, request, contexts,
            _room(on, memory, disk), disk, derive,
        )
        for on in known.devices(device)
    ]  # fmt: skip
    reports = [_WAYS.get(policy, _stated)(asked) for asked in every]
    emit(_joined(every, reports) if len(every) > 1 else reports[0], format, output)


def _stored(network: Network, weights: str | None, policy: str) -> Stored:
    """The network under the named format or its own; 16 bits are those of the layers' products."""
    if weights is None and not network.weights:
        return network
    if weights is not None and policy == "recompute":
        raise ProblemError("--policy recompute divides a cache, not the weights; drop --weights")
    return Compressed(network, stored_as(network, weights))


def _joined(every: Sequence[_Asked], reports: Sequence[Report]) -> Report:
    """The rows of all devices, with a column for the device."""
    rows = [
        {"device": asked.device.slug, **row}
        for asked, report in zip(every, reports, strict=True)
        for row in report.rows
    ]
    first = reports[0]
    notes = dict.fromkeys(
        [*(report.title for report in reports), *(n for report in reports for n in report.notes)]
    )
    columns = [text("device", "device"), *first.columns]
    return Report(first.name, rows, columns, _named(every[0]), notes=list(notes))


def _room(device: Device, host_bytes: float, disk: Disk | None) -> search.Room:
    on_disk = disk.capacity_bytes if disk else 0.0
    return search.Room(_ROOM * device.memory_bytes, _ROOM * host_bytes, on_disk)


def _host_bytes(host: Device | None, said: str | None) -> float:
    if said is not None:
        return parse(said, "capacity")
    return host.memory_bytes if host is not None else 0.0


def _sizes(text: str, name: str) -> tuple[int, ...]:
    return tuple(int(value) for value in ranges.parse(text, name))


def _rates(asked: _Asked) -> Rates:
    if asked.costs == _OWN:
        return Modelled(asked.stored, asked.device, asked.with_host(), asked.disk)
    known.named("costs", asked.costs, (_OWN, *flexgen.names()))
    fitted = flexgen.load(asked.costs)
    if fitted.device != asked.device.slug:
        raise ProblemError(
            f"--costs {asked.costs} was fitted on {fitted.device}, not on {asked.device.slug}; "
            f"take --costs {_OWN}"
        )
    return fitted


def _auto(asked: _Asked) -> Report:
    """The fastest policy that fits."""
    shape = of_network(asked.stored)
    if asked.costs == _OWN:
        asked.with_host()
    parts = asked.batches or search.PARTS
    found = search.best(shape, asked.request, _rates(asked), asked.room, parts)
    row = ways.policy_row(shape, asked.request, found, asked.costs)
    return render.policies([row], _title(asked), _policy_notes(asked))


def _stated(asked: _Asked) -> Report:
    """The policy of six percentages."""
    percent = _percent(asked.policy)
    if not asked.batches or len(asked.batches) != 1:
        raise ProblemError("a policy of six numbers needs --batch, one size, and --blocks")
    shape = of_network(asked.stored)
    policy = of_percent(asked.batches[0], asked.blocks, percent)
    found = answer(shape, asked.request, policy, _rates(asked))
    row = ways.policy_row(shape, asked.request, found, asked.costs)
    notes = list(_policy_notes(asked))
    if not asked.room.holds(shape, asked.request, policy):
        notes.append(f"by this count it needs more than {_ROOM:.0%} of a memory: it may not run")
    return render.policies([row], _title(asked), notes)


def _percent(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UnknownName(
            "policy", text, _WAYS, "(or six percentages: 20,80,0,100,0,100)"
        ) from None


def _policy_notes(asked: _Asked) -> list[str]:
    if asked.costs != _OWN:
        return [f"rates: {flexgen.load(asked.costs).source}"]
    return ["rates: operators on device and host, the link's documented rate; nothing is fitted"]


def _recompute(asked: _Asked) -> Report:
    rows = list(
        ways.recompute_rows(asked.network, asked.device, asked.batches or (1,), asked.contexts)
    )
    notes = list(_derivation()) if asked.derive else []
    if not rows[0]["gains"]:
        notes.append(
            "an activation is no smaller than the keys and values made of it, as with "
            "grouped or latent heads: recomputing any of them saves nothing"
        )
    title = f"{_named(asked)} on {asked.device.slug}: a layer's cache from host memory"
    return render.recompute(rows, title, notes)


def _derivation() -> Iterator[str]:
    needs("sympy", "--derive")
    from perfmodel.napkin.splitting import derived

    return derived().lines()


def _stream(asked: _Asked) -> Report:
    rows = list(
        ways.streaming_rows(asked.stored, asked.device, asked.batches or (1,), asked.contexts)
    )
    title = f"{_named(asked)} on {asked.device.slug}: a step with weights from host memory"
    notes = [
        "hidden from: the batch whose own work takes as long as the link; its cache may not fit"
    ]
    return render.streaming(rows, title, notes)


def _layers(asked: _Asked) -> Report:
    host = asked.with_host()
    batches = asked.batches or (1,)
    if len(batches) != 1 or len(asked.contexts) != 1:
        raise ProblemError("--policy layers takes one --batch and one --seq")
    rows = list(ways.layer_rows(asked.stored, asked.device, host, batches[0], asked.contexts[0]))
    title = f"{_named(asked)}: layers on {asked.device.slug}, the rest on {host.slug}"
    return render.layers(rows, title)


_WAYS: dict[str, Callable[[_Asked], Report]] = {
    "auto": _auto,
    "recompute": _recompute,
    "stream": _stream,
    "layers": _layers,
}


def _named(asked: _Asked) -> str:
    """The network, with the format of its weights where they are not in 16 bits."""
    name, stored = asked.network.name, asked.stored
    return f"{name}, weights {stored.scheme.name}" if isinstance(stored, Compressed) else name


def _title(asked: _Asked) -> str:
    request = asked.request
    link = asked.device.level("host")
    rate = f", {si(link.bytes_per_s, 'B/s')} to its host" if link and link.bytes_per_s else ""
    return (
        f"{_named(asked)} on {asked.device.slug}{rate}: {request.prompt:,} tokens in, "
        f"{request.generated:,} out"
    )
