"""Tokens that are sent to the ranks of their experts, and results that come back."""

import numpy as np
import pytest

from perfmodel import predict
from perfmodel.algorithms.grouped import reached
from perfmodel.errors import ProblemError
from perfmodel.hardware import load as load_spec
from perfmodel.networks.router import Router
from perfmodel.operators import load
from perfmodel.predict import predict_arrays

H100, B200 = load_spec("h100-sxm"), load_spec("b200")
DISPATCH, COMBINE = load("expert-dispatch"), load("expert-combine")


def seconds(operator, device=H100, implementation=None, **sizes):
    """Time of one exchange, without a harness."""
    return predict(operator.problem(**sizes), device, implementation=implementation).seconds


@pytest.mark.parametrize(("ranks", "chosen"), [(1, 8), (2, 1), (8, 8), (64, 6)])
def test_a_token_reaches_as_many_ranks_as_draws_say(ranks, chosen):
    draws = np.random.default_rng(0).integers(ranks, size=(20000, chosen))
    mean = np.mean([len(set(draw)) for draw in draws.tolist()])
    assert reached(ranks, chosen) == pytest.approx(mean, rel=0.01)
    assert Router(chosen).nodes(ranks) == reached(ranks, chosen)


@pytest.mark.parametrize("operator", [DISPATCH, COMBINE], ids=["dispatch", "combine"])
@pytest.mark.parametrize("size", ["tokens", "hidden", "top_k"])
def test_larger_exchanges_take_longer(operator, size):
    sizes = {"tokens": 4096, "hidden": 4096, "top_k": 4}
    assert seconds(operator, **sizes) < seconds(operator, **{**sizes, size: 2 * sizes[size]})


def test_time_falls_with_units_down_to_the_link():
    few, more, all_ = (seconds(DISPATCH, tokens=65536, sms=sms) for sms in (4, 8, 100000))
    copies = 65536 * reached(8, 8)
    link = copies * 7168 * 2 * 7 / 8 / 450e9
    assert few > 1.9 * more
    assert link < all_ < link + 30e-6


@pytest.mark.parametrize(("once", "each"), [("deepep-dispatch", "low-latency-dispatch")])
def test_low_latency_sends_a_copy_for_each_expert(once, each):
    a, b = (
        predict(DISPATCH.problem(tokens=1000, top_k=8), H100, implementation=name).bytes["peer"]
        for name in (once, each)
    )
    assert a / reached(8, 8) == pytest.approx(b / 8)
    assert b == pytest.approx(1000 * 8 * 7168 * 2 * 7 / 8)


def test_narrow_tokens_and_faster_links_take_less_time():
    assert seconds(DISPATCH, tokens=65536, dtype="fp8") < seconds(DISPATCH, tokens=65536)
    name = "low-latency-combine"
    assert seconds(COMBINE, B200, name, tokens=4096) < seconds(COMBINE, H100, name, tokens=4096)


def test_arrays_are_their_single_exchanges():
    tokens = np.array([1, 100, 5000])
    together = predict_arrays(COMBINE.problem(tokens=tokens), B200).seconds
    alone = [seconds(COMBINE, B200, tokens=int(each)) for each in tokens]
    assert together == pytest.approx(alone)


def test_tokens_of_one_rank_cross_no_link():
    alone = predict(DISPATCH.problem(tokens=1000, ranks=1), H100)
    assert alone.bytes["peer"] == 0
    assert alone.terms["peer"] == 0


def test_a_device_without_links_says_so():
    with pytest.raises(ProblemError, match="link"):
        seconds(DISPATCH, load_spec("jetson-orin-64gb"))
