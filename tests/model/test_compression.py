"""Weights in fewer bytes: stored bits, work of kernels, time saved in a step."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import replace

import numpy as np
import pytest
from cases import cases, listed
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Matmul
from perfmodel.algorithms.matmul import kernel_type, matmul_format
from perfmodel.compression import quantised
from perfmodel.compression.comparing import balanced_tokens, least_zeros
from perfmodel.compression.compressed import Compressed
from perfmodel.compression.naming import KINDS, scheme
from perfmodel.compression.scheme import weight_only
from perfmodel.compression.sparse import Csr, Squeeze, TiledCsl, TwoOfFour, scattered
from perfmodel.elements import element
from perfmodel.errors import PerfmodelError, ProblemError, UnknownName
from perfmodel.hardware import load
from perfmodel.networks import library
from perfmodel.networks.expand import parameter_count
from perfmodel.networks.setting import step
from perfmodel.predict import predict

A100, A6000, H100 = load("a100-sxm4-80gb"), load("a6000"), load("h100-sxm")
LLAMA = library.load("llama-2-7b")
SIZES = st.integers(1, 16384)


def seconds(name, device, batch=1, network=LLAMA, context=512, head=None):
    made = Compressed(network, scheme(name), scheme(head) if head else None)
    return made.predict(step(batch, context), device).seconds


# -- stored bits ---------------------------------------------------------------------------------


@cases
def test_bits_are_those_of_the_formats_definitions(name, bits):
    """b + (scale + zero)/g: AWQ, GPTQ, Marlin; OCP MX; NVFP4; gpt-fast; QLoRA; ggml."""
    assert scheme(name).mean_bits(4096, 4096) == pytest.approx(bits, rel=1e-12)


@pytest.mark.parametrize(
    ("bits", "sparse", "published"),
    [(3, 0, 3.02), (3, 0.0045, 3.24), (4, 0, 4.05), (4, 0.0045, 4.27)],
)
def test_squeezellm_stores_the_bits_of_its_paper(bits, sparse, published):
    """2306.07629, tables 1 and 2, of LLaMA-7B: means over matrices of 4,096 and 11,008 rows."""
    found = Compressed(LLAMA, Squeeze(bits, sparse)).bits
    assert found == pytest.approx(published, abs=0.015)


@given(st.sampled_from(quantised.names()), st.sampled_from(quantised.names()), SIZES, SIZES)
def test_a_format_of_more_bits_never_uses_fewer_bytes(one, other, n, k):
    few, many = sorted((quantised.load(x) for x in (one, other)), key=lambda s: s.mean_bits(n, k))
    assert few.stored_bytes(n, k) <= many.stored_bytes(n, k)
    assert many.stored_bytes(n, k) == pytest.approx(n * k * many.bits_at(k) / 8)


@given(st.floats(0.0, 0.99), st.floats(0.0, 0.99), st.sampled_from([TiledCsl, Csr]), SIZES, SIZES)
def test_more_zeros_never_take_more_bytes(one, other, kind, n, k):
    fewer, more = sorted((one, other))
    assert kind(more).stored_bytes(n, k) <= kind(fewer).stored_bytes(n, k)


@given(st.floats(0.0, 0.99), st.integers(1, 200_000), st.integers(1, 200_000))
def test_rows_of_a_sparse_matrix_are_stored_apart(zeros, n, k):
    """n rows of k columns: twice the rows take twice the bytes, and an index is a column's."""
    of = Csr(zeros)
    assert of.stored_bytes(2 * n, k) == pytest.approx(2 * of.stored_bytes(n, k))
    assert of.stored_bytes(n, k) == pytest.approx(n * of.stored_bytes(1, k))
    index = 2 if k <= 2**16 else 4
    assert of.stored_bytes(n, k) == pytest.approx((1 - zeros) * n * k * (2 + index) + 4 * n)


@pytest.mark.parametrize(("dense", "share"), [(16, 0.5), (8, 0.75), (4, 0.875)])
def test_tiled_csl_breaks_even_at_the_derived_share_of_zeros(dense, share):
    """1 − b/32, and the bytes of whole tiles on either side of it."""
    assert least_zeros(dense) == share
    n, k = 4096, 8192
    at, fewer, more = (TiledCsl(share + d).mean_bits(n, k) for d in (0.0, -0.01, 0.01))
    assert at == pytest.approx(dense, rel=2e-3)
    assert more < dense < fewer


