"""Laws that every prediction obeys, whatever the constants: bounds, ordering, no cliff."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from draws import DRAWS, KINDS, N, make
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul, Problem, Rowwise
from perfmodel.algorithms.matmul import FORMATS
from perfmodel.algorithms.rowwise import OPS
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import Device, load, names
from perfmodel.predict import predict_arrays
from perfmodel.prediction import Predictions
from perfmodel.timing.libraries import kernel_facts, usual
from perfmodel.timing.libraries.naming import usual_kernels
from perfmodel.timing.machine import machine
from perfmodel.timing.physical import floor_seconds

H100 = load("h100-sxm")
SLUGS = ("h100-sxm", "a100-sxm4-80gb", "b200", "t4", "rtx4090", "mi300x")
DEVICES = tuple(load(slug) for slug in SLUGS)
# Sums of floating-point terms in another order differ in their last digits.
ROUNDING = 1e-9


draws = st.tuples(st.sampled_from(KINDS), st.integers(0, 2**32 - 1), st.sampled_from(SLUGS))


def run(
    problem: Problem, device: Device, schedule: str, implementation: str | None = None
) -> Predictions | None:
    """Predictions, counted; None where the device has no such rate or no tile fits."""
    return DRAWS.run(problem, device, schedule, implementation=implementation)


def names_of(found: Predictions, wrong: np.ndarray) -> str:
    """The first problem of which something is wrong."""
    i = int(np.flatnonzero(wrong)[0])
    return f"{found.device.slug}: {found.one(i).problem} {found.one(i).tile}"


@given(draws)
def test_no_prediction_beats_one_of_its_own_terms_or_the_floor(draw):
    kind, seed, device = draw[0], draw[1], load(draw[2])
    problem, schedule = make(kind, seed)
    found = run(problem, device, schedule)
    if found is None:
        return
    for name, term in found.terms.items():
        assert np.all(np.isfinite(term) & (term >= 0)), name
        short = found.seconds < term * (1 - ROUNDING)
        assert not short.any(), f"{name}: {names_of(found, short)}"
    floor = floor_seconds(problem, device, found.flops["matrix"])
    # What the harness adds is no part of the argument.
    device_seconds = found.seconds - found.terms["launch"]
    assert np.all(device_seconds >= floor * (1 - ROUNDING)), names_of(found, device_seconds < floor)
    assert np.all(found.low_seconds >= floor * (1 - ROUNDING))
    assert np.all(found.low_seconds <= found.seconds)
    assert np.all(found.seconds <= found.high_seconds)
    others = {name: term for name, term in found.terms.items() if name != "power"}
    largest = np.max(list(others.values()), axis=0)
    for i in range(0, N, 7):
        limiter = found.limiter[i]
        # Power is a limit and no resource: it is named only where it is the largest of all.
        assert found.terms[limiter][i] >= largest[i]
        assert limiter == "power" or found.terms[limiter][i] == largest[i]


@given(draws)
def test_bytes_never_grow_towards_main_memory(draw):
    # Rows that a mask hides from every key are left out: their zeros are counted at main memory
    # only, and `make` aligns more keys than queries, so there are none.
    kind, seed, device = draw[0], draw[1], load(draw[2])
    found = run(*make(kind, seed)[:1], device, make(kind, seed)[1])
    if found is None:
        return
    more = found.bytes["hbm"] > found.bytes["l2"] * (1 + ROUNDING)
    assert not more.any(), names_of(found, more)
    # A wave may share every tile, but each must come in once.
    if kind not in ("standard", "window", "split"):
        assert np.all(found.bytes["hbm"] > 0)


# Faster parts; caches and wider units change the menu's choice, never the choices there are.
FASTER = (
    "hbm_bandwidth", "l2_bandwidth", "l2_capacity", "matrix", "vector", "special", "clock",
    "shared_bandwidth", "power", "llc_bandwidth", "llc_capacity",
)  # fmt: skip


@cache
def as_it_is(kind: str, seed: int) -> Predictions | None:
    """Predictions of a device as its spec has it."""
    problem, schedule = make(kind, seed, 16)
    return run(problem, DEVICES[seed], schedule)


@pytest.mark.parametrize("part", FASTER)
def test_a_faster_part_never_slows_anything(part):
    # The minimum over a menu of times that each only fall.
    for seed, device in enumerate(DEVICES):
        try:
            better = device.scaled(**{part: (1.02, 2.0)[seed % 2]})
        except PerfmodelError:
            continue  # the spec does not have it
        for kind in KINDS[seed % 3 :: 3]:
            problem, schedule = make(kind, seed, 16)
            before, after = as_it_is(kind, seed), run(problem, better, schedule)
            if before is not None and after is not None:
                slower = after.seconds > before.seconds * (1 + ROUNDING)
                assert not slower.any(), f"{kind}, {part}: {names_of(before, slower)}"


# How far doubling one size may lower the time. Ragged tiles leave the busiest L2 port less to do;
# a slice count or a block shape may change; flash 1 has few slice counts to choose from.
SHRINKS = {
    "matmul": 0.95,
    "batched": 0.95,
    "split": 0.88,
    "decode": 0.98,
    "attention": 0.88,
    "rows": 0.85,
}
# A library's rule for slices may pay for a combining kernel that a larger batch does without: the
# law is held where the fastest number of slices is taken.
FASTEST = {"decode": "flash-triton", "split": "flash-triton"}
AXES = {Matmul: ("m", "n", "k"), Attention: ("batch", "seq_kv"), Rowwise: ("rows", "cols")}


def family(kind: str) -> str:
    if kind.split()[0] in SHRINKS:
        return kind.split()[0]
    return "rows" if kind in OPS or kind == "norm backward" else "attention"


@given(draws)
def test_twice_the_problem_never_takes_clearly_less(draw):
    kind, seed, device = draw[0], draw[1], load(draw[2])
    problem, schedule = make(kind, seed)
    small = run(problem, device, schedule, FASTEST.get(kind))
    if small is None:
        return
    for axis in AXES[type(problem)]:
        twice = {axis: getattr(problem, axis) * 2}
        large = run(replace(problem, **twice), device, schedule, FASTEST.get(kind))
        if large is None or (kind, axis) == ("window", "seq_kv"):
            continue  # a window that lies across fewer key tiles really visits less
        # What a block fills its pipeline with is divided by its steps of k.
        shrinks = 0.9 if axis == "k" else SHRINKS[family(kind)]
        less = large.seconds < small.seconds * shrinks
        if (kind, axis) == ("matmul w8a8_int8", "m"):
            less &= np.asarray(problem.m) > 4  # above, its library runs another kernel
        assert not less.any(), f"{kind} 2×{axis}: {names_of(small, less)}"


@given(draws)
def test_eight_times_the_batch_always_takes_longer_once_the_machine_is_full(draw):
    kind, seed, device = draw[0], draw[1], load(draw[2])
    problem, schedule = make(kind, seed)
    axis = {Matmul: "m", Attention: "batch", Rowwise: "rows"}[type(problem)]
    start = replace(problem, **{axis: getattr(problem, axis) * 0 + 65536})
    small = run(start, device, schedule)
    large = run(replace(start, **{axis: getattr(start, axis) * 8}), device, schedule)
    if small is None or large is None:
        return
    full = small.waves > 1
    on_device = [found.seconds - found.terms["launch"] for found in (small, large)]
    grown = (on_device[1] / on_device[0])[full]
    assert np.all(grown > 4), kind
    assert np.all(grown < 9), kind


def blocks(problem: Problem, device: Device, tile: dict[str, np.ndarray]) -> np.ndarray:
    """Thread blocks that `problem` needs with the tile of each prediction."""
    if isinstance(problem, Attention):
        packs = usual("attention", problem.dtype, machine(device)).packs
        together = problem.heads_q // problem.heads_kv if packs else 1
        rows = np.maximum(tile["rows"] // together, 1)
        return problem.batch * problem.heads_q / together * np.ceil(problem.seq_q / rows)
    assert isinstance(problem, Matmul)
    grid = np.ceil(problem.m / tile["m"]) * np.ceil(problem.n / tile["n"])
    # Slices are whole pairs of steps of k, so that there may be fewer than were asked for.
    step = 2 * (8 if machine(device).multiplied_as(problem.dtype) == "fp32" else 64)
    slice_k = np.ceil(np.ceil(problem.k / tile["slices"]) / step) * step
    return problem.batch * grid * np.ceil(problem.k / slice_k)


@pytest.mark.parametrize("kind", ["matmul bf16", "matmul fp32", "batched", "prefill"])
def test_one_percent_more_never_costs_more_than_the_rounds_of_blocks_it_adds(kind):
    # The same tile needs so many more blocks, and the busiest unit so many more rounds of them;
    # another tile is only taken where it is faster still.
    axes = {"matmul": ("m", "n"), "batched": ("m", "n", "batch"), "prefill": ("seq_q", "batch")}
    for seed, device in enumerate(DEVICES):
        problem, schedule = make(kind, 7 + seed, n=150)
        small = run(problem, device, schedule)
        assert small is not None
        for axis in axes[kind.split()[0]]:
            value = getattr(problem, axis)
            more = np.maximum(value + 1, np.round(value * 1.01).astype(np.int64))
            larger = replace(problem, **{axis: more})
            large = run(larger, device, schedule)
            assert large is not None
            before, after = (blocks(each, device, small.tile) for each in (problem, larger))
            rounds = np.ceil(after / device.units) / np.ceil(before / device.units)
            cause = np.maximum(np.maximum(rounds, after / before), more / value)
            if "slices" in small.tile:  # a library cuts a larger grid into fewer slices of k
                cause = cause * np.maximum(small.tile["slices"] / large.tile["slices"], 1.0)
            # Screening may miss the tile that was best before.
            over = large.seconds > small.seconds * cause * 1.03
            assert not over.any(), f"{kind} {axis}: {names_of(small, over)}"


@pytest.mark.parametrize("kind", ["softmax", "layernorm", "rmsnorm", "pointwise", "quantise"])
def test_one_more_row_costs_at_most_its_share_and_a_round(kind):
    for seed, device in enumerate(DEVICES):
        problem, schedule = make(kind, 7 + seed, n=150)
        small = run(problem, device, schedule)
        large = run(replace(problem, rows=problem.rows + 1), device, schedule)
        assert small is not None
        assert large is not None
        one = run(replace(problem, rows=problem.rows * 0 + 1), device, schedule)
        assert one is not None
        # One row alone is a launch, a round of one block, and the row itself.
        over = large.seconds > (small.seconds + one.seconds) * 1.01
        assert not over.any(), f"{kind}: {names_of(small, over)}"


def test_every_shipped_device_predicts_or_says_why_not_in_one_line():
    # Some types no library's kernel is known for, on any device.
    computed = {
        dtype for entry in usual_kernels() if kernel_facts(entry.kernel).operator == "gemm"
        for dtype in entry.formats
    }  # fmt: skip
    kinds = [make(f"matmul {dtype}", 1, 6) for dtype in FORMATS if dtype in computed]
    kinds += [make(kind, 2, 6) for kind in KINDS if not kind.startswith("matmul")]
    for dtype in ("fp16", "fp32", "fp8", "fp64", "int8"):
        problem, schedule = make("causal", 3, 6)
        kinds.append((replace(problem, dtype=dtype), schedule))
    refused: dict[str, int] = {}
    for turn, slug in enumerate(names()):
        device = load(slug)
        # A sixth of the kinds each: devices of one architecture stand side by side.
        for problem, schedule in kinds if slug == "b200" else kinds[turn % 6 :: 6]:
            try:
                found = predict_arrays(problem, device, schedule=schedule)
            except PerfmodelError as error:
                said = str(error)
                assert "\n" not in said
                # It names what the device has, or what does not fit.
                assert "it has:" in said or "fits on" in said, said
                refused[slug] = refused.get(slug, 0) + 1
                continue
            assert np.all(np.isfinite(found.seconds) & (found.seconds > 0)), slug
            assert np.all(found.seconds <= found.high_seconds)
    assert len(refused) < len(names())
    # Every type of the list but fp64 attention, which no B200 tile holds.
    assert refused.get("b200", 0) <= 1


@pytest.mark.parametrize("slug", ["t4", "v100-sxm2", "rtx3090", "rtx4090", "a100-sxm4-80gb"])
@pytest.mark.parametrize("head_dim", [64, 96, 128, 192, 256])
def test_backward_attention_fits_where_libraries_have_a_kernel(slug, head_dim):
    problem = Attention(2, 8, 8, 1024, 1024, head_dim, causal=True, direction="bwd")
    found = predict_arrays(replace(problem, dtype="fp16"), load(slug))
    # Five products in the visible half, at most at the dense peak.
    least = problem.flops() / max(load(slug).matrix_flops("fp16"), 1)
    assert found.seconds[0] > least


def test_sizes_of_one_and_of_2_to_the_40_stay_finite():
    huge = 2**40
    shapes: list[Problem] = [
        Matmul(1, 1, 1), Matmul(huge, huge, huge), Matmul(huge, 1, huge), Matmul(2, 2, 2, huge),
        Attention(1, 1, 1, 1, 1, 1), Attention(huge, 8, 8, 1, huge, 128),
        Attention(2, 2, 2, huge, huge, 128, causal=True), Attention(1, 1, 1, 2, huge, 64),
        Rowwise("softmax", 1, 1), Rowwise("softmax", huge, 8), Rowwise("layernorm", 8, huge),
        Rowwise("pointwise", huge, 4, inputs=2),
    ]  # fmt: skip
    for problem in shapes:
        found = predict_arrays(problem, H100)
        assert np.isfinite(found.seconds[0]), problem
        assert all(np.isfinite(term[0]) and term[0] >= 0 for term in found.terms.values()), problem
        assert found.seconds[0] >= floor_seconds(problem, H100, found.flops["matrix"])
    written = Attention(huge, 8, 8, 1, huge, 128, causal=True)
    assert np.isfinite(predict_arrays(written, H100, includes=("kv_write",)).seconds[0])
    side = predict_arrays(Matmul(huge, huge, huge), H100).seconds[0]
    assert side >= 2.0 * float(huge) ** 3 / 989.4e12


@pytest.mark.parametrize(
    "alone",
    [
        Matmul(2**40, 2**40, 2**40),
        Matmul(2**40, 2**40, 1, dtype="fp32"),
        Attention(2**10, 8, 8, 2**40, 2**40, 128, causal=True),
        Attention(2**40, 8, 8, 1, 2**40, 128),
        Rowwise("pointwise", 2**40, 2**40),
        Rowwise("softmax", 2**40, 2**40),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_arrays_of_huge_sizes_wrap_nowhere(alone):
    # Products of sizes pass 2^63; plain ints have no such end.
    sizes = ("m", "n", "k", "batch", "seq_q", "seq_kv", "rows", "cols")
    arrays = {name: np.array([getattr(alone, name)] * 2) for name in sizes if hasattr(alone, name)}
    if getattr(alone, "seq_q", 0) == 1:
        arrays["seq_q"] = 1
    exact = predict_arrays(alone, H100).seconds[0]
    found = predict_arrays(replace(alone, **arrays), H100).seconds
    assert found == pytest.approx([exact] * 2, rel=1e-9)


@given(
    st.sampled_from(["prefill", "causal", "window", "flash 1", "standard", "backward", "both"]),
    st.integers(0, 2**32 - 1),
    st.sampled_from(SLUGS),
    st.sampled_from(["padding_mask", "dropout"]),
)
def test_masking_padding_and_dropping_scores_cost_and_move_no_less(kind, seed, slug, added):
    problem, schedule = make(kind, seed)
    plain = run(problem, load(slug), schedule)
    more = run(replace(problem, **{added: True}), load(slug), schedule)
    if plain is None or more is None:
        assert plain is None
        assert more is None
        return
    quicker = more.seconds < plain.seconds * (1 - ROUNDING)
    assert not quicker.any(), names_of(more, quicker)
    if schedule == "standard":
        assert np.all(more.bytes["hbm"] >= plain.bytes["hbm"] * (1 - ROUNDING))
        if added == "dropout":
            assert np.all(more.bytes["hbm"] > plain.bytes["hbm"])
    else:
        assert np.array_equal(more.footprint_bytes, plain.footprint_bytes)
