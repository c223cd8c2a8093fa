"""Fits without some rows, read off the fit to all of them, and ranges from what they miss."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel.errors import TableError
from perfmodel.timing.constants import default, shipped

pytest.importorskip("scipy", reason="fitting needs SciPy (extra [fit])")
pd = pytest.importorskip("pandas", reason="fitting reads tables")

from perfmodel.fitting import coverage, ranges  # noqa: E402
from perfmodel.fitting.estimation import fit  # noqa: E402
from perfmodel.fitting.heldout import (  # noqa: E402
    COLUMNS,
    folds,
    labels,
    left_out,
    linearised,
    without_each,
)
from perfmodel.fitting.starts import shown  # noqa: E402
from perfmodel.table.records import tidy  # noqa: E402
from perfmodel.validation.compare import predict_table  # noqa: E402

MOVED = {"row_price": 1.6, "vector_share": 0.85}


def cases() -> pd.DataFrame:
    """Runs of three operators on four devices by two frameworks."""
    shapes = [{"op": "softmax", "rows": n, "cols": 1024} for n in (64, 1024, 16384, 65536)]
    shapes += [{"op": "layernorm", "rows": n, "cols": 2048} for n in (64, 1024, 16384, 65536)]
    shapes += [{"op": "gemm", "m": n, "n": n, "k": n, "batch": 1} for n in (256, 1024, 4096)]
    common = {"source": "made", "harness": "kernel", "dtype": "bf16", "direction": "fwd"}
    devices = ("a100-sxm4-80gb", "a100-sxm4-40gb", "h100-sxm", "v100-sxm2")
    rows = [
        {**common, "device": device, "implementation": by, **shape}
        for device in devices
        for by in ("torch-2.4:eager", "vllm-0.24:kernel")
        for shape in shapes
    ]
    return tidy(pd.DataFrame(rows).assign(measured_us=1.0, flag=""))


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    """Those runs, 'measured' by the model with other constants on one device."""
    table = cases()
    values = default()
    other = values.with_values({name: values[name] * by for name, by in MOVED.items()})
    usual = predict_table(table, constants=values)["predicted_us"]
    changed = predict_table(table, constants=other)["predicted_us"]
    odd = table["device"] == "h100-sxm"
    return table.assign(measured_us=usual.where(~odd, changed).to_numpy())


@pytest.fixture(scope="module")
def fitted(runs):
    """A fit to them."""
    found = [item.constant for item in fit(runs, shipped(), steps=6)]
    values = default()
    return linearised(runs, found, dict(values.runs), shown(runs, values))


def test_columns_are_left_out_a_value_at_a_time(runs):
    assert set(labels(runs, "framework")) == {"torch", "vllm"}
    assert set(labels(runs, "architecture")) == {"ampere-ga100", "hopper", "volta"}
    for column in set(COLUMNS) - {"source"}:
        found = folds(runs, column)
        assert len(found) == labels(runs, column).nunique()
        assert sum(mine.sum() for _, mine in found) == len(runs)
    with pytest.raises(TableError, match="more than one source"):
        folds(runs, "source")


def test_a_fit_without_rows_is_near_the_one_that_starts_anew(runs, fitted):
    mine = (runs["device"] == "h100-sxm").to_numpy()
    found = {c.name: c.value for c in fitted.without(mine)}
    anew = {i.constant.name: i.constant.value for i in fit(runs[~mine], shipped(), steps=8)}
    whole = {c.name: c.value for c in fitted.constants}
    moved = [name for name in MOVED if abs(np.log(whole[name] / anew[name])) > 0.005]
    assert moved, "the device left out had moved a constant"
    for name in moved:
        assert abs(np.log(found[name] / anew[name])) < abs(np.log(whole[name] / anew[name])), name


def test_what_no_other_row_reads_returns_to_its_prior(fitted):
    everything = np.ones(len(fitted.table), dtype=bool)
    everything[0] = False
    found = {c.name: c for c in fitted.without(everything)}
    softmax = found["chained_block_price"]
    assert softmax.value == pytest.approx(softmax.prior, rel=1e-3)
    within = all(c.low <= c.value <= c.high for c in found.values() if c.fitted)
    assert within


def test_rows_left_out_are_in_the_order_of_the_table(runs, fitted):
    found = left_out(fitted, "device")
    assert list(found.index) == list(runs.index)
    assert (found["held_out"] == runs["device"]).all()
    assert found["predicted_us"].notna().all()
    seen = predict_table(runs, constants=default())
    assert not np.allclose(found["predicted_us"], seen["predicted_us"], rtol=1e-6)


def test_starts_are_forgotten_with_the_rows_that_showed_them(fitted):
    held = {fold.value: fold.constants for fold in without_each(fitted, "device")}
    for values in held.values():
        starts = values.run("cuda_graph").starts
        assert set(starts) < set(default().run("cuda_graph").starts), "nobody timed so"
        assert "any" in starts


def predicted(errors: np.ndarray, groups: np.ndarray, family: str = "softmax") -> pd.DataFrame:
    """Rows of 100 us that missed by `errors`, a source for each group."""
    table = pd.DataFrame({
        "op": family, "dtype": "fp32", "direction": "fwd", "phase": "", "flag": "",
        "device": "t4", "implementation": "torch", "source": groups.astype(str),
        "predicted_us": 100.0,
    })  # fmt: skip
    return table.assign(measured_us=table["predicted_us"] * np.exp(errors))


def test_groups_weigh_alike_however_many_runs_they_have():
    errors = np.r_[np.full(4000, 0.01), np.full(40, 0.5), np.full(40, -0.4)]
    groups = np.repeat([0, 1, 2], [4000, 40, 40])
    entry = ranges.spread_of(predicted(errors, groups))["softmax"]
    assert entry["high"][2] == pytest.approx(0.5, abs=0.02)
    assert entry["low"][2] == pytest.approx(-0.4, abs=0.02)
    assert entry["groups"] == 3
    alone = ranges.spread_of(predicted(errors[:4000], groups[:4000]), {"softmax": 0.05})
    assert alone["softmax"]["low"][2] == -0.05


def test_factors_hold_four_fifths_of_what_is_missed_and_lean_where_it_does():
    rng = np.random.default_rng(7)
    groups = np.repeat(np.arange(200), 20)
    widths = ranges.spread_of(predicted(rng.normal(0, 0.1, 4000), groups))
    worse = predicted(rng.normal(0.2, 0.2, 4000), groups)
    low, high = ranges.Missed(widths).add(worse).factors()
    assert high > 2.5 > low >= 1.0
    error = np.log(worse["measured_us"] / worse["predicted_us"])
    entry = widths["softmax"]
    inside = (error >= entry["low"][2] * low) & (error <= entry["high"][2] * high)
    assert inside.mean() == pytest.approx(0.82, abs=0.04)


def test_coverage_is_of_groups_that_their_range_has_not_seen():
    rng = np.random.default_rng(8)
    groups = np.repeat(np.arange(60), 50)
    bias = rng.normal(0, 0.2, 60)[groups]
    usual = predicted(rng.normal(0, 0.1, 3000), groups)
    missed = predicted(bias + rng.normal(0, 0.1, 3000), groups)
    rows = coverage.held_against_others(missed, missed["source"], usual, widened=True)
    inside = (rows["low_us"] <= rows["measured_us"]) & (rows["measured_us"] <= rows["high_us"])
    assert inside.mean() == pytest.approx(0.8, abs=0.07)
    narrow = coverage.held_against_others(missed, missed["source"], usual, widened=False)
    held = (narrow["low_us"] <= narrow["measured_us"]) & (
        narrow["measured_us"] <= narrow["high_us"]
    )
    assert held.mean() < 0.6


def test_what_was_met_says_what_was_known():
    groups = ranges.first_met()
    assert len(groups) > 100
    assert all(list(one["deciles"]) == sorted(one["deciles"]) for one in groups)
    near, far = (ranges.met(device=level) for level in ("sibling", "generation"))
    assert len(near) > 10 < len(far)

    def size(each):
        return np.median([max(map(abs, one["deciles"])) for one in each])

    assert size(far) > size(near)


def test_two_frameworks_of_one_kernel_say_how_narrow_a_family_may_be(runs):
    table = runs[runs["op"] == "gemm"]
    found = predict_table(table)
    slower = np.where(labels(table, "framework") == "vllm", 1.2, 1.0)
    apart = ranges.between_frameworks(
        table.assign(measured_us=table["measured_us"] * slower), found
    )
    assert apart == {"gemm-16": pytest.approx(np.log(1.2) / 2)}
    alone = table[labels(table, "framework") == "vllm"]
    assert ranges.between_frameworks(alone, found) == {}


def test_the_file_is_what_the_model_reads(fitted, runs):
    import yaml

    from perfmodel.timing.knowledge import LEVELS

    found = yaml.safe_load(ranges.text(ranges.table_of(fitted, runs)))
    assert found["version"] == ranges.VERSION
    assert {axis: set(each) for axis, each in found["factors"].items()} == {
        axis: set(levels) for axis, levels in LEVELS.items()
    }
    entry = found["families"]["gemm-16"]
    assert entry["devices"] == sorted(set(runs["device"]))
    assert "torch cublas" in entry["kernels"]
