"""Schemes compared on a device: bytes, time of a decode step, gain over 16 bits, and break-even
points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from perfmodel.algorithms.matmul import matmul_format
from perfmodel.columns import Row
from perfmodel.compression import quantised
from perfmodel.compression.compressed import Compressed
from perfmodel.compression.scheme import PLAIN, Scheme
from perfmodel.compression.sparse import NONZERO_BITS
from perfmodel.errors import ProblemError
from perfmodel.graph.live import Memory
from perfmodel.hardware import Device
from perfmodel.networks.network import Network
from perfmodel.networks.setting import step
from perfmodel.networks.summary import cache_bytes
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine
from perfmodel.timing.memory import hbm_rate


def compare(
    network: Network,
    schemes: Sequence[Scheme],
    device: Device,
    batches: Sequence[int],
    context: int,
    head: Scheme | None = None,
) -> Iterator[Row]:
    """A row for every scheme at every batch; each sequence has `context` tokens in its KV cache.

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
) -> Row:
    """A decode step with its stored bits, and its gains over 16 bits: of time, and of the layers'
    bytes, which is the speed-up if only reading weights counted."""
    tree = compressed.predict(step(batch, context), device)
    reference = baseline.predict(step(batch, context), device)
    weight, _ = max(compressed.matrices(), key=lambda pair: pair[0].elements * pair[1])
    k, n = weight.shape
    scheme = compressed.scheme
    bytes_ = compressed.weight_bytes + batch * cache_bytes(compressed.network, context)
    return replace(tree, memory=Memory.of({"hbm": (bytes_, device.memory_bytes)})).as_row(
        format=scheme.name,
        bits=compressed.bits,
        weight_bytes=compressed.weight_bytes,
        gain=reference.seconds / tree.seconds,
        byte_gain=_matrix_bytes(baseline) / _matrix_bytes(compressed),
        balanced_tokens=balanced_tokens(scheme, n, k, device),
        tokens_per_s=batch / tree.seconds,
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
