"""Unfused attention: the framework's operators one after another."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul
from perfmodel.count import count, rule
from perfmodel.errors import UnknownName
from perfmodel.hardware import load
from perfmodel.predict import predict
from perfmodel.schedules import standard
from perfmodel.timing import unfused
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine
from perfmodel.timing.setting import Setting

A100, H100 = load("a100-sxm4-80gb"), load("h100-sxm")
CONSTANTS = default()


@pytest.mark.parametrize("device", [A100, H100], ids=lambda d: d.slug)
def test_unfused_attention_crosses_the_scores_as_its_operators_do(device):
    # Rows that the L2 holds from one pass of the softmax to the next.
    long = Attention(1, 16, 16, 8192, 8192, 64, dtype="fp16")
    scores = 16 * 8192**2 * 2

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
    plain = CONSTANTS.run("cuda_events_eager").call_seconds("pointwise")
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


def crossing(schedule, sizes, elements, only=()) -> dict[str, float]:
    """Bytes of all that each kernel of a schedule takes from memory and leaves there, by kernel."""
    steps = {step.name: step for step in schedule.algorithm.steps}
    found = {}
    for kernel in schedule.kernels:
        mine = [steps[name] for name in kernel.steps if not only or name in only]
        made = {name for step in mine for name in step.outputs}
        used = {name for step in mine for name in step.inputs}
        crossed = made ^ used  # what one step makes and the next takes stays on the chip
        tensors = [schedule.algorithm.tensors[name] for name in crossed]
        if mine:
            found[kernel.name] = float(
                sum(rule.size(sizes, item) * elements[item.element].bytes for item in tensors)
            )
    return found


@given(
    batch=st.integers(1, 4),
    heads=st.integers(1, 16),
    rows=st.integers(1, 4096),
    keys=st.integers(1, 4096),
    dim=st.sampled_from((32, 64, 80, 128, 256)),
    dtype=st.sampled_from(("fp16", "bf16")),
    direction=st.sampled_from(("fwd", "bwd")),
    causal=st.booleans(),
    dropout=st.booleans(),
)
def test_operators_move_and_multiply_what_the_schedule_counts(rows, keys, **kinds):
    """The copies before them are the framework's own, and so is a softmax's gradient in two."""
    heads, dim = kinds.pop("heads"), kinds.pop("dim")
    square = rows if kinds["causal"] else keys
    shape = Attention(kinds.pop("batch"), heads, heads, rows, square, dim, **kinds)
    mask, backward = shape.mask(), shape.direction == "bwd"
    if backward:
        schedule = standard.standard_backward(mask, dropout=shape.dropout)
    else:
        passes = "none" if mask is None else "additive"
        schedule = standard.standard(mask, mask_pass=passes, dropout=shape.dropout)
    counted = crossing(schedule, shape.sizes(), shape.elements())
    _, *operators = unfused.plans(shape, Setting(machine(A100), CONSTANTS))
    parts = [part for plan in operators for part in plan.parts]
    timed = [
        moved
        for part in parts
        for moved in crossing(part.schedule, part.sizes, part.elements, part.only).values()
    ]
    gradient = [counted.pop("dS of softmax")] * 2 if backward else []
    assert sorted(timed) == sorted([*counted.values(), *gradient])
    whole = count(schedule, shape.sizes(), shape.elements())
    flops = [count(part.schedule, part.sizes, part.elements) for part in parts if not part.only]
    assert sum(float(cost.matrix_flops) for cost in flops) == float(whole.matrix_flops) > 0
