"""Products with a sparse matrix whose non-zeros are stored one by one, on the vector unit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from perfmodel.algorithms import Matmul
from perfmodel.hardware import Device
from perfmodel.predict import predict, rank
from perfmodel.prediction import Prediction
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine
from perfmodel.timing.memory import hbm_rate

_SECTOR_BYTES = 32
# Dependent loads: a row's bounds, then an index and a value, then the activations at that index.
_DEPENDENT_LOADS = 3


def sparse_product(
    problem: Matmul, nonzeros: float, stored_bytes: float, device: Device
) -> Prediction:
    """One kernel of compressed sparse rows: each non-zero reads the m activations of its row.

    Bytes: the stored matrix, and results. Each non-zero takes 2m operations of the vector unit and
    ⌈2m/32⌉ sectors of activations, which are in L2 (Gale et al., Sputnik, 2006.10901, section 5).
    Rows of a network's outliers are uneven; a balanced split over units is assumed.
    """
    chip, constants = machine(device), default()
    dense = predict(replace(problem, dtype="fp16"), device)
    m, n = float(problem.m), float(problem.n)
    sectors = -(-2.0 * m // _SECTOR_BYTES) * _SECTOR_BYTES
    bytes_ = stored_bytes + 2.0 * m * n
    operations = 2.0 * m * nonzeros
    terms = dict.fromkeys(dense.terms, 0.0)
    terms |= {
        "hbm": bytes_ / hbm_rate(chip, constants),
        "l2": nonzeros * sectors / (chip.l2_bytes_per_s * constants["l2_share"]),
        "vector": operations
        / (2.0 * chip.vector_ops_per_unit * chip.units * constants["vector_share"]),
        "latency": _DEPENDENT_LOADS * chip.hbm_latency,
        "launch": dense.terms["launch"],
    }
    longest = max(terms.values())
    seconds = longest + terms["launch"]
    first, second = rank({k: np.array([v]) for k, v in terms.items()}, np.array([seconds]))
    low, high = dense.low_seconds / dense.seconds, dense.high_seconds / dense.seconds
    return replace(
        dense,
        algorithm="sparse product",
        implementation="csr",
        seconds=seconds,
        low_seconds=low * seconds,
        high_seconds=high * seconds,
        limiter=str(first[0]),
        runner_up=str(second[0]),
        terms=terms,
        flops={"matrix": 0.0, "vector": operations, "special": 0.0},
        useful_flops=operations,
        bytes={**dict.fromkeys(dense.bytes, 0.0), "l2": nonzeros * sectors, "hbm": bytes_},
        footprint_bytes=bytes_ + 2.0 * m * float(problem.k),
    )
