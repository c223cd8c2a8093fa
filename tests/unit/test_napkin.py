"""What may be grouped and streamed, and formulas against counts on thousands of random problems."""

from __future__ import annotations

import numpy as np
import pytest
from cases import listed

from perfmodel.algorithms import library
from perfmodel.count import count
from perfmodel.errors import ProblemError
from perfmodel.napkin import partitions
from perfmodel.napkin.bounds import compulsory, lower_bound
from perfmodel.napkin.explain import closed_form
from perfmodel.napkin.fusion import check, groups, part, why_not
from perfmodel.napkin.nests import Nest, batch_axes, held, nests, places, schedule, units
from perfmodel.napkin.symbols import formulas


def algorithm(name, **sizes):
    return library.load(name).at(**sizes).algorithm


# -- verdicts --------------------------------------------------------------------------------------


def test_attention_streams_its_keys_and_groups_its_queries():
    found = partitions(algorithm("attention"))
    assert found["q"].groupable
    assert found["q"].streamable
    assert found["x"].streamable
    assert not found["x"].groupable
    assert "share a normaliser" in found["x"].group_reason
    assert "rescaled" in found["x"].stream_reason
    assert "partial results" in found["d"].group_reason


def test_probabilities_that_are_kept_do_not_stream():
    found = partitions(algorithm("attention"), ("scores", "softmax"))
    assert not found["x"].streamable
    assert found["x"].passes == 0
    assert found["x"].stream_reason.startswith("P keeps x, whose normaliser is known only when")


def test_a_softmax_alone_streams_in_two_passes():
    found = partitions(algorithm("softmax"))["c"]
    assert (found.passes, found.streamable) == (2, False)
    assert found.stream_reason.endswith("the row streams a second time")


def test_a_normalised_contraction_streams():
    assert partitions(algorithm("layernorm-matmul"))["d"].streamable
    assert partitions(algorithm("cross-entropy"))["v"].streamable


def test_a_summed_axis_that_is_used_again_does_not_stream():
    found = library.load("linear-attention").at().algorithm
    # A mean that is then subtracted from every element needs its axis twice.
    from perfmodel.algorithms.declaration import declare

    centred = declare(
        name="centre",
        axes={"n": 8, "c": 8},
        tensors={"X": ["n", "c"], "m": ["n"], "Y": ["n", "c"]},
        steps={
            "mean": {"reduction": "X", "to": "m", "over": "c"},
            "subtract": {"map": ["X", "m"], "to": "Y"},
        },
        outputs="Y",
    ).algorithm
    verdict = partitions(centred)["c"]
    assert not verdict.passes
    assert verdict.stream_reason == (
        "step subtract needs m, the sum over all of c, before c can go by again"
    )
    assert partitions(found)["x"].streamable


def test_a_nonlinear_map_stops_the_rescaling():
    from perfmodel.algorithms.declaration import declare

    said = declare(
        name="bent",
        axes={"q": 4, "x": 4, "e": 4},
        tensors={
            "S": ["q", "x"],
            "P": ["q", "x"],
            "R": ["q", "x"],
            "V": ["x", "e"],
            "O": ["q", "e"],
        },
        steps={
            "softmax": {"normalisation": "S", "to": "P", "along": "x", "special": 1},
            "bend": {"map": "P", "to": "R", "special": 1},
            "values": {"contraction": ["R", "V"], "to": "O", "over": "x"},
        },
        outputs="O",
    ).algorithm
    assert partitions(said)["x"].stream_reason.startswith("step bend is not linear in P")


REFUSED = listed(__file__, "REFUSED")


@pytest.mark.parametrize(("name", "grid", "stream", "said"), REFUSED)
def test_illegal_nests_say_why(name, grid, stream, said):
    with pytest.raises(ProblemError) as caught:
        check(algorithm(name), grid, stream)
    assert str(caught.value).startswith(said)


def test_flash_attentions_two_orders_are_legal():
    assert not why_not(algorithm("attention"), ("q",), ("x",))
    assert not why_not(algorithm("attention"), (), ("x", "q"))


def test_every_run_of_steps_is_a_kernel():
    found = groups(algorithm("attention"))
    assert len(found) == 6
    assert part(algorithm("attention"), ("scores", "softmax")).outputs == ("P",)
    assert part(algorithm("attention"), ("values",)).inputs == ("P", "V")


def test_probabilities_take_the_place_of_scores():
    assert ["S", "P"] in places(algorithm("attention"))
    # K and V are read by nothing that could write over them.
    assert sum(len(names) for names in places(algorithm("attention"))) == 6


def test_batch_axes_are_those_of_every_tensor():
    assert batch_axes(algorithm("gqa")) == ("b", "g")
    assert batch_axes(algorithm("moe")) == ("x",)
    assert batch_axes(algorithm("mla")) == ("b",)


# -- formulas against counts -----------------------------------------------------------------------

PROBLEMS = 1500
CASES = listed(__file__, "CASES")