def test_tiled_csl_counts_non_zeros_padding_and_offsets():
    """2309.10285: a tile of 256 x 64 with 20 % left has 3276.8 of them, padded to fours."""
    assert TiledCsl(0.8).stored_bytes(256, 64) == 3280 * 4 + 4
    assert TiledCsl(0.8).stored_bytes(512, 128) == 4 * (3280 * 4 + 4)
    assert TiledCsl(0.5).stored_bytes(1, 1) == 4 * 4 + 4  # padded to four


@pytest.mark.parametrize(
    ("name", "of", "share"),
    [("2:4", "fp16", 9 / 16), ("2:4:w8a16", "w8a16", 5 / 8)],
)
def test_two_of_four_takes_the_kept_half_and_its_places(name, of, share):
    few, many = scheme(name).mean_bits(4096, 1 << 30), scheme(of).mean_bits(4096, 1 << 30)
    assert few / many == pytest.approx(share, rel=1e-6)


def test_two_of_four_on_four_bits_is_sparse_marlin():
    """Frantar et al. 2408.11743: 16/3 of the bytes, 5.12 with a scale for 128 places."""
    assert 16 / scheme("2:4:w4a16:g128").mean_bits(4096, 8192) == pytest.approx(5.12)
    assert 16 / scheme("2:4:w4a16:g8192").mean_bits(4096, 8192) == pytest.approx(16 / 3, rel=1e-3)


def test_types_of_products_keep_bits_to_a_millionth():
    assert matmul_format(weight_only(4.0)).weights == "bits4.0"
    assert element(matmul_format(weight_only(4.126953125)).weights).bytes * 8 == pytest.approx(
        4.126953, abs=1e-9
    )
    assert kernel_type("w3.25a16") == "w4a16"
    assert kernel_type("w6.5a16") == "w8a16"
    assert kernel_type("w4a16") == "w4a16"
    assert kernel_type("fp8") == "fp8"
    for name in ("w0.0a16", "wa16", "w4.125a8", "w1234a16"):
        with pytest.raises(UnknownName, match="weights of"):
            Matmul(8, 8, 8, dtype=name)
    with pytest.raises(UnknownName):
        element("bits0")


def test_a_type_of_stated_bits_is_timed_as_the_named_one():
    problem = Matmul(16, 11008, 4096)
    named, stated = (
        predict(replace(problem, dtype=dtype), A100) for dtype in ("w4a16", "w4.125a16")
    )
    assert stated.seconds == named.seconds
    assert (stated.low_seconds, stated.high_seconds) == (named.low_seconds, named.high_seconds)


# -- kernels -------------------------------------------------------------------------------------


@given(st.integers(1, 128), st.integers(64, 8192), st.integers(64, 8192), st.floats(1.0, 15.0))
def test_fewer_stored_bits_of_a_kind_of_kernel_never_take_longer(m, n, k, bits):
    narrow, wide = (
        predict(Matmul(m, n, k, dtype=weight_only(b)), A100).seconds for b in (bits, bits + 0.5)
    )
    assert narrow <= wide * (1 + 1e-9)


@given(st.sampled_from([*quantised.names(), *KINDS]), st.integers(1, 64), st.integers(7, 13))
def test_no_product_is_faster_than_its_bytes(name, m, power):
    n, k = 2**power, 4096
    one = scheme(name)
    try:
        one.check(H100)
    except ProblemError:
        return
    found = one.kernels(Matmul(m, n, k, dtype="fp16"), H100)
    least = one.stored_bytes(n, k) / H100.hbm_bytes_per_s
    assert sum(each.seconds for each in found) > least
    assert all(each.low_seconds <= each.seconds <= each.high_seconds for each in found)


@given(m=SIZES, n=SIZES, k=SIZES)
def test_narrow_activations_are_cast_once_from_sixteen_bits_to_eight(m, n, k):
    cast, _ = scheme("w8a8").kernels(Matmul(m, n, k), H100)
    assert cast.bytes["l2"] == (2 + 1) * m * k


def test_balls_in_bins_are_as_simulated():
    """The fullest of 32 banks after 32 random accesses: 3.53 on average."""
    random = np.random.default_rng(1)
    thrown = random.integers(0, 32, size=(20000, 32))
    fullest = [np.bincount(row).max() for row in thrown]
    assert scattered() == pytest.approx(np.mean(fullest), rel=0.01)


