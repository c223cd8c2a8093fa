"""Memory levels as data: what a spec has becomes an ordered list, and the model goes by it."""

from itertools import pairwise

import pytest

from perfmodel.hardware import load, loads, names
from perfmodel.hardware.levels import LINKS

ORDER = ("shared", "l2", "llc", "hbm", *LINKS)


@pytest.mark.parametrize("slug", names())
def test_levels_stand_in_order_each_once_and_memory_always(slug):
    found = [level.name for level in load(slug).levels()]
    assert found == [name for name in ORDER if name in found]
    assert "hbm" in found


@pytest.mark.parametrize("slug", names())
def test_what_is_further_out_is_slower_and_larger(slug):
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
