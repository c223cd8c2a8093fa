"""`perfmodel hold NETWORK`: the number of devices that hold a network, and token times in SRAM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer

from perfmodel.cli import completing, known, ranges, spellings
from perfmodel.cli.arguments import Devices, NetworkName
from perfmodel.cli.output import Format, Output, chosen_format, emit
from perfmodel.compression import naming
from perfmodel.compression.network import Compressed
from perfmodel.compression.scheme import PLAIN, Scheme
from perfmodel.hardware import Device
from perfmodel.networks.network import Network
from perfmodel.onchip.holding import CONTEXT, holding
from perfmodel.onchip.latency import is_on_chip, latency
from perfmodel.onchip.streaming import streamed
from perfmodel.render import onchip as render
from perfmodel.render.report import in_micros

app = typer.Typer(rich_markup_mode=None, add_completion=False)

Weights = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="NAME",
        help="Weight format of the layers (perfmodel compress lists them) [default: the network's "
        "own, or 16 bits].",
        autocompletion=completing.schemes,
    ),
]


def stored_as(network: Network, weights: str | None) -> Scheme:
    """The named scheme, or the network's own."""
    return naming.scheme(known.one("--weights", weights or network.weights or PLAIN))


@app.command("hold")
def hold(
    network: NetworkName,
    device: Devices,
    weights: Weights = None,
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            metavar="NAME",
            help="Weight format of the head's matrix [default: the usual one for the format].",
            autocompletion=completing.schemes,
        ),
    ] = None,
    batch: Annotated[str, typer.Option("--batch", metavar="N", help="Number of sequences.")] = "1",
    context: Annotated[
        str,
        typer.Option(
            "--seq", "--context", metavar="TOKENS", help="Tokens of each sequence in the KV cache."
        ),
    ] = str(CONTEXT),
    price: Annotated[
        float | None,
        typer.Option(
            "--price", metavar="NUMBER", help="Your price of one device, in any currency."
        ),
    ] = None,
    stream_rate: Annotated[
        str | None,
        typer.Option(
            "--stream-rate",
            metavar="RATE",
            help='Stream the weights from outside the chip at this rate: "150 GB/s".',
        ),
    ] = None,
    format: Format = None,
    output: Output = None,
) -> None:
    """Count the devices that hold a network: watts, cost, and decode steps of on-chip memories.

    \b
    perfmodel hold llama-2-70b -d wse-2 -d groq-lpu -d h100-sxm --price 30000
    perfmodel hold llama-2-13b -d wse-2 --seq 16k
    perfmodel hold llama-2-70b -d wse-2 --stream-rate "150 GB/s"
    """
    chosen_format(format, output)
    net = spellings.network(network)
    head_scheme = naming.scheme(known.one("--head", head)) if head is not None else None
    model = Compressed(net, stored_as(net, weights), head_scheme)
    sizes = ranges.one(batch, "--batch"), ranges.one(context, "--seq")
    rate = None
    if stream_rate is not None:
        rate = ranges.quantity(stream_rate, "bandwidth", "--stream-rate")
    devices = known.devices(device)
    rows = [_row(model, target, sizes, price, rate) for target in devices]
    title = (
        f"{model.network.name}, {model.scheme.name}: {sizes[0]:,} "
        f"{'sequence' if sizes[0] == 1 else 'sequences'} of {sizes[1]:,} tokens"
    )
    emit(render.report(rows, title, _notes(devices)), format, output)


def _row(
    model: Compressed,
    device: Device,
    sizes: tuple[int, int],
    price: float | None,
    rate: float | None,
) -> dict[str, Any]:
    batch, context = sizes
    fleet = holding(model, device, batch=batch, context=context, price=price)
    times: dict[str, Any] = dict.fromkeys(("time_us", "low_us", "high_us", "limiter"))
    energy = None
    if is_on_chip(device):
        step = latency(model, device, fleet.devices, batch=batch, context=context)
        ends = in_micros(step.seconds, step.low_seconds, step.high_seconds)
        times = {**ends, "limiter": step.layouts[0].limiter}
        energy = None if fleet.watts is None else fleet.watts * step.seconds / batch
    stream = streamed(model, device, rate) if rate is not None else None
    return {
        **asdict(fleet),
        "fits": fleet.fits,
        **times,
        "joules_per_token": energy,
        "streamed_us": None if stream is None else stream.seconds(batch) * 1e6,
        "hiding_batch": None if stream is None else stream.hiding_batch,
    }


def _notes(devices: list[Device]) -> Iterator[str]:
    if any(map(is_on_chip, devices)):
        yield (
            "step: from the faster layout over the cores to three times the slower; what vendors' "
            "compilers do is not public, so that no better bound is known"
        )
    if not all(map(is_on_chip, devices)):
        yield "a step of devices with memory off the chip: perfmodel compress"
