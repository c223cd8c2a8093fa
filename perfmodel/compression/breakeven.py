"""Break-even points of a scheme: sparsity by bytes, and tokens by time."""

from __future__ import annotations

from perfmodel.algorithms.matmul import matmul_format
from perfmodel.compression.scheme import PLAIN, Scheme
from perfmodel.compression.unstructured import NONZERO_BITS
from perfmodel.hardware import Device
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine
from perfmodel.timing.memory import hbm_rate


def least_zeros(dense_bits: float, nonzero_bits: float = NONZERO_BITS) -> float:
    """Share of zeros from which storing non-zeros takes fewer bytes than a dense format.

    b bits a weight (`dense_bits`) against z bits a non-zero: (1 − β)·z = b, so β = 1 − b/z; 0 if
    storing non-zeros is always smaller.
    """
    return max(1.0 - dense_bits / nonzero_bits, 0.0)


def balanced_tokens(scheme: Scheme, n: int, k: int, device: Device, multiplied: str) -> float:
    """Tokens of a step at which multiplying takes as long as reading the weights.

    A weight of q bytes is read in q/BW seconds and multiplied by T tokens in 2T/F, so T =
    q·F/(2·BW). With fewer tokens, time is proportional to bytes, and a format gains its ratio of
    bytes. With many more, it gains nothing. BW is the memory bandwidth that a kernel achieves, F
    the dense peak of the multiplied type.
    """
    chip = machine(device)
    compute = chip.multiplied_as(matmul_format(multiplied or PLAIN).compute)
    has_rate = compute in device.matrix_types
    peak = device.matrix_flops(compute) if has_rate else device.vector_flops(compute)
    return scheme.bits(n, k) / 16.0 * peak / hbm_rate(chip, default())