@pytest.mark.parametrize(
    ("name", "steps", "grid", "stream"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)]
)
def test_the_formula_is_the_count(name, steps, grid, stream):
    whole = algorithm(name)
    fused = whole if steps is None else part(whole, steps)
    assert not why_not(fused, grid, stream)
    nest = Nest(tuple(step.name for step in fused.steps), grid, stream)
    found = formulas(fused, nest)
    pick = np.random.default_rng(len(name) + len(stream))
    sizes = {axis: pick.integers(1, 60, PROBLEMS) for axis in fused.axes}
    tiles = {axis: pick.integers(1, 70, PROBLEMS) for axis in nest.tiled}
    values = {**sizes, **{str(found.tiles[axis]): tile for axis, tile in tiles.items()}}
    kernel = count(schedule(fused, nest, tiles), sizes, units(fused)).kernels[0]
    assert 0 not in (*found.reads.values(), *found.writes.values())  # tensors that move alone
    for table, ways in ((found.reads, "read_bytes"), (found.writes, "write_bytes")):
        for tensor, formula in table.items():
            counted = getattr(kernel.l2[tensor], ways)
            np.testing.assert_array_equal(found.evaluator(formula)(**values), counted)
    moved = found.evaluator(found.transfer)(**values)
    np.testing.assert_array_equal(moved, np.broadcast_to(kernel.bytes_at("l2"), (PROBLEMS,)))
    chip = found.evaluator(found.memory)(**values)
    np.testing.assert_array_equal(chip, held(fused, kernel.nest, units(fused)))


def test_the_causal_formula_is_the_count_where_tiles_nest():
    nest = Nest(("scores", "softmax", "values"), ("g", "q"), ("x",))
    found = formulas(algorithm("attention", causal=True), nest)
    fused = algorithm("attention", causal=True)
    pick = np.random.default_rng(3)
    thin = pick.integers(1, 9, 400)
    tile = thin * pick.integers(1, 5, 400)
    length = tile * pick.integers(1, 12, 400)
    sizes = {axis: pick.integers(1, 9, 400) for axis in fused.axes} | {"q": length, "x": length}
    kernel = count(
        schedule(fused, nest, {"g": 1, "q": tile, "x": thin}), sizes, units(fused)
    ).kernels[0]
    moved = found.evaluator(found.transfer.subs({found.tiles["g"]: 1}))(**sizes, g_q=tile, s_x=thin)
    np.testing.assert_array_equal(moved, kernel.bytes_at("l2"))
    assert "causal" in found.note


def test_a_window_has_no_closed_form():
    nest = Nest(("scores", "softmax", "values"), ("q",), ("x",))
    with pytest.raises(ProblemError, match="a window has no closed form"):
        formulas(algorithm("attention", window=64), nest)


# -- closed forms ----------------------------------------------------------------------------------

OPTIMA = listed(__file__, "OPTIMA")


@pytest.mark.parametrize(("name", "steps", "grid", "stream", "beta"), OPTIMA)
def test_no_tile_beats_the_closed_form(name, steps, grid, stream, beta):
    """H* is at most H at any real tile that fits, and is approached by the tile it names."""
    fused = algorithm(name) if steps is None else part(algorithm(name), steps)
    copies = tuple(axis for axis in batch_axes(fused))
    nest = Nest(tuple(s.name for s in fused.steps), (*copies, *grid), stream, frozenset(copies))
    found = formulas(fused, nest)
    best = closed_form(found)
    assert str(best.beta) == beta
    pick = np.random.default_rng(5)
    sizes = dict.fromkeys(fused.axes, 2.0**24)
    sizes |= {axis: 64.0 for axis in fused.axes if axis in "dev" and name != "layernorm-matmul"}
    sizes |= dict.fromkeys(copies, 1.0)
    tiles = {str(t): 2 ** pick.uniform(0, 12, 4000) for t in found.tiles.values()}
    memory = np.broadcast_to(found.evaluator(found.smooth_memory)(**sizes, **tiles), (4000,))
    moved = np.broadcast_to(found.evaluator(found.smooth_transfer)(**sizes, **tiles), (4000,))
    assert np.all(found.evaluator(best.transfer)(**sizes, M=memory) <= moved * (1 + 1e-9))


def test_lower_bounds_lie_below_every_nest():
    for name in ("matmul", "attention", "mlp", "softmax"):
        case = library.load(name).at(**SMALL[name])
        sizes = case.sizes
        for nest in nests(case.algorithm, sizes):
            tiles = dict.fromkeys(nest.tiled, 3)
            kernel = count(
                schedule(case.algorithm, nest, tiles), sizes, units(case.algorithm)
            ).kernels[0]
            used = held(case.algorithm, kernel.nest, units(case.algorithm))
            bound = lower_bound(case.algorithm, sizes, float(used))
            if not bound.order_only:
                # Exact to within what is on chip at either end (Smith & van de Geijn: − 2M).
                assert kernel.bytes_at("l2") >= bound.value - 2 * used
            assert kernel.bytes_at("l2") >= compulsory(case.algorithm, sizes)


SMALL = {
    "matmul": {"m": 24},
    "attention": {"heads": 1, "seq": 24, "head_dim": 8},
    "mlp": {"tokens": 12, "hidden": 8},
    "softmax": {"rows": 12, "cols": 12},
}
