"""Learned corrections of the serving model: their features, and which errors they can remove."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("sklearn", reason="a learned residual needs scikit-learn (extra [fit])")
pd = pytest.importorskip("pandas", reason="fitting reads tables")

from perfmodel.evidence.tables.reading import read  # noqa: E402
from perfmodel.fitting.foil import (  # noqa: E402
    FOILS,
    HARDWARE,
    HELD_OUT,
    LOADS,
    MODEL,
    NOTHING,
    SHARES,
    UNFITTED,
    UNFITTED_SHARES,
    main,
    predictions,
    rows_of,
    scores,
)
from perfmodel.validation.serving import LAYOUT, predict_table  # noqa: E402

DEVICES = ("a100-sxm4-80gb", "h100-sxm", "l40s", "a6000")
ENGINES = ("vllm", "tensorrt-llm", "sglang")
LOAD = ({"batch": 1, "isl": 128}, {"batch": 8, "isl": 1024}, {"batch": 16, "isl": 256})
METRICS = ("e2e_ms", "ttft_ms", "tpot_ms", "output_tokens_per_s", "input_tokens_per_s")
LEARNED = [foil for foil in FOILS if foil.name != "as it is"]


def named(foil):
    return f"{foil.start}: {foil.name}"


def written(tmp_path, rows):
    path = tmp_path / "runs.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    return str(path)


def requests(devices=DEVICES, engines=ENGINES):
    """Rows of every device, engine, load and metric; rates are of a device."""
    same = {"network": "llama-3-8b", "weights_dtype": "bf16", "load": "static batch", "osl": 128,
            "value": 1.0, "flag": "", "source": "mine", "per": "device", "tensor": 1}  # fmt: skip
    return [
        {**same, **load, "device": device, "engine": engine, "metric": metric}
        for device in devices
        for engine in engines
        for load in LOAD
        for metric in METRICS
    ]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A table whose values are the model's, off by a few per cent that nobody can learn."""
    wanted = requests() + [
        row | {"tensor": 2} for row in requests(DEVICES[:2], ENGINES[:1])
    ]  # fmt: skip
    table = read(written(tmp_path_factory.mktemp("foil"), wanted), LAYOUT).strict()
    exact = predict_table(table)["predicted"]
    assert exact.notna().all()
    noise = np.random.default_rng(0).normal(0.0, 0.03, len(exact))
    return table.assign(value=exact * np.exp(noise)), noise


@pytest.fixture(scope="module")
def rows(measured):
    return rows_of(measured[0])


def test_errors_are_those_of_the_model_with_the_sign_of_a_time(measured, rows):
    """Against the public prediction of every metric: a rate that is too high is a time too low."""
    table, noise = measured
    rate = table["metric"].str.endswith("_per_s").to_numpy()
    assert list(rows.index) == list(table.index)
    np.testing.assert_allclose(rows["measured"] - rows[MODEL], np.where(rate, -noise, noise))


def test_shares_make_a_whole_and_less_host_without_what_is_fitted(rows):
    for shares in (SHARES, UNFITTED_SHARES):
        assert (rows[list(shares)] > -1e-9).all(axis=None)
        assert rows[list(shares)].sum(axis=1).to_numpy() == pytest.approx(1.0)
    assert (rows["unfitted share host"] <= rows["share host"] + 1e-9).all()
    assert (rows[UNFITTED] <= rows[MODEL] + 1e-9).all()
    assert (rows[UNFITTED] < rows[MODEL]).any()
    assert (rows["share communication"] > 0).sum() == len(LOAD) * len(METRICS) * 2


def test_features_are_numbers_and_none_is_made_of_what_was_measured(measured, rows):
    table, _ = measured
    features = [*SHARES, *UNFITTED_SHARES, *HARDWARE, *LOADS]
    assert np.isfinite(rows[features]).all(axis=None)
    again = rows_of(table.assign(value=table["value"] * 3.0))
    pd.testing.assert_frame_equal(again[features], rows[features])


