"""Unfused attention: the framework's operators one after another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfmodel.algorithms import Attention, Matmul
from perfmodel.errors import UnknownName
from perfmodel.hardware import load
from perfmodel.predict import predict
from perfmodel.timing.constants import default

A100, H100 = load("a100-sxm4-80gb"), load("h100-sxm")
CONSTANTS = default()


@pytest.mark.parametrize("device", [A100, H100], ids=lambda d: d.slug)
def test_unfused_attention_crosses_the_scores_as_its_operators_do(device):
    long = Attention(1, 16, 16, 16384, 16384, 64, dtype="fp16")
    scores = 16 * 16384**2 * 2

    def crossings(**changes: object) -> float:
        found = predict(replace(long, **changes), device, schedule="standard")
        return found.bytes["hbm"] / scores

    # Written, through the softmax, read; a mask and dropout are passes of their own, the latter
    # with a byte beside each score.
    assert crossings() == pytest.approx(4, rel=0.05)
    assert crossings(causal=True) == pytest.approx(6, rel=0.05)
    assert crossings(dropout=True) == pytest.approx(6.5, rel=0.05)
    # P and dS are read by two products each, dP is written; gradient times probabilities is a
    # kernel, and the softmax's gradient another: 1 + 1 + 3 + 3 + 2.
    assert crossings(direction="bwd") == pytest.approx(10, rel=0.05)


def test_unfused_attention_takes_no_less_than_its_products():
    parts = [Matmul(2048, 2048, 64, 64, "fp16"), Matmul(2048, 64, 2048, 64, "fp16")]
    apart = sum(predict(part, A100, implementation="torch").seconds for part in parts)
    whole = predict(Attention(4, 16, 16, 2048, 2048, 64, dtype="fp16"), A100, schedule="standard")
    assert whole.seconds > apart


def test_small_unfused_attention_waits_for_the_host():
    few = Attention(1, 8, 8, 64, 64, 64, dtype="fp16")
    seconds = {
        (harness, way): predict(
            replace(few, direction=way), A100, schedule="standard", harness=harness
        ).seconds
        for harness in ("kernel", "cuda_graph", "paper")
        for way in ("fwd", "bwd")
    }
    eager = CONSTANTS.run("cuda_events_eager")
    plain = eager.whole_call * eager.start_seconds("pointwise")
    # Four copies, two products, a softmax; on the way back two products and a kernel more.
    assert seconds["paper", "fwd"] == pytest.approx(7 * plain)
    assert seconds["paper", "bwd"] == pytest.approx(10 * plain)
    assert seconds["cuda_graph", "fwd"] < seconds["paper", "fwd"] / 2
    # Where the device is the slower, it alone counts.
    large = Attention(8, 16, 16, 4096, 4096, 64, dtype="fp16")
    alone, timed = (
        predict(large, A100, schedule="standard", harness=harness).seconds
        for harness in ("kernel", "paper")
    )
    assert timed == pytest.approx(alone, rel=0.01)


def test_a_wrong_type_is_named_before_its_operators():
    with pytest.raises(UnknownName, match="fp17"):
        predict(Attention(1, 8, 8, 64, 64, 64, dtype="fp17"), A100, schedule="standard")
