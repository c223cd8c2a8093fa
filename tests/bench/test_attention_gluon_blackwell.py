"""The Blackwell kernel's source in the functional model of Gluon; broken variants must be
detected."""

from __future__ import annotations

import pytest
from cases import cases
from gluonkernel import broken, is_found_out, is_right, simulate
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
pytest.importorskip("triton")

import perfmodel_kernels.attention_blackwell as blackwell
from perfmodel_kernels.attention_gluon_blackwell import BlackwellConfig

from perfmodel.algorithms import Attention
from perfmodel.count import count
from perfmodel.errors import ProblemError
from perfmodel.proof import registry

KERNEL = registry.kernel("attention-gluon-blackwell")
# Queries so large that a row's maximum is one key's alone: O is rescaled often, and by much.
LOUDS = (1, 30)


@given(
    st.integers(1, 2), st.integers(1, 3), st.integers(1, 600), st.integers(1, 400),
    st.booleans(), st.sampled_from([16, 32, 64, 128]), st.sampled_from([40, 128]),
    st.integers(0, 3), st.sampled_from([1, 2]), st.sampled_from([0, 3, 8, 15]),
    st.sampled_from(LOUDS), st.integers(0, 10**6),
)  # fmt: skip
def test_the_source_is_right_whatever_happens_when(
    kv_heads, group, seq_q, seq_kv, causal, bc, head_dim, more, ahead, slack, loud, seed
):
    problem = Attention(
        1, kv_heads * group, kv_heads, seq_q, seq_kv, head_dim, causal=causal, dtype="fp16"
    )
    ahead = 1 if bc == 128 else ahead  # two would need more tensor memory than there is
    config = BlackwellConfig(bc, 2 * ahead + more, ahead, slack)
    errors, moved = simulate(KERNEL, blackwell, problem, config, seed, loud)
    assert is_right(errors), errors
    counted = count(KERNEL.schedule(problem, config), problem.sizes(), problem.elements())
    asked = {name: counted.kernels[0].l2[name].total_bytes for name in "QKVO"}
    assert moved == asked


def test_tensor_memory_is_not_exceeded():
    problem = Attention(1, 1, 1, 64, 64, 128, dtype="fp16")
    with pytest.raises(ProblemError, match="needs 768 columns of tensor memory"):
        KERNEL.launches(problem, BlackwellConfig(128, 4, ahead=2))


SCORED = "    mbarrier.wait(scored.index(place), t // AHEAD & 1)\n"
STORED = "    stored.store(gl.convert_layout(p.to(DTYPE), LAYOUT))\n"
WEIGHTED = "    mbarrier.arrive(weighted.index(place), count=1)\n"
UPPER_VALUES = """        if t < upper_tiles:
            start_values(0, t, ring, scores, outs, weighted, added)
"""
UPPER_SCORES = """        if t + AHEAD < upper_tiles:
            start_scores(0, t + AHEAD, ring, q_tiles, scores, scored)
"""
LOWER_VALUES = "        start_values(1, t, ring, scores, outs, weighted, added)\n"
FREE_VALUES = "        tcgen05_commit(free.index((2 * t + 1) % STAGES))\n"


@pytest.mark.parametrize("ahead", [1, 2])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        # A product starts without its queries, its keys or values, its probabilities.
        ("    mbarrier.wait(q_ready.index(0), 0)\n", ""),
        ("    mbarrier.wait(q_ready.index(1), 0)\n", ""),
        ("    mbarrier.wait(ready.index(n % STAGES), n // STAGES & 1)\n", ""),
        ("    mbarrier.wait(weighted.index(place), t // AHEAD & 1)\n", ""),
        # Scores are read before they are there; probabilities are announced before they are.
        (SCORED, ""),
        (STORED + WEIGHTED, WEIGHTED + STORED),
        # Scores come before their place has been read.
        (UPPER_VALUES + UPPER_SCORES, UPPER_SCORES + UPPER_VALUES),
        # A buffer is filled too early or never, or freed before the product has read it.
        ("    mbarrier.wait(free.index(stage), (n // STAGES & 1) ^ 1)\n", ""),
        ("(n // STAGES & 1) ^ 1", "n // STAGES & 1"),
        (LOWER_VALUES + FREE_VALUES, FREE_VALUES + LOWER_VALUES),
        # O is rescaled never, by old factors, or without anybody waiting for it; sums are not.
        ("[4], [0])), 0) < 1.0:", "[4], [0])), 0) < 0.0:"),
        ("    mbarrier.wait(grown.index(place), t // AHEAD & 1)\n", ""),
        ("weighted = make_barriers(2 * AHEAD, 2)", "weighted = make_barriers(2 * AHEAD, 1)"),
        ("total = total * factor +", "total = total +"),
        # What is added to where nothing was yet.
        ("use_acc=t > 0", "use_acc=True"),
        # O leaves before its last product or its rows' sums.
        ("        mbarrier.wait(added.index(WHICH), (tiles - 1) & 1)\n", "        pass\n"),
        ("    mbarrier.wait(summed.index(WHICH), 0)\n", ""),
        # Phases of the wrong count.
        ("    mbarrier.wait(weighted.index(place), t // AHEAD & 1)\n",
         "    mbarrier.wait(weighted.index(place), (t + 1) // AHEAD & 1)\n"),
        # Masks: a tile too few, a key too many or too few, an end that is not cut.
        ("whole = gl.minimum(seen // BC, tiles)", "whole = gl.minimum(seen // BC + 1, tiles)"),
        ("key <= (row", "key < (row"),
        ("key < seq_kv - first", "key <= seq_kv - first"),
        ("upper_tiles = key_tiles(first_row + ROWS,", "upper_tiles = key_tiles(first_row + 16,"),
    ],
)  # fmt: skip
def test_a_broken_kernel_is_found_out(old, new, ahead):
    problems = [
        Attention(1, 1, 1, 260, 150, 40, causal=True, dtype="fp16"),
        Attention(1, 1, 1, 200, 150, 40, dtype="fp16"),
    ]
    changed = broken(blackwell, old, new)
    config = BlackwellConfig(16, 2 * ahead, ahead, slack=0)
    assert is_found_out(KERNEL, changed, problems, config, seeds=20, louds=LOUDS)


@cases
def test_scores_two_tiles_ahead_need_more(old, new):
    """With one tile ahead, scores are there after the product that the wait is for."""
    problems = [Attention(1, 1, 1, 150, 300, 40, dtype="fp16")]
    changed = broken(blackwell, old, new)
    config = BlackwellConfig(16, 4, 2, slack=0)
    assert is_found_out(KERNEL, changed, problems, config, seeds=20, louds=LOUDS)
