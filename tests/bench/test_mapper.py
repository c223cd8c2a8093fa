"""The mapper against brute force, and what it must find on its own."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from cases import cases, listed

from perfmodel.algorithms import library
from perfmodel.algorithms.declaration import declare
from perfmodel.count import count
from perfmodel.errors import ProblemError
from perfmodel.hardware import load
from perfmodel.napkin import mapper
from perfmodel.napkin.fit import Held, Target
from perfmodel.napkin.front import evaluate, fronts
from perfmodel.napkin.fusion import groups, part, why_not
from perfmodel.napkin.mapper import Mapped, search
from perfmodel.napkin.nests import Nest, nests
from perfmodel.napkin.tiles import candidates, combined, fewest
from perfmodel.napkin.trace import least_bytes, sentences
from perfmodel.operators import registry
from perfmodel.operators.declared import DeclaredOperator
from perfmodel.predict import predict, predict_arrays
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine

# -- least bytes -----------------------------------------------------------------------------------


def orders(fused, sizes):
    """Every legal nest, told by `why_not` alone: no axis set apart, no order left out."""
    axes = [axis for axis in fused.axes if sizes[axis] > 1]
    steps = tuple(step.name for step in fused.steps)
    for ways in product(("held", "grid", "stream"), repeat=len(axes)):
        way = dict(zip(axes, ways, strict=True))
        grid = tuple(axis for axis in axes if way[axis] == "grid")
        for stream in permutations([axis for axis in axes if way[axis] == "stream"]):
            if not why_not(fused, grid, stream):
                yield Nest(steps, grid, stream)


def brute(fused, sizes, elements, capacities):
    """Least bytes moved at each capacity over every nest and every integer tile."""
    best = np.full(len(capacities), np.inf)
    for nest in orders(fused, sizes):
        tiles = combined({axis: np.arange(1, sizes[axis] + 1) for axis in nest.tiled})
        used, moved = evaluate(fused, nest, tiles, sizes, elements)
        for i, capacity in enumerate(capacities):
            best[i] = min(best[i], np.min(np.where(used <= capacity, moved, np.inf)))
    return best


def problem(seed):
    """A small problem: matmuls, attentions (causal, grouped, sparse), MLPs, norms, losses."""
    pick = np.random.default_rng(seed)
    size = lambda low, high: int(pick.integers(low, high + 1))  # noqa: E731
    kind = ["matmul", "attention", "matmul", "gqa", "matmul", "mlp", "softmax", "cross-entropy",
            "matmul", "kernel-matvec", "layernorm-matmul", "matmul"][seed % 12]  # fmt: skip
    shapes = {
        "matmul": lambda: {"m": size(1, 9), "n": size(1, 9), "k": size(1, 9)},
        "attention": lambda: {
            "heads": size(1, 2), "seq_q": size(1, 6), "seq_kv": size(1, 6), "head_dim": size(1, 3),
            "causal": bool(size(0, 1)),
        },
        "gqa": lambda: {
            "heads": 2, "kv_heads": 1, "seq_q": size(1, 4), "seq_kv": size(1, 5), "head_dim": 2,
            "head_dim_v": 1,
        },
        "mlp": lambda: {
            "tokens": size(1, 5), "hidden": size(1, 4), "ffn": size(1, 5), "out": size(1, 3)
        },
        "softmax": lambda: {"rows": size(1, 9), "cols": size(1, 12)},
        "cross-entropy": lambda: {
            "tokens": size(1, 7), "hidden": size(1, 5), "vocabulary": size(1, 9)
        },
        "kernel-matvec": lambda: {
            "points": size(1, 7), "targets": size(1, 7), "dim": size(1, 3), "vectors": size(1, 2),
        },
        "layernorm-matmul": lambda: {"tokens": size(1, 6), "hidden": size(1, 6), "out": size(1, 6)},
    }  # fmt: skip
    return library.load(kind).at(**shapes[kind]())


@pytest.mark.parametrize("batch", range(2))
def test_brute_force_never_beats_the_mapper(batch):
    """24 problems, every run of steps, five capacities each: equal, never better."""
    for seed in range(batch * 12, batch * 12 + 12):
        case = problem(seed)
        found = fronts(case.algorithm, case.sizes, case.elements)
        for steps in groups(case.algorithm):
            fused = part(case.algorithm, steps)
            sizes = {axis: case.sizes[axis] for axis in fused.axes}
            front = found.by_steps[steps]
            low, high = front.held_bytes[0], front.held_bytes[-1]
            capacities = np.unique(np.geomspace(low, 1.2 * high, 5).round())
            expected = brute(fused, sizes, case.elements, capacities)
            np.testing.assert_array_equal(
                front.moved(capacities), expected, err_msg=f"{seed} {steps}"
            )


def test_the_best_fusion_is_the_best_of_all_cuts():
    for seed in (1, 3, 5, 13, 17):
        case = problem(seed)
        found = fronts(case.algorithm, case.sizes, case.elements)
        names = [step.name for step in case.algorithm.steps]
        capacity = np.array([float(max(f.held_bytes[0] for f in found.by_steps.values())) * 1.5])
        cuts = []
        for bits in product((0, 1), repeat=len(names) - 1):
            cut = [[names[0]]]
            for name, bit in zip(names[1:], bits, strict=True):
                cut = [*cut, [name]] if bit else [*cut[:-1], [*cut[-1], name]]
            cuts.append([tuple(group) for group in cut])
        least = min(float(found.moved(cut, capacity)[0]) for cut in cuts)
        assert float(found.best_moved(capacity)[0]) == least
        assert sum(c.moved_bytes for c in found.fusion(float(capacity[0]))) == least


@pytest.mark.parametrize("extent", [1, 2, 3, 7, 16, 97, 1000])
def test_the_fewest_tiles_make_every_number_of_trips(extent):
    tiles = fewest(extent)
    trips = {-(-extent // int(t)) for t in tiles}
    assert trips == {-(-extent // t) for t in range(1, extent)}
    for tile in tiles:
        assert tile == 1 or -(-extent // (tile - 1)) > -(-extent // tile)
    fused = library.load("matmul").at().algorithm
    np.testing.assert_array_equal(candidates(fused, "m", extent), tiles)


def test_flash_attentions_nest_moves_least_at_shared_memory():
    case = library.load("attention").at(seq=8192)
    (choice,) = least_bytes(case, 227 * 1024).choices
    assert choice.nest == Nest(("scores", "softmax", "values"), ("g", "q"), ("x",), frozenset("g"))


@pytest.mark.parametrize(("mebibytes", "pays"), [(0.22, False), (10, False), (50, True)])
def test_fusing_an_mlp_pays_at_l2_and_not_at_shared_memory(mebibytes, pays):
    # hidden 4096: shared-memory tiles cost an order of magnitude more; even at M ≈ d² elements.
    least = least_bytes(library.load("mlp").at(), mebibytes * 2**20)
    assert (least.ratio < 1) is pays
    fused = ("up", "activate", "down") in [choice.nest.steps for choice in least.choices]
    assert fused is pays
    if mebibytes < 1:
        assert least.ratio > 10


def test_no_feasible_tile_says_what_binds():
    with pytest.raises(ProblemError, match=r"no tile of step \w+ fits in 4 B: .* 4 B more"):
        least_bytes(library.load("attention").at(), 4)
    with pytest.raises(ProblemError, match="a capacity is positive"):
        least_bytes(library.load("attention").at(), 0)


# -- least time ------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["a100-sxm4-80gb", "h100-sxm", "h200-sxm", "b200", "l40s"])
def test_flash_attention_2_is_found(device):
    """From three steps and their axes: one kernel, query tiles on the grid, keys streamed."""
    found = search(library.load("attention").at(seq=8192), load(device))
    assert [kernel.nest for kernel in found.kernels] == [
        Nest(("scores", "softmax", "values"), ("g", "q"), ("x",), frozenset("g"))
    ]
    assert found.kernels[0].tiles["q"] >= 64
    text = "\n".join(sentences(found, full=True))
    assert "fastest: scores + softmax + values" in text
    assert "fusing nothing:" in text
    assert "scores + softmax: no tile of scores + softmax fits: the shared memory" in text


def test_grouped_heads_are_packed_into_one_tile():
    found = search(library.load("gqa").at(heads=32, kv_heads=8, seq=8192), load("h100-sxm"))
    (kernel,) = found.kernels
    # The four query heads of a group share each tile of keys, so they are held together.
    assert kernel.nest.grid == ("g", "q")
    assert kernel.tiles["q"] * 4 >= 128


def test_an_mlp_is_left_unfused_on_a_gpu():
    found = search(library.load("mlp").at(), load("h100-sxm"))
    assert ("up", "activate", "down") not in [kernel.nest.steps for kernel in found.kernels]
    said = " ".join(sentences(found))
    times = re.search(r"fusing everything: ([\d.]+)× the time", said)
    assert times
    assert float(times[1]) > 10


PRUNED = listed(__file__, "PRUNED")


@pytest.mark.parametrize(("name", "sizes", "device"), PRUNED)
def test_pruning_loses_nothing(name, sizes, device):
    case = library.load(name).at(**sizes)
    pruned, whole = (search(case, load(device), prune=prune) for prune in (True, False))
    assert pruned.seconds == whole.seconds
    assert [f.seconds for f in pruned.fusions] == [f.seconds for f in whole.fusions]
    for steps, best in whole.groups.items():
        if isinstance(best, Mapped):
            assert best.timed == best.fitting
            assert pruned.groups[steps].timed <= best.timed


def test_a_case_searched_on_another_device_before_gives_the_same_kernels():
    sizes = {"tokens": 128, "hidden": 256, "ffn": 512, "out": 256}
    h100 = load("h100")
    machines = [
        h100, load("t4"), *(h100.scaled(**{name: 0.5}) for name in ("shared_capacity", "units"))
    ]  # fmt: skip
    again = library.load("gated-mlp").at(**sizes)
    alone = [search(library.load("gated-mlp").at(**sizes), device) for device in machines]
    for device, fresh in (*zip(machines, alone, strict=True),) * 2:
        kept = search(again, device)
        assert kept.seconds == fresh.seconds
        assert [k.tiles for k in kept.kernels] == [k.tiles for k in fresh.kernels]
    groups_of_steps = len(groups(again.algorithm))
    assert groups_of_steps < len(again.counted) < groups_of_steps * len(machines)


def test_a_copy_of_several_problems_has_a_case_for_each():
    one = registry.load("gated-mlp").problem(tokens=512)
    assert one.having(tokens=512).cases is one.cases
    assert len(one.having(tokens=np.array([512, 512])).cases) == 2
    assert one.having(tokens=1024).cases[0].parameters["tokens"] == 1024


def test_no_candidate_beats_its_bound():
    case = library.load("attention").at(seq=1024)
    target = Target(machine(load("h100-sxm")), default(), case.dtype)
    fused = case.algorithm
    for nest in nests(fused, case.sizes):
        layout = mapper.Layout(fused, nest, target, case.sizes, case.elements)
        tiles = layout.tiles()
        if tiles is None:
            continue
        laid, cost = layout.count(tiles)
        width = max((len(values) for values in tiles.values()), default=1)
        (seconds,) = mapper.seconds_of(target, layout, laid, cost, (1, width))
        assert np.all(mapper.bound_of(target, layout, cost) <= seconds)


def test_addresses_of_a_thread_take_registers_beside_its_sums():
    """A tile that fills a block's registers with sums alone does not fit."""
    case = library.load("attention").at(seq=1024)
    target = Target(machine(load("h100-sxm")), default(), case.dtype)
    (nest, *_) = nests(case.algorithm, case.sizes)
    layout = mapper.Layout(case.algorithm, nest, target, case.sizes, case.elements)
    room = 256 * 255 * 4

    def fits(sums):
        contents = Held(np.array(1), np.array(256), np.array(0), np.array(sums))
        return bool(layout.fits(contents))

    assert fits(room / 2)
    assert not fits(room)
    assert not fits(room - 256)


