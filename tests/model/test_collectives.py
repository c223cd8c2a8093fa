"""Collectives: laws of bytes, times and choices, then published figures.

Ids of published figures are those of the project's list of vectors, group collectives; of the group
`ring` the interchip figures stand here and the fit of a context in memory is left out (LEFT_OUT).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import log

import numpy as np
import pytest
from cases import cases
from hypothesis import assume, given
from hypothesis import strategies as st

from perfmodel.algorithms.matmul import matmul
from perfmodel.collectives import OPS, Collective, custom, nccl, predict_collective, times
from perfmodel.collectives.collectivetime import libraries
from perfmodel.collectives.constants import default, priors, shipped
from perfmodel.collectives.counts import counted
from perfmodel.collectives.nccl import Method
from perfmodel.collectives.problem import bus_factor
from perfmodel.collectives.route import route
from perfmodel.collectives.times import Exchange, Machine
from perfmodel.count.exchanges import exchanges
from perfmodel.elements import element
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import load, systems
from perfmodel.schedules.mesh import over
from perfmodel.schedules.schedule import Kernel, Schedule
from perfmodel.timing.architectures import architecture_of

LEFT_OUT = {
    "ring.maxlen": "whether a context fits in memory: no collective takes part in the figure",
}
H100, A100 = systems.load("dgx-h100"), systems.load("dgx-a100")
B200, GB200 = systems.load("dgx-b200"), systems.load("gb200-nvl72")
SYSTEMS = ("dgx-a100", "dgx-h100", "dgx-b200", "8xl40s", "a40-pairs", "8xmi300x")
GATHERS = ("all-reduce", "reduce-scatter", "all-gather", "all-to-all")
ops = st.sampled_from([op for op in OPS if op != "send-receive"])
sizes = st.integers(1, 2**31)
ranks = st.sampled_from([2, 4, 8, 16, 64, 512])


def one(op, bytes_, n, system=H100, **options):
    """One prediction."""
    return predict_collective(Collective(op, bytes_, n, dtype="fp16"), system, **options).one(0)


def machine(system, values=None):
    device = load(system.device)
    return Machine(device, architecture_of(device).name, values or default())


def by_method(method, op, bytes_, n, system=H100):
    """Seconds of a method, whatever the library would choose."""
    exchange = Exchange(op, route(system, n), np.atleast_1d(np.asarray(bytes_, dtype=float)))
    return times.total(times.terms(method, exchange, machine(system)))


def methods(op, n, system):
    """All methods of NCCL and of custom kernels for a collective."""
    links = route(system, n)
    found = nccl.methods(op, links, "fp16", machine(system).architecture)
    own = {
        method
        for library in custom.libraries()
        for method, limit in custom.kernels(library, op, links, machine(system).architecture)
        if limit
    }
    return [*found, *own]


# Bytes


@given(st.integers(1, 200), st.integers(1, 200), st.integers(2, 64))
def test_bytes_sent_are_those_of_the_exchanges_of_a_product(m, n, p):
    schedule = Schedule("product", matmul(), (Kernel("product", ("multiply",), ()),))
    extents = {"b": 1, "m": m * p, "n": n * p, "k": p}
    kinds = {"all-reduce": ("k", None), "reduce-scatter": ("k", "n"), "all-gather": ("m", None)}
    for op, (axis, lies) in kinds.items():
        (found,) = exchanges(
            over(schedule, extents, {axis: (p, "link")}),
            extents,
            dict.fromkeys(("data", "output", "weights", "accumulator"), element("bf16")),
            {("C", "link"): lies},
        )
        assert found.kind == op
        whole = int(found.tensor_bytes)
        assert found.sent_bytes == pytest.approx(one_sent(op, whole, p), rel=1e-12)
        assert found.steps == counted(op, p).steps


def one_sent(op, bytes_, n):
    links = route(H100, 2)
    exchange = Exchange(op, links, np.array([float(bytes_)]))
    assert float(exchange.sent_bytes[0]) == bytes_ * float(counted(op, 2).sent)
    return bytes_ * float(counted(op, n).sent)


@given(st.sampled_from(GATHERS), st.integers(1, 4096))
def test_shares_are_exact(op, p):
    share = Fraction(p - 1, p) * (2 if op == "all-reduce" else 1)
    assert counted(op, p).sent == share
    assert float(share) == pytest.approx(bus_factor(op, p))


@given(ops, sizes)
def test_one_rank_sends_nothing_and_takes_no_time(op, n):
    found = one(op, n, 1)
    assert (found.seconds, found.sent_bytes, found.low_seconds, found.high_seconds) == (0, 0, 0, 0)
    assert found.algorithm == "none"


# Times


@given(ops, sizes, st.sampled_from([2, 4, 8]), st.sampled_from(SYSTEMS))
def test_a_time_is_the_sum_of_its_terms_and_no_less_than_bytes_over_the_link(op, n, p, name):
    system = systems.load(name)
    found = one(op, n, p, system)
    assert found.sent_bytes >= n * (p - 1) // p
    assert found.seconds == pytest.approx(sum(found.terms.values()))
    assert found.terms[found.limiter] == max(found.terms.values())
    assert found.low_seconds <= found.seconds <= found.high_seconds
    if found.algorithm not in ("nvls", "nvls-tree"):  # the switch sends what ranks do not
        fastest = max(item.level.bytes_per_s * item.doors for item in route(system, p).crossings)
        assert found.seconds > found.sent_bytes / fastest
    else:
        assert found.seconds > n / system.levels[0].bytes_per_s


@given(sizes, st.sampled_from(["dgx-a100", "dgx-h100", "dgx-b200"]), st.sampled_from([1, 2]))
def test_a_message_takes_no_less_than_its_bytes_over_the_link(n, name, ranks_per_node):
    system = systems.load(name)
    links = route(system, 2, ranks_per_node)
    sent = predict_collective(Collective("send-receive", n, 2, ranks_per_node), system).one(0)
    assert sent.sent_bytes == n
    assert sent.seconds > n / max(item.level.bytes_per_s for item in links.crossings)


@given(ops, sizes, sizes, ranks)
def test_more_bytes_take_no_less_by_any_method(op, n, more, p):
    links, kind = route(H100, p), machine(H100).architecture
    for method in methods(op, p, H100):
        if method.algorithm.startswith("nvls"):  # NCCL sends larger chunks of larger buffers
            chunks = nccl.nvls_chunks(links, np.array([n, n + more]), kind)
            if chunks[0] != chunks[1]:
                continue
        less, longer = by_method(method, op, [n, n + more], p)
        assert less <= longer


@given(
    ops, sizes, st.sampled_from([2, 4, 8, 16, 64]), st.floats(1.01, 10), st.sampled_from(SYSTEMS)
)
def test_a_faster_link_is_never_slower_by_any_method(op, n, p, factor, name):
    system = systems.load(name)
    assume(p <= system.devices)
    for method in methods(op, p, system):
        before = by_method(method, op, n, p, system)
        assert by_method(method, op, n, p, scaled(system, bandwidth_per_direction=factor)) <= before
        assert by_method(method, op, n, p, scaled(system, latency=1 / factor)) <= before


def scaled(system, **factors):
    """A system with some quantity of all of its links multiplied."""
    levels = []
    for level in system.levels:
        changes = {}
        for name, factor in factors.items():
            fact = getattr(level, name)
            unit = "B/s" if name == "bandwidth_per_direction" else "s"
            value = f"{fact.si * factor:.9g} {unit}"
            changes[name] = replace(fact, value=value, source=(), status="derived")
        levels.append(replace(level, **changes))
    return replace(system, levels=tuple(levels))


@given(st.sampled_from(GATHERS), st.integers(2**20, 2**31), st.sampled_from([2, 4]))
def test_pcie_between_hosts_is_far_below_nvlink(op, n, p):
    pcie, pairs = (systems.load(x) for x in ("8xa100-pcie-80gb", "a100-pcie-80gb-pairs"))
    slow, fast = one(op, n, p, pcie).seconds, one(op, n, p, pairs).seconds
    # Two ranks are a pair; four cross the host's bridges whatever the pairs have.
    assert slow > (4 if p == 2 and n > 2**24 else 1) * fast
    assert one(op, n, 4, pairs).seconds > one(op, n, 2, pairs).seconds


@given(st.sampled_from(GATHERS), sizes, st.permutations(range(6)))
def test_answers_do_not_depend_on_their_order(op, n, order):
    counts = np.array([2, 4, 8, 2, 16, 64])[list(order)]
    bytes_ = np.full(6, n)
    whole = predict_collective(Collective(op, bytes_, counts, dtype="fp16"), H100)
    for i, p in enumerate(counts):
        assert whole.one(i).as_dict() == {
            **one(op, n, int(p)).as_dict(), "assumptions": list(whole.assumptions),
        }  # fmt: skip


@given(st.sampled_from([*custom.libraries()]), sizes, st.sampled_from([2, 4, 8]))
def test_a_frameworks_own_kernel_gives_way_to_nccl(library, n, p):
    mine, theirs = one("all-reduce", n, p, A100, library=library), one("all-reduce", n, p, A100)
    own = custom.kernels(library, "all-reduce", route(A100, p), machine(A100).architecture)
    limit = max(most for _, most in own)
    assert (mine.protocol in ("pull", "push")) == (n < limit)
    if n >= limit:
        assert mine.seconds == theirs.seconds
    assert one("all-gather", n, p, A100, library=library).protocol not in ("pull", "push")
    assert one("all-reduce", 64, 3, A100, library=library).protocol not in ("pull", "push")


@given(st.sampled_from(libraries()), sizes, st.sampled_from([2, 4, 8]))
def test_an_eager_call_takes_as_long_as_its_host_and_copies_its_buffer(library, n, p):
    for system, call in ((H100, 20e-6), (GB200, 47e-6)):
        captured, eager = (
            one("all-reduce", n, p, system, library=library, eager=e) for e in (0, 1)
        )
        copied = captured.seconds + 2 * n / load(system.device).hbm_bytes_per_s
        assert eager.seconds >= max(copied, call) * (1 - 1e-9)
        if library in ("nccl", "vllm", "sglang"):  # one kernel, called as usual
            assert eager.seconds == pytest.approx(max(copied, call))
        assert eager.seconds == pytest.approx(sum(eager.terms.values()))


@given(ops, sizes, st.sampled_from([2, 4, 8]))
def test_a_link_of_more_latency_delays_every_start_and_hop(op, n, p):
    """A hop of LL crosses the link once, one of Simple three times, and a start three times."""
    later = scaled(H100, latency=2.0)
    for method in methods(op, p, H100):
        assert by_method(method, op, n, p, later) > by_method(method, op, n, p)
    links = route(later, p).inner
    more = {
        protocol: machine(later).hop(protocol, links)
        - machine(H100).hop(protocol, route(H100, p).inner)
        for protocol in ("LL", "LL128", "Simple", "pull", "push")
    }
    assert more == pytest.approx(
        {"LL": 0.6e-6, "LL128": 0.6e-6, "Simple": 1.8e-6, "pull": 1.2e-6, "push": 0.6e-6}
    )


@cases
def test_a_version_takes_the_newest_rules_that_it_has_reached(name, version, library):
    assert custom.spelt(name, version) == library


def test_a_kernel_that_pulls_from_one_peer_has_few_bytes_in_flight():
    """36 blocks x 512 threads x 16 B over a load's latency, far below 900 GB/s of NVLink 5."""
    two, eight = (
        by_method(Method("one-shot", "pull", 294912), "all-reduce", [2**22, 2**23], p, B200)
        for p in (2, 8)
    )
    latency = machine(B200).hop("pull", route(B200, 2).inner)
    assert 2**22 / (two[1] - two[0]) == pytest.approx(294912 / latency)
    assert 7 * 2**22 / (eight[1] - eight[0]) > 3 * 294912 / latency


