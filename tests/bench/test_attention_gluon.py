"""The Hopper kernel's source in the functional model of Gluon; broken variants must be detected."""

from __future__ import annotations

import pytest
from gluonkernel import broken, is_found_out, is_right, simulate
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
pytest.importorskip("triton")

import perfmodel_kernels.attention_hopper as hopper
from perfmodel_kernels.attention_gluon import GluonConfig

from perfmodel.algorithms import Attention
from perfmodel.count import count
from perfmodel.proof import registry

KERNEL = registry.kernel("attention-gluon")


@given(
    st.integers(1, 2), st.integers(1, 3), st.integers(1, 300), st.integers(1, 200),
    st.booleans(), st.sampled_from([16, 32, 64]), st.integers(1, 3), st.sampled_from([2, 3]),
    st.booleans(), st.integers(0, 10**6),
)  # fmt: skip
def test_the_source_is_right_whatever_happens_when(
    kv_heads, group, seq_q, seq_kv, causal, bc, stages, groups, turns, seed
):
    problem = Attention(
        1, kv_heads * group, kv_heads, seq_q, seq_kv, 40, causal=causal, dtype="fp16"
    )
    config = GluonConfig(bc, stages, groups, turns)
    errors, moved = simulate(KERNEL, hopper, problem, config, seed)
    assert is_right(errors), errors
    counted = count(KERNEL.schedule(problem, config), problem.sizes(), problem.elements())
    asked = {name: counted.kernels[0].l2[name].total_bytes for name in "QKVO"}
    assert moved == asked


RELEASE_K = "    mbarrier.arrive(k_free.index(stage), count=1)\n    out, p = "
RELEASE_V = "    mbarrier.arrive(v_free.index(last), count=1)\n    out = out *"
SCORES_DONE = "    s = warpgroup_mma_wait(1, deps=(s,))\n"
PRODUCT_DONE = "    out, p = warpgroup_mma_wait(0, deps=(out, p))\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # The keys' buffer is freed before the product has read it.
        (SCORES_DONE, "    mbarrier.arrive(k_free.index(stage), count=1)\n" + SCORES_DONE),
        # The values' one.
        (PRODUCT_DONE, "    mbarrier.arrive(v_free.index(last), count=1)\n" + PRODUCT_DONE),
        # Nobody waits for keys, for values, for queries.
        ("    mbarrier.wait(k_ready.index(stage), t // STAGES & 1)\n", ""),
        ("    mbarrier.wait(v_ready.index(last), (t - 1) // STAGES & 1)\n", ""),
        ("    mbarrier.wait(q_ready.index(WHICH), 0)  # with", "    # with"),
        # Phases that come too early, or never.
        ("before = (t // STAGES & 1) ^ 1", "before = t // STAGES & 1"),
        ("mbarrier.wait(turns.index(WHICH), (t + (WHICH == 0)) & 1)",
         "mbarrier.wait(turns.index(WHICH), t & 1)"),
        ("mbarrier.wait(v_ready.index(last), (t - 1) // STAGES & 1)",
         "mbarrier.wait(v_ready.index(last), t // STAGES & 1)"),
        ("make_barriers(STAGES, 1), make_barriers(STAGES, GROUPS))\n    values",
         "make_barriers(STAGES, 1), make_barriers(STAGES, 1))\n    values"),
        # A product is read before its end, or waited for where it is not needed.
        (SCORES_DONE, "    s = warpgroup_mma_wait(2, deps=(s,))\n"),
        # Masks: one tile too few, one key too many, an end that is not cut.
        ("gl.maximum(tiles - seen // BC, 1)", "gl.maximum(tiles - seen // BC - 1, 1)"),
        ("a <= bound", "a < bound"),
        ("a < seq_kv - first - b", "a <= seq_kv - first - b"),
    ],
)  # fmt: skip
def test_a_broken_kernel_is_found_out(old, new):
    problems = [
        Attention(1, 1, 1, 150, 150, 40, causal=True, dtype="fp16"),
        Attention(1, 1, 1, 90, 150, 40, dtype="fp16"),
    ]
    changed = broken(hopper, old, new)
    assert is_found_out(KERNEL, changed, problems, GluonConfig(16, 2, 2), seeds=8)
