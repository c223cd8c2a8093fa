"""The search of deployments under targets: laws, and an exhaustive search of few plans."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from perfmodel.hardware import load as load_device
from perfmodel.networks.library import load as load_network
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.disaggregated import shared_out
from perfmodel.serving.engine import load
from perfmodel.serving.search import Demand, Prices, front, plans, search
from perfmodel.serving.served import serve
from perfmodel.serving.steps import Steps
from perfmodel.serving.targets import Targets

GPUS = 4


@lru_cache
def candidates():
    network = load_network("llama-3-8b")
    base = [
        Deployment(network, load_device(device), load("vllm"), weights=weights)
        for device, weights in (("h100-sxm", "bf16"), ("h100-sxm", "fp8"), ("l40s", "bf16"))
    ]
    return [Steps(of) for of in plans(network, base, GPUS)]


@lru_cache
def answer(ttft=0.5, tpot=0.03, **options):
    return asked(ttft, tpot, **options)


def asked(ttft=0.5, tpot=0.03, **options):
    demand = Demand(1024, 256, Targets(ttft, tpot), vary=0.5, **options)
    return search(candidates(), demand, GPUS)


def meets(load, ttft, tpot):
    return load.metric("ttft_ms").value <= ttft * 1e3 and load.metric("tpot_ms").value <= tpot * 1e3


def test_what_is_shown_is_what_infer_says():
    options, _, _ = answer()
    assert options
    for option in [*options[:3], *[option for option in options if option.of.pools]]:
        (again,) = serve(Steps(option.of), "concurrency", [option.served.size], 1024, 256, vary=0.5)
        assert again.metric("ttft_ms").value == pytest.approx(option.served.metric("ttft_ms").value)
        assert again.requests_per_s * option.copies == pytest.approx(option.requests_per_s)
        assert meets(again, 0.5, 0.03)


def test_the_best_plan_is_the_best_of_all_loads():
    options, _, loads = answer()
    best = max(
        load.requests_per_s * (GPUS // load.of.devices) for load in loads if meets(load, 0.5, 0.03)
    )
    whole = [option for option in options if not option.of.pools]
    assert whole[0].requests_per_s == pytest.approx(best)
    rates = [option.output_tokens_per_s for option in options]
    assert rates == sorted(rates, reverse=True)
    assert all(option.devices <= GPUS for option in options)


@pytest.mark.parametrize(("ttft", "tpot"), [(0.2, 0.03), (0.5, 0.012)])
def test_a_tighter_target_never_serves_more(ttft, tpot):
    loose, tight = answer()[0], answer(ttft, tpot)[0]
    assert tight[0].output_tokens_per_s <= loose[0].output_tokens_per_s


def test_a_target_that_no_plan_meets_is_told_with_the_nearest():
    options, misses, _ = answer(0.5, 1e-4)
    assert not options
    assert misses[0].excess == min(miss.excess for miss in misses)
    assert misses[0].reason.startswith("TPOT ")


def test_a_demand_takes_the_fewest_devices_that_serve_it():
    options, misses, _ = answer(rate=3.0)
    assert options[0].devices == min(option.devices for option in options)
    assert all(option.requests_per_s >= 3.0 for option in options)
    for option in options:
        fewer = math.ceil(3.0 / option.served.requests_per_s) - 1
        assert fewer * option.served.requests_per_s < 3.0
    assert len(options) + len(misses) >= len(candidates())


PRICES = Prices(1.0, {"h100-sxm": 2.5})


def test_prices_rank_by_dollars_of_a_token():
    """A million tokens of P dollars a device hour: P · 10⁶ / (3600 · tokens/s of a device)."""
    options, _, _ = asked(prices=PRICES)
    plain, _, _ = answer()
    dollars = [option.dollars_per_million_tokens for option in options]
    assert dollars == sorted(dollars)
    assert {option.of.key for option in options} == {option.of.key for option in plain}
    for option in options:
        price = 2.5 if option.of.device.slug == "h100-sxm" else 1.0
        hours = 1e6 / option.output_tokens_per_s / 3600.0 * option.devices
        assert option.dollars_per_million_tokens == pytest.approx(price * hours)
    assert plain[0].dollars_per_million_tokens is None


@pytest.mark.parametrize("cheap", ["h100-sxm", "l40s"])
def test_a_demand_goes_to_the_cheapest_devices(cheap):
    prices = Prices(10.0, {cheap: 1e-3})
    options, _, _ = asked(rate=3.0, prices=prices)
    assert options[0].of.device.slug == cheap
    bills = [option.devices * option.price for option in options]
    assert bills == sorted(bills)


def test_users_are_shared_out_over_copies():
    options, _, _ = answer(users=100.0)
    assert options
    for option in options:
        assert option.copies * option.served.size >= 100.0
        assert (option.copies - 1) * option.served.size < 100.0


def test_the_front_has_no_load_that_another_surpasses():
    _, _, loads = answer()
    targets = Targets(0.5, 0.03)
    rows = front(loads, targets)

    def speeds(load):
        rate = load.metric("output_tokens_per_s").value / load.of.devices
        return 1.0 / load.metric("tpot_ms").value, rate

    able = [speeds(load) for load in loads if load.metric("ttft_ms").value <= 500.0]
    for row in rows:
        speed, rate = speeds(row)
        assert not any(a > speed and b > rate for a, b in able)
    for speed, rate in able:
        assert any(a >= speed and b >= rate for a, b in map(speeds, rows))


def test_pools_are_the_best_of_every_split():
    """Of all splits of one copy's kind on eight devices none serves more clients in the limits."""
    group, limits = candidates()[:1], (0.5, 0.03)
    best = shared_out(group, 1024, 256, limits, 8)
    assert best.devices <= 8

    def served(pools, users=(64, 128, 256, 512)):
        loads = serve(Steps(replace(best, pools=pools)), "concurrency", users, 1024, 256)
        return max([load.requests_per_s for load in loads if meets(load, *limits)], default=0.0)

    every = [served(f"{x}:{y}") for x in range(1, 8) for y in range(1, 9 - x)]
    assert served(best.pools) >= 0.95 * max(every) > 0.0
    needed = shared_out(group, 1024, 256, limits, 8, rate=served(best.pools) / 4)
    assert needed.devices < best.devices
    assert shared_out(group, 1024, 256, (1e-3, 0.03), 8) is None
    assert shared_out(group, 1024, 256, (0.5, 1e-4), 8) is None


def test_experts_are_shared_by_tensor_and_by_copies():
    network = load_network("qwen3-30b-a3b")
    base = [Deployment(network, load_device("h100-sxm"), load("sglang"))]
    sizes = {(of.tensor, of.expert, of.data) for of in plans(network, base, 8)}
    assert {(8, 8, 1), (1, 8, 8), (4, 1, 1), (2, 4, 4)} <= sizes
    assert all(of.devices <= 8 for of in plans(network, base, 8))


def test_the_command_starts_the_plan():
    of = Deployment(
        load_network("llama-3-8b"), load_device("h100-sxm"), load("sglang"), weights="fp8",
        cache="fp8", tensor=2,
    )  # fmt: skip
    option = replace(answer()[0][-1], served=serve(Steps(of), "concurrency", [7], 512, 64)[0])
    assert option.launch == (
        "python -m sglang.launch_server --model-path llama-3-8b --tp-size 2 "
        "--max-running-requests 7 --quantization fp8 --kv-cache-dtype fp8_e4m3"
    )


def test_energy_is_at_the_limit_of_power():
    option = answer()[0][0]
    watts = option.of.device.tdp_watts
    assert option.tokens_per_joule * watts == pytest.approx(option.per_device)
    assert np.isfinite(option.per_device)