def test_tilings_of_every_run_of_steps_are_weighed():
    case = library.load("attention").at(seq=256)
    table = fronts(case.algorithm, case.sizes, case.elements)
    each = [front.considered for front in table.by_steps.values()]
    assert len(each) > 1
    assert min(each) > 0
    assert least_bytes(case, 2**20, table).weighed == sum(each)


def test_many_axes_of_one_kind_have_few_nests():
    """A product of two tensors, each of five axes of its own, whose result has all ten."""
    one, other = ([f"{letter}{i}" for i in range(5)] for letter in "ab")
    axes = dict.fromkeys([axis for pair in zip(one, other, strict=True) for axis in pair], 3)
    shapes = {"A": one, "B": other, "C": list(axes)}
    declaration = declare(
        name="outer", axes=axes, types=dict.fromkeys(shapes, "fp32"),
        tensors={name: {"axes": own, "element": name} for name, own in shapes.items()},
        steps={"multiply": {"map": ["A", "B"], "to": "C"}}, outputs=["C"],
    )  # fmt: skip
    case = DeclaredOperator(declaration).problem().cases[0]
    assert 2 < sum(1 for _ in nests(case.algorithm, case.sizes)) <= 2 * (2 * 5 + 1) ** 2
    found = search(case, load("a100-sxm4-80gb"))
    assert found.kernels[0].bytes["hbm"] == pytest.approx(4 * (2 * 3**5 + 3**10), rel=0.01)


