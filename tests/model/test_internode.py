"""Networks between nodes: leaf switches and spines, switches that add up, staging hosts."""

from __future__ import annotations

import numpy as np
import pytest
from cases import cases
from hypothesis import assume, given
from hypothesis import strategies as st

from perfmodel.collectives import OPS, Collective, nccl, predict_collective, times
from perfmodel.collectives.constants import default
from perfmodel.collectives.counts import counted
from perfmodel.collectives.nccl import Method
from perfmodel.collectives.route import route
from perfmodel.collectives.times import Exchange, Machine
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import load, systems
from perfmodel.networks import library
from perfmodel.timing.architectures import architecture_of
from perfmodel.training.plan import Plan
from perfmodel.training.step import predict_step

BASES = ("dgx-a100", "dgx-h100", "dgx-b200", "gb200-nvl72", "8xa40")
ops = st.sampled_from([op for op in OPS if op != "send-receive"])
sizes = st.integers(1, 2**31)
bases = st.sampled_from(BASES[:3])
nodes = st.sampled_from([2, 4, 8, 32, 128])


def one(op, bytes_, ranks, name, **options):
    problem = Collective(op, bytes_, ranks, dtype="fp16", **options)
    return predict_collective(problem, systems.load(name)).one(0)


def by_method(method, op, bytes_, ranks, name, stride=1):
    """Terms of a method, whatever the library would choose."""
    system = systems.load(name)
    device = load(system.device)
    links = route(system, ranks, None, stride)
    exchange = Exchange(op, links, np.array([float(bytes_)]))
    machine = Machine(device, architecture_of(device).name, default())
    return {k: float(v[0]) for k, v in times.terms(method, exchange, machine).items()}


def methods(op, ranks, name):
    system = systems.load(name)
    kind = architecture_of(load(system.device)).name
    return nccl.methods(op, route(system, ranks), "fp16", kind)


@given(ops, sizes, bases, nodes, st.sampled_from([2, 4, 16, 32]))
def test_leaf_switches_without_oversubscription_change_no_time(op, n, base, count, leaf):
    ranks = 8 * count
    plain = one(op, n, ranks, base).seconds
    assert one(op, n, ranks, f"{base}+leaves={leaf}").seconds == pytest.approx(plain, rel=1e-12)
    rails = one(op, n, ranks, f"{base}+rails={leaf}").seconds
    # On rails the bytes for other adapters pass the node's own links, which are never the slowest.
    assert rails == pytest.approx(plain, rel=1e-12)


@given(ops, sizes, bases, nodes, st.sampled_from([2, 4, 16]), st.floats(1, 64))
def test_contention_never_speeds_an_exchange_up(op, n, base, count, leaf, ratio):
    ranks, name = 8 * count, f"{base}+leaves={leaf}"
    for method in methods(op, ranks, name):
        free = sum(by_method(method, op, n, ranks, name).values())
        shared = sum(by_method(method, op, n, ranks, f"{name}+oversubscribed={ratio}").values())
        assert shared >= free * (1 - 1e-12)


@given(st.sampled_from(["all-reduce", "all-gather"]), sizes, st.sampled_from([2, 8, 16]))
def test_a_ring_leaves_a_switch_once_and_an_all_to_all_with_all_beyond_it(op, n, leaf):
    """A ring of r ranks on a leaf has r shares of its links: only more than r times as many bytes
    into the leaf as out of it slow the ring down."""
    ranks, name = 8 * 4 * leaf, f"dgx-h100+leaves={leaf}"
    for method in methods(op, ranks, name):
        free = by_method(method, op, n, ranks, name)
        assert by_method(method, op, n, ranks, f"{name}+oversubscribed={leaf}") == free
    shuffle = Method("pairwise", "Simple")
    n += 2**20
    free = by_method(shuffle, "all-to-all", n, ranks, name)["network"]
    shared = by_method(shuffle, "all-to-all", n, ranks, f"{name}+oversubscribed=4")["spine"]
    beyond, outside = ranks - 8 * leaf, ranks - 8
    assert shared / free == pytest.approx(4 * beyond / outside)


@given(sizes, st.sampled_from([8, 16]), st.floats(1, 64))
def test_ranks_apart_share_a_leaf_with_the_exchanges_of_those_between(n, leaf, ratio):
    """With 8 devices from rank to rank, a leaf of so many nodes has one rank of each node."""
    links = route(systems.load(f"dgx-h100+leaves={leaf}"), 4 * leaf, 1, 8)
    assert [item.fan for item in links.crossings] == [leaf, 4]
    sparse = route(systems.load(f"dgx-h100+leaves={leaf}"), 64, 1, 8 * leaf)
    assert [(item.level.name, item.fan) for item in sparse.crossings] == [("spine", 64)]
    near, far = (
        one("all-reduce", n, 2, f"dgx-h100+leaves={leaf}+oversubscribed={ratio}",
            ranks_per_node=1, stride=stride).seconds
        for stride in (8, 8 * leaf)
    )  # fmt: skip
    assert far >= near


# Switches that add up


