"""Optimisers: what they keep and move is counted from their declaration, and is what papers say."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, repeat

import pytest
from cases import cases
from folders import SHARED
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import load as device
from perfmodel.predict import predict
from perfmodel.training import optimisers, precision
from perfmodel.training.parameter import KINDS, Parameter
from perfmodel.training.update import Style
from perfmodel.yamltable import parse

MEGATRON = precision.load("megatron")
TOKENS = 4096
STYLES = tuple(optimisers.STYLES)
NAMES = optimisers.names()


def matrices(most=700):
    side = st.integers(1, most)
    return st.builds(
        Parameter,
        st.just("matrix"),
        st.tuples(side, side),
        st.sampled_from(["matrix", "embedding"]),
        st.integers(1, 5),
    )


def vectors():
    return st.builds(
        Parameter,
        st.just("vector"),
        st.tuples(st.integers(1, 9000)),
        st.just("vector"),
        st.integers(1, 5),
    )


def tensors():
    return st.lists(st.one_of(matrices(), vectors()), min_size=1, max_size=4)


def elements(parameters):
    return sum(item.elements * item.count for item in parameters)


def moved(name, parameters, recipe=MEGATRON, **how):
    return optimisers.load(name).traffic_bytes(parameters, recipe, tokens=TOKENS, **how)


# Laws.


@pytest.mark.parametrize("name", NAMES)
@examples(0.3)
@given(st.data())
def test_as_many_tensors_keep_as_many_times_the_states(name, data):
    one = data.draw(st.one_of(matrices(), vectors()))
    count = data.draw(st.integers(1, 9))
    many = Parameter(one.name, one.shape, one.kind, one.count * count)
    optimiser = optimisers.load(name)
    alone = optimiser.state_bytes([one], MEGATRON)
    assert optimiser.state_bytes([many], MEGATRON) == count * alone
    assert optimiser.state_bytes([one] * count, MEGATRON) == pytest.approx(count * alone)


@pytest.mark.parametrize("name", NAMES)
@examples(0.3)
@given(tensors())
def test_an_update_reads_gradients_and_rewrites_weights_and_states(name, parameters):
    """What must move: G read, W read and written, the copy written; states at some of the steps."""
    least = elements(parameters) * (4 + 4 + 4 + 2)
    for style in STYLES:
        assert moved(name, parameters, style=style) >= least


@pytest.mark.parametrize("name", NAMES)
@examples(0.3)
@given(tensors())
def test_fewer_passes_move_no_more(name, parameters):
    """Parts of a sum are left by chunks, of which fewer launches have a few more."""
    slack = 1 + 1e-2 + 64 / elements(parameters)
    fewest, fused, each = (
        moved(name, parameters, style=style) for style in ("multi-tensor", "fused", "foreach")
    )
    assert fewest <= fused * slack
    assert fused <= each * slack


@given(tensors(), st.sampled_from(STYLES))
def test_launches_of_an_update_hold_every_element_once(parameters, style):
    works = optimisers.load("adamw").problems(parameters, MEGATRON, style=style)
    total = elements(parameters)
    per_name = {}
    for work in works:
        steps = work.name.partition(": ")[2].split(", ")
        done = work.problem.sizes()["p"] * work.repeat
        per_name[tuple(steps)] = per_name.get(tuple(steps), 0) + done
    for steps, done in per_name.items():
        assert done == total * len(steps)


def launched(sizes, chunk, blocks, tensors):
    """multi_tensor_apply, chunk by chunk."""
    launches = held = filled = 0
    for size in sizes:
        held += 1
        chunks = -(-size // chunk)
        for i in range(chunks):
            filled += 1
            last = i == chunks - 1
            if (held == tensors and last) or filled == blocks:
                launches, filled, held = launches + 1, 0, 0 if last else 1
    return launches + (filled > 0)


@given(
    st.lists(st.tuples(st.integers(1, 300), st.integers(1, 6)), max_size=6),
    st.integers(1, 40),
    st.integers(1, 9),
    st.integers(2, 5),
)
def test_launches_are_those_of_the_loop_over_chunks(sizes, chunk, blocks, tensors):
    style = Style("s", "", "fewest", "within", "", chunk, blocks, (99, tensors))
    whole = list(chain.from_iterable(repeat(size, count) for size, count in sizes))
    assert style.launches(sizes, 2) == launched(whole, chunk, blocks, tensors)
    assert style.launches(sizes, 8) == launched(whole, chunk, blocks, tensors)


@given(matrices(), st.integers(1, 300))
def test_blocks_hold_every_element_once(parameter, longest):
    blocks = parameter.blocks(longest)
    assert elements(blocks) == elements([parameter])
    assert all(max(block.rows, block.columns) <= longest for block in blocks)
    assert len(blocks) <= 4


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(1, 8))
def test_newton_schulz_takes_the_smaller_side(m, n, iterations):
    muon = optimisers.load("muon", iterations=iterations)

    def flops(shape):
        return sum(work.flops for work in muon.problems([Parameter("w", shape)], MEGATRON))

    small, large = min(m, n), max(m, n)
    assert flops((m, n)) == iterations * 2 * (2 * small**2 * large + small**3)
    assert flops((m, n)) == flops((n, m))


@given(st.integers(1, 600), st.integers(1, 600), st.integers(2, 500))
def test_shampoo_multiplies_every_step_and_roots_every_so_many(m, n, frequency):
    shampoo = optimisers.load("shampoo", frequency=frequency)
    works = shampoo.problems([Parameter("w", (m, n))], MEGATRON)
    every = sum(work.flops for work in works if work.share_of_steps == 1)
    assert every == 2 * (2 * m * n * (m + n))
    roots = sum(work.flops for work in works if work.share_of_steps == Fraction(1, frequency))
    assert roots == pytest.approx(80 * (m**3 + n**3) / frequency)


@given(st.integers(1, 600), st.integers(1, 600), st.integers(1, 10**6))
def test_kfac_takes_statistics_over_tokens(m, n, tokens):
    kfac = optimisers.load("k-fac", bias=0)
    works = kfac.problems([Parameter("w", (m, n))], MEGATRON, tokens=tokens)
    every = sum(work.flops for work in works if work.share_of_steps == 1)
    assert every == 2 * tokens * (n**2 + m**2) + 2 * m * n * (m + n)


@given(matrices(), st.integers(1, 800))
def test_soap_keeps_no_basis_of_a_side_that_is_too_long(parameter, longest):
    kept = [side for side in (parameter.rows, parameter.columns) if side <= longest]
    soap = optimisers.load("soap", longest=longest)
    bases = 2 * 4 * sum(side**2 for side in kept) * parameter.count
    assert soap.state_bytes([parameter], MEGATRON) == 8 * elements([parameter]) + bases
    works = soap.problems([parameter], MEGATRON)
    products = [work for work in works if work.flops and work.share_of_steps == 1]
    assert len(products) > 0 if kept else products == []


@given(tensors())
def test_tensors_that_an_optimiser_leaves_to_another_are_the_others(parameters):
    others = [item for item in parameters if item.kind != "matrix"]
    for name, other in (("muon", "adamw"), ("k-fac", "sgd")):
        mine, theirs = optimisers.load(name), optimisers.load(other)
        assert mine.state_bytes(others, MEGATRON) == theirs.state_bytes(others, MEGATRON)
        assert moved(name, others) == moved(other, others)


@given(st.integers(1, 10**6), st.sampled_from([2048, 256, 64]))
def test_eight_bit_states_have_a_scale_for_each_block_begun(size, block):
    adam = optimisers.load("adam-8bit", block=block)
    for kind in KINDS:
        narrowed = size >= 4096 and kind != "embedding"
        expected = 2 * (size + 4 * -(-size // block)) if narrowed else 8 * size
        assert adam.state_bytes([Parameter("w", (size,), kind)], MEGATRON) == expected


@pytest.mark.parametrize("name", NAMES)
def test_no_kernel_is_faster_than_its_bytes_and_products(name):
    """H100 SXM by its datasheet: 3.35 TB/s, 67 Tflop/s of fp32 and 989 of bf16; 50 MiB of L2."""
    rates = {"fp32": 67e12, "bf16": 989.5e12}
    parameters = [
        Parameter("matrix", (1024, 3072), count=4),
        Parameter("embedding", (16384, 1024), "embedding"),
        Parameter("vector", (1024,), "vector", 9),
    ]
    works = optimisers.load(name).problems(parameters, MEGATRON, tokens=TOKENS)
    assert sum(work.repeat for work in works) > 0
    for work in works:
        found = predict(work.problem, device("h100-sxm"), schedule=work.schedule)
        launches = work.repeat * float(work.share_of_steps)
        assert found.seconds >= work.flops / launches / rates[work.problem.compute_type]
        beyond = work.bytes / launches - 50 * 2**20
        assert found.seconds >= beyond / 3.36e12


# Worked examples: bytes a parameter and step, fp32 gradients and master weights, a 16-bit copy.

SQUARE = [Parameter("w", (4096, 4096), count=3)]


@cases
def test_states_and_traffic_of_one_pass(name, states, traffic):
    count = elements(SQUARE)
    assert optimisers.load(name).state_bytes(SQUARE, MEGATRON) == pytest.approx(states * count)
    # Norms and means of rows leave a few bytes in 1,000 elements.
    assert moved(name, SQUARE) == pytest.approx(traffic * count, rel=2e-3)


def test_foreach_makes_the_passes_of_the_framework():
    """torch/optim/adam.py: decay, lerp, mul, addcmul, sqrt, div, add, addcdiv; then the cast."""
    passes = [8, 12, 8, 12, 8, 8, 8, 16, 4 + 2]
    assert moved("adamw", SQUARE, style="foreach") == sum(passes) * elements(SQUARE)
    works = optimisers.load("adamw").problems(SQUARE[:1], precision.load("fp32"), style="for-loop")
    assert sum(work.repeat for work in works) == 8 * SQUARE[0].count


def test_a_pass_of_a_large_tensor_takes_a_launch_for_320_chunks():
    whole = [Parameter("w", (320 * 65536 * 7,), "vector")]
    (work,) = optimisers.load("adamw").problems(whole, MEGATRON)
    assert (work.repeat, work.problem.sizes()["p"]) == (7, 320 * 65536)
    # 30 tensors a launch of five lists: gradients, weights, two states, copy.
    small = [Parameter("w", (4096,), "vector", 61)]
    assert sum(work.repeat for work in optimisers.load("adamw").problems(small, MEGATRON)) == 3


def test_clipping_reads_gradients_once_more_or_twice():
    count = elements(SQUARE)
    base = moved("adamw", SQUARE)
    assert moved("adamw", SQUARE, clip="folded") - base == pytest.approx(4 * count, rel=2e-3)
    assert moved("adamw", SQUARE, clip="apart") - base == pytest.approx(12 * count, rel=2e-3)


def test_types_are_the_precisions():
    count = elements(SQUARE)
    assert moved("adamw", SQUARE, precision.load("fp32")) == (16 + 12) * count
    assert moved("adamw", SQUARE, precision.load("mixed")) == (14 + 12 + 2) * count
    assert moved("adamw", SQUARE, precision.load("bf16")) == (8 + 6) * count
    assert moved("adamw", SQUARE, precision.load("bf16-moments")) == (12 + 8 + 2) * count
    lion = optimisers.load("lion")
    assert lion.state_bytes(SQUARE, precision.load("bf16")) == 2 * count


def test_shampoo_is_by_shape():
    """Statistics and roots a parameter beside Adam's 2 words: 2 and 4, of h x 4h 4.25 and 8.5."""
    for shape, words in (((4096, 4096), 4), ((2048, 8192), 8.5)):
        one = [Parameter("w", shape)]
        kept = optimisers.load("shampoo").state_bytes(one, MEGATRON) - 8 * elements(one)
        assert kept == 4 * words * elements(one)