@pytest.mark.parametrize("name", ["conv", "moe", "linear-attention", "layernorm-matmul", "softmax"])
def test_other_algorithms_map_to_legal_tiles(name):
    case = library.load(name).at(**({"batch": 2, "height": 8} if name == "conv" else {}))
    found = search(case, load("a100-sxm4-80gb"))
    assert np.isfinite(found.seconds)
    assert sum(kernel.as_dict()["time_us"] for kernel in found.kernels) <= found.seconds * 1e6 * (
        1 + 1e-9
    )
    for kernel in found.kernels:
        assert all(1 <= tile < case.sizes[axis] for axis, tile in kernel.tiles.items())
        assert kernel.shared_bytes <= 163 * 1024


def test_a_row_that_fits_nowhere_says_so():
    case = library.load("attention").at(head_dim=20000, heads=1)
    with pytest.raises(ProblemError, match=r"the (shared memory|registers) of a block binds"):
        search(
            library.load("linear-attention").at(head_dim=64, seq=64, batch=1, heads=1),
            load("h100-sxm").scaled(shared_capacity=1e-3),
        )
    assert np.isfinite(search(case, load("h100-sxm")).seconds)


# -- sums ----


def summed(first, kept, last):
    """A sum of X[a, b, c] over a and c."""
    declaration = declare(
        name="sum",
        axes={"a": first, "b": kept, "c": last},
        types={"X": "fp32", "Y": "fp32"},
        tensors={
            "X": {"axes": ["a", "b", "c"], "element": "X"},
            "Y": {"axes": ["b"], "element": "Y"},
        },
        steps={"sum": {"reduction": ["X"], "over": ["a", "c"], "to": "Y", "vector": 1.0}},
        outputs=["Y"],
    )
    return declaration.at()


