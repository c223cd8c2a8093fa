"""Ranges: by family and time, wider where nothing was fitted, never below the physical floor."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.algorithms.matmul import FORMATS
from perfmodel.hardware import load
from perfmodel.operators import operator_of
from perfmodel.predict import predict
from perfmodel.timing import spread
from perfmodel.timing.architectures import architecture_of

H100, B200 = load("h100-sxm"), load("b200")
NOTHING = np.zeros(1)


def width(problem, device, seconds: float) -> tuple[float, float]:
    """ln(low / time) and ln(high / time)."""
    family = operator_of(problem).family(problem)
    low, high = spread.interval(family, device, np.array([seconds]), NOTHING)
    return float(np.log(low / seconds)[0]), float(np.log(high / seconds)[0])


@pytest.mark.parametrize(
    ("problem", "family"),
    [
        (Attention(1, 1, 1, 64, 64, 64), "attention-prefill"),
        (Attention(1, 1, 1, 1, 64, 64), "attention-decode"),
        (Attention(1, 1, 1, 64, 64, 64, direction="bwd"), "attention-bwd"),
        (Attention(1, 1, 1, 64, 64, 64, direction="fwdbwd"), "attention-fwdbwd"),
        (Matmul(1, 1, 1, dtype="fp16"), "gemm-16"),
        (Matmul(1, 1, 1, dtype="tf32"), "gemm-fp32"),
        (Matmul(1, 1, 1, dtype="fp8"), "gemm-fp8"),
        (Matmul(1, 1, 1, dtype="w4a16"), "gemm-w4a16"),
        (Rowwise("softmax", 1, 1), "softmax"),
    ],
)
def test_families(problem, family):
    assert operator_of(problem).family(problem) == family


@pytest.mark.parametrize("name", spread.table()["families"])
def test_quantiles_stand_in_order_and_there_is_one_a_bin(name):
    entry = spread.table()["families"][name]
    assert len(entry["low"]) == len(entry["high"]) == len(entry["edges_us"]) + 1
    assert list(entry["edges_us"]) == sorted(entry["edges_us"])
    assert all(low < high for low, high in zip(entry["low"], entry["high"], strict=True))
    assert entry["n"] > 0


def test_bins_go_by_predicted_time():
    entry = spread.table()["families"]["gemm-16"]
    edges = entry["edges_us"]
    middles = [edges[0] / 2, *np.sqrt(np.multiply(edges[:-1], edges[1:])), edges[-1] * 2]
    for i, middle in enumerate(middles):
        low, high = width(Matmul(1, 1, 1), H100, middle * 1e-6)
        assert low == pytest.approx(min(entry["low"][i], 0.0))
        assert high == pytest.approx(max(entry["high"][i], 0.0))


def test_an_architecture_that_was_never_fitted_gets_a_wider_range():
    fitted = spread.table()["fitted_architectures"]
    assert architecture_of(H100).name in fitted
    assert architecture_of(B200).name not in fitted
    near, far = (width(Matmul(1, 1, 1), device, 1e-4) for device in (H100, B200))
    widening = spread.table()["widening"]["device"]
    assert widening > 1
    assert far == pytest.approx(tuple(side * widening for side in near))


def test_a_family_without_runs_gets_an_honest_guess():
    unknown = [t for t in FORMATS if f"gemm-{t}" not in spread.table()["families"]]
    assert "nvfp4" in unknown
    low, high = width(Matmul(1, 1, 1, dtype="nvfp4"), H100, 1e-4)
    assert low <= -0.5
    assert high >= 0.5


def test_no_range_reaches_below_the_floor():
    seconds = np.array([1e-4, 1e-4])
    floor = np.array([0.99e-4, 1e-9])
    low, high = spread.interval("gemm-16", H100, seconds, floor)
    assert low[0] == floor[0]
    assert floor[1] < low[1] < seconds[1]
    assert np.all(high >= seconds)


def test_a_prediction_lies_in_its_own_range():
    for problem in (
        Matmul(4096, 4096, 4096),
        Rowwise("softmax", 8, 8),
        Attention(1, 1, 1, 1, 9, 64),
    ):
        found = predict(problem, H100)
        assert found.low_seconds <= found.seconds <= found.high_seconds
        assert found.low_seconds < found.high_seconds
