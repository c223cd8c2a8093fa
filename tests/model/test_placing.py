"""Operands behind a link: laws of their seconds and bytes, footprints, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from draws import Draws, make
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.algorithms.algorithm import Band
from perfmodel.analysis.whatif import parse_change, whatif
from perfmodel.cli import run as cli
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import load, loads
from perfmodel.hardware.facts import Quantity
from perfmodel.predict import predict, predict_arrays
from perfmodel.timing import matmul, splitkv
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine
from perfmodel.timing.memory import hbm_rate

H100, MI300X, GH200 = load("h100-sxm"), load("mi300x"), load("gh200-96gb")
ROUNDING = 1 + 1e-9
# Kinds of the draws, and an operand of each.
OPERANDS = {
    "decode": "kv", "prefill": "kv", "causal": "K", "window": "kv", "split": "V", "flash 1": "kv",
    "backward": "kv", "both": "data", "matmul bf16": "weights", "matmul fp8": "A",
    "matmul w4a16": "B", "batched": "weights", "softmax": "X", "layernorm": "data",
}  # fmt: skip
draws = st.tuples(st.sampled_from(sorted(OPERANDS)), st.integers(0, 2**32 - 1))
devices = st.sampled_from([H100, MI300X, GH200])
DRAWS = Draws()


@pytest.fixture(autouse=True)
def _most_are_predicted(monkeypatch):
    """Whole menus: the minimum over times that each only grow."""
    monkeypatch.setattr(matmul.plan, "__kwdefaults__", {"keep": 10**6})
    monkeypatch.setattr(splitkv.split_plan, "__kwdefaults__", {"keep": 10**6})
    DRAWS.clear()
    yield
    DRAWS.check()


def with_host(device, rate, latency="1 us"):
    """The device with a host link of `rate` bytes a second."""
    link = device.links.host
    fact = Quantity(value=f"{rate:.9g} B/s", source=link.bandwidth_per_direction.source,
                    status="derived")  # fmt: skip
    host = replace(link, bandwidth_per_direction=fact)
    return replace(device, links=replace(device.links, host=host))


def both(draw, device, place):
    """Predictions without and with operands placed, of the same problems."""
    problem, schedule = make(*draw, 8)
    plain = DRAWS.run(problem, device, schedule)
    found = DRAWS.run(problem, device, schedule, place=place)
    return problem, plain, found


@given(draws, devices, st.sampled_from(["host", "peer"]))
def test_what_lies_further_out_is_never_faster(draw, device, level):
    _, plain, found = both(draw, device, {OPERANDS[draw[0]]: level})
    if plain is None or found is None:
        return
    assert np.all(found.seconds * ROUNDING >= plain.seconds)
    assert np.all(found.seconds * ROUNDING >= found.terms[level])
    assert level not in plain.terms
    assert np.all(found.low_seconds <= found.seconds)


@given(draws, devices)
def test_a_link_as_fast_as_memory_gains_nothing(draw, device):
    fast = with_host(device, device.hbm_bytes_per_s)
    _, plain, found = both(draw, fast, {OPERANDS[draw[0]]: "host"})
    if plain is None or found is None:
        return
    assert np.all(found.seconds * ROUNDING >= plain.seconds)


@given(draws, devices, st.floats(1.0, 64.0))
def test_a_slower_link_is_never_faster_and_moves_the_same(draw, device, times):
    rate = device.level("host").bytes_per_s
    place = {OPERANDS[draw[0]]: "host"}
    _, _, found = both(draw, device, place)
    _, _, slower = both(draw, with_host(device, rate / times), place)
    if found is None or slower is None:
        return
    assert np.all(slower.seconds * ROUNDING >= found.seconds)


@given(draws, devices)
def test_bytes_at_the_level_are_the_operands_at_least_and_footprints_add_up(draw, device):
    problem, plain, found = both(draw, device, {OPERANDS[draw[0]]: "host"})
    if plain is None or found is None:
        return
    here, there = found.footprints["hbm"], found.footprints["host"]
    assert np.all(there > 0)
    np.testing.assert_allclose(here + there, plain.footprints["hbm"], rtol=1e-6)
    np.testing.assert_array_equal(found.footprint_bytes, here)
    # A mask may hide keys that nobody reads; everything else is read once at least.
    hides = isinstance(problem, Attention) and isinstance(problem.mask(), Band)
    if not hides:
        assert np.all(found.bytes["host"] * ROUNDING >= there)


@given(st.integers(1, 64), st.integers(1, 8), st.integers(256, 65536), devices)
def test_decode_of_keys_beyond_pcie_takes_as_long_as_they_take_to_come(batch, groups, keys, device):
    problem = Attention(batch, groups * 4, groups, 1, keys, 128)
    found = predict(problem, device, place={"kv": "host"})
    kv_bytes = 2 * batch * groups * keys * 128 * 2
    assert found.bytes["host"] >= kv_bytes
    assert found.footprints["host"] == kv_bytes
    assert found.seconds >= kv_bytes / device.level("host").bytes_per_s


def test_a_decode_by_hand():
    # 8 × 8 heads × 32k keys × 128 × 2 B, keys and values: 1.07 GB over 63 GB/s are 17 ms, of which
    # a kernel gets as much as of memory.
    problem = Attention(8, 32, 8, 1, 32768, 128)
    plain, found = predict(problem, H100), predict(problem, H100, place={"kv": "host"})
    assert found.limiter == "host"
    share = hbm_rate(machine(H100), default()) / H100.hbm_bytes_per_s
    assert 0.95 < share <= 1
    assert found.seconds == pytest.approx(2**30 / 63e9 / share, rel=0.01)
    assert found.seconds > 40 * plain.seconds
    assert found.bytes["hbm"] < 1e-3 * plain.bytes["hbm"]
    assert found.terms["hbm"] < 1e-3 * plain.terms["hbm"]
    assert found.intensity["host"] == pytest.approx(plain.intensity["hbm"], rel=0.01)
    assert found.terms["latency"] > plain.terms["latency"]
    peer = predict(problem, H100, place={"kv": "peer"})
    assert plain.seconds < peer.seconds < found.seconds
    apart = predict(problem, H100, place={"K": "host", "V": "peer"})
    assert apart.bytes["host"] == apart.bytes["peer"] == pytest.approx(found.bytes["host"] / 2)


def test_weights_behind_a_link_are_gemms_second_operand():
    problem = Matmul(16, 4096, 4096)
    by_role = predict(problem, H100, place={"weights": "host"})
    by_name = predict(problem, H100, place={"B": "host"})
    assert by_role == by_name
    assert by_role.footprints == {"hbm": 2 * (2 * 16 * 4096), "host": 2 * 4096**2}
    assert by_role.seconds > 2 * 4096**2 / 63e9


def test_own_memory_is_a_place_too_and_changes_nothing():
    problem = Matmul(512, 512, 512)
    assert predict(problem, H100, place={"weights": "hbm"}) == predict(problem, H100)
    assert predict(problem, H100, place={}) == predict(problem, H100)


def test_a_loop_leaves_nothing_of_another_memory_in_the_caches():
    problem = Matmul(64, 1024, 1024)  # fits in any L2
    for device in (H100, MI300X):
        found = predict(problem, device, harness="cuda_events_eager", place={"weights": "host"})
        assert found.bytes["host"] >= 2 * 1024**2
        assert found.bytes["hbm"] < 1e6


def test_each_level_says_whether_it_holds_its_own():
    problem = Attention(64, 64, 64, 1, 262144, 128)  # 550 GB of keys and values
    plain, found = predict(problem, H100), predict(problem, H100, place={"kv": "host"})
    assert not plain.fits
    assert plain.fits_at == {"hbm": False}
    assert "could not run" in plain.assumptions[-1]
    # How much a host has is not in the spec.
    assert found.fits
    assert found.fits_at == {"hbm": True}
    assert not any("could not run" in said for said in found.assumptions)
    entry = '    capacity: {value: "480 GB", source: [ml-engineering-network], status: secondary}\n'
    text = H100.dump().replace("    name: PCIe 5 x16\n", f"    name: PCIe 5 x16\n{entry}")
    small = predict(problem, loads(text), place={"kv": "host"})
    assert (small.fits, small.fits_at) == (False, {"hbm": True, "host": False})
    assert "has 447 GiB of host memory: it could not run" in small.assumptions[-1]
    assert small.seconds == found.seconds


def test_a_prediction_says_what_was_taken_for_the_link_and_widens_its_range():
    problem = Attention(64, 32, 8, 1, 32768, 128)
    plain, found = (
        predict(problem, H100, implementation="flash3", harness="kernel", place=place)
        for place in ({}, {"kv": "host"})
    )
    said = found.assumptions[-1]
    assert said.startswith(
        "host is read over PCIe 5 x16 at its documented 63.0 GB/s, 1.00 µs a load"
    )
    # No run of that kind was compared: a factor of two either way.
    assert found.high_seconds > 2 * found.seconds
    assert found.low_seconds < 0.5 * found.seconds
    assert plain.high_seconds < 2 * plain.seconds


@pytest.mark.parametrize(
    ("place", "error", "said"),
    [
        ({"kvs": "host"}, UnknownName, "did you mean kv"),
        ({"weights": "host"}, UnknownName, "no operand named 'weights'"),
        ({"kv": "hots"}, UnknownName, "did you mean host"),
        ({"kv": "l2"}, ProblemError, "operands are placed in hbm or beyond, not in l2"),
        ({"kv": "host", "K": "peer"}, ProblemError, "K is placed in host and in peer"),
        ({"O": "host"}, UnknownName, "no operand named 'O'"),
    ],
)
def test_what_cannot_be_placed_is_one_line(place, error, said):
    with pytest.raises(error, match=said) as caught:
        predict(Attention(1, 8, 8, 512, 512, 128), H100, place=place)
    assert "\n" not in str(caught.value)


def test_devices_and_operators_that_cannot_are_refused():
    with pytest.raises(ProblemError, match="no bandwidth of PCIe 5 x128"):
        predict(Rowwise("softmax", 64, 64), load("epyc-9654"), place={"X": "host"})
    with pytest.raises(UnknownName, match="level of rtx4090"):
        predict(Rowwise("softmax", 64, 64), load("rtx4090"), place={"X": "peer"})
    attention = Attention(1, 8, 8, 512, 512, 128)
    with pytest.raises(ProblemError, match="take a tiled schedule"):
        predict(attention, H100, schedule="standard", place={"kv": "host"})
    keys_only = Attention(1, 8, 8, 1, 512, 128, keys_only=True)
    with pytest.raises(ProblemError, match="lies in another operand's memory"):
        predict(keys_only, H100, place={"V": "host"})
    once = predict(keys_only, H100, place={"kv": "host"})
    assert once.footprints["host"] == 8 * 512 * 128 * 2


def test_what_ifs_go_by_the_link():
    problem = Attention(8, 32, 8, 1, 32768, 128)
    found = whatif(problem, H100, [parse_change("PCIe x2")], place={"kv": "host"})
    by_name = {item.quantity.name: item for item in found.sensitivities}
    assert by_name["host_bandwidth"].elasticity[0] == pytest.approx(-1.0, abs=0.02)
    assert abs(by_name["hbm_bandwidth"].elasticity[0]) < 0.02
    assert "peer_bandwidth" not in by_name
    assert found.effects[0].after.seconds[0] == pytest.approx(found.now.seconds[0] / 2, rel=0.02)
    plain = whatif(problem, H100)
    assert "host_bandwidth" not in {item.quantity.name for item in plain.sensitivities}
    assert not plain.missing


def test_many_at_once_are_each_as_by_itself():
    keys = np.array([512, 4096, 32768])
    table = predict_arrays(Attention(8, 32, 8, 1, keys, 128), H100, place={"kv": "host"})
    for i, count in enumerate(keys):
        one = predict(Attention(8, 32, 8, 1, int(count), 128), H100, place={"kv": "host"})
        assert table.one(i).seconds == one.seconds
        assert table.one(i).bytes == one.bytes


GIVEN = ("attention", "-d", "h100-sxm", "--seq-q", "1", "--seq-kv", "32k", "--place")


def test_commands_take_places(capsys):
    assert cli(["predict", *GIVEN, "kv=host", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["predictions"]
    assert row["limiter"] == "host"
    assert row["bytes"]["host"] == row["footprints"]["host"] == 2 * 32 * 32768 * 128 * 2
    assert cli(["whatif", *GIVEN, "K=host,V=peer", "--change", "NVLink x2"]) == 0
    assert "peer link x2" in capsys.readouterr().out
    pytest.importorskip("pyarrow")
    assert cli(["sweep", *GIVEN, "kv=host", "--best", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["bytes_host"] == row["footprint_host"] == 2 * 32 * 32768 * 128 * 2


def test_a_card_has_one_capacity():
    """80 GB on the label are 80 GiB to the driver, for whatever has to fit."""
    from perfmodel.onchip.holding import least_devices
    from perfmodel.timing.capacity import rooms
    from perfmodel.timing.placing import OWN

    device = load("h100-sxm")
    assert rooms(device, [OWN])[OWN] == device.memory_bytes == 80 * 2**30
    assert least_devices(79.0 * 2**30, device) == 1
    fitting = predict(Matmul(1, 64, int(78 * 2**30 / 64 / 2)), device)
    assert fitting.fits
