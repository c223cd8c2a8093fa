"""Links as roofs: ridges against the worked numbers, and that they come from counts and rates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.collectives.wall import PARALLELISMS, Layer, wall
from perfmodel.errors import ProblemError
from perfmodel.hardware import load, systems

H100 = systems.load("dgx-h100")
RATE = load("h100-sxm").matrix_flops("bf16")
NVLINK, ADAPTER = (level.bytes_per_s for level in H100.levels)


def thresholds(system=H100, **layer):
    return {(r.link, r.parallelism): r.threshold for r in wall(system, Layer(**layer))}


def test_worked_numbers_of_an_h100():
    """H100, h = 8192, 2 bytes: tensor up to 17 over NVLink and 2 over one adapter; gradients want
    20,000 tokens, an expert's inner size 13,000 over adapters alone."""
    found = thresholds(hidden=8192)
    assert (found["nvlink", "tensor"], found["network", "tensor"]) == (17, 2)
    assert found["network", "data"] == pytest.approx(20_000, rel=0.02)
    assert found["network", "expert"] == pytest.approx(13_000, rel=0.02)


@given(st.sampled_from([1024, 4096, 12288]), st.sampled_from([(64, 8), (32, 32), (96, 12)]))
def test_closed_forms(hidden, heads):
    """h, q = 2: t − 1 ≤ 9h·B/(q·P); T ≥ q·P/(2B); r ≥ (g/a)·P/B; f ≥ (q_d + q)·P/(6B)."""
    found = thresholds(hidden=hidden, heads=heads[0], kv_heads=heads[1], dispatch_dtype="fp8")
    for link, rate in (("nvlink", NVLINK), ("network", ADAPTER)):
        ridge = RATE / rate
        assert found[link, "tensor"] == 1 + 9 * hidden // (2 * ridge)
        assert found[link, "data"] == pytest.approx(ridge, rel=1e-5)
        assert found[link, "fsdp"] == pytest.approx(ridge, rel=1e-5)
        assert found[link, "ring"] == pytest.approx(heads[1] / heads[0] * ridge, rel=1e-5)
        assert found[link, "expert"] == pytest.approx(3 * ridge / 6, rel=1e-5)


@given(st.sampled_from(systems.names()))
def test_a_slower_link_asks_for_more(name):
    system = systems.load(name)
    if "bf16" not in load(system.device).matrix_types:
        return
    found = thresholds(system)
    for inner, outer in zip(system.levels, system.levels[1:], strict=False):
        for parallelism in PARALLELISMS:
            near, far = found[inner.name, parallelism], found[outer.name, parallelism]
            assert near >= far if parallelism == "tensor" else near <= far


def test_what_is_no_layer_is_refused():
    with pytest.raises(ProblemError, match="hidden must be at least 1, not 0"):
        Layer(hidden=0)
    with pytest.raises(ProblemError, match="64 heads are not a multiple of 7"):
        Layer(kv_heads=7)
    with pytest.raises(ProblemError, match="no fp4 matrix rate"):
        wall(H100, Layer(dtype="fp4"))