# Published figures.

VECTORS = SHARED / "reference" / "networks_vectors.yaml"


@pytest.fixture(scope="module")
def vectors_():
    if not VECTORS.is_file():
        pytest.skip(f"no published figures at {VECTORS}")
    found = parse(VECTORS.read_text(encoding="utf-8"))
    return {item["id"]: item for item in found if item["group"] == "optimiser"}


def narrowed_gb(vocabulary, hidden, parameters):
    """GB that 8-bit states save: embeddings keep 32 bits."""
    table = Parameter("embedding", (vocabulary, hidden), "embedding")
    rest = Parameter("w", ((parameters - table.elements) // hidden, hidden))
    full, narrow = (
        optimisers.load(name).state_bytes([table, rest], MEGATRON) for name in ("adam", "adam-8bit")
    )
    return (full - narrow) / 1e9


def counted(key, inputs):
    """Our figure of a published one."""
    if key == "opt.adam8.state":
        adam = optimisers.load("adam-8bit", block=inputs["block"])
        return adam.state_bytes([Parameter("w", (2048, 2048))], MEGATRON) / 2048**2
    if key == "opt.shampoo":
        one = [Parameter("w", (inputs["m"], inputs["n"]))]
        shampoo = optimisers.load("shampoo", block=inputs["block"])
        return (shampoo.state_bytes(one, MEGATRON) - 8 * elements(one)) / 4
    if key == "opt.kfac":
        one = [Parameter("w", (inputs["n_out"], inputs["n_in"]))]
        return optimisers.load("k-fac").state_bytes(one, MEGATRON) / 4
    if key == "opt.muon.flops":
        muon = optimisers.load("muon", iterations=inputs["T"])

        def percent(side, batch):
            works = muon.problems([Parameter("w", (side, side))], MEGATRON)
            return 100 * sum(work.flops for work in works) / (6 * side**2 * batch)

        return [percent(768, 524288), percent(16384, 16_000_000)]
    # Vocabularies and widths: fairseq's GPT-2 byte pairs and RoBERTa's, GPT-3 medium's width.
    vocabulary, hidden = {
        "opt.adam8.saved.roberta-large": (50265, 1024),
        "opt.adam8.saved.gpt3-medium": (50257, 1024),
        "opt.adam8.saved.transformer-lm-1.5b": (50257, 1600),
    }[key]
    return narrowed_gb(vocabulary, hidden, int(inputs["params"]))


def test_published_figures_of_optimisers(vectors_):
    assert len(vectors_) == 7
    for key, item in vectors_.items():
        expected, tolerance = item["expected"], item["tolerance"]
        said = pytest.approx(expected, rel=tolerance.get("rel", 0), abs=tolerance.get("abs", 0))
        assert counted(key, item["inputs"]) == said, key


# The command line, and what is refused.


def test_what_means_nothing_is_refused():
    w = [Parameter("w", (8, 8))]
    with pytest.raises(UnknownName, match="no setting of adam-8bit named 'blocks'"):
        optimisers.load("adam-8bit", blocks=256)
    for value in (0, 2.5, "x"):
        with pytest.raises(ProblemError, match="a whole number of at least 1"):
            optimisers.load("adam-8bit", block=value)
    with pytest.raises(ProblemError, match="tokens"):
        optimisers.load("k-fac").problems(w, MEGATRON)
    with pytest.raises(UnknownName, match="did you mean foreach"):
        optimisers.load("adam").problems(w, MEGATRON, style="for-each")
    with pytest.raises(UnknownName, match="no clipping"):
        optimisers.load("adam").problems(w, MEGATRON, clip="norm")
    with pytest.raises(UnknownName, match="kind of parameter w"):
        Parameter("w", (8, 8), "bias")
    for shape in ((), (0, 8), (8, -1), (2.5,), (2**40, 2**40)):
        with pytest.raises(ProblemError, match="w"):
            Parameter("w", shape)
    with pytest.raises(ProblemError, match="count"):
        Parameter("w", (8,), count=0)


def test_no_parameters_are_no_work():
    for name in NAMES:
        assert optimisers.load(name).state_bytes([], MEGATRON) == 0
        assert optimisers.load(name).problems([], MEGATRON, tokens=1, clip="apart") == ()
