"""The grid of a sweep and its chunks: every point once, in order, with what `predict` says."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import raised

from perfmodel import operators
from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.analysis.sweep import LIMIT, Grid, Sweep
from perfmodel.analysis.sweep.chunk import chunk_table, column_kinds
from perfmodel.analysis.sweep.runner import tables
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import load
from perfmodel.predict import predict

H100 = load("h100-sxm")


def attention_grid(**changes):
    sizes = {
        "batch": np.array([1, 3]),
        "heads_q": np.array([8, 12]),
        "heads_kv": np.array([4, 8]),
        "head_dim": np.array([64, 128]),
        "seq_q": np.array([1, 500, 2048]),
    }
    kinds = {"causal": (True,), "dtype": ("bf16", "fp16"), "direction": ("fwd",)}
    return Grid(
        operators.load("attention"),
        changes.get("sizes", sizes),
        changes.get("kinds", kinds),
        changes.get("follows", {"seq_kv": "seq_q"}),
        changes.get("schedules", ("auto",)),
    )


def gemm_grid(m, n=(256,), k=(256,), dtype=("bf16",)):
    sizes = {"m": np.array(m), "n": np.array(n), "k": np.array(k)}
    return Grid(operators.load("gemm"), sizes, {"dtype": tuple(dtype)})


def rows_of(sweep):
    return [row for table in tables(sweep) for row in table.to_pylist()]


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.lists(st.integers(1, 3), min_size=1, max_size=2),
    st.integers(1, 20),
)
def test_a_range_of_indices_is_that_slice_of_the_product(lengths, kinds, chunk):
    names = ["rows", "cols", "inputs", "outputs"][: len(lengths)]
    sizes = {name: np.arange(1, n + 1) * 8 for name, n in zip(names, lengths, strict=True)}
    sizes.setdefault("cols", np.array([8]))
    tables = {"dtype": ("fp32", "fp16", "bf16")[: kinds[0]]}
    if len(kinds) > 1:
        tables["variant"] = ("add", "gelu", "silu")[: kinds[1]]
    grid = Grid(operators.load("pointwise"), sizes, {"op": ("pointwise",), **tables})
    expected = list(itertools.product(("auto",), ("pointwise",), *tables.values(), *sizes.values()))
    found = []
    for start in range(0, len(grid), chunk):
        points = grid.decode(start, min(start + chunk, len(grid)))
        seen = np.zeros(len(points), dtype=int)
        lines = [None] * len(points)
        for group in points.groups:
            seen[group.rows] += 1
            for i, row in enumerate(group.rows):
                values = [getattr(group.problem, name)[i] for name in sizes]
                said = [getattr(group.problem, name) for name in tables]
                lines[row] = (group.schedule, group.problem.op, *said, *values)
        assert np.all(seen == 1)
        found += lines
    assert found == expected


def test_rows_are_what_predict_says_whatever_the_chunk():
    whole = rows_of(Sweep(attention_grid(), (H100,)))
    assert rows_of(Sweep(attention_grid(), (H100,), chunk=7)) == whole
    assert [row["case"] for row in whole] == list(range(len(whole)))
    for row in whole:
        if row["reason"]:
            assert row["heads_q"] % row["heads_kv"]
            assert row["time_us"] is None
            continue
        names = ("batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "head_dim", "dtype")
        problem = Attention(**{name: row[name] for name in names}, causal=True)
        one = predict(problem, H100)
        # A case may be timed among others of its group, never differently.
        assert row["time_us"] == pytest.approx(one.seconds * 1e6, rel=1e-12)
        assert row["limiter"] == one.limiter
        assert row["schedule"] == one.schedule
        assert row["bytes_hbm"] == pytest.approx(one.bytes["hbm"], rel=1e-12)
        assert {f"tile_{name}": value for name, value in one.tile.items()}.items() <= row.items()


def test_the_columns_have_room_for_every_part_of_a_tile():
    problems = {
        "attention": [Attention(2, 8, 8, q, 512, 64, direction=way) for q in (1, 512) for way in
                      ("fwd", "bwd", "fwdbwd") if q > 1 or way == "fwd"],
        "gemm": [Matmul(64, 64, 64), Matmul(64, 64, 64, batch=2)],
        "softmax": [Rowwise("softmax", 8, 8)],
    }  # fmt: skip
    for operator, cases in problems.items():
        for problem in cases:
            assert set(predict(problem, H100).tile) <= set(operators.load(operator).tile), problem


def test_devices_come_one_after_the_other_and_kinds_have_their_type():
    sweep = Sweep(gemm_grid((64, 128), dtype=("bf16", "fp16")), (H100, load("b200")))
    rows = rows_of(sweep)
    assert [(row["device"], row["dtype"], row["m"]) for row in rows] == list(
        itertools.product(("h100-sxm", "b200"), ("bf16", "fp16"), (64, 128))
    )
    assert set(column_kinds(sweep)) == set(rows[0])


def test_what_one_device_lacks_keeps_its_row_and_says_why():
    sweep = Sweep(gemm_grid((64, 128), dtype=("fp8", "bf16")), (load("a100"), H100))
    sweep.check()
    rows = rows_of(sweep)
    assert len(rows) == 8
    lacking = [row for row in rows if row["reason"]]
    assert {(row["device"], row["dtype"]) for row in lacking} == {("a100-sxm4-80gb", "fp8")}
    assert all("no fp8 matrix rate" in row["reason"] for row in lacking)
    assert all(row["time_us"] > 0 for row in rows if not row["reason"])


def test_a_head_that_fits_nowhere_does_not_take_the_others_with_it():
    sizes = {"batch": np.array([1]), "heads_q": np.array([4]), "seq_q": np.array([256, 512])}
    sizes["head_dim"] = np.array([64, 8192])
    grid = attention_grid(sizes=sizes, follows={"heads_kv": "heads_q", "seq_kv": "seq_q"})
    rows = rows_of(Sweep(grid, (H100,)))
    assert {row["head_dim"] for row in rows if row["reason"]} == {8192}
    assert all("fits on h100-sxm" in row["reason"] for row in rows if row["reason"])


def test_windows_of_zero_see_everything():
    sizes = {**attention_grid().sizes, "window": np.array([0, 64])}
    rows = [
        row for row in rows_of(Sweep(attention_grid(sizes=sizes), (H100,))) if not row["reason"]
    ]
    plain = [row for row in rows_of(Sweep(attention_grid(), (H100,))) if not row["reason"]]
    assert [row["time_us"] for row in rows if row["window"] == 0] == [r["time_us"] for r in plain]


def test_empty_grids_are_refused():
    raised(ProblemError, lambda: gemm_grid(()), "empty", "m has no value")
    raised(ProblemError, lambda: Sweep(gemm_grid((8,)), ()), "empty", "--device")
    odd = {**attention_grid().sizes, "heads_q": np.array([7]), "heads_kv": np.array([2, 3])}
    raised(ProblemError, lambda: attention_grid(sizes=odd), "empty", "multiple")


def test_large_grids_are_refused_without_yes():
    sides = np.arange(1, 4097)
    sweep = Sweep(gemm_grid(sides, sides, (8, 16)), (H100, load("b200")))
    assert sweep.points == 2 * 2 * 4096**2 > LIMIT
    raised(ProblemError, sweep.check, "67,108,864", "50,000,000", "--yes")
    sweep.check(yes=True)


def test_what_could_never_be_predicted_is_refused_before_any_work():
    raised(ProblemError, lambda: attention_grid(schedules=("tiled", "flat")), "'flat'")
    kinds = {"causal": (False,), "dtype": ("bf16", "bf17")}
    raised(UnknownName, Sweep(attention_grid(kinds=kinds), (H100,)).check, "bf17", "bf16")
    raised(ProblemError, Sweep(gemm_grid((8,), dtype=("fp8",)), (load("a100"),)).check, "fp8")
    raised(ProblemError, Sweep(gemm_grid((8,)), (H100,), harness="sundial").check, "sundial")
    raised(ProblemError, lambda: Sweep(gemm_grid((8,)), (H100, H100)), "twice")
    raised(ProblemError, lambda: Sweep(gemm_grid((8,)), (H100,), chunk=0), "chunk")


def test_a_point_of_a_huge_grid_is_decoded_alone():
    side = np.arange(1, 1_000_001)
    sweep = Sweep(gemm_grid(side, side, side), (H100,))
    assert len(sweep.grid) == 10**18
    points = sweep.grid.decode(10**18 - 2, 10**18)
    assert points.sizes["k"].tolist() == [999_999, 1_000_000]
    last = sweep.part(sweep.parts - 1)
    assert last.stop == 10**18
    three = Sweep(sweep.grid, (H100,), chunk=3)
    assert chunk_table(three, three.part(0)).num_rows == 3