@pytest.mark.parametrize("device", ["t4", "a100-sxm4-80gb", "h100-sxm", "mi300x", "rtx5090"])
def test_a_sum_goes_at_the_memorys_rate_whatever_its_shape(device):
    spec = load(device)
    for exponent in (12, 20, 26):
        moving = 4.0 * 2**exponent / spec.hbm_bytes_per_s
        for first, kept in ((0, 0), (0, 4), (4, 0), (4, 8)):
            case = summed(2**first, 2**kept, max(2 ** (exponent - first - kept), 1))
            seconds = search(case, spec).seconds
            assert moving <= seconds < 2 * moving + 4e-6, (exponent, first, kept)


def test_blocks_that_share_a_sum_write_a_part_each_and_one_adds_them_up():
    (kernel,) = search(summed(1, 1, 2**22 + 3), load("h100-sxm")).kernels
    blocks = -(-(2**22 + 3) // kernel.tiles["c"])
    layout, tiles = kernel.layout, {axis: np.array([size]) for axis, size in kernel.tiles.items()}
    whole, fold = count(layout.schedule(tiles), layout.sizes, layout.elements).kernels
    assert whole.blocks == blocks > load("h100-sxm").units
    assert whole.bytes_at("l2") == 4 * (2**22 + 3 + blocks)
    assert fold.bytes_at("hbm") == 4 * (blocks + 1)


@pytest.mark.parametrize(
    ("name", "axis", "fusion"),
    [
        ("adamw", "parameters", "fused"),
        ("add-rmsnorm", "tokens", "fused"),
        ("add-rmsnorm", "hidden", "unfused"),
        ("linear-gelu", "tokens", "unfused"),
        ("linear-gelu", "hidden", "unfused"),
    ],
)
def test_problems_searched_together_have_the_times_of_each_alone(name, axis, fusion):
    """Also where some of a nest's tiles fit for some problems alone, and where their nests
    differ."""
    operator, device = registry.load(name), load("h100-sxm")
    sizes = [16, 17, 64, 300, 4096, 4097, 5000, 12_288, 60_000, 2**20]
    many = predict_arrays(operator.problem(**{axis: np.array(sizes)}), device, schedule=fusion)
    for i, size in enumerate(sizes):
        alone = predict(operator.problem(**{axis: size}), device, schedule=fusion)
        for figure in ("seconds", "tile", "bytes", "terms", "occupancy"):
            assert getattr(many.one(i), figure) == getattr(alone, figure)


# -- names -----------------------------------------------------------------------------------------


def renamed(case):
    """The same problem with every axis called otherwise."""
    other = {axis: f"axis{i}" for i, axis in enumerate(case.algorithm.axes)}
    tensors = {
        name: replace(
            tensor,
            axes=tuple(other[axis] for axis in tensor.axes),
            windows=tuple((other[axis], other[tap], step) for axis, tap, step in tensor.windows),
        )
        for name, tensor in case.algorithm.tensors.items()
    }
    steps = tuple(
        replace(
            step,
            reduces=tuple(other[axis] for axis in step.reduces),
            along=step.along and other[step.along],
        )
        for step in case.algorithm.steps
    )
    mask = case.algorithm.mask
    mask = mask and replace(mask, query=other[mask.query], key=other[mask.key])
    algorithm = replace(
        case.algorithm, axes=tuple(other.values()), tensors=tensors, steps=steps, mask=mask
    )
    sizes = {other[axis]: extent for axis, extent in case.sizes.items()}
    return replace(case, algorithm=algorithm, sizes=sizes)


@cases
def test_what_axes_are_called_changes_nothing(name, sizes):
    case, device = library.load(name).at(**sizes), load("a100-sxm4-80gb")
    assert search(renamed(case), device).seconds == search(case, device).seconds
