"""Machines with memory on the chip: what fits, how many, bounds of a step."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.compression.compressed import Compressed
from perfmodel.compression.naming import scheme
from perfmodel.errors import ProblemError
from perfmodel.hardware import load
from perfmodel.networks import library
from perfmodel.networks.expand import parameter_count
from perfmodel.networks.summary import cache_bytes_per_token
from perfmodel.onchip.holding import holding, least_devices
from perfmodel.onchip.latency import PRODUCTS, is_on_chip, latency, layout, streamed

WSE, GROQ, H100 = load("wse-2"), load("groq-lpu"), load("h100-sxm")


def made(network, weights="fp16"):
    return Compressed(library.load(network), scheme(weights))


def laid(network, device, devices, batch=1, context=2048):
    """Seconds of each resource, of both layouts."""
    return {
        name: {
            leaf.name: leaf.seconds
            for leaf in layout(network, device, devices, batch, context, name).leaves
        }
        for name in ("spread", "stacked")
    }


@pytest.mark.parametrize(
    ("network", "devices"), [("llama-2-7b", 1), ("llama-2-13b", 1), ("llama-2-70b", 4)]
)
def test_which_networks_a_wafer_of_40_gb_holds(network, devices):
    """Weights of 13.5, 26.0 and 138.0 GB."""
    found = holding(made(network), WSE)
    assert found.devices == devices
    assert found.fits == (devices == 1)


def test_40_gb_do_not_hold_100_billion_parameters():
    """200 GB at 16 bits take five wafers, 50 GB at 4 bits two."""
    assert [least_devices(100e9 * bits / 8, WSE) for bits in (16, 8, 4)] == [5, 3, 2]


def test_a_wafer_holds_13b_with_17_thousand_tokens_and_no_more():
    network = made("llama-2-13b")
    each = cache_bytes_per_token(network.network)
    room = (40e9 - network.weight_bytes) / each
    assert room == pytest.approx(17_000, rel=0.02)
    assert holding(network, WSE, context=int(room)).fits
    assert not holding(network, WSE, context=int(room) + 1).fits


def test_groq_chips_of_230_mb_that_hold_70b_at_8_bits():
    """68,976,648,192 bytes of weights alone."""
    every = parameter_count(library.load("llama-2-70b"))
    assert every == 68_976_648_192
    assert least_devices(every, GROQ) == 300


@given(st.integers(1, 64), st.integers(1, 64), st.integers(1, 4096), st.integers(1, 4096))
def test_more_to_hold_never_takes_fewer_devices(batch, other, context, more):
    network = made("llama-2-7b")
    few, many = (
        holding(network, WSE, batch=b, context=c).devices
        for b, c in (
            (min(batch, other), min(context, more)),
            (max(batch, other), max(context, more)),
        )
    )
    assert few <= many


def test_watts_and_price_are_those_of_all_devices():
    found = holding(made("llama-2-70b"), WSE, price=2.5e6)
    assert (found.watts, found.price) == (4 * 23_000, 10e6)
    assert holding(made("llama-2-70b"), WSE).price is None
    with pytest.raises(ProblemError, match="a price of -1"):
        holding(made("llama-2-70b"), WSE, price=-1.0)
    with pytest.raises(ProblemError, match="more than 0"):
        least_devices(0.0, WSE)


def test_bytes_are_no_wall_on_a_wafer():
    """138 GB at 20 PB/s are 7 µs; hops of four products both ways in 80 layers take longer."""
    found = latency(made("llama-2-70b"), WSE, 4)
    spread = laid(made("llama-2-70b"), WSE, 4)["spread"]
    assert spread["sram"] == pytest.approx(138e9 / 80e15, rel=0.01)
    assert spread["fabric"] == pytest.approx(2 * 4 * 80 * math.sqrt(4 * 850_000) / 1.1e9)
    assert spread["fabric"] > 100 * spread["sram"]
    assert found.seconds == pytest.approx(sum(child.seconds for child in found.children))
    assert found.low_seconds < found.seconds < found.high_seconds


@pytest.mark.parametrize("network", ["llama-2-7b", "llama-2-13b"])
def test_a_layer_of_its_own_cores_has_shorter_ways_and_less_of_the_machine(network):
    layers = library.load(network).layers
    spread, stacked = laid(made(network), WSE, 1).values()
    assert stacked["fabric"] == pytest.approx(spread["fabric"] / math.sqrt(layers))
    assert stacked["matrix"] == pytest.approx(spread["matrix"] * layers)
    assert spread["links"] == stacked["links"] == 0.0


@pytest.mark.parametrize("batch", [1, 8])
def test_a_step_reads_the_weights_and_the_cache_of_every_sequence(batch):
    network = made("llama-2-7b")
    spread = laid(network, GROQ, 100, batch, 512)["spread"]
    read = network.weight_bytes + batch * 512 * cache_bytes_per_token(network.network)
    assert spread["sram"] == pytest.approx(read / (100 * GROQ.hbm_bytes_per_s))


def test_stacked_devices_pass_activations_on_once_each():
    """Three crossings between four devices; spread layers cross in each of their products."""
    spread, stacked = laid(made("llama-2-70b"), WSE, 4).values()
    layers = library.load("llama-2-70b").layers
    ways = 2 * PRODUCTS * layers
    assert spread["links"] == pytest.approx(stacked["links"] / 3 * ways)
    assert stacked["links"] > 0


@given(st.integers(1, 64), st.integers(1, 64), st.integers(1, 1000))
def test_more_sequences_never_take_less(one, other, devices):
    few, many = (
        latency(made("llama-2-7b"), GROQ, devices, batch=b, context=100)
        for b in sorted((one, other))
    )
    assert few.low_seconds <= many.low_seconds
    assert few.high_seconds <= many.high_seconds


def test_published_services_lie_in_the_ranges():
    """Groq's cloud with Llama-2-70B (LLMPerf leaderboard, 2023-12, recalled): 185 tokens a second,
    on 576 chips, as is said."""
    found = latency(made("llama-2-70b", "w8a16"), GROQ, 576, context=512)
    assert found.low_seconds < 1 / 185 < found.high_seconds


def test_weights_from_outside_take_a_batch():
    one = streamed(made("llama-2-70b"), WSE, 150e9)
    assert one.seconds == pytest.approx(138e9 / 150e9, rel=0.01)
    at = one.settings["hiding_batch"]
    few, many = (streamed(made("llama-2-70b"), WSE, 150e9, n) for n in (at - 1, 2 * at))
    assert (few.seconds, few.limiter, many.limiter) == (one.seconds, "link", "matrix")
    assert many.seconds == pytest.approx(2 * one.seconds, rel=0.01)
    with pytest.raises(ProblemError, match="more than 0"):
        streamed(made("llama-2-70b"), WSE, 0.0)


def test_memory_off_the_chip_is_refused():
    assert is_on_chip(GROQ)
    assert not is_on_chip(H100)
    with pytest.raises(ProblemError, match="HBM3, not on the chip"):
        latency(made("llama-2-7b"), H100, 1)


def test_the_command_says_what_it_takes(cli, output):
    code, out, err = cli(
        "hold", "llama-2-70b", "-d", "wse-2", "-d", "h100-sxm", "--price", "30000",
        "--stream-rate", "150 GB/s", "-f", "json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    wafer, gpu = json.loads(out)["machines"]
    assert (wafer["devices"], wafer["price"], wafer["fits"]) == (4, 120_000, False)
    assert wafer["low_us"] < wafer["time_us"] < wafer["high_us"]
    assert wafer["joules_per_token"] == pytest.approx(92e3 * wafer["time_us"] * 1e-6)
    assert gpu["time_us"] is None
    assert gpu["devices"] == 2
    out = output("hold", "llama-2-13b", "-d", "wse-2", "--weights", "w4a16")
    assert "no better bound is known" in out
