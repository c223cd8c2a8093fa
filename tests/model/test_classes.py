"""Names of implementations find their kernels, and kernels their fallbacks."""

from __future__ import annotations

import re

import pytest
from cases import cases, listed
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.errors import PerfmodelError, UnknownName
from perfmodel.hardware import load, names
from perfmodel.predict import predict
from perfmodel.timing.cuts import EvenCut
from perfmodel.timing.libraries import kernel_facts, kernels, naming, resolve, usual
from perfmodel.timing.machine import machine

H100, A100, B200, T4, MI300X = (
    load(slug) for slug in ("h100-sxm", "a100-sxm4-80gb", "b200", "t4", "mi300x")
)

# Kernels for Blackwell alone.
# (operator, type, implementation as measured-run tables name it, class).
NAMED = listed(__file__, "NAMED")
# Kernels that exist for the newest of two devices alone.
NEWEST = listed(__file__, "NEWEST")
# Names that no measured run has yet, or whose operator's runs are not told apart by them.
ALSO_NAMED = listed(__file__, "ALSO_NAMED")


def test_every_pattern_finds_a_name_that_is_listed_for_its_kernel():
    """A pattern that no listed name needs is one that nobody knows the reason of."""
    for entry in naming.names():
        listed = [name for *_, name, kernel in (*NAMED, *ALSO_NAMED) if kernel == entry.kernel]
        for pattern in entry.names:
            assert any(re.search(pattern, name) for name in listed), pattern


@pytest.mark.parametrize("entry", naming.callers(), ids=lambda entry: str(entry.changes))
def test_every_pattern_of_callers_finds_a_listed_name(entry):
    operators = entry.operators or ("attention", "gemm")
    listed = [name for op, dtype, name, _ in NAMED if op in operators
              and dtype in (entry.formats or (dtype,))]  # fmt: skip
    for pattern in entry.names:
        assert any(re.search(pattern, name) for name in listed), pattern
        assert not all(re.search(pattern, name) for name in listed), pattern


def test_names_that_are_in_no_table_find_their_kernel():
    for op, dtype, name, expected in ALSO_NAMED:
        variant = "silu_mul" if expected == "vllm-activation" else ""
        found = naming.matching(op, name, dtype, variant)
        assert found.name == expected


def test_names_of_implementations_find_their_class():
    for op, dtype, name, expected in NAMED:
        others = {"cublas-int8": T4, "aiter": MI300X}
        device = others.get(expected, B200 if expected in NEWEST else H100)
        found, said = resolve(op, name, dtype, machine(device))
        assert found.name == expected
        assert (f"modelled as {expected}" in " ".join(said)) == (name != expected)


def test_every_named_row_of_the_measured_runs_has_a_class(measured):
    # New names in the table must be added above, or be known to have no class of their own.
    pandas = pytest.importorskip("pandas", reason="reads the measured runs")
    table = pandas.read_csv(measured / "measured_dev2_core.csv.gz", dtype=str)
    rows = table[["op", "dtype", "implementation"]].drop_duplicates().dropna()
    listed = {(op, dtype, name) for op, dtype, name, _ in NAMED}
    kinds = set(rows.itertuples(index=False, name=None))
    without = {row for row in kinds - listed if row[0] not in ("pointwise", "quantise")}
    assert not without


def test_the_usual_class_follows_the_generation():
    expected = {"t4": "flash2", "a100-sxm4-80gb": "flash2", "h100-sxm": "flash3", "b200": "flash4"}
    found = {slug: usual("attention", "bf16", machine(load(slug))).name for slug in expected}
    assert found == expected
    # The newest kernels take 16 bits at most.
    assert usual("attention", "fp32", machine(H100)).name == "flash2"
    assert usual("gemm", "fp32", machine(H100)).name == "cublas-fp32"
    assert usual("gemm", "nvfp4", machine(B200)).name == "cublas"
    with pytest.raises(
        PerfmodelError, match="h100-sxm has no known kernel of gemm in fp3; it has: "
    ):
        usual("gemm", "fp3", machine(H100))


@cases
def test_a_class_without_its_instructions_falls_back_and_says_so(name, slug, falls):
    op, dtype = (kernel_facts(name).operator, "fp32" if "fp32" in name else "fp16")
    found, said = resolve(op, name, dtype, machine(load(slug)))
    assert found.name == (falls or name)
    assert list(said) == ([f"{name} does not run on {slug}; {falls} taken"] if falls else [])


@pytest.mark.parametrize(
    "name", ["torch-2.6.0:rms", "vllm-0.24.0:gate", "aiter:ck", "sarathi/torch", "nobodys"]
)
@pytest.mark.parametrize("op", ["softmax", "layernorm", "rmsnorm", "pointwise", "quantise"])
def test_a_good_librarys_kernel_is_never_taken_for_a_named_one_in_silence(op, name):
    problem = Rowwise(op, 4096, 4096, "bf16", "copy" if op == "pointwise" else "")
    found = predict(problem, H100, implementation=name)
    if found.implementation == "fused-rows":
        assert any(f"{name!r} is not known" in line for line in found.assumptions)
        assert found.known.implementation == "assumed"


