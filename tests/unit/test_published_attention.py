"""Published attention figures, each through the package's own counting.

The FlashAttention papers: 1 (arXiv 2205.14135v2), 2 (2307.08691), 3 (2407.08608), 4 (2603.05451).
Ids are those of the project's list of published vectors.
"""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel.algorithms import Attention
from perfmodel.count import count
from perfmodel.count.memory import training_memory_bytes
from perfmodel.count.quantisation import wave_efficiency
from perfmodel.hardware import load
from perfmodel.predict import predict
from perfmodel.schedules.standard import standard, standard_backward
from perfmodel.schedules.tiled import flash1_block, split_kv, tiled, tiled_backward

# FlashAttention Figure 2: batch 64, 16 heads, N 1024, d 64, fp16.
FIG2 = Attention(64, 16, 16, 1024, 1024, 64, dtype="fp16")
UNIT = 64 * 16 * 1024 * 64 * 2  # bytes of one pass over N·d of every head


def moved(schedule, problem, boundary="l2"):
    return count(schedule, problem.sizes(), problem.elements()).bytes_at(boundary)


def units(schedule, problem, names):
    """Passes over N·d of the named tensors (statistics of N words are not among them)."""
    cost = count(schedule, problem.sizes(), problem.elements())
    one = problem.seq_q * problem.head_dim * problem.heads_q * problem.batch * 2
    return sum(k.l2[n].total_bytes for k in cost.kernels for n in names if n in k.l2) / one


FORWARD = ("Q", "K", "V", "O")
BACKWARD = (*FORWARD, "dO", "dQ", "dK", "dV")


def single(n: int, dim: int, **options) -> Attention:
    return Attention(1, 1, 1, n, n, dim, dtype="fp16", **options)


# -- FlashAttention Figure 2 -----------------------------------------------------------------------

# Standard attention as the figure has it: additive mask, dropout with a byte mask. Without either
# 11 N² passes, dropout alone 16, masked_fill in place of the additive mask 20, plus 12 Nd each.
STANDARD = [
    ("fa1.fig2.std.hbm_gb", {"mask_pass": "additive", "dropout": True}, 40.3, 0.05),
    ("plain, 11 passes", {}, 25.2, 0.05),
    ("dropout alone, 16 passes", {"dropout": True}, 36.0, 0.05),
    ("masked fill, 20 passes", {"mask_pass": "masked_fill", "dropout": True}, 44.6, 0.05),
]


@pytest.mark.parametrize(("name", "options", "gigabytes", "within"), STANDARD)
def test_standard_attention_forward_and_backward(name, options, gigabytes, within):
    total = moved(standard(**options), FIG2, "hbm") + moved(
        standard_backward(**options), FIG2, "hbm"
    )
    assert total / 1e9 == pytest.approx(gigabytes, abs=within)


@pytest.mark.parametrize(("asked", "gigabytes"), [
    ({}, 25.2), ({"dropout": True}, 36.0), ({"padding_mask": True, "dropout": True}, 40.3),
])  # fmt: skip
def test_predictions_of_training_move_the_bytes_of_the_figure(asked, gigabytes):
    """And what PyTorch adds to it: gradient times probabilities, and four copies either way.

    Large enough that the caches hold nothing from one kernel to the next.
    """
    problem = Attention(64, 16, 16, 1024, 1024, 64, dtype="fp16", direction="fwdbwd", **asked)
    found = predict(problem, load("a100-sxm4-40gb"), schedule="standard")
    rows = 64 * 16 * 1024 * 2
    added = 3 * rows * 1024 + 2 * 4 * 2 * rows * 64
    assert (found.bytes["hbm"] - added) / 1e9 == pytest.approx(gigabytes, rel=0.01)


# Tc = 1024/256 = 4: (3·4 + 1) + (4·4 + 4) = 33 units as the figure counts; literal algorithms
# (3·4 + 2) + (5·4 + 4) = 38; the released kernels keep unfinished O and dQ in fp32 and write the
# last pass in fp16: (2 + 4 + 6 + 7) + (4 + 8 + 1 + 13) = 45.
FLASH = [("paper", 33, 4.4, 0.05), ("literal", 38, 5.10, 0.005), ("impl", 45, 6.04, 0.005)]


