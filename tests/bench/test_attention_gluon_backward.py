"""The backward kernel for Hopper in the functional model of Gluon; broken variants are detected."""

from __future__ import annotations

import pytest
from gluonkernel import broken, is_found_out, is_right, simulate
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")
pytest.importorskip("triton")

import perfmodel_kernels.backward_hopper as hopper
from perfmodel_kernels.attention_gluon_backward import GluonBackwardConfig
from perfmodel_kernels.common import LOG2E

from perfmodel.algorithms import Attention
from perfmodel.count import count
from perfmodel.errors import ProblemError
from perfmodel.proof import registry
from perfmodel.proof.kernel import KernelError

KERNEL = registry.kernel("attention-gluon-backward")


def problem(seq_q, seq_kv, heads=1, kv_heads=1, **more):
    shape = (1, heads, kv_heads, seq_q, seq_kv, 16)
    return Attention(*shape, dtype="fp16", direction="bwd", **more)


def prepared(tensors):
    """D and N, as the launch before leaves them."""
    rows = (tensors["O"].double() * tensors["dO"].double()).sum(-1)
    tensors["D"].copy_(rows)
    tensors["N"].copy_(tensors["L"] * LOG2E)


@settings(max_examples=10)
@given(
    st.integers(1, 2), st.integers(1, 2), st.integers(1, 150), st.integers(1, 200), st.booleans(),
    st.sampled_from([16, 32, 64]), st.integers(1, 3), st.integers(0, 10**6),
)  # fmt: skip
def test_the_source_is_right_whatever_happens_when(
    kv_heads, group, seq_q, seq_kv, causal, br, stages, seed
):
    case = problem(seq_q, seq_kv, kv_heads * group, kv_heads, causal=causal)
    config = GluonBackwardConfig(br, stages)
    errors, moved = simulate(KERNEL, hopper, case, config, seed, prepare=prepared)
    assert set(errors) == {"dK", "dV"}
    assert is_right(errors), errors
    parts = count(KERNEL.schedule(case, config), case.sizes(), case.elements()).kernels
    (counted,) = (part.l2 for part in parts if part.name == "key-gradients")
    assert moved == {name: counted[name].total_bytes for name in moved}
    assert set(moved) == {"Q", "K", "V", "dO", "dK", "dV"}


VALUES_DONE = "    dv, weights = warpgroup_mma_wait(1, deps=(dv, weights))\n"
KEYS_DONE = "    dk, ds = warpgroup_mma_wait(0, deps=(dk, ds))\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # A buffer is freed before the products have read it, or never waited for.
        (VALUES_DONE, "    mbarrier.arrive(do_free.index(stage), count=1)\n" + VALUES_DONE),
        (KEYS_DONE, "    mbarrier.arrive(q_free.index(stage), count=1)\n" + KEYS_DONE),
        ("    mbarrier.wait(q_ready.index(stage), phase)\n", ""),
        ("    mbarrier.wait(do_ready.index(stage), phase)\n", ""),
        ("    mbarrier.wait(kv_ready.index(WHICH), 0)\n", ""),
        # Phases that come too early, or never; a buffer that one group frees for both.
        ("before = (n // STAGES & 1) ^ 1", "before = n // STAGES & 1"),
        ("phase = n // STAGES & 1", "phase = n & 1"),
        ("(q_tiles, make_barriers(STAGES, 1), make_barriers(STAGES, GROUPS))",
         "(q_tiles, make_barriers(STAGES, 1), make_barriers(STAGES, 1))"),
        # A product is read before its end.
        ("dp = warpgroup_mma_wait(0, deps=(dp,))", "dp = warpgroup_mma_wait(1, deps=(dp,))"),
        # Masks: one key too few, tiles that are not cut or not visited, another head's rows.
        ("key[:, None] <= row[None, :]", "key[:, None] < row[None, :]"),
        ("gl.cdiv(whole, BR) - first, tiles)", "gl.cdiv(whole, BR) - first - 1, tiles)"),
        ("first = gl.maximum(x0 - (seq_kv - seq_q), 0) // BR",
         "first = gl.maximum(x0 - (seq_kv - seq_q), 0) // BR + 1"),
        ("at = head.to(gl.int64) * seq_q + row", "at = kv_head_of(head) * seq_q + row"),
    ],
)  # fmt: skip
def test_a_broken_kernel_is_found_out(old, new):
    cases = [problem(150, 150, 2, causal=True), problem(70, 140, 2)]
    changed = broken(hopper, old, new)
    changed.kv_head_of = lambda head: head * 0
    config = GluonBackwardConfig(16, 2)
    assert is_found_out(KERNEL, changed, cases, config, seeds=24, prepare=prepared)


def test_it_runs_on_hopper_devices_only():
    case, config = KERNEL.cases[0]
    with pytest.raises(KernelError, match="on a device only"):
        KERNEL.run(KERNEL.make_inputs(problem(8, 8)), config)
    with pytest.raises(ProblemError, match="written for sm_90, not for sm_80"):
        KERNEL.menu(case, "sm_80", 108)
    for wrong, reason in (({"window": 5}, "knows no window"), ({"head_dim_v": 32}, "one head dim")):
        with pytest.raises(ProblemError, match=reason):
            KERNEL.launches(problem(8, 8, **wrong), config)
