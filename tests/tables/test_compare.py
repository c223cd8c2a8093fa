"""Predicting tables and judging it: every row kept, statistics that obey their laws."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul
from perfmodel.errors import TableError
from perfmodel.hardware import load
from perfmodel.predict import predict
from perfmodel.table import cells
from perfmodel.table.provenance import corrections, notes
from perfmodel.table.reading import read
from perfmodel.table.records import published, tidy, write_table
from perfmodel.timing.libraries import is_known, kernels
from perfmodel.validation import compare, noise
from perfmodel.validation.compare import diagnoses, predict_table
from perfmodel.validation.judging import counted, gate, report, scored
from perfmodel.validation.kinds.operator import KIND

GEMM = {"device": "h100-sxm", "op": "gemm", "dtype": "bf16", "m": 4096, "n": 512, "k": 1024}
ATTENTION = {
    "device": "a100-sxm4-80gb", "op": "attention", "dtype": "fp16", "batch": 2, "heads_q": 16,
    "heads_kv": 4, "seq_q": 2048, "seq_kv": 2048, "head_dim": 128, "causal": True,
}  # fmt: skip
SOFTMAX = {"device": "h100-sxm", "op": "softmax", "dtype": "fp32", "rows": 4096, "cols": 8192}


def table(*rows, measured_us=100.0):
    return tidy(pd.DataFrame([{"measured_us": measured_us, **row} for row in rows]))


def judged(measured, predicted, **columns):
    """A predicted table as `report` takes it."""
    frame = pd.DataFrame({"measured_us": measured, "predicted_us": predicted, "flag": ""})
    frame["low_us"], frame["high_us"] = frame["predicted_us"] * 0.8, frame["predicted_us"] * 1.25
    return frame.assign(**columns)


@pytest.mark.parametrize(("suffix", "bad_rows"), [("csv", 1), ("parquet", 0)])
def test_a_text_that_repeats_takes_a_byte_a_row(tmp_path, suffix, bad_rows):
    """12 texts of a byte, 14 sizes of 9, `causal` of 2 and the time of 8: 148 bytes a row read.
    Results add 7 numbers of 8 bytes, the noise of 8, and 8 texts with the verdict: 220.

    Texts of some hundred bytes, stored once, and the few rows' own bytes are the rest.
    """
    names = {"source": "a paper", "harness": "cuda_events", "implementation": "torch"}
    rows = pd.concat([table(GEMM | names, ATTENTION | names, SOFTMAX)] * 700, ignore_index=True)
    rows.loc[: bad_rows - 1, "measured_us"] = -1.0
    path = tmp_path / f"runs.{suffix}"
    write_table(rows, path)
    reading = read(path, KIND.layout)
    predicted = KIND.predicted(reading.table, reading.faults)
    predicted = noise.judged(predicted, KIND.fields, reading.case)
    for found, most in ((reading.table, 152), (predicted, 226)):
        assert len(found) == len(rows)
        assert found.memory_usage(deep=True, index=False).sum() / len(rows) <= most
    joined = read([path, path], KIND.layout).table
    assert joined.memory_usage(deep=True, index=False).sum() / len(joined) <= 152
    assert len(counted(predicted["reason"])) == bad_rows


@given(st.lists(st.sampled_from(["", "b", "a", " a", "NaN", None]), max_size=8))
def test_texts_as_categories_are_the_texts(texts):
    column = pd.Series(texts, dtype="object")
    plain = cells.text(column)
    assert cells.words(column).astype("str").tolist() == plain.tolist()
    given = column.astype("category").cat.set_categories(["b", " a", "a", "", "NaN", "none of it"])
    assert cells.text(given).tolist() == plain.tolist()
    words = cells.words(given)
    assert words.tolist() == plain.tolist()
    assert words.cat.categories.is_monotonic_increasing


def test_every_kind_of_row_is_predicted_in_its_place():
    norms = [{**SOFTMAX, "op": op} for op in ("layernorm", "rmsnorm", "quantise")]
    point = {**SOFTMAX, "op": "pointwise", "variant": "add", "inputs": 2, "outputs": 1}
    decode = {**ATTENTION, "seq_q": 1, "kv_dtype": "fp8"}
    windowed = {**ATTENTION, "window": 256}
    rows = [GEMM, ATTENTION, SOFTMAX, *norms, point, decode, windowed, {**GEMM, "m": 8192}]
    whole = predict_table(table(*rows))
    assert (whole["reason"] == "").all()
    for i, row in enumerate(rows):
        alone = predict_table(table(row)).iloc[0]
        assert whole.iloc[i]["predicted_us"] == alone["predicted_us"]
        assert alone["low_us"] <= alone["predicted_us"] <= alone["high_us"]
        assert alone["limiter"]


@pytest.mark.parametrize(
    "variant", ["dropout", "padding_mask", "padding_mask+dropout", "keys_only"]
)
def test_an_attention_row_says_in_its_variant_what_it_masks_and_drops(variant):
    row = predict_table(table({**ATTENTION, "implementation": "torch", "variant": variant})).iloc[0]
    asked = dict.fromkeys(variant.split("+"), True)
    problem = Attention(2, 16, 4, 2048, 2048, 128, causal=True, dtype="fp16", **asked)
    one = predict(problem, load("a100-sxm4-80gb"), implementation="torch")
    assert row["predicted_us"] == pytest.approx(one.seconds * 1e6)


def test_circumstances_reach_the_model():
    plain, eager, cache = predict_table(
        table(
            ATTENTION,
            {**ATTENTION, "harness": "cuda_events_eager"},
            {**ATTENTION, "harness": "cuda_graph", "includes": "kv_write"},
        )
    )["predicted_us"]
    assert eager > plain
    assert cache > plain


def test_backward_of_a_matmul_is_two_matmuls():
    row = predict_table(table({**GEMM, "direction": "bwd"})).iloc[0]
    h100 = load("h100-sxm")
    parts = [Matmul(4096, 1024, 512), Matmul(1024, 512, 4096)]  # dA = dC·Bᵀ, dB = Aᵀ·dC
    assert row["predicted_us"] == pytest.approx(sum(predict(p, h100).seconds for p in parts) * 1e6)
    both = predict_table(table({**GEMM, "direction": "fwdbwd"})).iloc[0]
    forward = predict(Matmul(4096, 512, 1024), h100).seconds * 1e6
    assert both["predicted_us"] == pytest.approx(row["predicted_us"] + forward)


def test_both_passes_of_a_row_wise_operator_add_up():
    ways = [{**SOFTMAX, "direction": way} for way in ("fwd", "bwd", "fwdbwd")]
    there, back, both = predict_table(table(*ways))["predicted_us"]
    assert both == pytest.approx(there + back)
    assert back > there


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({**GEMM, "op": "lstm"}, "no model of operation 'lstm'; known: attention, gemm"),
        ({**GEMM, "device": "h10-sxm"}, "no device named 'h10-sxm'; did you mean"),
        ({**GEMM, "k": None}, "gemm row without k"),
        ({**GEMM, "m": 0}, "m is 0, below 1"),
        ({**GEMM, "batch": -2}, "batch is -2, below 1"),
        ({**GEMM, "direction": "up"}, "unknown direction 'up'; known: fwd, bwd, fwdbwd"),
        ({**GEMM, "dtype": "fp17"}, "no matmul type named 'fp17'"),
        ({**GEMM, "device": "a100-sxm4-80gb", "dtype": "fp8"}, "has no fp8 matrix rate"),
        ({**ATTENTION, "heads_kv": 5}, "16 query heads are not a multiple of 5 key-value heads"),
        ({**ATTENTION, "head_dim": 65536}, "no tile of"),
    ],
)
def test_what_cannot_be_predicted_keeps_its_place_and_says_why(row, said):
    good = ATTENTION if row["op"] == "attention" else GEMM
    found = predict_table(table(good, row, good))
    assert said in found["reason"][1]
    assert math.isnan(found["predicted_us"][1])
    assert found["predicted_us"][[0, 2]].notna().all()
    assert counted(found["reason"]) == {found["reason"][1]: 1}


def test_one_bad_row_in_a_large_group_costs_no_other(monkeypatch):
    ask = compare._predict

    def picky(kind, sizes):
        if (sizes["m"] == 777).any():
            raise TableError("777 is a number I do not like")
        return ask(kind, sizes)

    monkeypatch.setattr(compare, "_predict", picky)
    rows = [{**GEMM, "m": m} for m in range(750, 850)]
    found = predict_table(table(*rows))
    assert found.index[found["reason"] != ""].tolist() == [27]


def test_a_table_is_predicted_the_same_in_chunks(monkeypatch):
    runs = published().iloc[::8].reset_index(drop=True)
    whole = predict_table(runs)
    monkeypatch.setattr(compare, "CHUNK", 3)
    pd.testing.assert_frame_equal(predict_table(runs), whole)


def test_predicting_again_replaces_the_old_predictions():
    once = predict_table(published().iloc[::8])
    pd.testing.assert_frame_equal(predict_table(once), once)


def test_sizes_of_2_to_the_40_do_not_overflow():
    big = 2**40
    found = predict_table(table({**GEMM, "m": big, "n": big, "k": big})).iloc[0]
    assert found["predicted_us"] > 1e18
    assert 0 < found["floor_us"] < math.inf


def test_runs_of_another_board_or_release_than_their_table_names_are_predicted_for_it():
    for item in corrections():
        named = NAMED_BY[item.implementation] | {"device": item.device or "h100-sxm"}
        meant = {
            "device": item.board,
            "implementation": item.release,
            "variant": item.variant,
            "harness": item.harness,
        }
        meant = {name: value for name, value in meant.items() if value}
        assert load(meant.get("device", "t4"))
        assert item.release in kernels() or is_known(named["op"], item.release or "flash1")
        rows = [named | {"source": item.source}, named | meant, named]
        found = predict_table(table(*rows))
        assert list(found["device"]) == [row["device"] for row in rows]
        assert found["predicted_us"][0] == found["predicted_us"][1] != found["predicted_us"][2]
        (said,) = notes(found)
        assert said.startswith(f"1 rows of {item.source} name ")
        assert any(value in said for value in meant.values())


# Rows that the corrections with an implementation speak of, and some that they do not.
LONG_ROWS = {**SOFTMAX, "rows": 65536, "cols": 3000, "dtype": "fp32"}
_KEYS_ONLY = ATTENTION | {"seq_q": 1, "implementation": "trtllm-1.2.0rc5:torch_flow"}
NAMED_BY = {
    "": ATTENTION,
    "flash1": ATTENTION | {"implementation": "flash1"},
    r"trtllm-(0|1\.[0-2])\..*": _KEYS_ONLY,
    "$": LONG_ROWS,
    r"torch-eager\(HF fx\)": LONG_ROWS | {"implementation": "torch-eager(HF fx)"},
    "torch": LONG_ROWS | {"implementation": "torch"},
}


def test_a_correction_leaves_other_runs_of_its_source_alone():
    for item in corrections():
        if not item.implementation:
            continue
        row = NAMED_BY[item.implementation] | {"source": item.source}
        row = row | {"device": item.device or "h100-sxm"}
        assert notes(table(row | {"implementation": "flash2"})) == []
        assert len(notes(table(row))) == 1
        assert not item.phase or notes(table(row | {"seq_q": 2048})) == []


def test_an_empty_table_stays_empty():
    found = predict_table(table(GEMM).iloc[:0])
    assert len(found) == 0
    assert gate(report(found), 0.2) == ["all: no row is left to score"]


def test_the_floor_is_peak_rate_and_compulsory_bytes():
    h100 = load("h100-sxm")
    m = 8192
    found = predict_table(table({**GEMM, "m": m, "n": m, "k": m}, {**SOFTMAX, "rows": 2**17}))
    assert found["floor_us"][0] == pytest.approx(2 * m**3 / h100.matrix_flops("bf16") * 1e6)
    moved = 2 * 4 * 2**17 * 8192 - h100.l2_capacity_bytes
    assert found["floor_us"][1] == pytest.approx(moved / h100.hbm_bytes_per_s * 1e6)
    assert predict_table(table(SOFTMAX | {"rows": 8})).loc[0, "floor_us"] == 0


def test_a_window_lowers_the_floor():
    decode = {**ATTENTION, "batch": 128, "seq_q": 1, "seq_kv": 65536}
    full, windowed = predict_table(table(decode, {**decode, "window": 128}))["floor_us"]
    assert windowed < full / 100


@pytest.mark.parametrize(
    "row",
    [
        # GP104 multiplies halves at 1/64 of the rate that it multiplies them at as fp32.
        {**GEMM, "device": "p4", "dtype": "fp16"},
        # One query at the end of the keys has nothing to see beyond them, causal or not.
        {**ATTENTION, "batch": 64, "seq_q": 1, "seq_kv": 65536, "window": 4096, "causal": False},
        {**ATTENTION, "device": "v100-sxm2", "dtype": "bf16"},
    ],
)
def test_no_prediction_beats_the_floor(row):
    found = predict_table(table(row)).iloc[0]
    assert 0 < found["floor_us"] <= found["low_us"] <= found["predicted_us"]


def test_a_measurement_below_the_floor_is_a_diagnosis():
    big = {**GEMM, "m": 8192, "n": 8192, "k": 8192, "implementation": "mine"}
    floor = predict_table(table(big)).loc[0, "floor_us"]
    rows = [{**big, "measured_us": floor * scale} for scale in (1.01, 0.999, 0.5)]
    rows.append({**rows[2], "flag": "suspect"})
    (line,) = diagnoses(predict_table(table(*rows)))
    assert line.startswith("row 3 (gemm bf16, mine) beats the floor of h100-sxm by 2.00x: likely")


def test_report_counts_what_it_leaves_out():
    frame = judged([1.0, 2.0, 4.0, 8.0], [1.0, np.nan, 4.0, 8.0])
    frame["flag"] = ["", "", "l2_resident", "timer_floor"]
    line = report(frame).iloc[0]
    assert (line["n"], line["unpredicted"], line["flagged"]) == (2, 1, 1)
    line = report(frame, include_flags=True).iloc[0]
    assert (line["n"], line["unpredicted"], line["flagged"]) == (3, 1, 0)
    assert len(scored(frame)) == 2


def test_report_by_groups_ends_with_all_of_it():
    frame = judged([1.0, 2.0, 4.0], [2.0, 2.0, 2.0], op=["b", "a", "b"], device=["x", "x", "y"])
    lines = report(frame, ["op", "device"])
    assert list(zip(lines["op"], lines["device"], lines["n"], strict=True)) == [
        ("a", "x", 1),
        ("b", "x", 1),
        ("b", "y", 1),
        ("all", "all", 3),
    ]
    assert lines["mape"].tolist() == pytest.approx([0, 1, 0.5, 0.5])
    with pytest.raises(TableError, match="no column 'colour' to group by"):
        report(frame, ["colour"])


def test_a_worked_example():
    # Ratios 2, 1/2, 1: |ln| is ln 2, ln 2, 0; the geometric mean of the ratios is 1.
    line = report(judged([1.0, 2.0, 4.0], [2.0, 1.0, 4.0])).iloc[0]
    assert line["mape"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert line["median_abs_ln"] == pytest.approx(math.log(2))
    assert line["bias"] == pytest.approx(1)
    assert line["spearman"] == pytest.approx(0.5)
    assert line["coverage"] == pytest.approx(1 / 3)


TIMES = st.lists(st.floats(1e-3, 1e9), min_size=2, max_size=30)


@given(TIMES)
def test_perfect_predictions_have_no_error(times):
    line = report(judged(times, times)).iloc[0]
    assert line[["mape", "median_abs_ln", "p90_abs_ln"]].tolist() == [0, 0, 0]
    assert line["bias"] == line["coverage"] == 1
    assert math.isnan(line["spearman"]) or line["spearman"] == pytest.approx(1)


@given(TIMES, st.floats(0.01, 100), st.randoms())
def test_scaling_the_predictions_scales_the_bias_and_keeps_the_ranks(times, factor, random):
    guesses = [time * random.uniform(0.5, 2) for time in times]
    before = report(judged(times, guesses)).iloc[0]
    after = report(judged(times, [guess * factor for guess in guesses])).iloc[0]
    assert after["bias"] == pytest.approx(before["bias"] * factor)
    ranks = before["spearman"], after["spearman"]
    assert ranks[0] == pytest.approx(ranks[1], nan_ok=True)


@given(TIMES, st.floats(1, 100))
def test_too_slow_and_too_fast_by_a_factor_weigh_alike(times, factor):
    slow = report(judged(times, [time * factor for time in times])).iloc[0]
    fast = report(judged(times, [time / factor for time in times])).iloc[0]
    assert slow["median_abs_ln"] == pytest.approx(fast["median_abs_ln"], abs=1e-9)
    assert slow["bias"] == pytest.approx(1 / fast["bias"])


def test_the_gate_holds_every_line():
    frame = judged([1.0, 1.0, 1.0], [1.1, 1.3, np.nan], op=["a", "b", "c"])
    assert gate(report(frame), 0.25) == []
    misses = gate(report(frame, ["op"]), 0.25)
    assert misses == ["b: MAPE 30.0% is above 25.0%", "c: none of 1 rows could be predicted"]
    assert gate(report(frame), 0.1) == ["all: MAPE 20.0% is above 10.0%"]


def test_published_runs_are_all_predicted():
    found = predict_table(published())
    assert counted(found["reason"]) == {}
    assert diagnoses(found) == []


def test_measured_runs_are_predicted(measured):
    path = measured / "measured_dev2_core.csv.gz"
    if not path.is_file():
        pytest.skip(f"no measured runs at {path}")
    found = predict_table(tidy(pd.read_csv(path, skiprows=lambda line: line % 20 != 0)))
    assert (found["reason"] == "").mean() >= 0.98
    beaten = found[found["measured_us"] * 1.02 < found["floor_us"]]
    # Only fused or broadcast element-wise operators move less than their row says.
    assert set(beaten["op"]) <= {"pointwise"}
