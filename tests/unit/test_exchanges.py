"""What crosses links by the counting rule: laws, a walk device by device, and the known table."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul, library
from perfmodel.algorithms.attention import backward, forward
from perfmodel.algorithms.matmul import matmul
from perfmodel.count import count
from perfmodel.count.exchanges import exchanges
from perfmodel.elements import element
from perfmodel.errors import ProblemError
from perfmodel.schedules.mesh import across, over
from perfmodel.schedules.schedule import Kernel, Loop, Schedule

BF16 = Matmul(1, 1, 1).elements()
TILES = (Loop("m", 16, True), Loop("n", 16, True), Loop("k", 8))
PRODUCT = Schedule("tiled", matmul(), (Kernel("matmul", ("multiply",), TILES),))
FP32 = dict.fromkeys(("data", "kv", "output", "gradient", "statistic", "accumulator", "weights"),
                     element("fp32"))  # fmt: skip
sizes = st.fixed_dictionaries({axis: st.integers(1, 24) for axis in "bmnk"})
meshes = st.dictionaries(st.sampled_from("bmnk"), st.integers(1, 5), max_size=3)


def product_over(split, extents, stored=None, elements=BF16):
    """Exchanges of a product whose axes are split, each over a mesh axis of its own name."""
    named = {axis: (ranks, axis) for axis, ranks in split.items()}
    return exchanges(over(PRODUCT, extents, named), extents, elements, stored or {})


def shard(extent, ranks, rank):
    """The rank-th of `ranks` shards that differ by one at most."""
    return range(extent * rank // ranks, extent * (rank + 1) // ranks)


def apart(tensor, split, extents):
    """Elements that all devices hold together, less those that there are: counted one by one."""
    held = Counter()
    for ranks in product(*(range(n) for n in split.values())):
        mine = dict(zip(split, ranks, strict=True))
        spans = [
            shard(extents[a], split[a], mine[a]) if a in mine else range(extents[a])
            for a in tensor.axes
        ]
        held.update(product(*spans))
    return sum(held.values()) - len(held)


@given(sizes, meshes)
def test_partial_sums_are_what_devices_hold_beyond_one_copy(extents, split):
    extents |= {a: max(extents[a], ranks) for a, ranks in split.items()}
    found = product_over(split, extents, {("C", "k"): "m"})
    devices = prod(split.values())
    replicas = {a: n for a, n in split.items() if a != "k"}
    crossing = apart(matmul().tensors["C"], split, extents)
    assert sum(x.sent_bytes for x in found) * devices == pytest.approx(2 * crossing)
    assert {x.kind for x in found} == ({"reduce-scatter"} if split.get("k", 1) > 1 else set())
    assert not apart(matmul().tensors["C"], replicas, extents)


@given(sizes, meshes, st.sampled_from("AB"))
def test_a_gather_brings_what_devices_use_beyond_their_shards(extents, split, name):
    extents |= {a: max(extents[a], ranks) for a, ranks in split.items()}
    tensor = matmul().tensors[name]
    free = [a for a in split if a not in tensor.axes]
    found = product_over(split, extents, {(name, a): "b" for a in free} | {("C", "k"): "m"})
    crossing = apart(tensor, split, extents)
    gathered = [x for x in found if x.tensor == name]
    devices = prod(split.values())
    assert sum(x.sent_bytes for x in gathered) * devices == pytest.approx(2 * crossing)
    assert {x.kind for x in gathered} <= {"all-gather"}
    streamed = product_over(split, extents, dict.fromkeys([(name, a) for a in free], "k"))
    rings = [x for x in streamed if x.tensor == name]
    assert [x.sent_bytes for x in rings] == [x.sent_bytes for x in gathered]
    assert {x.kind for x in rings} <= {"ring"}


@given(st.integers(1, 4000), st.integers(1, 4000), st.integers(2, 4000), st.integers(2, 72))
def test_a_row_parallel_product_all_reduces_its_result(m, n, k, p):
    extents = {"b": 1, "m": m, "n": n, "k": k}
    (found,) = product_over({"k": p}, extents)
    assert (found.kind, found.tensor, found.tensor_bytes) == ("all-reduce", "C", 2 * m * n)
    assert found.sent_bytes == pytest.approx(2 * m * n * 2 * (p - 1) / p, rel=1e-15)
    assert found.steps == 2 * (p - 1)
    (half,) = product_over({"k": p}, extents, {("C", "k"): "n"})
    assert (half.kind, 2 * half.sent_bytes) == ("reduce-scatter", found.sent_bytes)


@given(sizes, st.integers(2, 9))
def test_a_column_parallel_product_moves_its_result_only_to_have_it_whole(extents, p):
    assert product_over({"n": p}, extents) == ()
    (found,) = product_over({"n": p}, extents, {("C", "n"): None})
    whole = 2 * extents["b"] * extents["m"] * extents["n"]
    assert (found.kind, found.tensor_bytes) == ("all-gather", whole)
    assert found.sent_bytes == pytest.approx(whole * (p - 1) / p)
    (anew,) = product_over({"n": p}, extents, {("C", "n"): "m"})
    assert (anew.kind, anew.sent_bytes) == ("all-to-all", pytest.approx(found.sent_bytes / p))


@given(sizes, st.sampled_from("bmn"), st.integers(2, 9))
def test_what_no_result_sums_moves_nothing_in_the_forward(extents, axis, p):
    assert product_over({axis: p}, extents) == ()


@given(sizes, st.sampled_from("bmnk"))
def test_one_rank_is_no_mesh(extents, axis):
    assert product_over({axis: 1}, extents) == ()
    alone = over(PRODUCT, extents, {axis: (1, "link")})
    plain, found = (count(x, extents, BF16) for x in (PRODUCT, alone))
    assert (found.matrix_flops, found.memory_bytes) == (plain.matrix_flops, plain.memory_bytes)
    assert [k.l2 for k in found.kernels] == [k.l2 for k in plain.kernels]


@given(sizes, meshes)
def test_a_device_computes_its_largest_shard(extents, split):
    named = {axis: (ranks, axis) for axis, ranks in split.items()}
    whole = count(PRODUCT, extents, BF16).matrix_flops
    one = count(over(PRODUCT, extents, named), extents, BF16)
    devices = prod(split.values())
    assert devices * one.matrix_flops >= whole
    if all(extents[a] % n == 0 for a, n in split.items()):
        assert devices * one.matrix_flops == whole
    own = extents | {a: -(-extents[a] // n) for a, n in split.items()}
    assert one.matrix_flops == 2 * prod(own.values())
    assert one.bytes_at("l2") == count(PRODUCT, own, BF16).bytes_at("l2")
    assert one.memory_bytes == count(PRODUCT, own, BF16).memory_bytes


def test_sums_go_through_shards_of_the_nearer_link():
    # 2 (G-1)/G n inside the node, 2 (N-1)/N n/G across: G = 8 over k, N = 4 over the blocks of it.
    extents = {"b": 1, "m": 64, "n": 64, "k": 64}
    loops = (across("k", 64, 4, "network"), across("k", 16, 8, "peer"))
    kernel = Kernel("matmul", ("multiply",), (*loops, *TILES))
    inner, outer = exchanges(Schedule("both", matmul(), (kernel,)), extents, BF16)
    n = 2 * 64 * 64
    assert (inner.mesh, inner.tensor_bytes, inner.sent_bytes) == ("peer", n, 2 * 7 / 8 * n)
    assert (outer.mesh, outer.tensor_bytes, outer.sent_bytes) == ("network", n / 8, n / 8 * 1.5)
    assert (
        count(Schedule("both", matmul(), (kernel,)), extents, BF16).matrix_flops == 2 * 64**3 / 32
    )


def test_arrays_and_symbols_are_the_same_rule():
    sympy = pytest.importorskip("sympy")
    letters = m, n, k, p = sympy.symbols("m n k p", positive=True, integer=True)
    values = np.array([[7, 5, 12, 2], [640, 96, 300, 8], [1, 1, 9, 3]])
    symbolic = product_over({"k": p}, {"b": 1, "m": m, "n": n, "k": k})
    arrays = product_over(
        {"k": values[:, 3]}, {"b": 1, **dict(zip("mnk", values.T[:3], strict=True))}
    )
    for i, row in enumerate(values.tolist()):
        (one,) = product_over({"k": row[3]}, {"b": 1, **dict(zip("mnk", row, strict=False))})
        at = dict(zip(letters, row, strict=True))
        assert float(symbolic[0].sent_bytes.subs(at)) == one.sent_bytes
        assert arrays[0].sent_bytes[i] == one.sent_bytes
        assert arrays[0].tensor_bytes[i] == one.tensor_bytes


ATTENTION = ("scores", "softmax", "values")
BACKWARD = tuple(step.name for step in backward().steps)


def attention_over(split, extents, stored=None, algorithm=None, fused=True, elements=FP32):
    algorithm = algorithm or forward(statistics=())
    names = [step.name for step in algorithm.steps]
    parts = [tuple(names)] if fused else [(name,) for name in names]
    kernels = tuple(
        Kernel(part[0], part, (Loop("q", 64, True), Loop("x", 64)) if fused else ())
        for part in parts
    )
    named = {axis: (ranks, axis) for axis, ranks in split.items()}
    placed = over(Schedule("any", algorithm, kernels), extents, named)
    return exchanges(placed, extents, elements, stored or {})


HEADS = {"b": 2, "g": 8, "r": 4, "q": 128, "x": 256, "d": 64, "e": 32}


@pytest.mark.parametrize("axis", ["b", "g"])
@pytest.mark.parametrize("algorithm", [forward(), backward()])
def test_attention_split_by_sequences_or_heads_moves_nothing(axis, algorithm):
    assert attention_over({axis: 2}, HEADS, algorithm=algorithm) == ()


def test_attention_split_by_keys_combines_partial_outputs():
    # The output, and a maximum and a sum of each row.
    statistics, output = attention_over({"x": 4}, HEADS)
    rows = 2 * 8 * 4 * 128
    assert (statistics.tensor, statistics.kind) == ("softmax statistics", "all-reduce")
    assert statistics.tensor_bytes == 4 * 2 * rows
    assert (output.tensor, output.kind) == ("O", "all-reduce")
    assert output.tensor_bytes == 4 * rows * 32
    assert not statistics.within
    assert attention_over({"x": 4}, HEADS, fused=False)[0].within


def test_attention_backward_sums_the_gradients_that_lose_the_axis():
    def kinds(axis):
        found = attention_over({axis: 2}, HEADS, algorithm=backward())
        return {(x.tensor, x.kind) for x in found}

    assert kinds("q") == kinds("r") == {("dK", "all-reduce"), ("dV", "all-reduce")}
    assert kinds("x") == {("dQ", "all-reduce")}


def test_a_sum_that_the_same_kernel_reads_cuts_it():
    (found,) = attention_over({"d": 2}, HEADS)
    assert (found.tensor, found.within) == ("S", True)
    (apart,) = attention_over({"d": 2}, HEADS, fused=False)
    assert (apart.tensor, apart.within, apart.sent_bytes) == ("S", False, found.sent_bytes)


def test_kernels_hand_over_in_shards_or_gather():
    case = library.load("mlp").at(tokens=64, hidden=32, ffn=128)
    steps = [step.name for step in case.algorithm.steps]
    kernels = [Kernel(name, (name,), ()) for name in steps]
    whole = over(Schedule("apart", case.algorithm, tuple(kernels)), case.sizes, {"f": (4, "t")})
    found = exchanges(whole, case.sizes, case.elements)
    assert [(x.tensor, x.kind) for x in found] == [("Y", "all-reduce")]
    # The last kernel has all of f on every device: what came in shards is gathered.
    mixed = Schedule("mixed", case.algorithm, (*whole.kernels[:2], kernels[2]))
    (gathered,) = exchanges(mixed, case.sizes, case.elements)
    assert (gathered.tensor, gathered.kind, gathered.kernel) == ("A", "all-gather", "down")
    assert gathered.sent_bytes == 2 * 64 * 128 * 3 / 4
    assert count(mixed, case.sizes, case.elements).kernels[2].matrix_flops == 2 * 64 * 128 * 32


def test_a_convolution_split_by_rows_sends_the_edges_of_its_shards():
    case = library.load("conv").at(batch=2, height=16, width=8, taps=3, channels=4, filters=8)
    kernel = Kernel("conv", ("multiply",), ())
    split = over(Schedule("conv", case.algorithm, (kernel,)), case.sizes, {"p": (4, "rows")})
    (halo,) = exchanges(split, case.sizes, case.elements)
    # Two rows of 8 + 2 pixels of 4 channels in 2 images, to one neighbour.
    assert (halo.kind, halo.tensor, halo.sent_bytes, halo.steps) == (
        "halo", "X", 2 * 2 * 10 * 4 * 2, 1,
    )  # fmt: skip


class TestParallelism:
    """A layer's traffic by each kind of parallelism, in symbols: the published table."""

    @pytest.fixture(autouse=True)
    def _symbols(self):
        sympy = pytest.importorskip("sympy")
        self.T, self.h, self.f, self.t, self.s, self.g, self.r, self.d, self.b = sympy.symbols(
            "T h f t s g r d b", positive=True, integer=True
        )
        self.same = lambda a, b: sympy.simplify(a - b) == 0

    def sent(self, axis, m, n, k, **stored):
        """(kind, bytes sent) of a 16-bit product C[m,n] whose `axis` is split over t devices."""
        given_ = {(name, axis): lies for name, lies in stored.items()}
        extents = {"b": 1, "m": m, "n": n, "k": k}
        bare = Schedule("bare", matmul(), (Kernel("matmul", ("multiply",), ()),))
        placed = over(bare, extents, {axis: (self.t, axis)})
        return [(x.kind, x.sent_bytes) for x in exchanges(placed, extents, BF16, given_)]

    def layer(self, found, kind, times, whole):
        """Whether a layer's exchanges are `times` of a kind, each of `whole` bytes."""
        t = self.t
        ways = 2 if kind == "all-reduce" else 1
        assert [name for name, _ in found] == [kind] * times
        assert all(self.same(each, ways * whole * (t - 1) / t) for _, each in found)

    def products(self):
        """A layer's products as (columns out, columns in, axis that tensor parallelism splits)."""
        h, f = self.h, self.f
        return [(3 * h, h, "n"), (h, h, "k"), (f, h, "n"), (h, f, "k")]

    def test_tensor_parallel_has_two_all_reduces_each_way(self):
        T, h = self.T, self.h
        forwards, backwards, weights = [], [], []
        for n, k, axis in self.products():
            forwards += self.sent(axis, T, n, k)
            # dX[T, k] = dY[T, n] W', dW[k, n] = X' dY: what was split stays so.
            backwards += self.sent({"n": "k", "k": "n"}[axis], T, k, n)
            weights += self.sent({"n": "n", "k": "m"}[axis], k, n, T)
        self.layer(forwards, "all-reduce", 2, 2 * T * h)
        self.layer(backwards, "all-reduce", 2, 2 * T * h)
        assert weights == []

    def test_sequence_parallel_halves_them_and_gathers_again_for_the_weights(self):
        T, h = self.T, self.h
        whole = 2 * T * h
        forwards, backwards, weights = [], [], []
        for n, k, axis in self.products():
            forwards += self.sent(axis, T, n, k, **({"A": "m"} if axis == "n" else {"C": "m"}))
            back = {"n": "k", "k": "n"}[axis]
            backwards += self.sent(back, T, k, n, **({"C": "m"} if axis == "n" else {"A": "m"}))
            if axis == "n":  # X lies in rows; dY of the others is there from the product before
                weights += self.sent("n", k, n, T, A="k")
        for found in (forwards, backwards):
            self.layer([x for x in found if x[0] == "all-gather"], "all-gather", 2, whole)
            self.layer([x for x in found if x[0] != "all-gather"], "reduce-scatter", 2, whole)
        self.layer(weights, "all-gather", 2, whole)

    def test_data_parallel_reduces_the_weights_gradients_alone(self):
        T = self.T
        for n, k, _ in self.products():
            assert self.sent("m", T, n, k) == self.sent("m", T, k, n) == []
            self.layer(self.sent("k", k, n, T), "all-reduce", 1, 2 * n * k)

    def test_fully_sharded_weights_are_gathered_twice_and_scattered_once(self):
        T = self.T
        for n, k, _ in self.products():
            for passed in (self.sent("m", T, n, k, B="n"), self.sent("m", T, k, n, B="n")):
                self.layer(passed, "all-gather", 1, 2 * n * k)
            self.layer(self.sent("k", k, n, T, C="n"), "reduce-scatter", 1, 2 * n * k)

    def context(self, axis, stored, algorithm=None, streamed=True):
        algorithm = algorithm or forward(statistics=())
        extents = {a: getattr(self, a) for a in "bgrd"} | {"q": self.s, "x": self.s, "e": self.d}
        names = tuple(step.name for step in algorithm.steps)
        kernel = Kernel("attention", names, (Loop("x", 64),) if streamed else ())
        placed = over(Schedule("one", algorithm, (kernel,)), extents, {axis: (self.t, axis)})
        elements = Attention(1, 1, 1, 1, 1, 1).elements()
        given_ = {(name, axis): lies for name, lies in stored.items()}
        return exchanges(placed, extents, elements, given_)

    def test_context_parallel_passes_keys_round_or_gathers_them(self):
        b, g, s, d, t = self.b, self.g, self.s, self.d, self.t
        whole = 2 * b * g * s * d
        found = self.context("q", {"K": "x", "V": "x"})
        self.layer([(x.kind, x.sent_bytes) for x in found], "ring", 2, whole)
        # t - 1 sends of K and V, of 2·(s/t)·b·g·d elements each.
        sends = (t - 1) * 2 * (s / t) * b * g * d * 2
        assert self.same(sum(x.sent_bytes for x in found), sends)
        gathered = self.context("q", {"K": "x", "V": "x"}, streamed=False)
        self.layer([(x.kind, x.sent_bytes) for x in gathered], "all-gather", 2, whole)
        back = self.context("q", {"dK": "x", "dV": "x"}, backward())
        self.layer([(x.kind, x.sent_bytes) for x in back], "reduce-scatter", 2, whole)

    def test_ulysses_has_four_all_to_alls_of_a_device_s_shards(self):
        b, g, r, s, d, t = self.b, self.g, self.r, self.s, self.d, self.t
        found = self.context("g", {"Q": "q", "K": "x", "V": "x", "O": "q"})
        assert [x.kind for x in found] == ["all-to-all"] * 4
        # (s/t)·b·(2a + 2g)·d elements, of which (t - 1)/t leave.
        shards = (s / t) * b * (2 * g * r + 2 * g) * d * 2
        assert self.same(sum(x.sent_bytes for x in found), shards * (t - 1) / t)

    def test_experts_are_sent_their_tokens_and_send_them_back(self):
        case = library.load("moe")
        algorithm, t = case.algorithm, self.t
        extents = {"x": t * self.g, "t": self.T, "d": self.h, "f": self.f, "o": self.h}
        kernel = Kernel("experts", tuple(step.name for step in algorithm.steps), ())
        placed = over(Schedule("one", algorithm, (kernel,)), extents, {"x": (t, "expert")})
        lies = {("X", "expert"): "t", ("Y", "expert"): "t"}
        found = exchanges(placed, extents, case.elements("bf16"), lies)
        assert [(x.tensor, x.kind) for x in found] == [("X", "all-to-all"), ("Y", "all-to-all")]
        own = extents["x"] * self.T / t * self.h * 2  # chosen tokens of a device, in 16 bits
        assert all(self.same(x.sent_bytes, own * (t - 1) / t) for x in found)


