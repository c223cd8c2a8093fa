"""`perfmodel learn`: corrections from measured runs, where they hold and where they do not."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from folders import ROOT
from hypothesis import given
from hypothesis import strategies as st

from perfmodel import Matmul, load, predict
from perfmodel.errors import ProblemError
from perfmodel.fitting.record import learned_from
from perfmodel.learned.active import corrected_by
from perfmodel.learned.groups import load as load_learned
from perfmodel.learned.record import PATH, shipped
from perfmodel.learned.regression import NOISE, Process, _kernel, settled
from perfmodel.table.records import tidy
from perfmodel.timing.constants import default
from perfmodel.validation import learn as learning
from perfmodel.validation.compare import predict_table

RUNS = ROOT / "kernels" / "measured" / "h200" / "runs.csv"
KERNEL = "triton-gemm"


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    return pd.read_csv(RUNS).query("op == 'gemm' and implementation.str.startswith('triton')")


@pytest.fixture(scope="module")
def learned(runs):
    return learning.learn(runs, "an H200")


def product(size: int, device: str = "h200-sxm", **options):
    options = {"implementation": KERNEL, "harness": "cuda_graph"} | options
    return predict(Matmul(size, size, size, dtype="bf16"), load(device), **options)


# ---- The mathematics -----------------------------------------------------------------------------


@given(st.floats(0.0, 4.0), st.floats(0.7, 1.5), st.integers(0, 2**31))
def test_start_and_factor_are_found_again(start, factor, seed):
    random = np.random.default_rng(seed)
    model = np.exp(random.uniform(0, 8, 60))
    measured = (start + factor * model) * np.exp(random.normal(0, 0.01, 60))
    found = learning.line(model, measured)
    assert found == pytest.approx((start, factor), abs=0.35, rel=0.1)


@given(st.integers(0, 2**31))
def test_a_left_out_run_is_predicted_as_if_it_had_never_been_there(seed):
    random = np.random.default_rng(seed)
    places, residuals = random.normal(0, 1, (12, 2)), random.normal(0, 0.05, 12)
    gaps = np.linalg.norm(places[:, None] - places[None], axis=2)
    signal, pulled = settled(gaps, residuals)
    process = Process.of(gaps, pulled, signal)
    near = _kernel(gaps, process.signal)
    rest = np.arange(12) != 5
    among = near[np.ix_(rest, rest)] + NOISE**2 * np.eye(11)
    expected = near[5, rest] @ np.linalg.solve(among, pulled[rest])
    assert process.left_out()[0][5] == pytest.approx(pulled[5] - expected)


def test_an_outlier_is_pulled_towards_its_neighbours():
    residuals = np.r_[np.full(11, 0.1), 3.0]
    gaps = np.abs(np.subtract.outer(np.arange(12.0), np.arange(12.0))) / 4
    pulled = settled(gaps, residuals)[1]
    assert pulled[:9] == pytest.approx(residuals[:9])
    assert pulled[9:].max() < 1.0


# ---- Where a correction holds --------------------------------------------------------------------


def test_learned_runs_are_predicted_better(runs, learned):
    (group,) = learned.groups
    assert group.after < 0.5 * group.before
    large = runs[(runs.m == 4096) & (runs.n == 4096) & (runs["dtype"] == "bf16")]
    measured = large.measured_us.median()
    plain = product(4096)
    with corrected_by(learned):
        corrected = product(4096)
    assert abs(corrected.seconds * 1e6 - measured) < abs(plain.seconds * 1e6 - measured)
    assert corrected.low_seconds <= corrected.seconds <= corrected.high_seconds
    assert corrected.high_seconds / corrected.low_seconds < plain.high_seconds / plain.low_seconds
    assert any("corrected by" in line for line in corrected.assumptions)
    assert corrected.terms == plain.terms


@pytest.mark.parametrize(
    ("device", "options"),
    [
        ("a100-sxm4-80gb", {}),
        ("h200-sxm", {"implementation": "cublas"}),
        ("h200-sxm", {"implementation": "vllm-0.24.0:triton"}),
    ],
    ids=["architecture", "kernel", "framework"],
)
def test_other_architectures_kernels_and_frameworks_keep_the_model(learned, device, options):
    plain = product(2048, device, **options)
    with corrected_by(learned):
        assert product(2048, device, **options) == plain
        assert product(2048) != plain


@given(st.integers(16, 16384), st.floats(1.0, 3.0))
def test_no_correction_beats_the_floor(learned, size, times):
    fast = replace(
        learned,
        groups=tuple(replace(group, factor=0.1 / times) for group in learned.groups),
    )
    with corrected_by(fast):
        corrected = product(size)
    floor = 2.0 * size**3 / load("h200-sxm").matrix_flops("bf16")
    assert 0 < corrected.low_seconds <= corrected.seconds
    assert corrected.seconds >= floor * (1 - 1e-9)


def test_the_range_is_wider_outside_the_sizes_that_were_seen(learned):
    with corrected_by(learned):
        seen, beyond = product(4096), product(40)
    assert beyond.high_seconds / beyond.low_seconds > seen.high_seconds / seen.low_seconds


def test_runs_that_the_model_predicts_exactly_teach_nothing(runs, tmp_path):
    timed = predict_table(runs)
    exact = runs.assign(measured_us=timed.predicted_us)
    with pytest.raises(ProblemError, match="nothing was learned"):
        learning.save(learning.learn(exact, "itself"), str(tmp_path / "mine.yaml"))
    assert not list(tmp_path.iterdir())


def test_ten_chosen_runs_help_the_rest_of_them():
    scores = pd.DataFrame(learning.curve(pd.read_csv(RUNS), counts=(5, 20)))
    assert len(scores) > 6
    assert scores.corrected.mean() < scores.model.mean()
    assert (scores.corrected < scores.model + 0.02).mean() > 0.8


# ---- The bundled record --------------------------------------------------------------------------

SERVED = {"implementation": "vllm-0.24.0:torch.nn.functional.linear", "harness": "cuda_graph"}


def served(size: int, device="h100-sxm", **options):
    device = load(device) if isinstance(device, str) else device
    return predict(Matmul(size, 4096, 4096, dtype="bf16"), device, **(SERVED | options))


def test_the_record_corrects_what_it_has_runs_of_and_says_so():
    plain, corrected = served(64, learned=False), served(64)
    assert corrected.seconds != plain.seconds
    assert [line for line in corrected.assumptions if line not in plain.assumptions] == [
        next(line for line in corrected.assumptions if line.startswith("corrected by"))
    ]
    assert (corrected.terms, corrected.limiter) == (plain.terms, plain.limiter)
    with corrected_by(None):
        assert served(64) == plain


@pytest.mark.parametrize(
    "options",
    [
        {"implementation": None},
        {"implementation": "cublas"},
        {"harness": "kernel"},
        {"device": "v100-sxm2"},
        {"constants": default()},
    ],
    ids=["no framework", "another framework", "harness", "architecture", "constants"],
)
def test_the_record_leaves_alone_what_it_has_no_runs_of(options):
    assert served(64, **options) == served(64, learned=False, **options)


@given(st.integers(1, 16384), st.floats(1.0, 3.0), st.sampled_from(["h100-sxm", "b200", "l40s"]))
def test_a_faster_memory_never_slows_a_corrected_prediction(size, times, slug):
    device = load(slug)
    before, after = served(size, device), served(size, device.scaled(hbm_bandwidth=times))
    assert after.seconds <= before.seconds * (1 + 1e-9)
    assert after.seconds >= 2.0 * size * 4096**2 / device.matrix_flops("bf16") * (1 - 1e-9)


def test_ranges_are_wider_on_a_device_that_the_record_has_not():
    def width(device):
        one = served(512, device)
        return one.high_seconds / one.low_seconds

    assert width("h100-sxm") < width("h100-pcie")


def test_the_record_is_small():
    assert PATH.stat().st_size < 1_000_000
    groups = shipped().groups
    assert len(groups) > 50
    assert max(len(group.ratios) for group in groups) <= learning.MOST
    assert all(group.shared for group in groups)
    assert np.median([group.after / group.before for group in groups]) < 0.7


def test_a_device_is_predicted_better_from_its_sibling(measured):
    table = tidy(pd.read_parquet(measured / "measured_dev3.parquet"))
    rows = table[
        table["implementation"].astype(str).str.startswith("sglang-") & (table.op == "attention")
    ]
    own, sibling = (rows[rows["device"] == name] for name in ("h200-sxm", "h100-sxm"))
    test = own.groupby("phase", observed=True).head(1500).reset_index(drop=True)
    with corrected_by(learned_from(sibling, "a sibling", frozenset({"cuda_graph"})), record=False):
        corrected = predict_table(test)
    plain = predict_table(test, learned=False)
    errors = [np.log(each.predicted_us / each.measured_us).abs() for each in (plain, corrected)]
    assert errors[1].median() < 0.8 * errors[0].median()
    assert errors[1].quantile(0.9) < 0.8 * errors[0].quantile(0.9)


# ---- Files and commands --------------------------------------------------------------------------


def test_a_file_gives_back_what_was_learned(learned, tmp_path):
    path = tmp_path / "mine.yaml"
    learning.save(learned, str(path))
    assert load_learned(path) == learned


def test_the_commands_learn_and_correct(output, tmp_path, monkeypatch):
    path = tmp_path / "mine.yaml"
    output("learn", str(RUNS), "-o", str(path))
    ask = ("predict", "gemm", "-d", "h200", "-m", "4096", "-n", "4096", "-k", "4096",
           "--implementation", KERNEL, "-f", "json")  # fmt: skip

    def seconds(*more):
        out = output(*ask, *more)
        return json.loads(out)["predictions"][0]["time_us"]

    plain, corrected = seconds(), seconds("--learned", str(path))
    assert plain == seconds() != corrected
    monkeypatch.setenv("PERFMODEL_LEARNED", str(path))
    assert seconds() == corrected
    assert seconds("--no-learned") == plain
    monkeypatch.delenv("PERFMODEL_LEARNED")
    (tmp_path / "learned").mkdir()
    path.rename(tmp_path / "learned" / "mine.yaml")
    monkeypatch.setenv("PERFMODEL_PATH", str(tmp_path))
    assert seconds() == corrected


def test_the_plan_is_a_table_to_fill_in(output):
    out = output("learn", "--plan", "7", "-d", "h100-sxm", "--op", "gemm", "-f", "csv")
    head, *lines = out.splitlines()
    assert len(lines) == len(set(lines)) == 7
    assert {"device", "m", "n", "k", "dtype", "measured_us"} <= set(head.split(","))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("learn",), "needs a table"),
        (("learn", str(RUNS)), "add --output mine.yaml"),
        (("learn", str(RUNS), "-o", "mine.csv"), "writes a YAML file"),
        (("learn", "--plan", "3"), "add --device"),
        (("learn", "--plan", "3", "-d", "h100-sxm", "--op", "conv"), "no run to choose from"),
    ],
)
def test_what_cannot_be_learned_is_said_in_one_line(cli, arguments, words):
    code, _, err = cli(*arguments)
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert re.search(words, err)


@pytest.mark.parametrize("text", ["groups: 3", "a: [", "learned_from: x\nversion: y\ngroups: [1]"])
def test_a_file_that_has_no_corrections_is_refused_in_one_line(cli, tmp_path, text):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    code, _, err = cli("predict", "gemm", "-d", "h100", "-m", "8", "-n", "8", "-k", "8",
                       "--learned", str(path))  # fmt: skip
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert "bad.yaml" in err
    assert "perfmodel learn" in err
