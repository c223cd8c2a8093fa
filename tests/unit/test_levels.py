"""Memory levels as data: a spec's levels become an ordered list, which the model uses."""

import json
from itertools import pairwise

import pytest
from cases import cases

from perfmodel.algorithms import Matmul
from perfmodel.cli import run
from perfmodel.cli.list_ import names_of
from perfmodel.hardware import load, loads, names
from perfmodel.hardware.levels import LINKS, together
from perfmodel.predict import predict

ORDER = ("shared", "l2", "llc", "hbm", *LINKS)


def test_levels_stand_in_order_each_once_and_memory_always():
    for slug in names():
        found = [level.name for level in load(slug).levels()]
        assert found == [name for name in ORDER if name in found]
        assert "hbm" in found


def test_what_is_further_out_is_slower_and_larger():
    for slug in names():
        device = load(slug)
        own = [level for level in device.levels() if level.scope != "link"]
        rates = [level.bytes_per_s for level in own if level.bytes_per_s is not None]
        assert all(inner > outer for inner, outer in pairwise(rates))
        sizes = [level.capacity_bytes for level in own]
        assert all(inner < outer for inner, outer in pairwise(sizes))
        waits = [level.latency_seconds for level in own if level.latency_seconds is not None]
        assert all(inner < outer for inner, outer in pairwise(waits))
        for level in device.levels():
            assert level.instances * level.shared_by <= max(device.units, 1)
            assert level.label
            if level.bytes_per_s is not None:
                assert level.bytes_per_s > 0
                assert level.status
                assert set(level.source) <= set(device.sources)


def test_a_level_is_what_the_spec_says():
    device = load("mi300x")
    found = {level.name: level for level in device.levels()}
    assert [found[name].label for name in found] == [
        "LDS", "L2", "Infinity Cache", "HBM3", "PCIe 5 x16", "Infinity Fabric (xGMI)",
    ]  # fmt: skip
    assert found["shared"].bytes_per_s == 304 * 128 * 2.1e9
    assert (found["l2"].instances, found["l2"].shared_by) == (8, 38)
    assert found["l2"].capacity_bytes == 4 * 2**20
    assert found["l2"].total_bytes == device.l2_capacity_bytes
    assert found["llc"].capacity_bytes == 256 * 2**20
    assert found["llc"].measured_bytes_per_s == 11.9e12
    assert found["llc"].latency_seconds == 218e-9
    assert found["hbm"].bytes_per_s == device.hbm_bytes_per_s
    assert found["host"].bytes_per_s == 63e9
    assert device.level("peer") == found["peer"]
    assert device.level("network") is None


@pytest.mark.parametrize(
    ("slug", "label"),
    [("rtx3090", "GDDR6X"), ("epyc-9654", "DDR5-4800 x12"), ("m4-max", "LPDDR5X unified")],
)
def test_memory_is_called_what_it_is_made_of(slug, label):
    assert load(slug).level("hbm").label == label


def test_one_entry_of_a_spec_adds_a_level():
    device = load("l40s")
    assert device.level("network") is None
    entry = (
        '  scale_out:\n    name: "400 Gb/s NIC"\n'
        '    bandwidth_per_direction: {value: "50 GB/s", source: [formula], status: derived}\n'
        '    latency: {value: "2 us", source: [formula], status: derived}\n'
        '    capacity: {value: "1 TB", source: [formula], status: derived}\n'
    )
    text = device.dump().replace("\nlinks:\n", f"\nlinks:\n{entry}")
    added = loads(text, "l40s.yaml").level("network")
    assert (added.bytes_per_s, added.latency_seconds, added.capacity_bytes) == (50e9, 2e-6, 1e12)


def test_a_copy_has_the_levels_of_the_copy():
    device = load("h100-sxm").scaled(hbm_bandwidth=2)
    assert device.level("hbm").bytes_per_s == 2 * load("h100-sxm").level("hbm").bytes_per_s


def test_a_table_calls_levels_by_short_names_of_their_own():
    for slug in names():
        short = [level.short for level in load(slug).levels()]
        assert len(set(short)) == len(short)
        assert all(short)
        memory = load(slug).level("hbm")
        assert memory.short in memory.label
        assert " " not in memory.short


@cases
def test_levels_of_several_devices_go_by_what_they_share(found, name):
    names = together((("hbm", each) for each in found), {"hbm": "memory"})
    assert names == {"hbm": name}


@pytest.mark.parametrize(
    ("slug", "memory", "cache"),
    [("rtx3090", "GDDR6X", "L2"), ("epyc-9654", "DDR5", "L3"), ("h100-sxm", "HBM3", "L2")],
)
def test_what_a_reader_sees_says_the_levels_own_names(capsys, slug, memory, cache):
    given = ["predict", "gemm", "-d", slug, "--dtype", "fp32", "-m", "16"]
    assert run([*given, "--terms"]) == 0
    out = capsys.readouterr().out
    for said in (memory, cache):
        assert f"\nmemory  {said} " in out
    assert memory == "HBM3" or "HBM" not in out
    assert "hbm" not in out
    assert run(["whatif", *given[1:], "--change", "memory x2"]) == 0
    out = capsys.readouterr().out
    assert f"\n{memory} bandwidth x2 " in out
    assert "hbm" not in out
    # Data keep their keys, and say what they stand for.
    found = predict(Matmul(16, 4096, 4096, dtype="fp32"), load(slug))
    assert found.levels["hbm"] == memory
    assert set(found.levels) == set(found.bytes)
    assert "hbm" in found.terms


def test_devices_side_by_side_share_a_header(capsys):
    given = ["predict", "gemm", "--dtype", "fp32", "-d", "h100-sxm"]
    assert run([*given, "-d", "a100-sxm4-80gb"]) == 0
    assert " HBM " in capsys.readouterr().out.splitlines()[1]
    assert run([*given, "-d", "rtx3090"]) == 0
    assert " main memory " in capsys.readouterr().out.splitlines()[1]


def test_show_prints_levels_and_links_with_their_sources(capsys):
    assert run(["hardware", "show", "mi300x"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (llc,) = (line for line in lines if line.startswith("level llc: "))
    assert llc.startswith(
        "level llc: Infinity Cache, 17.2 TB/s, 11.9 TB/s measured, 256 MiB, 218 ns"
    )
    assert "cdna3-wp" in llc
    assert "level host: PCIe 5 x16, 63.0 GB/s [ml-engineering-network]" in lines
    assert run(["hardware", "show", "mi300x", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [item["name"] for item in document["levels"]] == [
        level.name for level in load("mi300x").levels()
    ]
    assert all(key in document["sources"] for item in document["levels"] for key in item["sources"])


def test_every_level_can_be_listed():
    assert [row["name"] for row in names_of("levels")] == list(ORDER)