@pytest.mark.parametrize(("accounting", "passes", "gigabytes", "within"), FLASH)
def test_fa1_fig2_flash_hbm_gb(accounting, passes, gigabytes, within):
    options = {"order": 1, "accounting": accounting}
    found = units(tiled(None, 64, 256, **options), FIG2, FORWARD)
    found += units(tiled_backward(None, 64, 256, **options), FIG2, BACKWARD)
    assert found == passes
    assert found * UNIT / 1e9 == pytest.approx(gigabytes, abs=within)


# Figure 2 middle, digitised: forward, (3·Tc + 1) units.
MIDDLE = [(64, 6.577, 49), (128, 3.355, 25), (256, 1.744, 13), (512, 0.939, 7)]


@pytest.mark.parametrize(("columns", "gigabytes", "passes"), MIDDLE)
def test_fa1_fig2mid_hbm_gb(columns, gigabytes, passes):
    found = units(tiled(None, 64, columns, order=1, accounting="paper"), FIG2, FORWARD)
    assert found == passes  # fa1.fwd.units
    assert found * UNIT / 1e9 == pytest.approx(gigabytes, rel=0.003)


@pytest.mark.parametrize(("columns", "passes"), [(64, 68), (128, 36), (256, 20), (512, 12)])
def test_fa1_bwd_units(columns, passes):
    schedule = tiled_backward(None, 64, columns, order=1, accounting="paper")
    assert units(schedule, single(1024, 64), BACKWARD) == passes


def test_fa1_fwd_units_causal():
    # 2 for K and V, Q and O written (Tc + 1)/2 times each, O read (Tc − 1)/2 times.
    problem = single(1024, 64, causal=True)
    schedule = tiled(problem.mask(), 16, 256, order=1, accounting="paper")
    assert units(schedule, problem, FORWARD) == 8.5


def test_fa1_algo_blocksizes():
    rows, columns = flash1_block(49152, 64)
    assert (columns, rows) == (192, 64)


def test_statistics_cross_once_a_key_tile_in_the_first_paper_and_once_in_the_second():
    # m and ℓ written Tc times and read back Tc − 1 times, 4 bytes each; later only L, once.
    problem = single(1024, 64)
    cost = count(tiled(None, 64, 256, order=1), problem.sizes(), problem.elements()).kernels[0]
    assert cost.l2["m"].total_bytes == cost.l2["l"].total_bytes == 1024 * 4 * (4 + 3)
    cost = count(tiled(None, 64, 256), problem.sizes(), problem.elements()).kernels[0]
    assert cost.l2["L"].total_bytes == 1024 * 4


# -- FlashAttention Tables 18 and 21 ---------------------------------------------------------------


def table21(n):
    return Attention(16, 8, 8, n, n, 64, dtype="fp16")


STANDARD_MIB = {128: 36, 256: 104, 512: 336, 1024: 1184, 2048: 4416, 4096: 17024}
FLASH_MIB = {
    128: 22, 256: 44, 512: 104, 1024: 209, 2048: 418, 4096: 836, 8192: 1672, 16384: 3344,
    32768: 6688, 65536: 13376,
}  # fmt: skip


@pytest.mark.parametrize("n", STANDARD_MIB)
def test_fa1_tab21_std_memory_mb(n):
    # S, P, dP, dS; Q, K, V, O and their gradients; the scaled copy of Q and its gradient.
    passes = standard(scaled_copy=True), standard_backward(scaled_copy=True)
    problem = table21(n)
    found = training_memory_bytes(*passes, problem.sizes(), problem.elements())
    assert found / 2**20 == pytest.approx(STANDARD_MIB[n], abs=0.6)


@pytest.mark.parametrize("n", FLASH_MIB)
def test_fa1_tab21_flash_memory_mb(n):
    # 8 tensors, 3 more for the packed gradient, L and D in fp32; past one key tile of 256 also a
    # dQ in fp32.
    problem = table21(n)
    found = training_memory_bytes(
        tiled(None, 64, 256),
        tiled_backward(None, 64, 256),
        problem.sizes(),
        problem.elements(),
        copies=("dQ", "dK", "dV"),
    )
    assert found / 2**20 == pytest.approx(FLASH_MIB[n], abs=0.6)


def test_memory_of_a_training_step_over_an_array_of_lengths():
    problem = table21(np.array(list(FLASH_MIB)))
    found = training_memory_bytes(
        tiled(None, 64, 256),
        tiled_backward(None, 64, 256),
        problem.sizes(),
        problem.elements(),
        copies=("dQ", "dK", "dV"),
    )
    assert found / 2**20 == pytest.approx(list(FLASH_MIB.values()), abs=0.6)