def test_products_of_triton_share_reads_of_the_l2_on_hopper_and_do_not_split_k():
    problem = Matmul(4096, 4096, 4096)
    tile = {"m": 128, "n": 128, "k": 64, "warps": 8, "stages": 3}
    hopper, ampere = (
        predict(problem, device, implementation="triton", tile=tile).bytes["l2"]
        for device in (H100, A100)
    )
    assert 0 < 1.9 * hopper < ampere
    triton, library = (predict(problem, H100, implementation=i) for i in ("triton", "cublas"))
    assert triton.seconds > library.seconds
    assert predict(Matmul(64, 64, 2**20), H100, implementation="triton").tile["slices"] == 1
    said = predict(Matmul(64, 64, 64, dtype="w8a16"), H100, implementation="triton").assumptions
    assert said == ("'triton' is not known in w8a16: weight-only taken",)
    unmet = predict(Matmul(64, 64, 64, dtype="w8a16"), H100, implementation="triton")
    assert unmet.known.implementation == "assumed"


def test_strided_batches_of_fp32_have_classes_of_their_own():
    many, one = Matmul(64, 64, 64, 8, "fp32"), Matmul(64, 64, 64, 1, "fp32")
    assert predict(many, A100).implementation == "cublas-fp32-batched"
    assert predict(one, A100).implementation == "cublas-fp32-ampere"
    assert predict(many, H100).implementation == "cublas-fp32-hopper-batched"
    assert predict(one, H100).implementation == "cublas-fp32"
    assert predict(many, T4).implementation == "cublas-fp32-turing-batched"
    assert predict(many, load("v100-sxm2")).implementation == "cublas-fp32-volta-batched"
    assert predict(one, T4).implementation == "cublas-fp32-turing"


@given(m=st.integers(1, 3000), n=st.integers(1, 3000), k=st.integers(64, 40000))
def test_ampere_cuts_fp32_products_as_its_library_does(m, n, k):
    # Tiles of 32 rows or columns for no more than that, and slices that fill two waves at most.
    tile = predict(Matmul(m, n, k, 1, "fp32"), A100).tile
    assert tile["m"] >= 64 or m <= 32
    assert tile["n"] >= 64 or n <= 32
    blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * tile["slices"]
    assert tile["slices"] == 1 or blocks <= 2 * machine(A100).units


def test_an_unknown_class_names_the_nearest():
    with pytest.raises(UnknownName, match="flash2"):
        kernel_facts("flash22")


def test_a_fall_ends_at_a_kernel_that_runs():
    for name in kernels():
        entry = kernel_facts(name)
        for slug in names() if entry.fallback is not None else ():
            here = machine(load(slug))
            found, _ = resolve(entry.operator, name, "fp32", here)
            assert found.runs_on.allows(here.architecture)


def test_menus_go_by_head_dimension():
    entry = kernel_facts("flash3")
    assert entry.menu(64, decode=False) == entry.tiles[64]
    assert entry.menu(80, decode=False) == entry.tiles[96]
    assert entry.menu(4096, decode=False) == entry.tiles[max(entry.tiles)]
    assert entry.decode is not None
    assert entry.menu(64, decode=True) == entry.decode[64]


@pytest.mark.parametrize(("device", "expected"), [(B200, "fmha"), (H100, "fmha-hopper"),
                                                 (A100, "fmha-ampere")])  # fmt: skip
def test_kernels_of_frameworks_go_without_the_copies_of_a_library(device, expected):
    found, _ = resolve("attention", "flashinfer-0.2", "bf16", machine(device))
    assert found.name == expected
    assert not found.regroups
    assert not isinstance(found.cut, EvenCut)


@cases
def test_runs_that_are_timed_otherwise_are_told_by_name(dtype, name, start, host):
    found, _ = resolve("gemm", name, dtype, machine(H100))
    for seconds, ends in ((found.caller.start_seconds, start), (found.caller.host_seconds, host)):
        assert (seconds is None) == (ends is None)
        assert seconds is None or ends[0] < seconds < ends[1]


@pytest.mark.parametrize("device", [H100, B200])
def test_how_runs_were_timed_stays_where_a_class_falls_back(device):
    found, _ = resolve("gemm", "vllm-0.14.0:vllm_default", "fp8_block", machine(device))
    there = resolve("gemm", "vllm:DeepGemmFp8BlockScaledMMKernel", "fp8_block", machine(device))[0]
    assert found.caller.host_seconds == there.caller.host_seconds
    assert there.caller.host_seconds is not None


@pytest.mark.parametrize(
    ("device", "prefill", "decode"),
    [(B200, "tensorrt-llm", "trtllm-gen"), (H100, "trtllm-hopper", "trtllm-xqa"),
     (A100, "trtllm-mma", "trtllm-xqa")],
)  # fmt: skip
def test_decode_may_be_another_kernel_than_prefill(device, prefill, decode):
    name = "trtllm-1.0.0:torch_flow"
    queries = {"implementation": name}
    assert predict(Attention(1, 8, 8, 256, 256, 64), device, **queries).implementation == prefill
    assert predict(Attention(64, 8, 2, 1, 256, 64), device, **queries).implementation == decode
    found, _ = resolve("attention", name, "bf16", machine(device), decode=True)
    assert (found.caller.packed, found.caller.paged) == (True, True)


def test_block_scales_are_added_up_outside_the_instruction_before_blackwell_alone():
    found = {
        device.slug: resolve("gemm", "deepgemm", "fp8_block", machine(device))[0].promoted
        for device in (H100, B200)
    }
    assert found == {"h100-sxm": True, "b200": False}


@cases
def test_serving_frameworks_find_their_keys_in_pages(name, paged):
    found, _ = resolve("attention", name, "bf16", machine(load("a100-sxm4-80gb")))
    assert found.caller.paged is paged
