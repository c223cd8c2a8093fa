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
from perfmodel.timing import matmul, occupancy, plan, screening
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
