"""`perfmodel compress NETWORK`: weight formats and sparsity compared on a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from perfmodel.cli import spellings
from perfmodel.cli.arguments import ONE, Sizes, SomeDevices
from perfmodel.cli.build import command
from perfmodel.cli.leftout import possible
from perfmodel.cli.networkoptions import NETWORK, Context, WeightFormat
from perfmodel.columns import Row
from perfmodel.compression import naming
from perfmodel.compression.comparing import compare, least_zeros, runnable
from perfmodel.compression.scheme import Scheme
from perfmodel.compression.sparse import NONZERO_BITS, TiledCsl
from perfmodel.errors import ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.hardware import Device
from perfmodel.networks.network import Network
from perfmodel.onchip.latency import is_on_chip
from perfmodel.render import Report
from perfmodel.render import compression as render

_USUAL = "fp16,w8a16,fp8,w4a16,nf4,q4_k_m,2:4"


@dataclass(frozen=True)
class Asked:
    """What `compress` is asked for."""

    network: Annotated[Network | None, replace(NETWORK, help="")] = None
    """A network's name (perfmodel network list) or YAML file. Without it, the weight formats are
    listed."""
    device: SomeDevices = ()
    """The devices."""
    formats: Annotated[
        str | None, FieldOption(metavar="NAMES", names="perfmodel.compression.quantised:names")
    ] = None
    """fp16, w4a16:g64, squeeze:3:0.45%, 2:4, csl:0.8, prune:0.25, ... with commas [default: the
    network's own, and those of fp16,w8a16,fp8,w4a16,nf4,q4_k_m,2:4 that the device can run]."""
    batch: Sizes = ONE
    """Sequences of the step: a size, list (1,16) or range (1:64:x2)."""
    context: Context = 512
    """Tokens of each sequence, the new one included."""
    head: WeightFormat = None
    """Weight format of the head's matrix [default: the usual one for the format]."""

    def schemes(self, network: Network, device: Device) -> tuple[Sequence[Scheme], list[str]]:
        """The named schemes, which must all run; otherwise those that the device can run of the
        network's own and the usual ones, and why it cannot run others."""
        if self.formats is not None:
            return [naming.scheme(name) for name in spellings.names(self.formats)], []
        usual = spellings.names(",".join(filter(None, [network.weights, _USUAL])))
        return runnable([naming.scheme(name) for name in usual], device)


def compress(asked: Asked) -> Report:
    """Compare weight formats and sparsity by a decode step: bytes, time, speed-up over 16 bits.

    \b
    perfmodel compress llama-2-7b -d a6000 --formats fp16,w4a16,squeeze:3:0.45%,2:4,csl:0.8
    perfmodel compress llama-3-8b -d rtx4090 -d m4-max --formats q4_k_m,q8_0 --batch 1,16
    perfmodel compress
    """
    network, tokens = asked.network, asked.context
    if network is None:
        return render.listing()
    if not asked.device:
        raise ProblemError("compress needs a device; name one with --device")
    for device in filter(is_on_chip, asked.device):
        raise ProblemError(
            f"{device.slug} has its memory on the chip, whose steps are no sums of kernels; see "
            f"perfmodel hold {network.name} -d {device.slug}"
        )
    batches = list(asked.batch)
    rows: list[Row] = []
    notes: dict[str, None] = {}
    for device in asked.device:
        schemes, reasons = asked.schemes(network, device)

        parts = possible(
            (
                f"{device.slug}, {scheme.name}",
                partial(_listed, network, [scheme], device, batches, tokens, asked.head),
            )
            for scheme in schemes
        )
        rows += [row for part in parts for row in part]
        lines = [line for scheme in schemes for line in _notes(scheme, device)]
        notes |= dict.fromkeys([*reasons, *lines])
    return render.report(rows, network.name, tokens, notes)


def _listed(*question: Any) -> list[Row]:
    """The comparison as a list: an iterator would raise where nobody catches its errors."""
    return list(compare(*question))


def _notes(scheme: Scheme, device: Device) -> Iterator[str]:
    """A scheme's notes; for sparse ones, where they store less than dense formats."""
    yield from scheme.notes(device)
    if isinstance(scheme, TiledCsl):
        ends = ", ".join(
            f"{name} {least_zeros(bits, NONZERO_BITS):.1%}"
            for name, bits in (("fp16", 16.0), ("int8", 8.0), ("int4", 4.0))
        )
        yield f"csl: share of zeros from which it takes fewer bytes than dense formats: {ends}"


app = command(compress)
