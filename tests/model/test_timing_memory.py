"""What devices reach of what they are rated at: memory families, published rates."""

from __future__ import annotations

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.count import count, rule
from perfmodel.hardware import Device, load, specs
from perfmodel.networks.networktime import sustained
from perfmodel.predict import predict
from perfmodel.schedules import rowwise
from perfmodel.timing import memory
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine
from perfmodel.timing.occupancy import residency
from perfmodel.timing.pipes import Balance
from perfmodel.timing.traffic import Traffic

CONSTANTS = default()
A100, V100 = load("a100-sxm4-40gb"), load("v100-pcie-32gb")

megabytes = st.floats(0.1, 1e5)


def crossing(read: float, written: float) -> float:
    """Seconds of a kernel that reads and writes so many bytes of A100's memory."""
    each = (np.asarray(value) for value in (read + written, min(read, written), 0.0, 0.0, 0.0))
    return float(memory.hbm_seconds(machine(A100), CONSTANTS, Traffic(*each), 1.0))


@given(megabytes, megabytes)
def test_reads_and_writes_apart_are_a_plain_stream_and_together_take_longer(read, written):
    plain = memory.hbm_rate(machine(A100), CONSTANTS)
    assert crossing(read, 0.0) == pytest.approx(read / plain)
    assert crossing(0.0, written) == pytest.approx(written / plain)
    both = crossing(read, written)
    assert both == pytest.approx(crossing(written, read))
    assert (read + written) / plain <= both <= 1.5 * (read + written) / plain
    assert crossing(read * 1.01, written) >= both


@cases
def test_memories_that_are_built_alike_reach_alike_shares(slug, family):
    assert machine(load(slug)).memory_family == family


@given(factor=st.floats(0.25, 4.0))
def test_a_measured_copy_is_what_a_kernel_reaches_of_its_memory(factor):
    copied = A100.measured.hbm_bandwidth["scale"].si  # the faster of scale and triad
    assert A100.copied_hbm_bytes_per_s == copied
    plain = memory.hbm_rate(machine(A100), CONSTANTS)
    assert plain == pytest.approx(copied / CONSTANTS["copy_share"])
    # A memory of another speed reaches as much of its peak.
    other = A100.scaled(hbm_bandwidth=factor)
    assert memory.hbm_rate(machine(other), CONSTANTS) == pytest.approx(plain * factor, rel=1e-3)


def test_no_kernel_gets_more_than_the_peak_of_its_memory():
    for device in specs():
        here = machine(device)
        rate = memory.hbm_rate(here, CONSTANTS)
        assert rate <= device.hbm_bytes_per_s
        if here.copy_bytes_per_s is None and not here.hbm_is_measured:
            share = CONSTANTS[f"hbm_share_{here.memory_family}"]
            share *= CONSTANTS["inline_ecc_share"] if here.inline_ecc else 1.0
            assert rate == pytest.approx(share * device.hbm_bytes_per_s)


# Triad of gpu-benches, two reads and a write, in the specs; V100's is of the 16 GB board. That A40
# and L40 ran without error correction is inferred: nothing else is known to give 0.95 of the peak.
@pytest.mark.parametrize("device", [A100, V100, load("a40"), load("l40")], ids=lambda d: d.slug)
def test_two_reads_and_a_write_go_about_as_fast_as_published(device):
    moved = 12 * 16384**2
    problem = Rowwise("pointwise", 16384, 16384, "fp32", variant="add", inputs=2)
    found = moved / predict(problem, device).seconds
    found /= CONSTANTS["inline_ecc_share"] if machine(device).inline_ecc else 1.0
    assert found == pytest.approx(device.measured.hbm_bandwidth["triad"].si, rel=0.07)


# The best rate anyone published for a device (`measured.matrix` of its spec), found over many
# shapes, against the best of three: what nobody fitted, on devices most of which no run here
# is of. Bursts too short for the power limit are left out.
def published_rates(device: Device) -> dict[str, float]:
    """Published best FLOP/s by type, of all but processors and Intel's GPU (a sample's, whose
    L2 rate nobody published)."""
    rates = device.measured.matrix if device.measured else {}
    if device.kind == "cpu" or (device.vendor, device.kind) == ("Intel", "gpu"):
        return {}
    types = ("fp16", "bf16", "fp8", "int8")
    return {t: r.si for t, r in rates.items() if t in types and "short" not in (r.note or "")}


