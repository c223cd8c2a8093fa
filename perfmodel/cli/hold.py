"""`perfmodel hold NETWORK`: the number of devices that hold a network, and token times in SRAM."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from perfmodel.cli import ranges
from perfmodel.cli.arguments import Devices, Size
from perfmodel.cli.build import command
from perfmodel.cli.networkoptions import Context, NamedNetwork, WeightFormat
from perfmodel.compression import naming
from perfmodel.compression.compressed import Compressed
from perfmodel.compression.scheme import PLAIN
from perfmodel.fieldoption import FieldOption
from perfmodel.onchip.holding import CONTEXT
from perfmodel.render import Report, onchip

_RATE = partial(ranges.quantity, dimension="bandwidth", name="--stream-rate")


@dataclass(frozen=True)
class Asked:
    """What `hold` is asked for."""

    network: NamedNetwork
    """The network."""
    device: Devices
    """The devices."""
    weights: WeightFormat = None
    """Weight format of the layers (perfmodel compress lists them) [default: the network's own, or
    16 bits]."""
    head: WeightFormat = None
    """Weight format of the head's matrix [default: the usual one for the format]."""
    batch: Size = 1
    """Number of sequences."""
    context: Context = CONTEXT
    """Tokens of each sequence in the KV cache."""
    price: Annotated[float | None, FieldOption(metavar="NUMBER", least=None)] = None
    """Your price of one device, in any currency."""
    stream_rate: Annotated[float | None, FieldOption(metavar="RATE", read=_RATE)] = None
    """Stream the weights from outside the chip at this rate: "150 GB/s"."""


def hold(asked: Asked) -> Report:
    """Count the devices that hold a network: watts, cost, and decode steps of on-chip memories.

    \b
    perfmodel hold llama-2-70b -d wse-2 -d groq-lpu -d h100-sxm --price 30000
    perfmodel hold llama-2-13b -d wse-2 --seq 16k
    perfmodel hold llama-2-70b -d wse-2 --stream-rate "150 GB/s"
    """
    weights = asked.weights or naming.scheme(asked.network.weights or PLAIN)
    model = Compressed(asked.network, weights, asked.head)
    return onchip.report(
        model, asked.device, asked.batch, asked.context, asked.price, asked.stream_rate
    )


app = command(hold)
