"""Operators over several devices: laws of their seconds, and what the command line takes."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from draws import DRAWS, make
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from perfmodel.algorithms import Attention, Matmul, Problem, Rowwise
from perfmodel.algorithms.declaration import declare
from perfmodel.analysis.sweep import Grid, Sweep
from perfmodel.analysis.whatif import parse_change, whatif
from perfmodel.cli import run as cli
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import load, loads
from perfmodel.hardware.blocks import TAKEN
from perfmodel.hardware.levels import LINKS, OWN
from perfmodel.operators import load as operator
from perfmodel.operators.registry import names
from perfmodel.predict import predict, predict_arrays
from perfmodel.timing.kernel import term_names

H100, MI300X = load("h100-sxm"), load("mi300x")
# Kinds of the draws, and an axis that each can be split along.
AXES = {
    "decode": "g", "prefill": "q", "causal": "q", "window": "q", "split": "b", "flash 1": "g",
    "backward": "x", "both": "g", "matmul bf16": "k", "matmul fp8": "n", "batched": "m",
    "softmax": "n", "layernorm": "n", "norm backward": "n", "pointwise": "i",
}  # fmt: skip
draws = st.tuples(st.sampled_from(sorted(AXES)), st.integers(0, 2**32 - 1))
devices = st.sampled_from([H100, MI300X])


@given(draws, devices)
def test_one_device_is_no_mesh(draw, device):
    problem, schedule = make(*draw, 6)
    plain = DRAWS.run(problem, device, schedule)
    alone = DRAWS.run(problem, device, schedule, mesh={AXES[draw[0]]: (1, "peer")})
    if plain is None or alone is None:
        assert plain is alone
        return
    for i in range(len(plain)):
        assert alone.one(i) == plain.one(i)


def link(rate, latency="1 us", more=""):
    """The text of a further link of a spec."""
    return (
        "  further:\n    optics:\n      name: Optical ring\n"
        f'      bandwidth_per_direction: {{value: "{rate}", source: [formula], status: derived}}\n'
        f'      latency: {{value: "{latency}", source: [formula], status: derived}}\n{more}'
    )


def with_link(device, *said):
    return loads(device.dump().replace("\nlinks:\n", f"\nlinks:\n{link(*said)}"))


def seconds_of(problem, device, axis, ranks, level="peer", **more):
    return predict(problem, device, mesh={axis: (ranks, level)}, **more)


@given(st.integers(64, 4096), st.integers(64, 4096), st.integers(64, 8192), st.integers(2, 16))
def test_a_row_parallel_product_is_its_shard_and_an_all_reduce(m, n, k, p):
    found = seconds_of(Matmul(m, n, k), H100, "k", p)
    shard = predict(Matmul(m, n, -(-k // p)), H100)
    (crossing,) = found.exchanges
    taken = 2 * (p - 1) * 1e-6 + crossing.sent_bytes / 450e9
    assert crossing.sent_bytes == pytest.approx(2 * m * n * 2 * (p - 1) / p)
    assert crossing.seconds == found.terms["peer"] == pytest.approx(taken)
    assert found.seconds == pytest.approx(shard.seconds + taken)
    assert found.flops == shard.flops
    assert found.footprint_bytes == shard.footprint_bytes
    assert found.bytes == {**shard.bytes, "peer": crossing.sent_bytes}


@given(st.integers(64, 4096), st.integers(64, 4096), st.integers(2, 16))
def test_a_column_parallel_product_waits_only_to_be_whole(m, n, p):
    found = seconds_of(Matmul(m, n, 512), H100, "n", p)
    shard = predict(Matmul(m, -(-n // p), 512), H100)
    assert found.exchanges == ()
    assert found.seconds == shard.seconds
    assert found.low_seconds == shard.low_seconds
    whole = seconds_of(Matmul(m, n, 512), H100, "n", p, stored={"C": "whole"})
    assert [x.kind for x in whole.exchanges] == ["all-gather"]
    assert whole.seconds == pytest.approx(shard.seconds + whole.terms["peer"])


@given(draws, devices, st.integers(2, 4))
def test_shards_together_compute_the_whole_at_least(draw, device, ranks):
    problem, schedule = make(*draw, 6)
    axis = AXES[draw[0]]
    if np.min(problem.sizes()[axis]) < ranks:
        return
    plain = DRAWS.run(problem, device, schedule)
    found = DRAWS.run(problem, device, schedule, mesh={axis: (ranks, "peer")})
    if plain is None or found is None:
        return
    useful = np.maximum(plain.useful_flops, 1)
    assert np.all(ranks * found.useful_flops >= 0.999 * plain.useful_flops - useful * 1e-9)
    assert np.all(found.footprint_bytes <= plain.footprint_bytes)
    for item in found.exchanges:
        assert np.all(item.sent_bytes >= 0)
    waits = sum((x.seconds for x in found.exchanges), np.zeros(len(found)))
    assert np.all(found.seconds >= waits)


@examples(0.6)
@given(st.floats(1, 900), st.floats(1.01, 20), st.sampled_from(["k", "q", "x"]))
def test_a_faster_link_is_never_slower(rate, times, axis):
    problem = Matmul(512, 512, 512) if axis == "k" else Attention(1, 8, 8, 512, 512, 64)
    stored = {"kv": "x"} if axis == "q" else {}
    slow, fast = (
        seconds_of(problem, with_link(H100, f"{r} GB/s"), axis, 4, "optics", stored=stored)
        for r in (rate, rate * times)
    )
    assert fast.seconds <= slow.seconds
    assert fast.terms["optics"] < slow.terms["optics"]
    assert fast.bytes == slow.bytes


def test_a_ring_hides_under_the_kernel_as_far_as_that_reaches():
    problem = Attention(1, 32, 32, 16384, 16384, 128)
    for rate in ("900 GB/s", "10 GB/s"):
        device = with_link(H100, rate, "1 ns")
        found = seconds_of(problem, device, "q", 4, "optics", stored={"kv": "x"})
        kernel = seconds_of(problem, device, "q", 4, "optics")
        ring = sum(x.seconds for x in found.exchanges)
        assert {x.kind for x in found.exchanges} == {"ring"}
        assert kernel.exchanges == ()
        exposed = max(ring - 0.75 * own(kernel), 0)
        assert found.seconds == pytest.approx(kernel.seconds + exposed)
        assert max(ring, kernel.seconds) <= found.seconds * (1 + 1e-9) <= ring + kernel.seconds
        assert found.footprint_bytes == kernel.footprint_bytes - 2 * 0.5 * 2 * 32 * 16384 * 128
        if rate.startswith("900"):
            assert found.seconds == kernel.seconds
        else:
            assert found.seconds > 1.2 * kernel.seconds


def own(found):
    """Seconds of the kernels alone."""
    return found.seconds - found.terms["launch"] - found.terms["included"]


def test_arrays_are_each_as_by_itself():
    sizes = np.array([512, 4096, 777])
    batch = np.array([2, 6, 3])
    for problem, mesh in (
        (Matmul(sizes, 1024, 2048), {"k": (4, "peer")}),
        (Matmul(sizes, 1024, 2048, batch), {"b": (2, "peer"), "k": (2, "network")}),
        (Attention(batch, 16, 8, sizes, sizes, 128), {"g": (2, "peer"), "x": (2, "network")}),
    ):
        table = predict_arrays(problem, H100, mesh=mesh)
        for i in range(3):
            one = {k: v[i].item() if isinstance(v, np.ndarray) else v
                   for k, v in problem.values().items()}  # fmt: skip
            alone = predict(replace(problem, **one), H100, mesh=mesh)
            assert table.one(i).seconds == pytest.approx(alone.seconds, rel=1e-12)
            assert table.one(i).exchanges == alone.exchanges
            assert table.one(i).bytes == pytest.approx(alone.bytes)


def test_two_axes_are_two_links_and_the_shard_of_both():
    both = predict(Matmul(1024, 1024, 4096), H100, mesh={"m": (2, "network"), "k": (4, "peer")})
    (crossing,) = both.exchanges
    assert (crossing.level, crossing.tensor_bytes) == ("peer", 2 * 512 * 1024)
    assert both.flops["matrix"] == 2 * 512 * 1024 * 1024
    assert "network" not in both.terms
    turned = predict(Matmul(1024, 1024, 4096), H100, mesh={"k": (4, "peer"), "m": (2, "network")})
    assert turned.seconds == both.seconds  # what stands outside is a name


def test_data_parallel_forward_exchanges_nothing_and_its_gradient_all_reduces():
    forward = seconds_of(Attention(8, 16, 8, 1024, 1024, 64), H100, "batch", 4)
    assert forward.exchanges == ()
    gradient = Matmul(1024, 1024, 8192, gradient=True)  # dW: the tokens are what is summed
    assert [x.kind for x in seconds_of(gradient, H100, "k", 4).exchanges] == ["all-reduce"]
    norm = Rowwise("rmsnorm", 4096, 1024, direction="bwd")
    assert [x.tensor for x in seconds_of(norm, H100, "rows", 4).exchanges] == ["dgamma"]
    both = Attention(8, 16, 8, 1024, 1024, 64, direction="fwdbwd")
    tensors = [x.tensor for x in seconds_of(both, H100, "x", 4).exchanges]
    assert tensors == ["softmax statistics", "O", "dQ"]


@pytest.mark.parametrize(
    "name", [n for n in names() if n not in ("attention", "gemm", "mla-expanded")]
)
def test_every_operator_splits_along_some_axis(name):
    sizes = {
        "grouped-gemm": {"m": 512, "n": 256, "k": 256, "batch": 8},
        "conv": {"batch": 2, "height": 4, "channels": 64},
    }.get(name, {"rows": 256, "cols": 256} if _rows(name) else {})
    problem = operator(name).problem(**sizes)
    whole, found = predict(problem, H100), 0
    for axis, extent in problem.sizes().items():
        if extent < 2:
            continue
        try:
            two = seconds_of(problem, H100, axis, 2)
        except ProblemError:
            continue
        found += 1
        assert two.footprint_bytes <= whole.footprint_bytes * 1.6
        assert all(x.sent_bytes > 0 for x in two.exchanges)
        if not _rows(name):
            break  # the search takes seconds; one axis shows that it is reached
    assert found


def _rows(name):
    return "rows" in operator(name).needed


@pytest.fixture(scope="module")
def small_mlp():
    return operator("mlp").problem(tokens=512, hidden=512, ffn=2048)


def test_declared_algorithms_end_their_kernels_where_devices_exchange(small_mlp):
    outer = seconds_of(small_mlp, H100, "f", 4)
    assert [(x.tensor, x.kind) for x in outer.exchanges] == [("Y", "all-reduce")]
    inner = seconds_of(small_mlp, H100, "d", 4)
    assert [(x.tensor, x.kind) for x in inner.exchanges] == [("U", "all-reduce")]
    assert inner.schedule == "up | activate | down"
    with pytest.raises(ProblemError, match="write --schedule unfused"):
        seconds_of(small_mlp, H100, "d", 4, schedule="fused")


def test_declarations_of_library_operators_have_their_kernels_by_any_name():
    product = operator("matmul").problem(m=1024, n=1024, k=4096)
    found = seconds_of(product, H100, "k", 4)
    assert found.implementation == "cublas"
    assert found.seconds == seconds_of(Matmul(1024, 1024, 4096), H100, "k", 4).seconds
    renamed = declare(
        name="renamed",
        parameters={"m": 1024, "n": 1024, "k": 4096},
        axes={"i": "m", "j": "n", "l": "k"},
        tensors={"A": ["i", "l"], "B": ["l", "j"], "C": {"axes": ["i", "j"], "element": "output"}},
        steps={"multiply": {"contraction": ["A", "B"], "to": "C", "over": "l"}},
        outputs="C",
        operator={"name": "gemm", "m": "m", "n": "n", "k": "k"},
    )
    mine = seconds_of(_problem(renamed), H100, "l", 4)
    assert mine.exchanges == found.exchanges
    assert (mine.implementation, mine.seconds) == ("cublas", found.seconds)
    heads = operator("gqa").problem(heads=32, kv_heads=8, seq=1024)
    ours = seconds_of(Attention(1, 32, 8, 1024, 1024, 128), H100, "heads", 4)
    assert seconds_of(heads, H100, "kv_heads", 4).seconds == ours.seconds
    # No size of attention is the query heads of a group: the split is searched.
    assert seconds_of(heads, H100, "r", 4).implementation == "mapped"


def _problem(declaration) -> Problem:
    from perfmodel.algorithms.declaredproblem import DeclaredProblem

    return DeclaredProblem(declaration, {})


class TestAddedLink:
    """A row-parallel product over a link that is one entry of a spec file."""

    PRODUCT = Matmul(4096, 4096, 8192)

    def test_over_the_link_of_the_spec(self):
        found = predict(self.PRODUCT, H100, mesh={"k": (2, "nvlink")})
        shard = predict(Matmul(4096, 4096, 4096), H100)
        whole = 2 * 4096 * 4096
        (crossing,) = found.exchanges
        assert (crossing.kind, crossing.tensor, crossing.level, crossing.ranks) == (
            "all-reduce", "C", "peer", 2,
        )  # fmt: skip
        assert crossing.tensor_bytes == crossing.sent_bytes == whole
        assert crossing.seconds == pytest.approx(2e-6 + whole / 450e9)
        assert found.seconds == pytest.approx(shard.seconds + crossing.seconds)

    def test_over_one_more_entry_of_a_copy(self, tmp_path, capsys):
        spec = tmp_path / "mine.yaml"
        text = H100.dump().replace("slug: h100-sxm\n", "slug: mine\n")
        text = text.replace("\nlinks:\n", f"\nlinks:\n{link('100 GB/s', '3 us')}")
        spec.write_text(text, encoding="utf-8")
        device = load(str(spec))
        assert device.level("optics").label == "Optical ring"
        found = predict(self.PRODUCT, device, mesh={"k": (2, "optics")})
        shard = predict(Matmul(4096, 4096, 4096), device)
        whole = 2 * 4096 * 4096
        assert found.terms["optics"] == pytest.approx(6e-6 + whole / 100e9)
        assert found.bytes["optics"] == whole
        assert "peer" not in found.terms
        assert found.seconds == pytest.approx(shard.seconds + found.terms["optics"])
        assert found.limiter == "optics"
        given_ = ["predict", "gemm", "-d", str(spec), "-m", "4k", "-k", "8k"]
        assert cli([*given_, "--mesh", "k=2@optics", "--format", "json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)["predictions"]
        assert row["terms_us"]["optics"] == pytest.approx(found.terms["optics"] * 1e6)
        assert row["exchanges"] == [found.exchanges[0].as_dict()]
        assert cli([*given_, "--mesh", "k=2@optical"]) == 0
        assert "exchange: all-reduce of C over optics, 2 devices" in capsys.readouterr().out
        assert cli(["hardware", "validate", str(spec)]) == 0
        capsys.readouterr()
        assert cli(["hardware", "show", str(spec)]) == 0
        assert "level optics: Optical ring, 100 GB/s, 3.00 µs" in capsys.readouterr().out

    def test_a_spec_says_how_many_devices_a_link_joins(self):
        four = "      devices: {value: 4, source: [formula], status: derived}\n"
        device = with_link(H100, "100 GB/s", "1 us", four)
        assert device.level("optics").devices == 4
        assert loads(device.dump()) == device
        assert predict(self.PRODUCT, device, mesh={"k": (4, "optics")}).seconds > 0
        for mesh in ({"k": (5, "optics")}, {"k": (2, "optics"), "n": (4, "optics")}):
            with pytest.raises(
                ProblemError, match=r"Optical ring \(optics\) of .* joins 4 devices"
            ):
                predict(self.PRODUCT, device, mesh=mesh)

    def test_operands_can_be_placed_behind_it_too(self):
        device = with_link(H100, "100 GB/s")
        found = predict(Matmul(16, 4096, 4096), device, place={"weights": "optics"})
        assert found.terms["optics"] >= 2 * 4096**2 / 100e9

    @pytest.mark.parametrize("name", ["peer", "matrix", "Optics", "2nd", "a" * 31])
    def test_names_of_levels_and_terms_are_taken(self, name):
        from perfmodel.errors import SpecError

        text = H100.dump().replace("\nlinks:\n", f"\nlinks:\n{link('1 GB/s')}")
        with pytest.raises(SpecError, match="names no further link"):
            loads(text.replace("    optics:\n", f"    {name}:\n"))

    def test_every_level_and_term_is_taken(self):
        terms = {*term_names(OWN), "gap", "launch", "included"}
        assert terms | {*OWN, *LINKS} <= set(TAKEN)


@pytest.mark.parametrize(
    ("mesh", "stored", "error", "said"),
    [
        ({"kk": (2, "peer")}, {}, UnknownName, "no axis of gemm named 'kk'; did you mean k"),
        ({"k": (2, "per")}, {}, UnknownName, "no link of h100-sxm named 'per'; did you mean peer"),
        ({"k": (2, "hbm")}, {}, UnknownName, "no link of h100-sxm named 'hbm'"),
        ({"k": (0, "peer")}, {}, ProblemError, "k is split over 0 devices"),
        ({"k": (2.5, "peer")}, {}, ProblemError, "k is split over 2.5 devices"),
        ({"k": 2}, {}, ProblemError, "k is split by its devices and their link"),
        ({"k": (513, "peer")}, {}, ProblemError, "k has an extent of 512, too short"),
        ({"b": (1, "peer"), "batch": (1, "peer")}, {}, ProblemError, "axis b is split twice"),
        ({"k": (2, "peer")}, {"D": "n"}, UnknownName, "no tensor named 'D'"),
        ({"k": (2, "peer")}, {"C": "k"}, ProblemError, "C has no axis k; it has b, m, n"),
        ({"k": (2, "peer")}, {"C": "z"}, UnknownName, "no axis of gemm named 'z'"),
    ],
)
def test_what_cannot_be_split_is_one_line(mesh, stored, error, said):
    with pytest.raises(error, match=said) as caught:
        predict(Matmul(512, 512, 512), H100, mesh=mesh, stored=stored)
    assert "\n" not in str(caught.value)


def test_kernels_that_cannot_be_cut_are_refused():
    causal = Attention(1, 8, 8, 512, 512, 64, causal=True)
    with pytest.raises(ProblemError, match="x cannot be split over devices; split q, heads or"):
        seconds_of(causal, H100, "x", 2)
    with pytest.raises(ProblemError, match="splitting d exchanges S in the middle of a kernel"):
        seconds_of(causal, H100, "d", 2)
    with pytest.raises(ProblemError, match="splitting x exchanges softmax statistics"):
        seconds_of(replace(causal, causal=False), H100, "x", 2, schedule="standard")
    with pytest.raises(ProblemError, match="splitting c exchanges softmax statistics"):
        seconds_of(Rowwise("softmax", 64, 64), H100, "cols", 2)
    with pytest.raises(ProblemError, match="reads all its inputs for each output; split rows"):
        seconds_of(Rowwise("pointwise", 64, 64, inputs=2), H100, "j", 2)
    decode = Attention(4, 8, 8, 1, 8192, 64, causal=True)
    assert [x.tensor for x in seconds_of(decode, H100, "seq_kv", 2).exchanges] == [
        "softmax statistics", "O",
    ]  # fmt: skip


def test_a_spec_without_the_rate_of_a_link_says_so():
    with pytest.raises(
        ProblemError, match="no bandwidth of PCIe 5 x128, so nothing can cross host"
    ):
        seconds_of(Rowwise("softmax", 64, 64), load("epyc-9654"), "rows", 2, "host")


def test_two_links_of_one_word_ask_for_the_level():
    device = with_link(H100, "100 GB/s")
    text = device.dump().replace("name: Optical ring", "name: NVLink 9")
    with pytest.raises(ProblemError, match="nvlink is peer and optics of"):
        seconds_of(Matmul(64, 64, 64), loads(text), "k", 2, "nvlink")


def test_a_prediction_says_what_was_taken_and_widens_its_range():
    found = seconds_of(Matmul(4096, 4096, 8192), H100, "k", 2)
    part, crossing = found.assumptions[-2:]
    assert part.startswith("one of 2 devices, k over 2: operations, bytes and memory are those of")
    assert crossing.startswith(
        "exchanges cross NVLink 4 (peer) at its documented 450 GB/s, 1.00 µs"
    )
    assert found.high_seconds > 1.9 * found.seconds
    both = seconds_of(Matmul(64, 4096, 8192), H100, "k", 2, place={"weights": "host"})
    assert sum("which no measured run was compared with" in x for x in both.assumptions) == 2
    assert {"host", "peer"} <= both.terms.keys()


def test_more_devices_take_ever_less_of_the_kernel_and_ever_more_of_the_link():
    found = [seconds_of(Matmul(4096, 4096, 32768), H100, "k", p) for p in (2, 4, 8, 16)]
    for fewer, more in pairwise(found):
        assert more.terms["peer"] > fewer.terms["peer"]
        assert more.terms["matrix"] < fewer.terms["matrix"]


GIVEN = ("predict", "gemm", "-d", "h100-sxm", "-m", "512", "-n", "512", "-k", "512", "--mesh")


def test_commands_take_meshes(capsys):
    assert cli([*GIVEN, "k=2@nvlink", "--mesh", "m=2@nic", "--stored", "C=n", "--terms"]) == 0
    out = capsys.readouterr().out
    assert "exchange: reduce-scatter of C over peer, 2 devices" in out
    assert "\nmemory  peer " in out
    assert cli([*GIVEN, "k=2@peer", "--format", "csv"]) == 0
    assert "kind=all-reduce tensor=C level=peer ranks=2" in capsys.readouterr().out


def test_what_if_the_link_were_faster():
    problem, mesh = Matmul(4096, 4096, 8192), {"k": (2, "nvlink")}
    found = whatif(problem, H100, [parse_change("NVLink x2")], mesh=mesh, stored={"C": "n"})
    now = predict(problem, H100, mesh=mesh, stored={"C": "n"})
    assert found.now.seconds[0] == now.seconds
    (effect,) = found.effects
    assert effect.after.seconds[0] < now.seconds
    of_peer = {item.quantity.of_level: item for item in found.sensitivities}["peer"]
    assert of_peer.elasticity[0] < 0
    alone = whatif(problem, H100)
    assert "peer" not in {item.quantity.of_level for item in alone.sensitivities}


def test_a_sweep_over_devices_is_each_prediction(capsys):
    pytest.importorskip("pyarrow")
    command = ["sweep", *GIVEN[1:], "k=2@nvlink", "--stored", "C=n", "-k", "8k,1,64k"]
    assert cli([*command, "--where", "1 < 2", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert "too short for 2 devices" in next(row["reason"] for row in rows if row["k"] == 1)
    for row in (row for row in rows if row["k"] > 1):
        problem = Matmul(row["m"], row["n"], row["k"])
        one = predict(problem, H100, mesh={"k": (2, "nvlink")}, stored={"C": "n"})
        assert row["time_us"] == one.seconds * 1e6
        assert row["bytes_peer"] == one.bytes["peer"] > 0


def test_sweeps_over_other_devices_are_other_sweeps():
    sizes = {name: np.array([4096]) for name in "mnk"} | {"batch": np.array([1])}
    grid = Grid(operator("gemm"), sizes, {"dtype": ("bf16",)})
    plain = Sweep(grid, (H100,)).manifest()
    split = Sweep(grid, (H100,), mesh={"k": (2, "peer")}).manifest()
    assert not {"mesh", "stored"} & plain.keys()
    assert split == plain | {"mesh": {"k": [2, "peer"]}}


def test_a_shard_stands_under_the_roofs(capsys, tmp_path):
    chart = tmp_path / "roof.svg"
    assert cli(["roofline", *GIVEN[1:], "k=2@nvlink", "-o", str(chart)]) == 0
    assert chart.stat().st_size > 0
