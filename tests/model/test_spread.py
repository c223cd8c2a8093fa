"""Ranges: by family, time and what is known; wider where less is; never below the floor."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.algorithms.matmul import FORMATS
from perfmodel.hardware import load
from perfmodel.operators import operator_of
from perfmodel.predict import predict
from perfmodel.timing import spread
from perfmodel.timing.knowledge import LEVELS, Known, table

NOTHING = np.zeros(1)
FAMILIES = sorted(table()["families"])
EVERY = [
    Known(**dict(zip(LEVELS, levels, strict=True)))
    for levels in itertools.product(*LEVELS.values())
]


def width(family: str, known: Known, seconds: float = 1e-4) -> tuple[float, float]:
    """ln(low / time) and ln(high / time)."""
    low, high = spread.interval(family, known, np.array([seconds]), NOTHING)
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


@pytest.mark.parametrize("name", FAMILIES)
def test_quantiles_stand_around_the_prediction_and_there_is_one_a_bin(name):
    entry = table()["families"][name]
    assert len(entry["low"]) == len(entry["high"]) == len(entry["edges_us"]) + 1
    assert list(entry["edges_us"]) == sorted(entry["edges_us"])
    assert all(low <= 0 <= high for low, high in zip(entry["low"], entry["high"], strict=True))
    assert all(high - low > 0.03 for low, high in zip(entry["low"], entry["high"], strict=True))
    assert entry["n"] > 0 < entry["groups"]
    assert all((entry["devices"], entry["kernels"]))


def test_bins_go_by_predicted_time():
    entry = table()["families"]["gemm-16"]
    edges = entry["edges_us"]
    middles = [edges[0] / 2, *np.sqrt(np.multiply(edges[:-1], edges[1:])), edges[-1] * 2]
    found = [width("gemm-16", Known(), middle * 1e-6) for middle in middles]
    expected = list(zip(entry["low"], entry["high"], strict=True))
    assert found == [pytest.approx(ends) for ends in expected]
    assert len(set(expected)) > 1


@pytest.mark.parametrize("axis", LEVELS)
def test_every_level_has_factors_and_none_narrows(axis):
    factors = table()["factors"][axis]
    assert set(factors) == set(LEVELS[axis])
    assert factors[LEVELS[axis][0]] == [1.0, 1.0]
    for low, high in factors.values():
        assert low >= 1 <= high


@pytest.mark.parametrize("family", FAMILIES)
def test_knowing_less_never_narrows_a_range(family):
    usual = width(family, Known())
    wider = 0
    for known in EVERY:
        low, high = width(family, known)
        assert low <= usual[0] + 1e-9
        assert high >= usual[1] - 1e-9
        wider += high - low > usual[1] - usual[0] + 0.01
    assert wider > len(EVERY) / 2


def test_doubts_add_as_spreads_do():
    each = Known(implementation="assumed"), Known(harness="assumed")
    both = spread.widening(Known(implementation="assumed", harness="assumed"))
    alone = [spread.widening(known) for known in each]
    for side in (0, 1):
        squares = sum(factors[side] ** 2 - 1 for factors in alone)
        assert both[side] == pytest.approx(np.sqrt(1 + squares))
    assert both[1] > max(factors[1] for factors in alone)


def test_what_is_assumed_reaches_as_far_as_the_kernels_of_its_family():
    blank, families = Known(implementation="assumed"), table()["families"]
    own = {name: entry["assumed"] for name, entry in families.items() if "assumed" in entry}
    assert {"gemm-16", "attention-prefill"} <= set(own)
    assert own["gemm-16"][1] < own["attention-prefill"][1]
    for name, (least, most) in own.items():
        usual, found = width(name, Known()), width(name, blank)
        assert found == pytest.approx((min(usual[0], least), max(usual[1], most))), name
    factor = table()["factors"]["implementation"]["assumed"][1]
    for name in set(FAMILIES) - set(own):
        assert width(name, blank)[1] == pytest.approx(width(name, Known())[1] * factor), name


def test_a_family_without_runs_gets_an_honest_guess():
    unknown = [t for t in FORMATS if f"gemm-{t}" not in FAMILIES]
    assert "mxfp4" in unknown
    found = predict(Matmul(512, 512, 512, dtype="mxfp4"), load("b200"))
    assert found.known.device == "none"
    assert found.high_seconds / found.seconds >= np.exp(0.7) * (1 - 1e-9)
    low, high = width("gemm-mxfp4", found.known)
    assert low <= -0.7
    assert high >= 0.7


def test_no_range_reaches_below_the_floor():
    seconds = np.array([1e-4, 1e-4])
    floor = np.array([0.99e-4, 1e-9])
    low, high = spread.interval("gemm-16", Known(), seconds, floor)
    assert low[0] == floor[0]
    assert floor[1] < low[1] < seconds[1]
    assert np.all(high >= seconds)


def test_operands_behind_a_link_have_a_first_guess():
    seconds = np.array([1e-4])
    low, high = spread.interval("gemm-16", Known(), seconds, NOTHING, linked=True)
    assert np.log(high / seconds) >= 0.7 - 1e-9
    assert np.log(low / seconds) <= -0.7 + 1e-9


def test_no_family_is_wider_than_its_kernels_can_differ():
    """Host time of one framework's calls is no spread of its kernels."""
    for name, entry in table()["families"].items():
        width = np.array(entry["high"]) - np.array(entry["low"])
        assert np.all(width < np.log(4)), name
    low, high = spread.interval(
        "gemm-fp8_block",
        Known("fitted", "assumed", "known"),
        np.array([10e-6]),
        np.array([1e-6]),
    )
    assert high[0] / low[0] < 6.0