def test_a_two_shot_kernel_that_pulls_gathers_from_one_peer_after_another():
    """Few bytes take a load's latency for each peer; a kernel that stores the sums takes none."""
    load = machine(H100).hop("pull", route(H100, 8).inner)
    for p in (4, 8):
        pulls, stores = (
            float(by_method(Method("two-shot", "pull", 294912, way), "all-reduce", 1024, p)[0])
            for way in ("pull", "push")
        )
        assert pulls - stores == pytest.approx((p - 1) * load, rel=0.01)


@pytest.mark.parametrize(("system", "p"), [(H100, 8), (H100, 4), (B200, 8), (B200, 4)])
def test_a_switch_adds_up_in_chunks_that_grow_with_the_buffer(system, p):
    """enqueue.cc: rounds of 64 KiB from 8 on, of 32 KiB from 2 on, of 16 channels (24 on B200)."""
    kind = machine(system).architecture
    channels = {"hopper": 16, "blackwell": 24}[kind]
    sizes = np.array([2.0, 8.0]) * channels * p * np.array([32768, 65536])
    assert list(nccl.nvls_chunks(route(system, p), sizes, kind)) == [32768, 65536]
    assert list(nccl.nvls_chunks(route(system, p), sizes - 1, kind)) == [16384, 32768]
    rounds = nccl.nvls_rounds(route(system, p), sizes, kind)
    assert list(rounds) == [2, 8]