def test_look_ups_in_tables_bind_where_memory_is_fast():
    """One load of shared memory a weight: on A100 it takes longer than 3 bits from HBM, on A6000
    less (SqueezeLLM reports its gains on A6000)."""
    problem = Matmul(1, 11008, 4096, dtype="fp16")
    on_a100, on_a6000 = (Squeeze(3).kernels(problem, device)[0] for device in (A100, A6000))
    assert on_a100.limiter == "decode"
    assert on_a6000.limiter == "hbm"
    lanes = 108 * 32 * 1.41e9
    assert on_a100.terms["decode"] > 11008 * 4096 / lanes


def test_the_sparse_part_of_squeezellm_is_a_second_kernel():
    problem = Matmul(1, 4096, 4096, dtype="fp16")
    dense, sparse = Squeeze(3, 0.0045).kernels(problem, A100)
    assert dense.seconds == Squeeze(3).kernels(problem, A100)[0].seconds
    assert sparse.bytes["hbm"] == pytest.approx(0.0045 * 4096**2 * 6 + 4 * 4096 + 2 * 4096)
    assert sparse.flops["vector"] == pytest.approx(2 * 0.0045 * 4096**2)
    assert sparse.seconds < dense.seconds


def test_zeros_skip_no_operations_of_the_matrix_unit():
    """Load as sparse, compute as dense: many rows take as long as without zeros."""
    problem = Matmul(4096, 4096, 4096, dtype="fp16")
    (sparse,) = TiledCsl(0.9).kernels(problem, A100)
    dense = predict(problem, A100)
    assert sparse.flops["matrix"] >= dense.useful_flops
    assert sparse.seconds > 0.9 * dense.seconds
    assert sum(x.seconds for x in Csr(0.9).kernels(problem, A100)) > dense.seconds


def test_two_of_four_multiplies_half():
    problem = Matmul(8192, 8192, 8192, dtype="fp16")
    (half,) = scheme("2:4").kernels(problem, A100)
    dense = predict(problem, A100)
    assert 1.2 < dense.seconds / half.seconds <= 2.05
    assert half.high_seconds > 1.6 * half.seconds  # libraries reach 1.2 to 1.8 times


def test_tiles_are_extracted_for_each_product_of_a_batch():
    one, four = (
        scheme("csl:0.8").kernels(Matmul(16, 4096, 4096, batch, "fp16"), load("a100"))[0]
        for batch in (1, 4)
    )
    assert four.terms["decode"] == pytest.approx(4 * one.terms["decode"])


@pytest.mark.parametrize("name", ["w4a16", "nf4", "mxfp4", "squeeze:3", "csl:0.8"])
def test_what_is_widened_gains_nothing_once_multiplying_takes_longer(name):
    problem = Matmul(8192, 8192, 8192, dtype="fp16")
    times = sum(each.seconds for each in scheme(name).kernels(problem, A100))
    assert times > 0.95 * predict(problem, A100).seconds


def test_tokens_at_which_reading_and_multiplying_take_as_long():
    """T = q·F/(2·BW): A100 at 16 bits 312e12/(its bandwidth), and in proportion to the bits."""
    fp16, int4 = (balanced_tokens(scheme(x), 4096, 4096, A100) for x in ("fp16", "w4a16"))
    assert int4 / fp16 == pytest.approx(4.125 / 16)
    assert fp16 == pytest.approx(312e12 / 2.039e12, rel=0.2)


# -- networks ------------------------------------------------------------------------------------


def test_weights_are_the_layers_by_the_format_and_the_rest_at_16_bits():
    total = parameter_count(LLAMA)
    norms = (2 * 32 + 1) * 4096
    tables = 2 * 32000 * 4096
    layers = total - norms - tables
    assert Compressed(LLAMA, scheme("fp16")).weight_bytes == 2 * total
    made = Compressed(LLAMA, scheme("w4a16"))
    assert made.weight_bytes == pytest.approx(layers * 4.125 / 8 + 2 * (norms + tables))
    assert made.bits == pytest.approx(4.125)
    whole = Compressed(LLAMA, scheme("w4a16"), scheme("w8a16"))
    assert made.weight_bytes - whole.weight_bytes == pytest.approx(
        32000 * 4096 * (16 - 8 - 16 / 4096) / 8
    )


def test_routers_are_left_alone_and_experts_are_not():
    mixtral = library.load("mixtral-8x7b")
    names = {weight.name for weight, _ in Compressed(mixtral, scheme("w4a16")).matrices()}
    assert "router.weight" not in names
    assert any(name.startswith("experts") for name in names)


