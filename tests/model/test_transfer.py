"""The model on machines that do not exist: a part twice as fast moves what it should, no more."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel.algorithms import Attention, Matmul, Problem, Rowwise
from perfmodel.hardware import Device, load
from perfmodel.predict import predict
from perfmodel.prediction import Prediction

H100 = load("h100-sxm")
A100 = load("a100-sxm4-80gb")
# Without the power limit, so that a compute-bound kernel is bound by its units alone.
FREE = H100.scaled(power=100.0)


def device_seconds(found: Prediction) -> float:
    """Time on the device: the launch belongs to the host."""
    return found.seconds - found.terms["launch"]


def ratio(problem: Problem, before: Device, after: Device, **options: str) -> float:
    """Device time after over before."""
    first, second = (predict(problem, device, **options) for device in (before, after))
    return device_seconds(second) / device_seconds(first)


LATENCY_BOUND = {
    "matmul": Matmul(64, 64, 64),
    "decode": Attention(1, 8, 8, 1, 128, 128),
    "prefill": Attention(1, 8, 8, 64, 64, 128, causal=True),
    "softmax": Rowwise("softmax", 16, 64),
    "layernorm": Rowwise("layernorm", 16, 64),
}


@pytest.mark.parametrize("device", [H100, A100], ids=lambda device: device.slug)
@pytest.mark.parametrize("name", LATENCY_BOUND)
def test_twice_the_clock_halves_what_waits_for_latencies(name, device):
    # A latency is so many cycles, but memory has a clock of its own: it is halved by name.
    faster = device.scaled(clock=2.0, latency=0.5)
    assert 0.48 <= ratio(LATENCY_BOUND[name], device, faster) <= 0.56
    assert predict(LATENCY_BOUND[name], device).limiter in ("blocks", "latency", "launch")


MEMORY_BOUND = {
    "pointwise": Rowwise("pointwise", 65536, 8192, inputs=2),
    "rmsnorm": Rowwise("rmsnorm", 65536, 16384),
    "matrix by vector": Matmul(16, 53248, 16384),
    "decode": Attention(64, 32, 8, 1, 32768, 128),
}


@pytest.mark.parametrize("device", [H100, A100], ids=lambda device: device.slug)
@pytest.mark.parametrize("name", MEMORY_BOUND)
def test_twice_the_memory_bandwidth_nearly_halves_what_streams(name, device):
    problem = MEMORY_BOUND[name]
    faster = device.scaled(hbm_bandwidth=2.0, l2_bandwidth=2.0, power=2.0)
    assert predict(problem, device).limiter == "hbm"
    assert 0.5 <= ratio(problem, device, faster) < 0.75
    # Bandwidth is most of what it gains from (a decode tile multiplies padding too).
    assert ratio(problem, device, device.scaled(matrix=2.0)) > 0.85


COMPUTE_BOUND = {
    "matmul": Matmul(16384, 16384, 16384),
    "prefill": Attention(4, 32, 32, 8192, 8192, 128),
    "backward": Attention(4, 32, 32, 8192, 8192, 128, direction="bwd"),
    "fp32": Matmul(8192, 8192, 8192, dtype="fp32"),
}


@pytest.mark.parametrize("name", COMPUTE_BOUND)
def test_half_the_units_doubles_what_computes(name):
    problem = COMPUTE_BOUND[name]
    # What overlaps with it (L2, memory) is not halved, so a little less than twice.
    assert 1.7 <= ratio(problem, FREE, FREE.scaled(units=0.5)) <= 2.05
    assert predict(problem, FREE).limiter in ("matrix", "vector", "special", "shared")


def test_twice_the_exponentials_help_short_heads_alone():
    faster = FREE.scaled(special=2.0)
    # FlashAttention-3 section 3.2: at d = 64 exponentials cost half of the matrix time and more.
    short = Attention(8, 32, 32, 4096, 4096, 64)
    wide = Attention(8, 32, 32, 4096, 4096, 256)
    assert ratio(short, FREE, faster) < 0.97
    assert ratio(wide, FREE, faster) > ratio(short, FREE, faster)
    for problem in (
        Matmul(4096, 4096, 4096),
        Rowwise("layernorm", 4096, 4096),
        Rowwise("pointwise", 4096, 4096),
    ):
        assert ratio(problem, FREE, faster) == 1.0
    streaming = Attention(64, 32, 8, 1, 32768, 128)
    assert ratio(streaming, FREE, faster) > 0.99


def test_twice_the_cache_spares_memory_traffic_that_spilled():
    wider = A100.scaled(l2_capacity=2.0)
    spilled, fitting = Matmul(6144, 6144, 6144), Matmul(512, 512, 512)
    before, after = (predict(spilled, device).bytes["hbm"] for device in (A100, wider))
    least = 3 * 6144**2 * 2
    assert before > 1.5 * least
    assert least <= after < 0.85 * before
    small = [predict(fitting, device).bytes["hbm"] for device in (A100, wider)]
    assert small[1] == pytest.approx(small[0], rel=0.01)


def test_power_limits_long_matrix_products_and_not_streams():
    capped = H100.scaled(power=0.5)
    product = Matmul(16384, 16384, 16384)
    assert predict(product, capped).limiter == "power"
    # At half the power the clock falls as its cube root, 1.26, while the voltage can follow.
    assert ratio(product, H100, capped) > 1.2
    assert ratio(MEMORY_BOUND["decode"], H100, capped) < 1.1
    # Narrower operands cost less energy and so run faster under the same limit.
    wide, narrow = (predict(Matmul(16384, 16384, 16384, dtype=t), capped) for t in ("bf16", "fp8"))
    assert narrow.seconds < wide.seconds


def test_a_slow_shared_memory_starves_the_matrix_unit():
    starved = FREE.scaled(shared_bandwidth=0.05)
    found = predict(COMPUTE_BOUND["matmul"], starved)
    assert found.limiter == "shared"
    assert device_seconds(found) >= found.terms["shared"]
    assert ratio(COMPUTE_BOUND["matmul"], FREE, starved) > 2
    assert ratio(MEMORY_BOUND["pointwise"], FREE, starved) == 1.0


def test_scaling_nothing_changes_nothing():
    for part in ("hbm_bandwidth", "matrix", "clock", "l2_capacity", "power", "units", "special"):
        for problem in (*LATENCY_BOUND.values(), *MEMORY_BOUND.values()):
            assert ratio(problem, H100, H100.scaled(**{part: 1.0})) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("problem", "order"),
    [
        (Matmul(8192, 8192, 8192, dtype="fp16"), ("b200", "h100-sxm", "a100-sxm4-80gb", "t4")),
        (
            Attention(16, 32, 8, 1, 16384, 128, dtype="fp16"),
            ("b200", "h200-sxm", "h100-sxm", "a100-sxm4-80gb", "a100-sxm4-40gb", "l4", "p4"),
        ),
        (Rowwise("rmsnorm", 65536, 8192), ("b200", "h200-sxm", "a100-sxm4-40gb", "rtx3090", "t4")),
        (
            Attention(8, 32, 32, 8192, 8192, 128, dtype="fp16", causal=True),
            ("b200", "h100-sxm", "h100-pcie", "a100-sxm4-80gb", "v100-sxm2", "t4"),
        ),
    ],
)
def test_real_devices_stand_in_the_order_of_their_datasheets(problem, order):
    seconds = [predict(problem, load(slug)).seconds for slug in order]
    assert np.all(np.diff(seconds) > 0), dict(zip(order, seconds, strict=True))
