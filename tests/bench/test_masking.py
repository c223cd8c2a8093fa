"""Predictions of runs with an unknown library, harness or device."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel.algorithms import Attention
from perfmodel.count import executed
from perfmodel.hardware import load, names
from perfmodel.hardware.facts import walk
from perfmodel.predict import predict
from perfmodel.table.records import tidy
from perfmodel.validation.compare import predict_table
from perfmodel.validation.masking import MASKS, datasheet, masked

pd = pytest.importorskip("pandas")

ROWS = [
    {
        "device": "a100-sxm4-80gb", "op": "attention", "dtype": "bf16", "direction": "fwd",
        "implementation": implementation, "harness": harness, "causal": True, "batch": 2,
        "heads_q": 16, "heads_kv": 16, "seq_q": seq, "seq_kv": seq, "head_dim": 128,
        "measured_us": 100.0,
    }
    for implementation, harness in (("eager", "cuda_events_eager"), ("flash2", "cuda_graph"))
    for seq in (128, 2048)
]  # fmt: skip


@pytest.fixture(scope="module")
def table():
    return tidy(pd.DataFrame(ROWS))


@pytest.mark.parametrize("mask", MASKS)
def test_what_is_masked_changes_times_and_no_names(table, mask):
    known, found = predict_table(table), masked(table, mask)
    assert found["predicted_us"].notna().all()
    assert not np.allclose(found["predicted_us"], known["predicted_us"], rtol=1e-3)
    for name in ("device", "implementation", "harness"):
        assert list(found[name]) == list(table[name])


def test_a_masked_name_is_timed_as_any_other_unknown_one(table):
    other = table.assign(implementation="nobody-1.0:none")
    found = masked(table, "implementation")["predicted_us"]
    assert np.array_equal(found, predict_table(other)["predicted_us"])
    assert found.iloc[:2].to_numpy() != pytest.approx(found.iloc[2:].to_numpy()), "harnesses stay"


def test_a_data_sheet_has_nothing_measured_and_all_else():
    for slug in names():
        device = load(slug)
        sheet = datasheet(device)
        if sheet is device:
            assert device.kind == "cpu"
            continue
        kept = {path: fact for path, fact in walk(device) if fact.status != "measured"}
        kept = {path: fact for path, fact in kept.items() if path[0] != "measured"}
        assert dict(walk(sheet)) == kept
        assert sheet.measured is None


def test_a_data_sheet_is_a_device_that_can_be_predicted():
    shape = Attention(2, 16, 16, 2048, 2048, 128)
    sheet = datasheet(load("h100-sxm"))
    assert predict(shape, sheet).seconds != predict(shape, load("h100-sxm")).seconds


def test_without_a_menu_nothing_is_padded():
    assert [executed.next_extent(96, menu) for menu in ((), (64, 128), (64,))] == [96, 128, 128]
