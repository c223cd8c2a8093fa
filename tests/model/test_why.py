"""Explanations of times: shares of roofs, floors and gains agree with the other modules."""

import draws
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.algorithms.problem import single
from perfmodel.analysis.quantities import QUANTITIES
from perfmodel.analysis.whatif import NEAR
from perfmodel.analysis.why import Help, Why, why
from perfmodel.hardware import load
from perfmodel.predict import predict
from perfmodel.render.why import TERMS, sentences, summary

DEVICES = ("h100-sxm", "l40s", "b200")  # which have a rate for every type
ROUNDING = 1e-9


@given(kind=st.sampled_from(draws.KINDS), slug=st.sampled_from(DEVICES), seed=st.integers(0, 2**32))
@examples(0.48)
def test_no_time_is_below_its_floor_and_no_rate_above_its_roof(kind, slug, seed):
    device, asked = load(slug), draws.Draws()
    problem, schedule = draws.make(kind, seed, 3)
    found = asked.run(problem, device, schedule)
    asked.check()
    assert found is not None
    for i in range(len(found)):
        one = found.one(i)
        answer = why(single(problem, i), device, one, schedule=schedule)
        assert 0 <= answer.floor_seconds <= one.seconds * (1 + ROUNDING)
        assert all(share >= 0 for share in answer.roofs.values())
        assert answer.roofs["hbm"] <= 1 + ROUNDING
        assert answer.roofs.get("matrix", 0) <= 1 + ROUNDING
        assert all(0 < item.saves <= 1 - 1 / NEAR + 0.01 or item.step for item in answer.helps)
        row = one.as_dict()
        said = sentences(row, answer)
        assert said.startswith("Limited by ")
        limiter = one.limiter
        assert TERMS.get(limiter, one.levels.get(limiter)) in said


@pytest.mark.parametrize("slug", DEVICES[:2])
def test_gains_are_predictions_with_a_better_number(slug):
    device = load(slug)
    for problem in (Matmul(8192, 8192, 8192, dtype="fp16"), Matmul(16, 8192, 8192, dtype="fp16"),
                    Attention(4, 32, 8, 2048, 2048, 128, dtype="fp16")):  # fmt: skip
        now = predict(problem, device)
        answer = why(problem, device, now)
        saved = {}
        for name, quantity in QUANTITIES.items():
            if name != "launch" and not quantity.of_level:
                factor = 1 / NEAR if quantity.is_better_smaller else NEAR
                better = predict(problem, device.scaled(**{name: factor}))
                saved[quantity.on(device)] = 1 - better.seconds / now.seconds
        assert answer.helps
        for item in answer.helps:
            assert item.saves == pytest.approx(saved[item.number]), item.number
        assert [item.saves for item in answer.helps] == sorted(
            (item.saves for item in answer.helps), reverse=True
        )


@pytest.mark.parametrize("slug", ["gaudi3", "gaudi2", "tpu-v4", "tpu-v5e"])
@pytest.mark.parametrize("m", [1000, 4096])
def test_ten_per_cent_more_of_a_rate_saves_no_more_than_a_tenth(slug, m):
    device, problem = load(slug), Matmul(m, 4096, 4096)
    answer = why(problem, device, predict(problem, device))
    assert answer.helps
    assert all(item.saves <= 1 - 1 / NEAR + 0.01 and not item.step for item in answer.helps)


def test_a_saving_by_a_step_says_what_steps():
    answer = Why(helps=(Help("matrix rate", 0.3, "waves 2→1"), Help("exp rate", 0.02)))
    said = sentences(predict(Matmul(64, 64, 64), load("h100-sxm")).as_dict(), answer)
    assert "10% more matrix rate would save 30.0% by a step (waves 2→1)" in said
    assert "10% more exp rate would save 2.0%" in said


def test_a_product_by_hand():
    # 2 x 8192^3 operations at 989.4 TFLOP/s; 8192^2 + 2 x 8192 numbers of 2 bytes at 3.35 TB/s.
    device = load("h100-sxm")
    square, thin = Matmul(8192, 8192, 8192), Matmul(1, 8192, 8192)
    found = why(square, device, predict(square, device))
    assert found.floor_by == "operations"
    assert found.floor_seconds == pytest.approx(2 * 8192**3 / 989.4e12)
    found = why(thin, device, predict(thin, device))
    assert found.floor_by == "bytes"
    assert found.floor_seconds == pytest.approx(2 * (8192**2 + 2 * 8192) / 3.35e12, rel=1e-3)
    assert "inputs and outputs once through HBM3" in sentences(
        predict(thin, device).as_dict(), found
    )


@pytest.mark.parametrize(
    ("times", "said"), [(0.75, "25% shorter"), (0.9949, "1% shorter"), (0.9951, "as long")]
)
def test_a_runner_up_as_long_as_the_limiter_is_said_to_be(times, said):
    device, problem = load("h100-sxm"), Matmul(8192, 8192, 8192)
    one = predict(problem, device)
    row = one.as_dict()
    row["terms_us"] = {**row["terms_us"], row["runner_up"]: times * row["terms_us"][one.limiter]}
    assert f", {said}" in sentences(row, why(problem, device, one))


def test_what_lies_elsewhere_has_no_floor():
    device, problem = load("h100-sxm"), Attention(8, 32, 32, 1, 32768, 128)
    place = {"kv": "host"}
    found = why(problem, device, predict(problem, device, place=place), place=place)
    assert (found.floor_seconds, found.floor_by) == (0.0, "")
    assert [item.number for item in found.helps] == ["host link"]


def test_cases_of_one_kernel_share_a_sentence():
    device = load("a100-sxm4-80gb")
    rows = [predict(Rowwise("rmsnorm", size, 4096), device).as_dict() for size in (1, 4096, 65536)]
    (line,) = summary(rows)
    assert line.startswith("a100-sxm4-80gb ")
    assert "2 of 3 limited by HBM2e" in line or "1 of 3 limited by HBM2e" in line