@pytest.mark.parametrize("system", [H100, B200])
def test_a_library_that_copies_into_registered_memory_takes_longer(system):
    plain, copied = (
        float(by_method(Method("multimem", "pull", copies=n), "all-reduce", 2**24, 8, system)[0])
        for n in (0, 2)
    )
    moved = 2 * 2 * 2**24 / load(system.device).hbm_bytes_per_s
    assert copied - plain == pytest.approx(moved + 2 * default()["direct_start"])


@given(st.sampled_from(GATHERS), sizes, st.sampled_from([2, 4, 8]))
def test_a_device_out_of_the_fit_has_the_range_of_devices_left_out(op, n, p):
    seen, sibling = (one(op, n, p, systems.load(name)) for name in ("dgx-h100", "dgx-h200"))
    assert (seen.known.device, sibling.known.device) == ("fitted", "sibling")
    assert sibling.high_seconds / sibling.seconds == pytest.approx(
        sibling.seconds / sibling.low_seconds
    )


@given(ops, st.sampled_from([2, 4, 8, 16, 64]), st.sampled_from(SYSTEMS))
def test_nccl_chooses_what_it_expects_to_be_fastest(op, p, name):
    system = systems.load(name)
    assume(p <= system.devices and op != "all-to-all")
    bytes_ = 2.0 ** np.arange(6, 32)
    links, kind = route(system, p), machine(system).architecture
    found = predict_collective(Collective(op, bytes_, p, dtype="fp16"), system)
    had = nccl.methods(op, links, "fp16", kind)
    expected = np.min([nccl.expected(m, op, links, bytes_, kind) for m in had], axis=0)
    for i, n in enumerate(bytes_):
        method = Method(found.algorithm[i], found.protocol[i])
        assert nccl.expected(method, op, links, np.array([n]), kind) == expected[i]
    if links.inner.level.medium != "fabric":
        assert "LL128" not in found.protocol  # NCCL trusts it over NVLink alone


