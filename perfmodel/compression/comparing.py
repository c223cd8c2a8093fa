"""Schemes compared on a device: bytes, time of a decode step, gain over 16 bits, and break-even
points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from perfmodel.algorithms.matmul import matmul_format
from perfmodel.columns import DIFFERS, HIGH, RANGE, Column, Result
from perfmodel.compression import quantised
from perfmodel.compression.compressed import Compressed
from perfmodel.compression.scheme import PLAIN, Scheme
from perfmodel.compression.sparse import NONZERO_BITS
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.networks.network import Network
from perfmodel.networks.setting import step
from perfmodel.networks.summary import cache_bytes
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine
from perfmodel.timing.memory import hbm_rate


@dataclass(frozen=True)
class Compared(Result):
    """One scheme at one batch on one device."""

    device: Annotated[str, Column("device", when=DIFFERS)]
    """The device's slug."""
    scheme: Annotated[str, Column("format", key="format")]
    """The scheme's name."""
    bits: Annotated[float, Column("bits", show="{:.3f}")]
    """Mean stored bits of a weight in the layers' matrices."""
    weight_bytes: Annotated[float, Column("weights")]
    """Bytes of all weights."""
    batch: Annotated[int, Column("batch")]
    """Sequences of the step, one new token each."""
    seconds: Annotated[float, Column("step", key="time_us", scale=1e6)]
    """Seconds of the step."""
    low_seconds: Annotated[float, RANGE]
    """Low end of its 80 % range."""
    high_seconds: Annotated[float, HIGH]
    """High end."""
    gain: Annotated[float, Column("gain", show="{:.2f}x")]
    """Speed-up: seconds of the same step with 16-bit weights over these seconds."""
    byte_gain: Annotated[float, Column("bytes", show="{:.2f}x")]
    """Bytes of the layers at 16 bits over these bytes: the speed-up if only reading weights
    counted."""
    balanced_tokens: Annotated[float, Column("even at", show="{:.0f}")]
    """Tokens at which multiplying takes as long as reading the weights."""
    limiter: Annotated[str, Column("limiter")]
    """The resource that limits the largest part of the step."""
    fits: Annotated[bool, Column()]
    """Whether weights and cache fit into the device's memory."""

    @property
    def tokens_per_s(self) -> Annotated[float, Column()]:
        """New tokens a second over all sequences."""
        return self.batch / self.seconds


def compare(
    network: Network,
    schemes: Sequence[Scheme],
    device: Device,
    batches: Sequence[int],
    context: int,
    head: Scheme | None = None,
) -> Iterator[Compared]:
    """Every scheme at every batch; each sequence has `context` tokens in its KV cache.

    Raises `ProblemError` for an encoder, and where the device cannot multiply a format.
    """
    if not any(block.attention.causal for block in network.blocks):
        raise ProblemError(f"{network.name} is an encoder and decodes nothing; name a decoder")
    for scheme in schemes:
        scheme.check(device)
    baseline = Compressed(network, quantised.load(PLAIN))
    for scheme in schemes:
        compressed = Compressed(network, scheme, head)
        for batch in batches:
            yield _comparison(compressed, baseline, device, batch, context)


def runnable(schemes: Sequence[Scheme], device: Device) -> tuple[list[Scheme], list[str]]:
    """The schemes that a device can multiply, and a line for each one that it cannot."""
    fit, reasons = [], []
    for scheme in schemes:
        try:
            scheme.check(device)
            fit.append(scheme)
        except ProblemError as error:
            reasons.append(str(error))
    return fit, reasons


def _comparison(
    compressed: Compressed, baseline: Compressed, device: Device, batch: int, context: int
) -> Compared:
    prediction = compressed.predict(step(batch, context), device)
    reference = baseline.predict(step(batch, context), device)
    weight, _ = max(compressed.matrices(), key=lambda pair: pair[0].elements * pair[1])
    k, n = weight.shape
    scheme = compressed.scheme
    bytes_ = compressed.weight_bytes + batch * cache_bytes(compressed.network, context)
    return Compared(
        device.slug,
        scheme.name,
        compressed.bits,
        compressed.weight_bytes,
        batch,
        prediction.seconds,
        prediction.low_seconds,
        prediction.high_seconds,
        reference.seconds / prediction.seconds,
        _matrix_bytes(baseline) / _matrix_bytes(compressed),
        balanced_tokens(scheme, n, k, device),
        next(iter(prediction.limiters)),
        bytes_ <= device.memory_bytes,
    )


def _matrix_bytes(network: Compressed) -> float:
    """Bytes of the layers' matrices."""
    weights = sum(weight.elements * repeat for weight, repeat in network.matrices())
    return weights * network.bits / 8.0


def least_zeros(dense_bits: float, nonzero_bits: float = NONZERO_BITS) -> float:
    """Share of zeros from which storing non-zeros takes fewer bytes than a dense format.

    b bits a weight (`dense_bits`) against z bits a non-zero: (1 − β)·z = b, so β = 1 − b/z; 0 if
    storing non-zeros is always smaller.
    """
    return max(1.0 - dense_bits / nonzero_bits, 0.0)


def balanced_tokens(scheme: Scheme, n: int, k: int, device: Device) -> float:
    """Tokens of a step at which multiplying takes as long as reading the weights.

    A weight of q bytes is read in q/BW seconds and multiplied by T tokens in 2T/F, so T =
    q·F/(2·BW). With fewer tokens, time is proportional to bytes, and a format gains its ratio of
    bytes. With many more, it gains nothing. BW is the memory bandwidth that a kernel achieves, F
    the dense peak of the multiplied type.
    """
    chip = machine(device)
    compute = chip.multiplied_as(matmul_format(scheme.multiplies or PLAIN).compute)
    has_rate = compute in device.matrix_types
    peak = device.matrix_flops(compute) if has_rate else device.vector_flops(compute)
    return scheme.mean_bits(n, k) / 16.0 * peak / hbm_rate(chip, default())