@given(sizes, bases, st.sampled_from([2, 4, 8, 32, 128]))
def test_a_node_sends_no_less_than_the_count_unless_a_switch_adds_up(n, base, count):
    """Of an all-reduce over N nodes each sends 2(N − 1)/N of the buffer through its adapters; with
    switches that add up it sends the buffer once."""
    rate = 8 * systems.load(base).level("network").bytes_per_s
    for method in methods("all-reduce", 8 * count, f"{base}+rails+sharp"):
        adds_up = method.algorithm in ("nvls", "collnet")
        sent = 1.0 if adds_up else float(counted("all-reduce", count).sent)
        found = by_method(method, "all-reduce", n, 8 * count, f"{base}+rails+sharp")
        assert sum(found.values()) >= n * sent / rate


@given(st.integers(2**20, 2**33), bases, st.sampled_from([8, 32, 128]))
def test_sharp_halves_what_a_ring_sends(n, base, count):
    """Without NVLink a ring sends 2(P − 1)/P of n and CollNet n."""
    name = f"{base}+sharp"
    system = systems.load(name)
    links = route(system, count, 1)
    assert links.node_ranks == 1
    machine = Machine(load(system.device), architecture_of(load(system.device)).name, default())
    exchange = Exchange("all-reduce", links, np.array([float(n)]))
    ring, sharp = (
        float(times.terms(Method(a, "Simple"), exchange, machine)["network"][0])
        for a in ("ring", "collnet")
    )
    assert ring / sharp == pytest.approx(2 * (count - 1) / count)


@given(st.integers(2**20, 2**33), st.sampled_from([2, 8, 32]))
def test_a_switch_of_quantum_carries_one_reduction_at_a_time(n, count):
    """On HDR one adapter of a node is at work, unless each has a switch of its own; a switch of
    NDR has a reduction on each port."""
    ranks, collnet = 8 * count, Method("collnet", "Simple")
    rails, shared = (
        by_method(collnet, "all-reduce", n, ranks, name)
        for name in ("dgx-a100+rails+sharp", "dgx-a100+sharp")
    )
    assert shared["network"] == pytest.approx(n / (0.9 * 25e9))
    assert sum(shared.values()) > sum(rails.values())
    ndr, own = (
        by_method(collnet, "all-reduce", n, ranks, name)
        for name in ("dgx-h100+sharp", "dgx-h100+rails+sharp")
    )
    assert ndr == own


@given(sizes, bases, st.sampled_from([8, 64, 256]))
def test_switches_that_add_up_are_offered_for_sums_to_all_alone(n, base, ranks):
    for op in OPS[:4]:
        had = {method.algorithm for method in methods(op, ranks, f"{base}+sharp")}
        plain = {method.algorithm for method in methods(op, ranks, base)}
        assert ("collnet" in had) == (op == "all-reduce" and ranks > 8)
        assert plain <= had


def test_collnet_on_dgx_a100_is_near_its_makers_rule():
    """NCCL's issue 320: with eight adapters of 200 Gb/s NVLink bounds the sum at about 110 GB/s."""
    found = one("all-reduce", 2**33, 512, "dgx-a100+rails+sharp")
    assert (found.algorithm, found.limiter) == ("collnet", "nvlink")
    assert abs(np.log(2**33 / found.seconds / 110e9)) < 0.2


# Hosts that stage bytes


@given(ops, sizes, st.sampled_from(BASES), st.sampled_from([2, 4, 8]))
def test_bytes_through_the_hosts_memory_take_no_less(op, n, base, count):
    system = systems.load(base)
    ranks = count * system.node_devices
    assume(ranks <= system.devices)
    staged = systems.load(f"{base}+no-gpudirect")
    for method in methods(op, ranks, base):
        direct, through = (
            sum(by_method(method, op, n, ranks, name).values())
            for name in (base, f"{base}+no-gpudirect")
        )
        assert through > direct
    memory = staged.host.memory_bandwidth if staged.host else None
    if memory is not None:  # written and read, on either side
        network = route(staged, ranks).network[0]
        assert network.bytes_per_s * system.node_devices <= memory.si / 4 * (1 + 1e-12)


# Names


@cases
def test_a_network_that_cannot_be_is_refused_in_one_line(name, says):
    with pytest.raises((ProblemError, UnknownName)) as error:
        systems.load(name)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_variant_is_named_in_what_is_predicted_and_reaches_training(cli):
    name = "dgx-h100+rails=4+oversubscribed=8"
    assert one("all-reduce", 2**20, 64, name).system == name
    network, plan = library.load("gpt2"), Plan(data=256, micro_batch=4, seq=1024)
    device = load("h100-sxm")
    plain, shared = (
        predict_step(network, plan, device, systems.load(each)).seconds
        for each in ("dgx-h100", "dgx-h100+leaves=4+oversubscribed=1000")
    )
    assert shared > plain
    code, out, err = cli("collective", "all-to-all", "-s", name, "-b", "1G", "-n", "256")
    assert (code, err) == (0, "")
    assert "spine" in out