def test_fa1_tab18_std_eff_bandwidth():
    # 16.47 ms at N = 4096: 4 N² and 4 Nd passes make 1059 GB/s.
    assert moved(standard(), table21(4096), "hbm") / 16.47e-3 == pytest.approx(1059e9, rel=0.01)
    # Backward, 33.87 ms: 904 GB/s.
    back = moved(standard_backward(), table21(4096), "hbm")
    assert back / 33.87e-3 == pytest.approx(904e9, rel=0.01)


def test_fa1_tab18_flash_tflops():
    assert table21(8192).flops() / 33.54e-3 == pytest.approx(65.6e12, rel=0.01)


# -- FlashAttention-2 ------------------------------------------------------------------------------


def test_fa2_flops_fwd():
    problem = Attention(8, 16, 16, 2048, 2048, 128)
    assert problem.flops() == pytest.approx(274877906900.0, rel=1e-6)
    cost = count(tiled(None, 128, 64), problem.sizes(), problem.elements())
    assert cost.matrix_flops == problem.flops()
    # Backward 2.5 times as much: five matmuls of the forward's two.
    back = count(tiled_backward(None, 64, 64), problem.sizes(), problem.elements())
    assert back.matrix_flops == 2.5 * cost.matrix_flops
    assert Attention(**{**vars(problem), "causal": True}).flops() == problem.flops() / 2


@pytest.mark.parametrize(
    ("causal", "rows", "passes"), [(0, 64, 130), (0, 128, 66), (1, 64, 67), (1, 128, 35)]
)
def test_fa2_fwd_units(causal, rows, passes):
    # 2·Tr + 2 in full, Tr + 3 causal with square tiles.
    problem = single(4096, 128, causal=bool(causal))
    assert units(tiled(problem.mask(), rows, rows), problem, FORWARD) == passes


def test_fa2_mfu_and_the_cost_of_other_work():
    a100 = load("a100-sxm4-80gb")
    assert 225e12 / a100.matrix_flops("fp16") == pytest.approx(0.72, abs=0.005)
    assert a100.matrix_flops("fp16") / a100.vector_flops() == pytest.approx(16, abs=0.01)


def test_fa2_std_eff_bandwidth_8k():
    # PyTorch at 37 TFLOP/s, N = 8192: 4-pass traffic over the time that this takes.
    problem = Attention(2, 32, 32, 8192, 8192, 64, dtype="fp16")
    seconds = problem.flops() / 37e12
    assert moved(standard(), problem, "hbm") / seconds == pytest.approx(1156e9, rel=0.01)