@pytest.mark.parametrize("column", HELD_OUT)
@pytest.mark.parametrize("foil", LEARNED, ids=named)
def test_what_is_held_out_never_enters_the_fit(rows, foil, column):
    held = rows[column] == rows[column].iloc[0]
    moved = rows.assign(measured=rows["measured"] + 2.0 * held)
    before, after = predictions(rows, foil, column), predictions(moved, foil, column)
    np.testing.assert_array_equal(before[held], after[held])
    assert np.abs(before - after)[~held].max() > 0.01  # what is not held out does


@settings(max_examples=5, deadline=None)
@given(st.floats(0.05, 2.0), st.sampled_from([-1.0, 1.0]), st.sampled_from(HELD_OUT))
def test_a_bias_that_all_share_is_learned(rows, size, sign, column):
    biased = rows.assign(measured=rows[MODEL] + sign * size)
    for foil in FOILS:
        if foil.start == MODEL:
            off = np.abs(predictions(biased, foil, column) - biased["measured"])
            assert off.to_numpy() == pytest.approx(
                size if foil.name == "as it is" else 0.0, abs=1e-6
            )


def test_a_new_device_has_the_mean_bias_of_the_others(rows):
    (foil,) = (f for f in FOILS if f.start == MODEL and f.name == "one bias a device")
    biases = dict(zip(DEVICES, (0.1, 0.2, 0.3, 0.6), strict=True))
    biased = rows.assign(measured=rows[MODEL] + rows["device"].map(biases))
    learned = pd.Series(predictions(biased, foil, "device") - rows[MODEL], rows.index)
    expected = [(1.2 - biases[device]) / 3.0 for device in rows["device"]]
    assert learned.to_numpy() == pytest.approx(expected)
    learned = predictions(biased, foil, "engine") - rows[MODEL]
    assert learned.to_numpy() == pytest.approx(rows["device"].map(biases).to_numpy())


@pytest.mark.parametrize("column", HELD_OUT)
def test_where_the_model_is_right_learning_without_it_is_worse(rows, column):
    found = scores(rows, column).set_index(["start", "foil"])
    assert (found["n"] == len(rows)).all()
    assert found.loc[(MODEL, "as it is"), "median"] < 0.03
    assert (found.loc[NOTHING, "median"] > 3.0 * found.loc[(MODEL, "as it is"), "median"]).all()
    assert (found.loc[NOTHING, "median"] > found.loc[MODEL, "median"].max()).all()
    assert (found["p90"] >= found["median"]).all()


def test_flagged_rows_and_rows_without_a_prediction_take_no_part(tmp_path):
    wanted = requests(DEVICES[:1], ENGINES[:1])[:4]
    wanted[1]["flag"] = "suspect"
    wanted[2]["device"] = "h1000"
    wanted[3]["metric"] = "memory_gb"
    assert list(rows_of(read(written(tmp_path, wanted), LAYOUT).strict()).index) == [0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "nothing to leave out: give rows of more than one device"),
        ({"device": "h1000"}, "no row is predicted; perfmodel compare --kind serving says why"),
    ],
)
def test_bad_input_is_one_line(tmp_path, capsys, change, said):
    path = written(tmp_path, [row | change for row in requests(DEVICES[:1], ENGINES[:1])])
    assert main([path]) == 2
    assert capsys.readouterr().err == f"perfmodel.fitting.foil: {said}\n"


def test_the_command_prints_every_foil_for_devices_and_engines(tmp_path, capsys):
    assert main([written(tmp_path, requests(DEVICES[:2], ENGINES[:2]))]) == 0
    printed = capsys.readouterr().out
    count = 2 * 2 * len(LOAD) * len(METRICS)
    for column in HELD_OUT:
        assert f"{count} rows, left out: each of 2 {column}s" in printed
    assert printed.count("trees") == printed.count("ridge") == 6