def test_a_switch_adds_up_only_some_types():
    halves, bytes_ = (
        predict_collective(Collective("all-reduce", 2**28, 8, dtype=x), H100)
        for x in ("fp16", "int8")
    )
    assert (halves.algorithm[0], bytes_.algorithm[0]) == ("nvls", "ring")
    assert halves.seconds < bytes_.seconds
    assert one("all-reduce", 2**28, 8, A100).algorithm == "ring"
    assert one("all-reduce", 2**28, 2).algorithm == "ring"


# Routes


@given(st.sampled_from([*SYSTEMS, "tpu-v5p-pod", "gb200-nvl72"]), st.integers(1, 600))
def test_a_ring_has_a_hop_for_each_rank_but_one(name, p):
    system = systems.load(name)
    uneven = p > system.devices or any(p % min(x.devices.value, p) for x in system.levels)
    if uneven:
        with pytest.raises(ProblemError, match="ranks"):
            route(system, p)
        return
    links = route(system, p)
    assert sum(item.ring_hops for item in links.crossings) == p - 1
    assert np.prod([item.fan for item in links.crossings], dtype=int) == p


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ((A100, 65537), "dgx-a100 joins 65,536 devices, not 65,537; ranks of 65536 would"),
        ((H100, 12), "ranks of 8, 16 or ranks per node of 1, 2, 3, 4, 6 would"),
        (
            (H100, 8, 16),
            "a node of dgx-h100 has 8 devices and there are 8 ranks",
        ),
        ((systems.load("a40-pairs"), 16), "a40-pairs joins 8 devices, not 16"),
        ((systems.load("a40-pairs"), 8, 1), "a40-pairs has no network, so that its 8 ranks are in"),
    ],
)
def test_ranks_that_a_system_does_not_have(given_, says):
    with pytest.raises(ProblemError, match="ranks") as error:
        route(*given_)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (("allreduce", 1, 2), "did you mean all-reduce"),
        (("all-reduce", -1, 2), "bytes must be at least 0, not -1"),
        (("all-reduce", 1, 0), "ranks must be at least 1, not 0"),
        (("all-reduce", 1, 2.5), "ranks must be whole numbers"),
        (("all-reduce", float("nan"), 2), "bytes must be numbers"),
        (("send-receive", 1, 4), "send-receive is between two ranks, not 4"),
        (("all-reduce", 1, 2, None, "fp17"), "no element type named 'fp17'"),
        (("all-reduce", 1, 2**21), "are more than 1,048,576"),
    ],
)
def test_what_is_no_collective(values, says):
    with pytest.raises((ProblemError, UnknownName)) as error:
        Collective(*values)
    assert says in str(error.value)


