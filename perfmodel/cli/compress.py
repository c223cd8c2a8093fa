"""`perfmodel compress NETWORK`: weight formats and sparsity compared on a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Any

import typer

from perfmodel.cli import completing, known, ranges, spellings
from perfmodel.cli.leftout import possible
from perfmodel.cli.output import Format, Output, chosen_format, emit
from perfmodel.compression import naming
from perfmodel.compression.comparing import Compared, compare, least_zeros, runnable
from perfmodel.compression.scheme import Scheme
from perfmodel.compression.unstructured import NONZERO_BITS, TiledCsl
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.networks.network import Network
from perfmodel.onchip.latency import is_on_chip
from perfmodel.render import compression as render

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_USUAL = "fp16,w8a16,fp8,w4a16,nf4,q4_k_m,2:4"


@app.command("compress")
def compress(
    network: Annotated[
        str | None,
        typer.Argument(
            metavar="NETWORK",
            help="A network's name (perfmodel network list) or YAML file. Without it, the "
            "weight formats are listed.",
            autocompletion=completing.networks,
        ),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(
            "--device",
            "--gpu",
            "-d",
            metavar="NAME",
            help="Device: slug, alias or spec file; repeats.",
            autocompletion=completing.devices,
        ),
    ] = None,
    formats: Annotated[
        str | None,
        typer.Option(
            "--formats",
            metavar="NAMES",
            help="fp16, w4a16:g64, squeeze:3:0.45%, 2:4, csl:0.8, prune:0.25, ... with commas "
            f"[default: the network's own, and those of {_USUAL} that the device can run].",
            autocompletion=completing.schemes,
        ),
    ] = None,
    batch: Annotated[
        str,
        typer.Option(
            "--batch",
            metavar="SIZES",
            help="Sequences of the step: a size, list (1,16) or range (1:64:x2).",
        ),
    ] = "1",
    context: Annotated[
        str,
        typer.Option(
            "--seq",
            "--context",
            metavar="TOKENS",
            help="Tokens of each sequence, the new one included.",
        ),
    ] = "512",
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            metavar="NAME",
            help="Weight format of the head's matrix [default: the usual one for the format].",
            autocompletion=completing.schemes,
        ),
    ] = None,
    format: Format = None,
    output: Output = None,
) -> None:
    """Compare weight formats and sparsity by a decode step: bytes, time, speed-up over 16 bits.

    \b
    perfmodel compress llama-2-7b -d a6000 --formats fp16,w4a16,squeeze:3:0.45%,2:4,csl:0.8
    perfmodel compress llama-3-8b -d rtx4090 -d m4-max --formats q4_k_m,q8_0 --batch 1,16
    perfmodel compress
    """
    chosen_format(format, output)
    if network is None:
        emit(render.listing(), format, output)
        return
    net = spellings.network(network)
    if not device:
        raise ProblemError("compress needs a device; name one with --device")
    devices = known.devices(device)
    sizes = [int(value) for value in ranges.parse(batch, "--batch")]
    tokens = ranges.one(context, "--seq")
    for spec in devices:
        if is_on_chip(spec):
            raise ProblemError(
                f"{spec.slug} has its memory on the chip, whose steps are no sums of kernels; see "
                f"perfmodel hold {net.name} -d {spec.slug}"
            )
    head_scheme = naming.scheme(known.one("--head", head)) if head is not None else None
    rows: list[Compared] = []
    notes: dict[str, None] = {}
    for spec in devices:
        schemes, lines = _schemes(net, formats, spec)
        parts = possible(
            (
                f"{spec.slug}, {scheme.name}",
                partial(_rows, net, scheme, spec, sizes, tokens, head_scheme),
            )
            for scheme in schemes
        )
        rows += [row for part in parts for row in part]
        notes |= dict.fromkeys([*lines, *(n for scheme in schemes for n in _notes(scheme, spec))])
    emit(render.report(rows, net.name, tokens, notes), format, output)


def _rows(network: Network, scheme: Scheme, *options: Any) -> list[Compared]:
    """The rows of one format, or its error."""
    return list(compare(network, [scheme], *options))


def _schemes(
    network: Network, formats: str | None, device: Device
) -> tuple[Sequence[Scheme], list[str]]:
    """The named schemes, which must all run; otherwise those that the device can run of the
    network's own and the usual ones."""
    if formats is not None:
        return [naming.scheme(name) for name in known.names(formats)], []
    usual = known.names(",".join(filter(None, [network.weights, _USUAL])))
    return runnable([naming.scheme(name) for name in usual], device)


def _notes(scheme: Scheme, device: Device) -> Iterator[str]:
    """A scheme's notes; for sparse ones, where they store less than dense formats."""
    yield from scheme.notes(device)
    if isinstance(scheme, TiledCsl):
        ends = ", ".join(
            f"{name} {least_zeros(bits, NONZERO_BITS):.1%}"
            for name, bits in (("fp16", 16.0), ("int8", 8.0), ("int4", 4.0))
        )
        yield f"csl: share of zeros from which it takes fewer bytes than dense formats: {ends}"
