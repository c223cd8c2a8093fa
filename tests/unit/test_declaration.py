"""Declared algorithms: what ships counts as it should, what is wrong is said in one line."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from cases import cases, listed
from hypothesis import given
from hypothesis import strategies as st
from walker import _table, _traffic, walk

from perfmodel.algorithms import library
from perfmodel.algorithms.declaration import declare, read
from perfmodel.algorithms.expressions import evaluate, resolve
from perfmodel.count import count
from perfmodel.errors import PerfmodelError, ProblemError, SpecError
from perfmodel.napkin.fusion import part
from perfmodel.napkin.nests import Nest, nests, schedule, units

MATMUL = """\
name: mine
parameters: {m: 64, n: m, k: m}
axes: {m: m, n: n, k: k}
tensors:
  A: [m, k]
  B: [k, n]
  C: {axes: [m, n], element: output}
steps:
  multiply: {contraction: [A, B], to: C, over: k}
outputs: C
"""


@pytest.mark.parametrize("name", library.names())
def test_shipped_algorithms_load_and_count(name):
    found = library.load(name)
    assert found.name == name
    assert found.about
    assert found.source
    case = found.at()
    assert case.algorithm.axes == tuple(case.sizes)
    steps = tuple(step.name for step in case.algorithm.steps)
    cost = count(schedule(case.algorithm, Nest(steps, (), ()), {}), case.sizes, case.elements)
    # Everything on chip at once: each tensor crosses once.
    assert cost.bytes_at("l2") == cost.bytes_at("hbm")


def test_the_list_of_shipped_algorithms():
    wanted = {
        "attention", "gqa", "mla", "mla-expanded", "linear-attention", "kernel-matvec", "mlp",
        "gated-mlp", "moe", "cross-entropy", "layernorm-matmul", "block-sparse-attention",
        "butterfly-attention", "conv", "matmul", "softmax",
    }  # fmt: skip
    assert wanted <= set(library.names())
    assert library.load("GEMM").name == "matmul"


def test_a_file_of_ones_own(tmp_path, monkeypatch):
    path = tmp_path / "mine.yaml"
    path.write_text(MATMUL)
    assert library.load(str(path)).at(m=8, k=3).sizes == {"m": 8, "n": 8, "k": 3}
    monkeypatch.setenv(library.ENVIRONMENT, str(tmp_path))
    assert library.load("mine") == read(path)
    assert "mine" in library.names()


def test_the_same_in_python():
    found = declare(
        name="mine",
        parameters={"m": 64, "n": "m", "k": "m"},
        axes={"m": "m", "n": "n", "k": "k"},
        tensors={"A": ["m", "k"], "B": ["k", "n"], "C": {"axes": ["m", "n"], "element": "output"}},
        steps={"multiply": {"contraction": ["A", "B"], "to": "C", "over": "k"}},
        outputs="C",
    )
    assert found.at(n=5).sizes == {"m": 64, "n": 5, "k": 64}
    with pytest.raises(ProblemError, match=r"declaration mine: steps\.s: names the tensor"):
        declare(
            name="mine",
            axes={"m": 4},
            tensors={"A": ["m"]},
            steps={"s": {"map": "A", "to": "Q"}},
            outputs="Q",
        )


def test_steps_may_stand_in_any_order(tmp_path):
    text = MATMUL.replace("outputs: C", "  twice: {map: C, to: D, vector: 1}\noutputs: D").replace(
        "tensors:\n", "tensors:\n  D: [m, n]\n"
    )
    lines = text.splitlines()
    first, second = (i for i, line in enumerate(lines) if "contraction" in line or "map:" in line)
    lines[first], lines[second] = lines[second], lines[first]
    path = tmp_path / "mine.yaml"
    path.write_text("\n".join(lines))
    assert [step.name for step in read(path).algorithm.steps] == ["multiply", "twice"]


BAD = listed(__file__, "BAD")


@pytest.mark.parametrize(("old", "new", "line", "message"), BAD, ids=[b[1][:30] for b in BAD])
def test_bad_declarations_say_where_and_what(tmp_path, old, new, line, message):
    path = tmp_path / "mine.yaml"
    assert old in MATMUL
    path.write_text(MATMUL.replace(old, new, 1))
    with pytest.raises(SpecError) as caught:
        read(path)
    said = str(caught.value)
    assert said.startswith(f"{path}:{line}: "), said
    assert message in said
    assert "\n" not in said


def test_a_cycle_of_steps_names_its_ring(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "name: ring\naxes: {i: 8}\ntensors: {A: [i], B: [i], C: [i]}\n"
        "steps:\n  one: {map: [A, C], to: B}\n  two: {map: B, to: C}\noutputs: C\n"
    )
    with pytest.raises(SpecError, match=r":5: steps form a cycle: one → two → one"):
        read(path)


def test_sizes_without_meaning():
    with pytest.raises(ProblemError, match=r"axis r of attention is heads / kv_heads = 1\.33333"):
        library.load("attention").at(heads=4, kv_heads=3)
    with pytest.raises(ProblemError, match="0, which is no whole number of at least 1"):
        library.load("matmul").at(m=0)
    with pytest.raises(PerfmodelError, match="no parameter of matmul named 'seq'"):
        library.load("matmul").at(seq=3)
    with pytest.raises(PerfmodelError, match="did you mean matmul"):
        library.load("matmull")


@cases
def test_expressions(said, value):
    assert evaluate(said, {"a": 8, "b": 2}) == value


@pytest.mark.parametrize(
    "said",
    ["a.b", "__import__('os')", "a[0]", "lambda: 1", "a if 1 else 2", "a / 0", "c", "'x'", None],
)
def test_expressions_do_nothing_else(said):
    with pytest.raises(ProblemError):
        evaluate(said, {"a": 8})


def test_parameters_follow_one_another():
    assert resolve({"a": "b + 1", "b": "c", "c": 2}, "x") == {"a": 3, "b": 2, "c": 2}


# -- counts of what ships, against walking the loops -----------------------------------------------

SMALL = listed(__file__, "SMALL")


@given(st.data(), st.sampled_from(sorted(SMALL)), st.booleans())
def test_declared_algorithms_count_as_walked(data, name, backward):
    declaration = library.load(name)
    case = (declaration.backward if backward else declaration).at(**SMALL[name])
    names = [step.name for step in case.algorithm.steps]
    start = data.draw(st.integers(0, len(names) - 1))
    stop = data.draw(st.integers(start + 1, len(names)))
    fused = part(case.algorithm, names[start:stop])
    sizes = {axis: case.sizes[axis] for axis in fused.axes}
    nest = data.draw(st.sampled_from(list(nests(fused, sizes))))
    tiles = {axis: data.draw(st.integers(1, sizes[axis] - 1)) for axis in nest.tiled}
    laid = schedule(fused, nest, tiles)
    kernel = laid.kernels[0]
    walked = walk(laid, kernel, sizes, keep=False)
    counted = count(laid, sizes, case.elements).kernels[0].l2
    expected = {n: _traffic(laid, kernel, walked, sizes, case.elements, n) for n in counted}
    assert {n: _table(traffic) for n, traffic in counted.items()} == expected


def image_pixels(n, p, q, tile, taps):
    """Pixels that tiles of positions and taps touch, each tile's own counted once."""
    total = 0
    starts = [range(0, e, t) for e, t in zip((n, p, q, *taps[0]), (*tile, *taps[1]), strict=True)]
    ends = (n, p, q, *taps[0])
    for corner in product(*starts):
        spans = [
            range(c, min(c + t, e)) for c, t, e in zip(corner, (*tile, *taps[1]), ends, strict=True)
        ]
        rows = {i + r for i in spans[1] for r in spans[3]}
        columns = {j + s for j in spans[2] for s in spans[4]}
        total += len(spans[0]) * len(rows) * len(columns)
    return total