def test_masks_of_several_queries_keep_their_keys_together():
    problem = Attention(1, 8, 8, 64, 64, 16, causal=True)
    algorithm = forward(problem.mask(), statistics=())
    kernel = Kernel("attention", ATTENTION, (Loop("q", 16, True), Loop("x", 16)))
    one = Schedule("one", algorithm, (kernel,))
    extents, kinds = problem.sizes(), problem.elements()
    with pytest.raises(ProblemError, match="x cannot be split over devices; split q"):
        count(over(one, extents, {"x": (2, "link")}), extents, kinds)
    # The last queries see most: their shard is the one that is counted.
    last = count(over(one, extents, {"q": (2, "link")}), extents, kinds)
    assert last.matrix_flops > count(one, extents, kinds).matrix_flops / 2


def test_mesh_loops_that_mean_nothing_are_refused():
    mesh = across("k", 64, 2, "link")
    with pytest.raises(ProblemError, match="outermost of the grid"):
        Kernel("any", ("multiply",), (Loop("m", 16, True), mesh))
    with pytest.raises(ProblemError, match="split twice over one mesh axis"):
        Kernel("any", ("multiply",), (mesh, across("m", 64, 2, "link")))
    extents = {"b": 1, "m": 64, "n": 64, "k": 64}
    alone = Kernel("any", ("multiply",), (mesh,))
    case = library.load("mlp").at()
    two = (across("f", 64, 2, "link"), across("f", 64, 3, "link"))
    kernels = (
        Kernel("one", ("up", "activate"), (two[0],)), Kernel("two", ("down",), (two[1],)),
    )  # fmt: skip
    with pytest.raises(ProblemError, match="two numbers of ranks"):
        exchanges(Schedule("uneven", case.algorithm, kernels), case.sizes, case.elements)
    with pytest.raises(ProblemError, match="C has no axis k"):
        exchanges(Schedule("x", matmul(), (alone,)), extents, BF16, {("C", "link"): "k"})