@pytest.mark.parametrize("device", [d for d in specs() if published_rates(d)], ids=lambda d: d.slug)
def test_sustained_matrix_rates_are_near_the_published_ones(device):
    # Those of NVIDIA are cuBLAS's (torch.matmul, torch._scaled_mm). An array of a systolic
    # accelerator is taken for GPU's units, whose tiles ask more of the L2 than its own 256 x 256.
    library = "cublas" if device.vendor == "NVIDIA" else None
    least = 0.65 if device.kind == "accelerator" else 0.8 if device.vendor == "NVIDIA" else 0.7
    for dtype, rate in published_rates(device).items():
        found = max(
            2 * n**3 / predict(Matmul(n, n, n, 1, dtype), device, implementation=library).seconds
            for n in (4096, 8192, 16384)
        )
        assert least < found / rate < 1.2, (dtype, found / 1e12)


@pytest.mark.parametrize("slug", ["gaudi2", "gaudi3", "tpu-v5e", "tpu-v6e", "trainium2"])
def test_a_systolic_array_runs_every_kind_of_operator(slug):
    device = load(slug)
    product = predict(Matmul(8192, 8192, 8192), device)
    assert 0.45 < 2.0 * 8192**3 / product.seconds / device.matrix_flops("bf16") < 1.0
    assert any("of a GPU's size" in said for said in product.assumptions)
    decode = predict(Attention(32, 32, 8, 1, 4096, 128), device)
    assert 0.6 < 2 * 2 * 32 * 8 * 4096 * 128 / decode.seconds / device.hbm_bytes_per_s < 1.0
    assert predict(Rowwise("softmax", 4096, 4096, "fp32"), device).seconds > 0


@cases
def test_where_fp32_takes_every_issue_slot(slug, bound):
    assert machine(load(slug)).issue_bound() is bound


@pytest.mark.parametrize("direction", ["fwd", "bwd"])
@pytest.mark.parametrize("op", ["softmax", "layernorm", "rmsnorm"])
@given(st.integers(1, 4096), st.integers(1, 32768), st.sampled_from([256, 1024, 4096]))
def test_as_many_passes_are_timed_as_are_counted(op, direction, rows, columns, tile):
    """What waits for its loads is what asks for bytes: twice the row, twice the waiting.

    Blocks that start together wait together, so rounds of blocks are whole.
    """
    problem = Rowwise(op, rows, columns, "fp32", direction=direction)
    schedule = rowwise.rows(problem, 1, tile)
    here = machine(load("h100-sxm"))
    for kernel in count(schedule, problem.sizes(), problem.elements()).kernels:
        held = residency(here, kernel)
        tensors = schedule.algorithm.tensors
        passes = max(
            kernel.l2[name].read_bytes / (4 * rule.moved(kernel.nest, tensors[name]))
            for name in schedule.reads(kernel.nest.kernel)
        )
        resident = np.clip(held.busiest, 1, np.maximum(held.blocks_per_unit, 1))
        rounds = np.ceil(held.busiest / resident - 1e-9) * kernel.passes / kernel.blocks * passes
        stages = max(kernel.nest.kernel.stages - 1, 1)
        waited = memory.latency_seconds(kernel, held, Balance(held.busiest, np.ones(())), 1.0)
        assert waited == pytest.approx(rounds / stages)


GPUS = [device for device in specs() if device.kind == "gpu" and device.boost_hz]


@pytest.mark.parametrize("slug", ["a100-sxm4-80gb", "mi300x"])
def test_energies_hold_at_the_clock_they_are_stated_for(slug):
    assert sustained(default(), load(slug))["matrix_joules"] == default()["matrix_joules"]


@pytest.mark.parametrize("vendor", ["NVIDIA", "AMD"])
def test_a_higher_clock_takes_more_energy(vendor):
    found = sorted(
        (device.boost_hz, sustained(default(), device)["matrix_joules"])
        for device in GPUS
        if device.vendor == vendor
    )
    joules = [energy for _, energy in found]
    assert len(found) > 5
    assert joules == sorted(joules)
    assert joules[0] < joules[-1]


@pytest.mark.parametrize("slug", ["mi300x", "mi325x"])
def test_long_products_are_near_the_published_rate(slug):
    """AMD, hipBLASLt on random data at the board's limit; the spec states rate and source."""
    device = load(slug)
    rate = published_rates(device)["bf16"]
    long = predict(Matmul(8192, 8192, 8192), device, constants=sustained(default(), device))
    assert long.flops_per_second == pytest.approx(rate, rel=0.15)