def test_arrays_of_two_lengths_and_an_unknown_library_are_refused():
    with pytest.raises(ProblemError, match="arrays of one length"):
        predict_collective(Collective("all-reduce", np.arange(3), np.array([2, 4])), H100)
    with pytest.raises(UnknownName, match="no library of collectives named 'mpi'"):
        predict_collective(Collective("all-reduce", 1, 2), H100, library="mpi")


# Constants


def test_at_most_ten_constants_are_fitted_and_all_lie_within_their_bounds():
    assert sum(item.fitted for item in shipped()) <= 10
    assert all(item.low <= item.prior <= item.high for item in shipped())


@pytest.mark.parametrize("name", [item.name for item in shipped()])
def test_every_constant_moves_some_prediction(name):
    values = {**default(), name: default()[name] * 1.1}
    moved = []
    for op, system, library in (
        ("all-reduce", H100, "nccl"), ("all-to-all", A100, "nccl"), ("all-gather", A100, "nccl"),
        ("all-reduce", A100, "vllm"), ("all-reduce", systems.load("8xl40s"), "nccl"),
        ("all-gather", H100, "nccl"),
    ):  # fmt: skip
        for p in (8, 64) if system.levels[-1].medium == "network" else (8,):
            problem = Collective(op, 4.0 ** np.arange(4, 16), p, dtype="fp16")
            a, b = (
                predict_collective(problem, system, library=library, constants=each).seconds
                for each in (default(), values)
            )
            moved.append(np.any(a != b))
    assert any(moved)
    assert priors().keys() == default().keys()


# Published figures


def test_bus_factors_of_eight_ranks():
    """coll.busfactor: nccl-tests, doc/PERFORMANCE.md."""
    assert [bus_factor(op, 8) for op in GATHERS] == [1.75, 0.875, 0.875, 0.875]


def test_what_nccl_expects_of_a_ring_of_eight():
    """coll.nccl.ringll: 6.6 + 14 · 0.6, 14 + 14 · 1.9, 8.4 + 14 · 3.4 us (NCCL tuning.cc)."""
    found = [
        nccl.expected(Method("ring", p), "all-reduce", route(A100, 8), np.zeros(1), "ampere-ga100")
        for p in nccl.PROTOCOLS
    ]
    assert np.ravel(found) * 1e6 == pytest.approx([15.0, 40.6, 56.0], rel=1e-3)


def test_bus_bandwidth_of_a_gibibyte_on_eight_a100():
    """coll.a100.ar.1g: 229.3 GB/s, fp32 (nccl-tests in vTrain's trace)."""
    problem = Collective("all-reduce", 2**30, 8, dtype="fp32")
    found = predict_collective(problem, A100).one(0).bus_bytes_per_s
    assert abs(log(found / 229.3e9)) < 0.05


@pytest.mark.parametrize(("system", "gigabytes"), [(A100, 215), (H100, 391)])
def test_bus_bandwidth_of_large_all_reduces(system, gigabytes):
    """coll.nv.expected: medians of 256 MiB and more, 8 ranks, of 8 and 16 bits."""
    found = [
        predict_collective(Collective("all-reduce", n, 8, dtype=dtype), system).bus_bytes_per_s[0]
        for n in (2**28, 2**29)
        for dtype in ("fp16", "int8")
    ]
    assert abs(log(np.median(found) / (gigabytes * 1e9))) < 0.08


@pytest.mark.parametrize(("system", "micros"), [(A100, 22.1), (H100, 15.7)])
def test_latency_of_small_all_reduces(system, micros):
    """coll.latency: medians of 2 KiB and less, 8 ranks."""
    found = [one("all-reduce", n, 8, system).seconds for n in (512, 1024, 2048)]
    assert abs(log(np.median(found) * 1e6 / micros)) < 0.15


def test_the_reason_for_each_vector_that_is_left_out():
    assert all(LEFT_OUT.values())