@pytest.mark.parametrize("seed", range(40))
def test_a_convolution_reads_pixels_and_no_im2col_matrix(seed):
    pick = np.random.default_rng(seed)
    n, p, q, taps = (int(pick.integers(1, high)) for high in (3, 9, 9, 4))
    case = library.load("conv").at(batch=n, height=p, width=q, taps=taps, channels=2, filters=3)
    fused = case.algorithm
    tile = {axis: int(pick.integers(1, case.sizes[axis] + 1)) for axis in "npqkrs"}
    nest = Nest(("multiply",), ("n", "p", "q", "k"), ("r", "s"))
    cost = count(schedule(fused, nest, tile), case.sizes, units(fused)).kernels[0]
    walked = image_pixels(n, p, q, [tile[a] for a in "npq"], ((taps, taps), (tile["r"], tile["s"])))
    again = -(-3 // tile["k"])
    assert cost.l2["X"].read_bytes == walked * 2 * again
    assert cost.hbm["X"].read_bytes == n * (p + taps - 1) * (q + taps - 1) * 2


def test_block_sparse_attention_moves_its_share():
    # FlashAttention, Proposition 4: Θ(Nd + N²d²s/M): K and V by the share, Q and O once.
    nest = Nest(("scores", "softmax", "values"), ("g", "q"), ("x",), frozenset("g"))
    tile = {"q": 64, "x": 64}
    moved = {}
    for share in (1, 0.25):
        case = library.load("block-sparse-attention").at(heads=2, seq=1024, share=share)
        moved[share] = count(
            schedule(case.algorithm, nest, tile), case.sizes, units(case.algorithm)
        )
    whole, sparse = (moved[s].kernels[0] for s in (1, 0.25))
    for name in ("K", "V"):
        assert sparse.l2[name].read_bytes == 0.25 * whole.l2[name].read_bytes
    for name in ("Q", "O"):
        assert sparse.l2[name] == whole.l2[name]
    assert sparse.matrix_flops == 0.25 * whole.matrix_flops


def test_a_butterfly_keeps_a_logarithm_of_its_tiles():
    case = library.load("butterfly-attention").at(seq=16384, block=128)
    assert case.algorithm.mask.share == pytest.approx((np.log2(128) + 1) / 128)
    assert library.load("butterfly-attention").at(seq=128).algorithm.mask is None


def test_absorbed_latent_attention_reads_its_cache_once_for_keys_and_values():
    case = library.load("mla").at(heads=128, seq_kv=8192)
    steps = tuple(step.name for step in case.algorithm.steps)
    cost = count(schedule(case.algorithm, Nest(steps, (), ()), {}), case.sizes, case.elements)
    # DeepSeek-V2: d_c + d_R elements a token; intensity 2·n_h(2d_c + d_R)/((d_c + d_R)·2 B) ≈ 242.
    cache = sum(cost.kernels[0].hbm[name].read_bytes for name in ("C", "Kr"))
    assert cache == 8192 * 576 * 2
    assert cost.matrix_flops / cache == pytest.approx(242, abs=0.5)