@pytest.mark.parametrize(("dim", "published"), [(64, 192e12), (128, 223e12)])
def test_fa2_serial_mma_exp_model(dim, published):
    # Matrix and exponential time one after the other explain the measured 16k speeds within 13 %.
    a100 = load("a100-sxm4-80gb")
    problem = Attention(1, 2048 // dim, 2048 // dim, 16384, 16384, dim)
    cost = count(tiled(None, 128, 64), problem.sizes(), problem.elements())
    exponentials_per_s = a100.special_per_clock * a100.units * a100.tensor_hz
    seconds = cost.matrix_flops / a100.matrix_flops("fp16")
    seconds += cost.special_ops / exponentials_per_s
    assert problem.flops() / seconds == pytest.approx(published, rel=0.13)


# -- FlashAttention-3 ------------------------------------------------------------------------------


def test_fa3_rates_of_the_h100():
    h100 = load("h100-sxm")
    per_clock = h100.units * h100.tensor_hz
    assert h100.special_per_clock * per_clock == pytest.approx(3.9e12, abs=0.05e12)
    assert h100.matrix_flops("fp16") == pytest.approx(989e12, rel=1e-3)
    assert h100.shared_bytes_per_clock * per_clock == pytest.approx(31e12, abs=0.2e12)


@pytest.mark.parametrize(("dim", "ratio"), [(128, 0.5), (64, 1.0)])
def test_fa3_exp_fraction(dim, ratio):
    h100, problem = load("h100-sxm"), single(8192, dim)
    cost = count(tiled(None, 128, 128, order=3), problem.sizes(), problem.elements())
    exponentials = cost.special_ops / (h100.special_per_clock * h100.units * h100.tensor_hz)
    matrix = cost.matrix_flops / h100.matrix_flops("fp16")
    assert exponentials / matrix == pytest.approx(ratio, rel=0.03)


@pytest.mark.parametrize(("milliseconds", "tflops"), [(3.538, 661), (4.021, 582), (4.105, 570)])
def test_fa3_tab2_tflops(milliseconds, tflops):
    problem = Attention(4, 16, 16, 8448, 8448, 128)
    assert problem.flops() / milliseconds / 1e9 == pytest.approx(tflops, rel=0.002)


@pytest.mark.parametrize("length", [4224, 8448, 16896])
def test_fa3_wave_free_seqlens(length):
    # Multiples of the 132 SMs: tiles of 128 rows × 16 heads fill every wave.
    problem = Attention(1, 16, 16, length, length, 128)
    cost = count(tiled(None, 128, 128), problem.sizes(), problem.elements())
    assert wave_efficiency(cost.kernels[0].blocks, load("h100-sxm").units) == 1


# -- FlashAttention-4 ------------------------------------------------------------------------------

# Cycles of one tile on one SM: 8192 FLOP, 128 B of shared memory, 16 exponentials a clock.
CYCLES = [
    ("fa4.fwd.cycles.128", tiled, 128, (1024, 768, 1024)),
    ("fa4.fwd.cycles.256", tiled, 256, (2048, 1536, 2048)),
    ("fa4.bwd.cycles", tiled_backward, 128, (2560, 3328, 1024)),
]


@pytest.mark.parametrize(("name", "make", "rows", "cycles"), CYCLES, ids=[c[0] for c in CYCLES])
def test_fa4_cycles(name, make, rows, cycles):
    problem = Attention(1, 1, 1, rows, 128, 128)
    schedule = make(None, rows, 128, operand_tile=(128, 128))
    cost = count(schedule, problem.sizes(), problem.elements())
    found = cost.matrix_flops / 8192, cost.bytes_at("shared") / 128, cost.special_ops / 16
    assert found == cycles


@pytest.mark.parametrize(("dim", "ratio"), [(64, 2.0), (128, 1.0), (256, 0.5)])
def test_fa4_exp_over_mma(dim, ratio):
    problem = single(4096, dim)
    cost = count(tiled(None, 128, 128), problem.sizes(), problem.elements())
    assert (cost.special_ops / 16) / (cost.matrix_flops / 8192) == ratio


def test_fa4_peak_and_utilisation():
    b200 = load("b200")
    assert b200.matrix_flops("bf16") == pytest.approx(2.25e15, abs=0.01e15)
    assert 1613e12 / b200.matrix_flops("bf16") == pytest.approx(0.71, abs=0.01)


# -- Decoding and the cache of keys and values -----------------------------------------------------


def test_flashdec_kv_bytes():
    # Flash-Decoding blog: 65,536 keys, 2 key-value heads of 128; 64.4 µs on an A100-80GB.
    problem = Attention(1, 16, 2, 1, 65536, 128, dtype="fp16")
    cost = count(split_kv(None, 16, 1024, 64, pack=8), problem.sizes(), problem.elements())
    table = cost.kernels[0].hbm
    keys_and_values = table["K"].read_bytes + table["V"].read_bytes
    assert keys_and_values == pytest.approx(67.1e6, rel=0.01)
    share = keys_and_values / 64.4e-6 / load("a100-sxm4-80gb").hbm_bytes_per_s
    assert share == pytest.approx(0.511, rel=0.01)


def cached(problem, names=("K", "V")):
    table = count(tiled(None, 16, 64), problem.sizes(), problem.elements()).kernels[0].hbm
    return sum(table[name].read_bytes for name in names)


@pytest.mark.parametrize(
    ("layers", "heads", "kv_heads", "expected"), [(32, 32, 32, 524288), (80, 64, 8, 327680)]
)
def test_kv_llama(layers, heads, kv_heads, expected):
    # Llama 2 7B and Llama 3 70B: what one token adds to the cache.
    assert layers * cached(Attention(1, heads, kv_heads, 1, 1, 128)) == expected


def test_kv_mla():
    # DeepSeek-V2: one shared latent of 512 with 64 rotary dimensions; values are a view of it.
    latent = cached(Attention(1, 128, 1, 1, 1, 512 + 64, head_dim_v=512), ("K",))
    assert [n * latent / 2 for n in (60, 27)] == pytest.approx([34600, 15600], rel=0.004)
    # kv.mla_groups: as much as 2.25 groups of one key and one value head of 128.
    assert latent / cached(Attention(1, 128, 1, 1, 1, 128)) == 2.25
