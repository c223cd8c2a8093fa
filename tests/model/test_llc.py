"""A memory-side cache behind the L2: laws of its bytes and seconds, and devices without one."""

from dataclasses import replace

import numpy as np
import pytest
from draws import KINDS, Draws, make
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Matmul, Rowwise
from perfmodel.hardware import load, names
from perfmodel.predict import predict, predict_arrays
from perfmodel.render.roofs import roofs
from perfmodel.timing import memory
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine

MI300X, H100 = load("mi300x"), load("h100-sxm")
WITH = [slug for slug in names() if load(slug).memory.llc is not None]
MIB = 2**20
draws = st.tuples(st.sampled_from(KINDS), st.integers(0, 2**32 - 1))
DRAWS = Draws()
ROUNDING = 1 + 1e-9


@pytest.fixture(autouse=True)
def _most_are_predicted():
    DRAWS.clear()
    yield
    DRAWS.check()


def without(device):
    """The device with its memory-side cache taken out."""
    return replace(device, memory=replace(device.memory, llc=None))


def test_some_devices_have_one_and_the_term_is_theirs_alone():
    assert {"mi300x", "mi325x", "mi350x", "mi355x"} <= set(WITH)
    problem = Matmul(4096, 4096, 4096)
    for slug in ("mi300x", "mi355x"):
        found = predict(problem, load(slug))
        assert list(found.bytes) == ["hbm", "llc", "l2", "shared"]
        assert found.terms["llc"] > 0
        assert found.intensity["l2"] < found.intensity["llc"] <= found.intensity["hbm"]
    for found in (predict(problem, H100), predict(problem, without(MI300X))):
        assert "llc" not in found.terms
        assert "llc" not in found.bytes


@given(draws, st.sampled_from(["kernel", "cuda_graph"]))
def test_bytes_fall_from_cache_to_cache_and_memory_gets_less_than_without_one(draw, harness):
    kind, seed = draw
    problem, schedule = make(kind, seed, 12)
    found = DRAWS.run(problem, MI300X, schedule, harness=harness)
    plain = DRAWS.run(problem, without(MI300X), schedule, harness=harness)
    if found is None or plain is None:
        return
    assert np.all(found.bytes["hbm"] <= found.bytes["llc"] * ROUNDING)
    assert np.all(found.bytes["llc"] <= found.bytes["l2"] * ROUNDING)
    if kind in ("standard", "trained", "trained unfused", "both"):
        return  # several plans, of which the tiles of the first are told
    same = np.all([found.tile[name] == plain.tile[name] for name in found.tile], axis=0)
    same = np.broadcast_to(same, found.seconds.shape)
    # In the same tiles: what crosses behind the L2 does not depend on what catches it there.
    np.testing.assert_allclose(found.bytes["llc"][same], plain.bytes["hbm"][same], rtol=1e-9)
    assert np.all(found.terms["hbm"] >= 0)


def test_what_fits_is_read_again_from_the_cache_and_what_does_not_from_memory():
    # A softmax of rows too long for a unit reads each row twice, all running rows in between.
    def moved(cols):
        rows = Rowwise("softmax", 304 * 32, cols, dtype="fp32")
        found = predict(rows, MI300X)
        return found.bytes, 2 * rows.rows * cols * 4

    held, least = moved(33 * 1024)
    lost, more = moved(2048 * 1024)
    assert held["llc"] > 1.4 * least
    assert held["hbm"] < 1.25 * least
    assert lost["hbm"] > 1.4 * more
    assert lost["llc"] == pytest.approx(lost["hbm"], rel=0.05)


def test_a_loop_that_clears_nothing_finds_in_it_what_the_l2_cannot_hold():
    add = Rowwise("pointwise", 8192, 2048, variant="add")  # 32 MiB read, 32 MiB written
    warm = predict(add, MI300X, harness="cuda_graph")
    assert warm.bytes["hbm"] == pytest.approx(warm.bytes["llc"] / 2, rel=0.1)
    # It holds no dirty data: what is written goes through.
    assert warm.bytes["hbm"] >= 0.999 * 32 * MIB


def test_its_term_is_its_bytes_over_its_bandwidth():
    problem = Matmul(8192, 8192, 8192)
    found = predict(problem, MI300X)
    rate = MI300X.level("llc").measured_bytes_per_s * default()["l2_share"]
    assert found.terms["llc"] == pytest.approx(found.bytes["llc"] / rate, rel=1e-9)
    assert found.terms["llc"] < found.seconds


def test_a_load_waits_for_the_level_that_serves_it():
    here = machine(MI300X)
    one = np.ones(())
    l2 = memory.mean_latency(here, 0.0 * one)
    far = memory.mean_latency(here, one)
    caught = memory.mean_latency(here, one, caught=one)
    assert float(caught) == pytest.approx(here.llc.latency_seconds)
    assert l2 < caught < far
    half = memory.mean_latency(here, one, caught=one / 2)
    assert float(half) == pytest.approx(float(caught + far) / 2)
    # Without one the argument changes nothing.
    plain = replace(here, llc=None)
    assert memory.mean_latency(plain, one, caught=one) == far


@pytest.mark.parametrize("slug", WITH)
def test_what_a_spec_leaves_open_is_said(slug):
    device = load(slug)
    level, here = device.level("llc"), machine(device)
    said = " ".join(here.assumptions)
    for known, what in (
        (level.measured_bytes_per_s or level.bytes_per_s, "bandwidth of Infinity Cache"),
        (level.latency_seconds, "latency of Infinity Cache"),
    ):
        assert (what in said) == (known is None)
    assert here.hbm_bytes_per_s < here.llc.bytes_per_s < here.l2_bytes_per_s
    assert here.l2_latency < here.llc.latency_seconds < here.hbm_latency


def test_it_has_a_roof_of_its_own():
    found = roofs(MI300X, ["bf16"]).levels
    assert list(found) == ["hbm", "llc", "l2", "shared"]
    assert found["llc"].name == "Infinity Cache"
    assert found["hbm"].value < found["llc"].value < found["l2"].value
    assert list(roofs(H100, ["bf16"]).levels) == ["hbm", "l2", "shared"]


def test_without_the_term_nothing_waits_for_it():
    problem = Matmul(np.array([512, 4096]), 4096, 4096)
    off = predict_arrays(problem, MI300X, constants=default().without("llc"))
    assert np.all(off.terms["llc"] == 0)
    assert np.all(off.seconds <= predict_arrays(problem, MI300X).seconds)
