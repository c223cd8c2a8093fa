"""The fit: finds constants that were planted, twice the same, and leaves out what is impossible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("scipy", reason="fitting needs SciPy (extra [fit])")
pd = pytest.importorskip("pandas", reason="fitting reads tables")

from perfmodel.fitting.estimation import _MOVED, _Problem, fit, sample, weights  # noqa: E402
from perfmodel.fitting.fit import main, possible  # noqa: E402
from perfmodel.fitting.ranges import spread_of  # noqa: E402
from perfmodel.table.records import tidy  # noqa: E402
from perfmodel.timing.constants import default, shipped  # noqa: E402
from perfmodel.validation.compare import predict_table  # noqa: E402

# Far enough from the shipped values to be told apart, inside their bounds.
PLANTED = {"row_price": 1.5e-6, "vector_loop_share": 0.7}
START = tuple(replace(c, fitted=c.fitted or c.name in PLANTED) for c in shipped())


def cases() -> pd.DataFrame:
    """Runs of three operators on three devices, none of them measured."""
    rowwise = ("softmax", "layernorm", "pointwise")
    shapes = [(64, 512), (1024, 1024), (4096, 4096), (16384, 2048), (65536, 1024)]
    shapes += [(rows, 4096) for rows in (8192, 16384, 32768, 65536, 131072)]
    problems = [{"op": op, "rows": n, "cols": c} for n, c in shapes for op in rowwise]
    sides = (256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
    problems += [{"op": "gemm", "m": side, "n": side, "k": side, "batch": 1} for side in sides]
    common = {"source": "made", "harness": "kernel", "dtype": "fp32", "direction": "fwd"}
    rows = [
        {**common, "implementation": "torch", "device": device, **problem}
        for device in ("p100-pcie-16gb", "t4", "a100-sxm4-80gb")
        for problem in problems
    ]
    table = pd.DataFrame(rows).assign(measured_us=1.0, flag="")
    return tidy(table)


@pytest.fixture(scope="module")
def planted() -> pd.DataFrame:
    """Those runs, 'measured' by the model itself with other constants."""
    table = cases()
    values = default().with_values(PLANTED)
    found = predict_table(table, constants=values)
    assert found["predicted_us"].notna().all()
    return table.assign(measured_us=found["predicted_us"])


@pytest.fixture(scope="module")
def fitted(planted):
    return fit(planted, START, only=tuple(PLANTED), steps=20)


def test_planted_constants_are_found(fitted):
    found = {item.constant.name: item for item in fitted if item.constant.name in PLANTED}
    for name, value in PLANTED.items():
        # The pull towards the prior keeps the last few percent.
        assert found[name].constant.value == pytest.approx(value, rel=0.05), name
        assert default()[name] != pytest.approx(value, rel=0.1), name
        assert found[name].identified


def test_rows_that_no_constant_explains_are_let_go(planted):
    # Another release under the same name: every eighth row takes three times as long.
    slower = np.where(np.arange(len(planted)) % 8 == 0, 3.0, 1.0)
    spoilt = planted.assign(measured_us=planted["measured_us"] * slower)
    found = {i.constant.name: i.constant.value for i in fit(spoilt, START, only=tuple(PLANTED))}
    for name, value in PLANTED.items():
        assert found[name] == pytest.approx(value, rel=0.1), name


def test_everything_else_keeps_its_value(fitted):
    assert [item.constant.name for item in fitted] == [c.name for c in START]
    for item, before in zip(fitted, START, strict=True):
        if before.name not in PLANTED:
            assert item.constant == before
            assert (item.low, item.high, item.identified) == (before.value, before.value, False)


def test_the_fit_is_the_same_twice(planted, fitted):
    shuffled = planted.sample(frac=1, random_state=1).sort_index()
    assert fit(shuffled, START, only=tuple(PLANTED), steps=20) == fitted


def test_a_fit_knows_nothing_of_an_earlier_one(planted):
    names = ("row_price", "vector_loop_share", "l2_share")
    moved = [replace(c, value=c.high) if c.name in names else c for c in START]
    from_shipped = fit(planted, START, only=names, steps=3)
    assert fit(planted, moved, only=names, steps=3) == from_shipped


def test_only_slopes_of_constants_that_moved_are_found_anew(planted, monkeypatch):
    asked = []
    found = _Problem.sensitivity

    def watched(self, x, base=None, columns=None):
        asked.append((x.copy(), range(len(x)) if columns is None else list(columns)))
        return found(self, x, base, columns)

    monkeypatch.setattr(_Problem, "sensitivity", watched)
    # What no run reads stays at its prior, and its slope stays 0.
    names = (*PLANTED, "chained_block_price")
    result = fit(planted, START, only=names, steps=20)
    unread = next(i.constant for i in result if i.constant.name == "chained_block_price")
    assert unread.value == pytest.approx(unread.prior, rel=1e-9)
    where = [c.name for c in START if c.name in names].index("chained_block_price")
    (start, first), *later = asked
    assert list(first) == [0, 1, 2]
    assert later
    assert all(where not in columns for _, columns in later)
    assert any(columns for _, columns in later)
    moved = np.abs(later[0][0] - start) > _MOVED
    assert later[0][1] == list(np.flatnonzero(moved))


def test_fitted_values_stay_within_their_bounds(planted):
    absurd = planted.assign(measured_us=planted["measured_us"] * 1e-3)
    for item in fit(absurd, START, only=("row_price",), steps=3):
        assert item.constant.low <= item.constant.value <= item.constant.high


def test_what_the_data_do_not_touch_is_not_identified(planted):
    # No attention among the runs, so its constants keep what their source says.
    name = "chained_matrix_share"
    found = next(
        item for item in fit(planted, START, only=(name,), steps=3) if item.constant.name == name
    )
    assert found.constant.value == pytest.approx(found.constant.prior, rel=1e-6)
    assert not found.identified


def test_flagged_and_impossible_rows_are_left_out():
    table = cases()
    table.loc[0, "flag"], table.loc[1, "flag"] = "noisy", "timer_floor"
    table.loc[2, "measured_us"] = 0.0
    table.loc[3, "flag"] = "l2_resident"  # a test of the model, not a defect
    kept = sample(table)
    assert len(kept) == len(table) - 3
    assert (kept["flag"] == "l2_resident").sum() == 1


def test_rows_faster_than_their_device_are_left_out_and_counted(planted, capsys):
    table = planted.copy()
    first = int(np.flatnonzero(table["op"] == "gemm")[-1])
    table.loc[first, "measured_us"] = 1e-3
    assert len(possible(table)) == len(table) - 1
    said = capsys.readouterr().out
    assert said.startswith(f"left out 1 rows faster than their device can be (row {first + 1} ")
    assert said.count("\n") == 1


def test_one_device_is_refused_before_anything_is_fitted(planted, tmp_path, capsys):
    table = planted.query("device == 't4'")
    path = tmp_path / "runs.csv"
    table.to_csv(path, index=False)
    assert main([str(path), "--output", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert (
        said.err
        == "perfmodel.fitting.fit: nothing to leave out: give runs of more than one device\n"
    )
    assert said.out == ""
    assert [found.name for found in tmp_path.iterdir()] == ["runs.csv"]


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_fitted(
    planted, tmp_path, capsys
):
    path = tmp_path / "runs.csv"
    planted.to_csv(path, index=False)
    assert main([str(path), "--output", str(path / "inside")]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("perfmodel.fitting.fit: ")
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_a_sample_takes_the_fastest_and_the_slowest_of_every_kind():
    table = cases().assign(measured_us=np.arange(1.0, len(cases()) + 1))
    kept = sample(table, per_kind=2, per_root=0)
    for _, rows in table.groupby(["device", "op"]):
        times = rows["measured_us"]
        assert {times.min(), times.max()} <= set(kept["measured_us"])
    assert len(kept) == 2 * table.groupby(["device", "op"]).ngroups


def test_a_large_kind_gives_rows_as_its_square_root():
    table = pd.concat([cases().query("op == 'gemm' and device == 't4'")] * 250, ignore_index=True)
    assert len(table) == 2500
    assert len(sample(table, per_kind=12, per_root=4.0)) == 200
    assert len(sample(table, per_kind=300, per_root=4.0)) == 300


def test_small_families_weigh_more_a_row_and_less_in_all():
    table = cases()
    large = pd.concat([table[table["op"] == "softmax"]] * 9 + [table[table["op"] == "gemm"]])
    large = large.reset_index(drop=True)
    square = weights(large) ** 2
    softmax = (large["op"] == "softmax").to_numpy()
    assert square[softmax].mean() < square[~softmax].mean()
    assert square[softmax].sum() > square[~softmax].sum()
    assert np.mean(square) == pytest.approx(1.0)


def test_spread_holds_four_fifths_of_what_it_was_made_from():
    n = 4000
    errors = np.random.default_rng(2).normal(0.05, 0.2, n)
    table = pd.DataFrame({
        "op": "softmax", "dtype": "fp32", "direction": "fwd", "phase": "", "flag": "",
        "predicted_us": np.geomspace(2, 5000, n), "source": "made", "device": "t4",
        "implementation": "torch",
    })  # fmt: skip
    table["measured_us"] = table["predicted_us"] * np.exp(errors)
    found = spread_of(table)["softmax"]
    bins = np.searchsorted(found["edges_us"], table["predicted_us"])
    low, high = np.array(found["low"])[bins], np.array(found["high"])[bins]
    assert np.mean((low <= errors) & (errors <= high)) == pytest.approx(0.8, abs=0.01)
    assert found["n"] == n


def test_a_bin_with_few_rows_borrows_from_its_family():
    table = pd.DataFrame({
        "op": "gemm", "dtype": "bf16", "direction": "fwd", "phase": "", "flag": "",
        "predicted_us": [*np.full(200, 20.0), 5000.0], "source": "made", "device": "t4",
        "implementation": "torch",
    })  # fmt: skip
    table["measured_us"] = table["predicted_us"] * np.exp(np.linspace(-0.3, 0.3, 201))
    found = spread_of(table)["gemm-16"]
    assert found["low"][-1] == pytest.approx(-0.24, abs=0.01)
    assert len(found["low"]) == len(found["edges_us"]) + 1
