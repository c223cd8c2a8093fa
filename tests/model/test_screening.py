"""Terms by which menus are screened: those of the full model, where that has no more to say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest
from draws import sizes

from perfmodel.algorithms import Matmul
from perfmodel.count import KernelCost, count
from perfmodel.hardware import load
from perfmodel.predict import predict
from perfmodel.timing import matmul, memory, occupancy, pipes, plan, power, screening
from perfmodel.timing.constants import default
from perfmodel.timing.libraries import KernelFacts, kernel_facts, resolve
from perfmodel.timing.machine import Machine, machine
from perfmodel.timing.menu import Candidates, candidates, step_depth
from perfmodel.timing.setting import Setting
from perfmodel.timing.style import Style

CONSTANTS = default()
DEVICES = ("h100-sxm", "a100-sxm4-80gb", "b200", "t4", "mi300x", "p100-pcie-16gb")
DTYPES = ("fp16", "fp32", "w4a16")
N = 12


@dataclass(frozen=True)
class Both:
    """Some products over a whole menu, as the screening sees them and as the full model does.

    Arrays of the full model have axes problem and column, those of the screening slicing, tile and
    problem: `columns` turns the second into the first.
    """

    problem: Matmul
    kernel: KernelFacts
    here: Machine

    @cached_property
    def menu(self) -> Candidates:
        return candidates(self.kernel)

    @cached_property
    def plan(self):
        return matmul.plan(self.problem, self.kernel, Setting(self.here, CONSTANTS), keep=10**6)

    @property
    def how(self) -> Style:
        return self.plan.parts[0].style

    @cached_property
    def grid(self) -> screening.Grid:
        elements = self.problem.elements()
        width = max(elements["data"].bytes, elements["weights"].bytes)
        depth = step_depth(self.kernel, self.menu, width, elements["weights"].bytes)
        return screening.grid_of(self.problem, self.menu, self.here, depth)

    @cached_property
    def cost(self) -> KernelCost:
        (part,) = self.plan.parts
        return count(part.schedule, part.sizes, part.elements).kernels[0]

    @cached_property
    def where(self) -> occupancy.Residency:
        return occupancy.residency(self.here, self.cost)

    @cached_property
    def terms(self) -> dict[str, np.ndarray]:
        """Seconds of the screening's terms."""
        together = self.grid.together(self.here)
        crossing = screening._crossing_seconds(self.grid, self.how, self.here, CONSTANTS, together)
        return crossing | screening._work_seconds(
            self.grid, self.problem, self.how, self.here, CONSTANTS
        )

    def columns(self, found) -> np.ndarray:
        n, shape = np.size(self.problem.m), (self.menu.splits, -1, np.size(self.problem.m))
        whole = np.broadcast_to(found, (self.menu.splits, self.menu.rows.size // shape[0], n))
        return whole.transpose(2, 1, 0).reshape(n, -1).astype(np.float64)

    def full(self, found) -> np.ndarray:
        return np.broadcast_to(found, (np.size(self.problem.m), self.menu.rows.size))


def both(slug: str, dtype: str, seed: int = 1, *, splits: tuple[int, ...] = (1,)) -> Both:
    """Random products, ragged ones among them, on the menu of the usual class."""
    here, draw = machine(load(slug)), np.random.default_rng(seed)
    m, n, k = (sizes(draw, 1, 16384, N)[:, None] for _ in range(3))
    problem = Matmul(m, n, k, sizes(draw, 1, 4, N)[:, None], dtype)
    kernel, _ = (
        resolve("gemm", None, here.multiplied_as(dtype), here)
        if dtype == "fp16"
        else (resolve("gemm", None, dtype, here))
    )
    return Both(problem, replace(kernel, splits=splits), here)


CASES = pytest.mark.parametrize(("slug", "dtype"), [(s, d) for s in DEVICES for d in DTYPES])
near = pytest.approx


@CASES
def test_blocks_and_what_they_hold_are_those_of_the_count(slug, dtype):
    found = both(slug, dtype, splits=(1, 2, 8))
    grid, cost, where = found.grid, found.cost, found.where
    assert found.columns(grid.tiles * grid.slices) == near(found.full(cost.blocks))
    held = found.full(cost.shared_footprint_bytes)
    assert found.columns(grid.held_bytes) == near(held)
    fits = held <= found.here.shared_per_block
    if dtype == "w4a16":  # widened weights take registers that the screening leaves out
        assert np.all(found.columns(grid.together(found.here)) >= found.full(where.blocks_per_unit))
        return
    # What fills shared memory to the last byte is counted apart.
    fits = fits & (found.here.shared_capacity % (held + found.here.shared_reserved) > 0)
    together = found.columns(grid.together(found.here))
    assert together[fits] == near(found.full(where.blocks_per_unit)[fits])


@CASES
def test_bytes_are_those_of_the_count(slug, dtype):
    found = both(slug, dtype)
    grid, cost = found.grid, found.cost
    least = sum(tensor.total_bytes for tensor in cost.hbm.values())
    assert found.columns(grid.input_bytes + grid.output_bytes) == near(found.full(least), rel=1e-5)
    asked = found.columns(grid.asked_bytes + grid.output_bytes)
    assert asked == near(found.full(cost.bytes_at("l2")), rel=1e-5)
    seconds = least / memory.hbm_rate(found.here, CONSTANTS)
    assert found.columns(found.terms["least"]) == near(found.full(seconds), rel=1e-5)


@CASES
def test_seconds_at_the_l2_are_those_of_the_full_model(slug, dtype):
    """All bytes over the chip's rate, or those of mean blocks over the busiest port."""
    found = both(slug, dtype)
    here, cost, terms = found.here, found.cost, found.terms
    busiest = np.ceil(found.grid.tiles / here.units)
    port = found.columns(busiest * terms["port"])
    how = found.how
    # Tiles of a cluster share their reads.
    inputs, output = found.grid.input_bytes, found.grid.output_bytes
    moved = np.maximum(found.grid.asked_bytes / how.multicast, inputs) + output
    options = (found.where, found.columns(moved))
    full = memory.l2_seconds(here, CONSTANTS, cost, *options, copied=how.tensor_copies)
    screened = np.maximum(found.columns(terms["l2"]), port)
    assert screened == near(found.full(full), rel=1e-5)
    chip = found.columns(moved) / (here.l2_bytes_per_s * CONSTANTS["l2_share"])
    assert found.columns(terms["l2"]) == near(found.full(chip), rel=1e-4)


@CASES
def test_matrix_and_latency_of_whole_steps_are_those_of_the_full_model(slug, dtype):
    """Rows and columns of whole tiles, k of whole steps, and no more than four warps to feed."""
    found = both(slug, dtype)
    sides = {name: 768 * np.maximum(getattr(found.problem, name) // 768, 1) for name in "mn"}
    problem = replace(found.problem, **sides, k=256 * np.maximum(found.problem.k // 256, 1))
    found = replace(found, problem=problem)
    here, cost, grid = found.here, found.cost, found.grid
    even = pipes.balance(cost, found.where, longest_first=True)
    work = pipes.per_unit_seconds(
        cost.matrix_flops,
        here.matrix_per_unit(found.how.compute) * found.how.matrix_share,
        cost.blocks,
        even.share,
    )
    reached = found.how.matrix_share
    if found.how.turns.fetched_by is not None:  # warps fetch operands between their products
        fetched = pipes.per_unit_seconds(
            cost.shared_bytes, here.shared_bytes_per_unit, cost.blocks, even.share
        )
        together = pipes.together([work, fetched], found.how.turns.fetched_by)
        reached, work = reached * work / together, together
    busiest = np.ceil(grid.tiles / here.units)
    plain = found.terms["matrix"]
    if dtype == "w4a16":  # widening is beside the products
        columns, k = grid.columns, grid.sizes["k"]
        rate = here.vector_ops_per_unit * found.how.code.vector_share
        plain = plain - (1 - found.how.overlap) * columns * k / rate
    whole = found.full((768 % found.menu.rows == 0) & (768 % found.menu.columns == 0))
    assert found.columns(busiest * plain)[whole] == near(found.full(work)[whole], rel=1e-4)
    limit = power.power_seconds(
        here, CONSTANTS, found.how.compute, cost.matrix_flops,
        activity=found.how.run.activity, share=reached,
    )  # fmt: skip
    assert found.columns(found.terms["limit"])[whole] == near(found.full(limit)[whole], rel=1e-4)
    rounds = np.ceil(busiest / grid.together(here))
    missed, caught = screening._misses(grid, here, CONSTANTS, grid.together(here))
    waiting = found.columns(rounds * found.terms["chain"])
    latency = found.columns(memory.mean_latency(here, missed, caught=caught))
    fits = found.full(found.where.blocks_per_unit > 0)
    same = fits & (found.columns(grid.together(here)) == found.where.blocks_per_unit)
    full = memory.latency_seconds(cost, found.where, even, latency)
    assert waiting[same] == near(found.full(full)[same], rel=1e-4)


@CASES
@pytest.mark.parametrize(
    "bound", ["shared_capacity", "registers_bytes", "max_threads", "max_blocks"]
)
def test_each_resource_of_a_unit_holds_as_many_blocks_as_fit(slug, dtype, bound):
    """CUDA C++ Programming Guide, occupancy: the least of four, a block at least."""
    found = both(slug, dtype)
    plenty = dict.fromkeys(("shared_capacity", "registers_bytes", "max_threads", "max_blocks"), 1e9)
    here = replace(found.here, **plenty | {bound: 3.0 if bound == "max_blocks" else 120_000.0})
    grid = found.grid
    registers = np.minimum(
        4 * (grid.rows * grid.columns + 40 * grid.threads),
        here.thread_registers_bytes * grid.threads,
    )
    each = {
        "shared_capacity": 120_000 // (grid.held_bytes + here.shared_reserved),
        "registers_bytes": 120_000 // registers,
        "max_threads": 120_000 // grid.threads,
        "max_blocks": 3 + 0 * grid.threads,
    }
    assert grid.together(here) == near(np.maximum(each[bound], 1))


@pytest.mark.parametrize("name", ["cublas", "cutlass-fp8", "cutlass-int8", "cublas-fp32"])
def test_tiles_are_left_out_that_do_not_serve_a_problem_or_do_not_fit(name):
    kernel = kernel_facts(name)
    draw = np.random.default_rng(5)
    m, n, k = (sizes(draw, 1, most, 60)[:, None] for most in (300, 300, 16384))
    for slug in ("h100-sxm", "t4"):
        found = Both(Matmul(m, n, k), kernel, machine(load(slug)))
        held = found.columns(found.grid.held_bytes)
        serves = found.full(found.menu.serves(m, n)) & (held <= found.here.shared_per_block)
        out = screening._misfits(found.grid, found.menu, found.here)
        assert np.array_equal(found.columns(out) == 0, serves)


def test_the_power_of_large_products_stays_within_single_precision():
    # Work and the square of its time: 1.5e25 multiplications at 1e11 a second, joules included.
    slow = load("jetson-orin-64gb")
    whole = predict(Matmul(556845587901, 1, 49152, 560137308), slow)
    half = predict(Matmul(556845587901, 1, 49152, 280068654), slow)
    assert whole.seconds == pytest.approx(2 * half.seconds, rel=1e-3)


def test_counts_beyond_single_precision_take_double():
    kernel, here = kernel_facts("cublas"), machine(load("h100-sxm"))
    menu = candidates(kernel)

    def kind(*sizes: int):
        return screening.grid_of(Matmul(*sizes), menu, here, 64).tiles.dtype

    side = 10**7  # four of them are 1e28, three of them 1e21
    assert kind(side, side, side, side) == np.float64
    for axis in range(4):
        assert kind(*(1 if i == axis else side for i in range(4))) == np.float32
    several = Matmul(np.array([[1], [side]]), side, side, side)
    assert screening.grid_of(several, menu, here, 64).tiles.dtype == np.float64


def _grid(problem: Matmul, tile: tuple[int, int, int], slices: int = 1) -> screening.Grid:
    kernel = replace(kernel_facts("cublas"), tiles={0: (tile,)}, splits=tuple(range(1, slices + 1)))
    return screening.grid_of(problem, candidates(kernel), machine(load("h100-sxm")), 64)


def test_what_a_wave_finds_in_the_l2_worked_by_hand():
    # 1,024 × 4,096 in tiles of 128 × 256: 8 down and 16 across. A wave of 16 blocks has 8 row
    # blocks of 2 columns: k · (1024 + 512) · 2 B, of which 8 waves ask 24,576 k B. The operands are
    # 10,240 k B, so that 5/12 of all loads are the first of their bytes.
    here = replace(machine(load("h100-sxm")), units=16, l2_capacity=1e18)
    grid = _grid(Matmul(1024, 4096, 512), (128, 256, 256))

    def missed(grid, together=1.0, here=here):
        share, caught = screening._misses(grid, here, CONSTANTS, np.array([[together]]))
        assert caught == 0.0  # there is no cache behind the L2
        return float(share.item())

    assert missed(grid) == near(5 / 12)
    touched = 512 * 2 * (1024 + 512)
    knee = replace(here, l2_capacity=touched / 0.667 / CONSTANTS["l2_knee"])
    assert missed(grid, here=knee) == near(1 - 7 / 12 / 2)
    # Two blocks a unit are waves of 32: 8 row blocks of 4 columns, k · (1024 + 1024) · 2 B in 4.
    assert missed(grid, 2.0) == near(10240 / (4 * 4096))
    # One wave has nothing to find, however many blocks there is room for.
    assert missed(grid, 8.0) == near(1.0)
    assert missed(grid, 100.0) == near(1.0)
    # 900 rows of 8-bit weights' products: 8 row blocks end at 900, columns at 4,000.
    ragged = _grid(Matmul(900, 4000, 512, dtype="w8a16"), (128, 256, 256))
    width = ragged.widths["weights"]
    asked = 8 * (900 * 2 + 512 * width)
    assert missed(ragged) == near((900 * 2 + 4000 * width) / asked)
    # A row block alone is all that a group has: 16 columns of it end at 4,000.
    flat = _grid(Matmul(100, 8000, 512), (128, 256, 256))
    assert missed(flat) == near((100 + 8000) / (2 * (100 + 4096)))


def test_the_kernel_that_adds_slices_up_worked_by_hand():
    here, how = machine(load("h100-sxm")), Style("fp16")
    start = plan.combining_seconds(here, CONSTANTS, how) + here.at_clock(CONSTANTS["block_price"])
    rate = here.l2_bytes_per_s * CONSTANTS["l2_share"]

    def seconds(grid, here=here):
        b, m, n = (grid.sizes[axis] for axis in "bmn")
        sums = b * m * n * grid.slices[1:]
        return plan.adding_seconds(here, CONSTANTS, how, sums)[:, 0, 0]

    # A tile of 128 × 128: a launch, a block, and a round trip to the L2.
    tiny = _grid(Matmul(128, 128, 4096), (128, 128, 128), 3)
    assert tiny.slices[:, 0, 0].tolist() == [1, 2, 3]
    assert seconds(tiny) == near([start + here.l2_latency] * 2)
    # 2 × 4,096² partial sums of 4 B, written and read: in the L2, or in memory where it has none.
    large = _grid(Matmul(4096, 4096, 4096, 2), (128, 128, 128), 2)
    large = replace(large, sizes={**large.sizes, "b": np.ones(1)}, down=np.array([[1.0]]))
    roomy = replace(here, l2_capacity=1e18)
    sums = 4096**2 * 2
    launched = plan.combining_seconds(here, CONSTANTS, how)
    adding = here.at_clock(CONSTANTS["block_price"])
    assert seconds(large, roomy) == near([launched + adding + 8 * sums / rate])
    bare = replace(here, l2_capacity=0.0)
    memory_seconds = 8 * sums / memory.hbm_rate(here, CONSTANTS)
    assert seconds(large, bare) == near([launched + adding + memory_seconds])


# ---- How the terms are joined --------------------------------------------------------------------


def score(slices=(1.0, 2.0), *, busiest=6.0, together=2.0, steps=1e12, alone=0.0, **terms):
    """The score of two slicings of one tile: `terms` are seconds, all others next to nothing."""
    names = ("matrix", "port", "chain", "least", "l2", "limit", "second", "price")
    each = {name: np.array([[terms.get(name, 1e-30)]], dtype=np.float32) for name in names}
    cuts = np.array(slices, dtype=np.float32)[:, None, None]
    return screening._score(
        **each,
        per_step=np.array([[1 / steps]], dtype=np.float32),
        busiest=busiest * cuts,
        slices=cuts,
        resident=np.array([[together]], dtype=np.float32),
        lane_ratio=np.array([alone], dtype=np.float32),
        persistent=terms.get("persistent", False),
        loaded=terms.get("loaded", 0.0),
    )[:, 0, 0]


@pytest.mark.parametrize(
    ("terms", "whole", "halves"),
    [
        # Six blocks on the busiest unit, or twelve of half as much; two of them at once.
        ({"matrix": 5.0}, 30.0, 30.0),
        ({"port": 5.0}, 30.0, 30.0),
        ({"chain": 5.0}, 15.0, 15.0),
        ({"least": 5.0}, 5.0, 5.0),
        ({"l2": 5.0}, 5.0, 5.0),
        ({"l2": 5.0, "port": 0.5}, 5.0, 5.0),
        ({"limit": 5.0}, 5.0, 5.0),
        ({"limit": 31.0, "matrix": 5.0}, 31.0, 31.0),
        ({"limit": 29.0, "matrix": 5.0}, 30.0, 30.0),
        ({"second": 5.0}, 0.0, 5.0),
        ({"price": 5.0}, 15.0, 30.0),
        # Resources that overlap are joined by their squares.
        ({"matrix": 0.5, "least": 4.0}, 5.0, 5.0),
        ({"matrix": 0.5, "l2": 4.0}, 5.0, 5.0),
        ({"chain": 1.0, "least": 4.0}, 5.0, 5.0),
        ({"chain": 1.0, "matrix": 2 / 3}, 5.0, 5.0),
        # Loads queue behind what memory brings, twice as long while it is always busy.
        ({"chain": 1.0, "least": 3.0, "loaded": 1.0}, np.hypot(3.0, 4.5), np.hypot(3.0, 4.5)),
        ({"chain": 1.0, "l2": 1.0, "loaded": 1.0}, np.hypot(1.0, 3.75), np.hypot(1.0, 3.75)),
        ({"chain": 1.0, "l2": 1.0, "least": 3.0, "loaded": 1.0},
         np.sqrt(1 + 9 + 4.5**2), np.sqrt(1 + 9 + 4.5**2)),
        # A lone block keeps a quarter of the lanes awake, two of them half.
        ({"matrix": 5.0, "alone": 4.0}, 60.0, 60.0),
        ({"matrix": 5.0, "alone": 4.0, "busiest": 1.0}, 20.0, 10.0),
        ({"matrix": 5.0, "alone": 1.5}, 30.0, 30.0),
        # One block at most is held by a unit that has one.
        ({"chain": 5.0, "busiest": 0.5}, 5.0, 2.5),
        ({"price": 5.0, "busiest": 0.5}, 5.0, 5.0),
    ],
)  # fmt: skip
def test_screened_terms_join_as_worked_by_hand(terms, whole, halves):
    assert score(**terms) == near([whole, halves], rel=1e-5, abs=1e-9)


def test_what_a_block_fills_and_drains_is_exposed_once_a_round():
    # 30 s of products, 5 of memory, 15 of waiting, 3 of the L2: of 23 beside the longest each of
    # the 10 steps of a block hides none in its first, in 3 rounds, and 2 blocks share a unit.
    terms = {"matrix": 5.0, "least": 5.0, "chain": 5.0, "l2": 3.0}
    overlapped = np.sqrt(30**2 + 5**2 + 15**2 + 3**2)
    plain = score(**terms)
    assert plain == near([overlapped, overlapped], rel=1e-5)
    beyond = score(**terms, steps=10) - plain
    assert beyond == near([23 / 10 * (1 / 3 + 1 / 2), 23 / 10 * (2 / 6 + 2 / 2)], rel=1e-3)
    # A persistent block loads the next tile meanwhile.
    beyond = score(**terms, steps=10, persistent=True) - plain
    assert beyond == near([23 / 10 / 3, 23 / 10 / 3], rel=1e-3)
    # Whichever is the longest hides the rest.
    for name, each in (("least", 50.0), ("chain", 20.0), ("l2", 50.0)):
        longest = score(**terms | {name: each})
        rest = 30 + 5 + 15 + 3 - {"least": 5, "chain": 15, "l2": 3}[name]
        beyond = score(**terms | {name: each}, steps=10) - longest
        assert beyond[0] == near(rest / 10 * (1 / 3 + 1 / 2), rel=1e-3)
    # A unit with half a block is filled once.
    few = {"matrix": 5.0, "least": 5.0, "busiest": 0.5, "together": 1.0}
    beyond = score(**few, steps=10) - score(**few)
    assert beyond[0] == near(2.5 / 10 * 2, rel=1e-3)


@CASES
def test_scores_are_in_units_of_the_least_that_a_problem_takes(slug, dtype):
    """Its bytes at the memory's rate, and all its operations at that of all units."""
    found = both(slug, dtype, splits=(1, 2, 8))
    score, unit = screening.scores(found.grid, found.problem, found.how, found.here, CONSTANTS)
    problem, here = found.problem, found.here
    rate = here.matrix_per_unit(found.how.compute) * found.how.matrix_share * here.units
    work = 2.0 * problem.batch * problem.m * problem.n * problem.k / rate
    assert unit == near((work + found.terms["least"][:, None])[:, 0], rel=1e-5)
    # No column beats that by more than its screening leaves out, and one comes near it.
    assert np.all(score.min(axis=(0, 1)) > 0.5)


@pytest.mark.parametrize("name", ["cublas", "cutlass-fp8", "cublas-fp32", "weight-only"])
@pytest.mark.parametrize("waves", [np.inf, 2.5])
def test_the_best_by_score_are_kept_and_two_that_leave_k_whole(name, waves):
    """Of the columns that serve, fit, cut k anew and take no more than so many waves."""
    draw, keep = np.random.default_rng(7), 7
    kernel = replace(kernel_facts(name), splits=(1, 2, 3, 8))
    m, n, k = (sizes(draw, 1, 4096, 40)[:, None] for _ in range(3))
    found = Both(Matmul(m, n, k, dtype="w4a16"), kernel, machine(load("h100-sxm")))
    grid, menu, here = found.grid, found.menu, found.here
    score = found.columns(screening.scores(grid, found.problem, found.how, here, CONSTANTS)[0])
    slices, whole = found.columns(grid.slices), menu.slices == 1
    served = menu.serves(m, n) & (found.columns(grid.held_bytes) <= here.shared_per_block)
    anew = whole | (slices != np.roll(slices, 1, axis=1))
    few = whole | (found.columns(grid.tiles) * menu.slices <= waves * here.units)
    assert anew.mean() < 1
    assert (few.mean() < 1) == np.isfinite(waves)
    ranked = np.where(served & anew & few, score, np.inf)
    depth = grid.depth
    if np.ndim(depth):  # one of a column
        depth = np.repeat(depth[:, 0], menu.splits)[None]
    options = (found.problem, menu, found.how, here, CONSTANTS, depth, keep)
    kept = screening.promising(*options, waves)
    chosen = np.sort(np.take_along_axis(ranked, kept[:, :-2], axis=1), axis=1)
    assert chosen == near(np.sort(ranked, axis=1)[:, : keep - 2], rel=1e-4)
    two = np.take_along_axis(np.where(whole, ranked, np.inf), kept[:, -2:], axis=1)
    assert two == near(np.sort(np.where(whole, ranked, np.inf), axis=1)[:, :2], rel=1e-6)


@CASES
def test_scores_follow_the_full_times(slug, dtype):
    """For k of whole steps, and a memory that brings all once: the rest is left out."""
    found = both(slug, dtype, splits=(1, 3))
    whole = replace(found.problem, k=1024 * np.maximum(found.problem.k // 1024, 1))
    found = Both(whole, found.kernel, replace(found.here, l2_capacity=1e18))
    score, unit = screening.scores(found.grid, whole, found.how, found.here, CONSTANTS)
    full = plan.time_plan(found.here, CONSTANTS, found.plan, (N, found.menu.rows.size)).seconds
    timed = np.isfinite(full) & (found.columns(found.grid.slices) == found.menu.slices)
    apart = np.log(found.columns(score * unit)[timed] / full[timed])
    assert timed.mean() > 0.3
    assert np.all(np.abs(apart) < 0.4)
    assert np.quantile(np.abs(apart), 0.9) < 0.21
    assert np.abs(np.median(apart)) < 0.1
    if dtype == "fp32":  # one unit does all of it
        assert np.quantile(np.abs(apart), 0.9) < 0.12
