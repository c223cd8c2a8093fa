"""The interchip wall: links as roofs. The work that a byte over a link must bring, by parallelism.

A device that computes P operations a second and sends B bytes a second has its ridge point at P/B
operations a byte. Each parallelism has its own arithmetic intensity over the link, from the bytes
that each device sends (`counts`). Computing hides communication while the intensity is above the
ridge point:

    tensor   a layer of 72·T·h² operations, forward and backward, over t devices; 4 all-reduces of
             T·h elements. 9h/(q(t − 1)) operations a byte, so that t − 1 ≤ 9h·B/(q·P)
    data     the backward of T tokens is 4·T a parameter; one all-reduce of its gradients, q_g bytes
             each: T ≥ q_g·P/(2B) tokens a device and step
    fsdp     the forward of T tokens is 2·T a parameter; one all-gather of q bytes each:
             T ≥ q·P/(2B) tokens a device
    ring     a block of r queries with r keys: 4r²·k·a operations; keys and values of g of a heads
             are sent on, 2·q·r·k·g bytes: r ≥ q·(g/a)·P/(2B) tokens a device
    expert   a gated expert layer: 6h·f a token and expert; h elements to it and h back, all-to-all:
             f ≥ (q_d + q)·P/(6B)

(own derivation; the tensor row is Narayanan et al. 2021, section 3.2, as an intensity).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor
from typing import Annotated

from perfmodel.algorithms.matmul import types
from perfmodel.collectives.counts import counted
from perfmodel.columns import Column, Result
from perfmodel.elements import element
from perfmodel.errors import ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.hardware import System, SystemLevel
from perfmodel.hardware import load as load_device

PARALLELISMS = ("tensor", "data", "fsdp", "ring", "expert")
"""Every modelled parallelism."""

# So many ranks that (P − 1)/P is 1 to six digits, for data, experts and shards.
_MANY = 2**20
_ALL_REDUCES = 4  # of a layer: two forward, two backward


Heads = Annotated[int, FieldOption(metavar="HEADS", single=True)]
Element = Annotated[str, FieldOption(metavar="TYPE", names=types)]


@dataclass(frozen=True)
class Layer:
    """The sizes of a network that the thresholds depend on."""

    hidden: Annotated[int, FieldOption(metavar="SIZE", single=True)] = 8192
    """Hidden size of the network."""
    heads: Heads = 64
    """Query heads."""
    kv_heads: Heads = 8
    """Key-value heads."""
    dtype: Element = "bf16"
    """Type of products, activations and weights."""
    gradient_dtype: Element = "bf16"
    """Type in which gradients are summed."""
    dispatch_dtype: Element = "bf16"
    """Type in which tokens are sent to experts; they return in that of activations."""

    def __post_init__(self) -> None:
        for name in ("hidden", "heads", "kv_heads"):
            if getattr(self, name) < 1:
                raise ProblemError(
                    f"{name} must be at least 1, not {getattr(self, name)}; raise it"
                )
        if self.heads % self.kv_heads:
            raise ProblemError(
                f"{self.heads} heads are not a multiple of {self.kv_heads} key-value heads"
            )


@dataclass(frozen=True)
class Ridge(Result):
    """One parallelism over one link of a system."""

    link: Annotated[str, Column("link")]
    """Name of the level."""
    flop_per_byte: Annotated[float, Column("ridge FLOP/B", key="ridge_flop_per_byte")]
    """The ridge P/B."""
    parallelism: Annotated[str, Column("parallelism")]
    """One of `PARALLELISMS`."""
    most: bool
    """Whether the threshold is an upper limit; otherwise it is a lower one."""
    threshold: Annotated[float, Column("threshold", show="{:,.0f}", place=1)]
    """Value at which computing just hides communication."""
    quantity: Annotated[str, Column("of", place=1)]
    """Quantity of the threshold."""

    @property
    def bound(self) -> Annotated[str, Column("covered with")]:
        """The threshold's side."""
        return "at most" if self.most else "at least"


def wall(system: System, layer: Layer | None = None) -> list[Ridge]:
    """The ridges of every parallelism over every link, at documented rates.

    Raises `ProblemError` where the device has no rate for the layer's type.
    """
    shape = layer or Layer()
    flops = load_device(system.device).matrix_flops(shape.dtype)
    return [ridge for level in system.levels for ridge in _ridges(level, flops, shape)]


def _ridges(level: SystemLevel, flops: float, layer: Layer) -> Iterator[Ridge]:
    ridge = flops / level.bytes_per_s
    types = (layer.dtype, layer.gradient_dtype, layer.dispatch_dtype)
    width, gradient, dispatch = (float(element(name).bits) / 8 for name in types)
    reduction, gather, shuffle = (
        float(counted(op, _MANY).sent) for op in ("all-reduce", "all-gather", "all-to-all")
    )
    yield Ridge(level.name, ridge, "tensor", True, _tensor(ridge, layer.hidden, width), "devices")
    tokens = {
        "data": reduction * gradient / 4,
        "fsdp": gather * width / 2,
        "ring": 2 * width * layer.kv_heads / (4 * layer.heads),
    }
    for name, bytes_per_flop in tokens.items():
        yield Ridge(level.name, ridge, name, False, bytes_per_flop * ridge, "tokens a device")
    inner = shuffle * (dispatch + width) / 6 * ridge
    yield Ridge(level.name, ridge, "expert", False, inner, "inner size")


def _tensor(ridge: float, hidden: int, width: float) -> float:
    """The most devices for which a layer's intensity reaches the ridge point.

    Operations fall with 1/t and bytes rise with (t − 1)/t, so the intensity is c/(t − 1). c is the
    intensity of two devices.
    """
    volume = _ALL_REDUCES * float(counted("all-reduce", 2).sent) * width
    of_two = 72 * hidden / 2 / volume
    return 1.0 + floor(of_two / ridge)