@pytest.mark.parametrize("device", [A6000, H100, load("xeon-gold-6242"), load("m4-max")])
@pytest.mark.parametrize("batch", [1, 16])
def test_fewer_bits_decode_faster_until_multiplying_is_all(device, batch):
    times = [seconds(name, device, batch) for name in ("fp16", "w8a16", "w4a16:g32", "w4a16:g128")]
    assert times == sorted(times, reverse=True)


def test_gains_fall_with_the_batch_and_stay_below_the_ratio_of_bytes():
    for name, ratio in (("w8a16", 2.0), ("w4a16", 16 / 4.125), ("2:4", 16 / 9)):
        gains = [seconds("fp16", A6000, b) / seconds(name, A6000, b) for b in (1, 8, 32, 128, 512)]
        assert gains == sorted(gains, reverse=True)
        assert 1.0 < gains[0] < ratio


def test_pruned_networks_are_smaller_networks():
    small = scheme("prune:0.25").network(LLAMA)
    block = small.blocks[0]
    assert (block.attention.heads, block.attention.kv_heads) == (24, 24)
    assert block.mlp.inner == 8256 == round(0.75 * 11008 / 64) * 64
    grouped = scheme("prune:0.25").network(library.load("llama-3-8b")).blocks[0].attention
    assert (grouped.heads, grouped.kv_heads) == (24, 6)
    whole = scheme("prune:0").network(LLAMA)
    assert whole.blocks == LLAMA.blocks
    assert (
        seconds("prune:0.5", A6000, 64)
        < seconds("prune:0.25", A6000, 64)
        < seconds("fp16", A6000, 64)
    )


GAINS = listed(__file__, "GAINS")
"""gpt-fast README; llama.cpp on GPUs (XiongjieDai, GPU-Benchmarks-on-LLM-Inference); TinyChat (AWQ)
README, whose 16 bits are eager Hugging Face."""


def test_gains_of_published_engines_are_met_to_a_median_of_15_percent():
    errors = []
    for name, network, form, head, context, plain, narrow in GAINS:
        device, of = load(name), library.load(network)
        before = seconds("fp16", device, network=of, context=context)
        after = seconds(form, device, network=of, context=context, head=head)
        errors.append(abs(math.log(before / after / (plain / narrow))))
    assert statistics.median(errors) < 0.15
    assert max(errors) < 0.30


# -- names and the command -----------------------------------------------------------------------


@pytest.mark.parametrize("name", [*quantised.names(), *KINDS, "w4a16:g64", "2:4:w4a16"])
def test_a_scheme_is_called_by_a_name_that_reads_back(name):
    found = scheme(name)
    assert scheme(found.name) == found
    assert found.about


@cases
def test_a_name_without_meaning_gets_one_line(name, said):
    with pytest.raises(PerfmodelError) as caught:
        scheme(name)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@cases
def test_a_format_that_a_device_cannot_run_is_one_line(cli, device, name, said):
    code, out, err = cli("compress", "llama-2-7b", "-d", device, "--formats", f"fp16,{name}")
    assert code == 0
    assert "fp16" in out
    assert said in err
    assert err.count("\n") == 1


def test_the_command_in_json_has_every_number(cli):
    _, out, _ = cli(
        "compress", "llama-2-7b", "-d", "a6000", "--formats", "fp16,w4a16", "-f", "json"
    )
    plain, narrow = json.loads(out)["formats"]
    assert plain["gain"] == 1.0
    assert narrow["gain"] == pytest.approx(plain["time_us"] / narrow["time_us"])
    assert narrow["byte_gain"] == pytest.approx(16 / 4.125)
    assert narrow["weight_bytes"] == Compressed(LLAMA, scheme("w4a16")).weight_bytes
    assert narrow["low_us"] < narrow["time_us"] < narrow["high_us"]
    assert narrow["tokens_per_s"] == pytest.approx(1e6 / narrow["time_us"])


def test_usual_formats_are_those_that_the_device_can_run(output):
    out = output("compress", "llama-2-7b", "-d", "t4", "-f", "csv")
    lines = out.splitlines()[1:]
    assert not any("fp8" in line or "2:4" in line for line in lines)
    assert any("w4a16" in line for line in lines)


def test_two_of_four_of_what_is_no_such_format_is_refused():
    with pytest.raises(ProblemError, match="is not modelled"):
        TwoOfFour(quantised.load("fp8"))
