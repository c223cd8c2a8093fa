"""A small part of `make physics` with fixed seeds, and that its checks see what they look for."""

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from folders import TESTS

FOLDER = TESTS / "physics"
sys.path.insert(0, str(FOLDER))

from bounds import ROUNDING, bounds  # noqa: E402
from changes import Change, better_devices, larger  # noqa: E402
from cliffs import CLIFFS, tolerance  # noqa: E402
from draws import LEAST, make  # noqa: E402
from jumps import JUMPS, MOST, excess  # noqa: E402
from neighbours import LAW, neighbours  # noqa: E402
from sample import check, sample  # noqa: E402
from tally import Tally  # noqa: E402

from perfmodel.algorithms import Attention, Matmul, Rowwise  # noqa: E402
from perfmodel.hardware import load  # noqa: E402
from perfmodel.predict import predict, predict_arrays  # noqa: E402

H100 = load("h100-sxm")


def test_no_prediction_breaks_its_bounds_or_falls_where_there_is_no_cliff():
    tally = Tally()
    for index in range(24):
        tally.add(sample(1, index, n=60))
    assert tally.violations == 0, "\n".join(tally.lines())
    assert tally.predicted >= LEAST * tally.asked


def test_one_more_takes_about_as_long_but_for_named_jumps():
    tally = Tally()
    for index in range(40):
        tally.add(neighbours(1, index, n=40))
    assert tally.checked[LAW] > 3000
    assert tally.violations == 0, "\n".join(tally.lines())


def test_a_jump_between_neighbours_is_seen():
    problem = Matmul(np.array([3000, 5000]), 4096, 4096)
    before = predict_arrays(problem, H100)
    grown = replace(problem, m=problem.m + 1)
    after = predict_arrays(grown, H100)
    for factor, violations in ((1.0, 0), (1.6, 2)):
        slower = replace(after, seconds=factor * before.seconds)
        tally, change = Tally(), Change("any", "m", "+1", before, slower)
        check(tally, change, LAW, excess(change), JUMPS, MOST)
        assert tally.violations == violations


# A size that crosses from one kernel to another, and the most times its proportion it may take.
STEPS = [
    ("rtx4090", Matmul(14, 9, 13205, dtype="fp64"), {"batch": 2}, 12.0),
    ("mi300x", Matmul(4, 4096, 4096, dtype="int8"), {"m": 5}, 1.1),
    ("tpu-v5e", Matmul(4, 4096, 4096, dtype="int8"), {"m": 5}, 1.1),
    ("wse-2", Rowwise("rmsnorm", 18, 989, direction="bwd"), {"cols": 1978}, 1.1),
    ("gaudi3", Rowwise("quantise", 67, 911), {"cols": 1822}, 1.1),
]


@pytest.mark.parametrize(("slug", "problem", "grown", "most"), STEPS)
def test_steps_between_kernels_are_no_deeper_than_their_rules(slug, problem, grown, most):
    ((axis, value),) = grown.items()
    ratio = (
        predict(replace(problem, **grown), load(slug)).seconds
        / predict(problem, load(slug)).seconds
    )
    assert 0.99 <= ratio <= most * value / getattr(problem, axis)


def test_the_command_says_what_it_checked():
    command = [sys.executable, str(FOLDER), "--predictions", "400", "--neighbours", "400",
               "--elasticities", "100", "--seed", "7", "--jobs", "1"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("seed 7,")
    assert "0 violations" in done.stdout
    assert "time ≥ compulsory bytes / bandwidth" in done.stdout


# What is changed of sound predictions, and the bounds that see it.
WRONG = {
    "seconds": (lambda f: f.seconds * 0.1, "time ≥ operations / peak"),
    "low_seconds": (lambda f: f.low_seconds * 1e-4, "low end ≥ operations / peak"),
    "high_seconds": (lambda f: f.seconds * 0.9, "time ≤ high end"),
    "terms": (lambda f: {**f.terms, "hbm": f.seconds * 1.1}, "time ≥ each of its terms"),
    "bytes": (lambda f: {**f.bytes, "l2": -f.bytes["l2"]}, "terms and bytes ≥ 0"),
    "flops": (
        lambda f: {**f.flops, "matrix": 1e4 * f.flops["matrix"]},
        "printed rate ≤ peak of its unit",
    ),
}  # fmt: skip


@pytest.mark.parametrize("part", WRONG)
def test_bounds_are_seen_to_be_broken(part):
    wrong, law = WRONG[part]
    found = predict_arrays(Matmul(np.array([8192, 4096]), 8192, 8192), H100)
    assert all(np.all(excess <= 1 + ROUNDING) for _, excess in bounds(found))
    broken = dict(bounds(replace(found, **{part: wrong(found)})))
    assert np.any(broken[law] > 1 + ROUNDING)


@pytest.mark.parametrize("seconds", [np.nan, np.inf, 0.0, -1.0])
def test_times_that_are_none_are_seen(seconds):
    found = predict_arrays(Matmul(np.array([64, 128]), 64, 64), H100)
    with np.errstate(all="ignore"):
        laws = dict(bounds(replace(found, seconds=np.array([seconds, 1e-6]))))
    assert laws["finite and above zero"][0] == np.inf


@pytest.mark.parametrize("kind", ["matmul bf16", "decode", "softmax"])
def test_changes_that_pay_are_seen(kind):
    problem, schedule = make(kind, 3, 20)
    before = predict_arrays(problem, H100, schedule=schedule)
    parts = [Change(kind, part, "×2", before, predict_arrays(problem, on, schedule=schedule))
             for part, on in better_devices(H100)]  # fmt: skip
    sizes = [Change(kind, axis, step, before, predict_arrays(grown, H100, schedule=schedule))
             for axis, step, grown in larger(problem)]  # fmt: skip
    for change in parts:
        slower = replace(change, after=replace(change.after, seconds=1.2 * before.seconds))
        assert np.all(slower.excess > tolerance(change)), change.law
    for change in sizes:
        faster = replace(change, after=replace(change.after, seconds=before.seconds / 1.2))
        assert np.all(faster.excess > tolerance(change)), change.law


# A problem, what it becomes, and the cliff between them.
STEEP = [
    (Attention(13, 25, 5, 1, 4286, 128), {"batch": 26}, "slices of the keys by a library's rule"),
    (
        Attention(2, 2, 1, 291, 292, 64, causal=True),
        {"seq_q": 292},
        "a mask that crosses fewer tiles",
    ),
    (Matmul(4, 13303, 91, dtype="w8a8_int8"), {"m": 8}, "a kernel for few rows"),
    (Matmul(47, 64, 27, dtype="fp32"), {"batch": 2}, "products that become batched"),
    (Rowwise("quantise", 2515, 17187), {"cols": 17188}, "rows that come to end on a whole load"),
    (Rowwise("layernorm", 1000, 856), {"cols": 1712}, "four short rows to a block"),
    (
        Rowwise("layernorm", 11351, 32899, direction="bwd"),
        {"cols": 65798},
        "ragged rows that get longer",
    ),
    (Matmul(7, 1449, 1536, dtype="fp32"), {"k": 1537}, "slices of k in whole pairs of steps"),
    # A block of the backward pass streams queries: 64 of them are one step, 65 are two.
    (Attention(7, 4, 4, 64, 665, 64, direction="fwdbwd"), {"seq_q": 65}, "a pipeline of few steps"),
    # Eight heads share their keys, and no tile of the backward pass: 1,275 queries begin where a
    # tile of keys does.
    (
        Attention(50, 32, 4, 1049, 1275, 64, causal=True, direction="bwd"),
        {"seq_q": 1275},
        "a mask that crosses fewer tiles",
    ),
    (
        Attention(2, 6, 6, 45, 877, 64, causal=True, window=846),
        {"window": 1692},
        "tiles of another kernel behind a window",
    ),
]  # fmt: skip


DEVICES = {
    "slices of the keys by a library's rule": "a10",
    "a mask that crosses fewer tiles": "a10",
    "slices of k in whole pairs of steps": "p100-pcie-16gb",
    "a pipeline of few steps": "max-1550",
}


@pytest.mark.parametrize(("problem", "grown", "name"), STEEP, ids=[name for *_, name in STEEP])
def test_cliffs_lie_where_their_rules_turn_and_nowhere_else(problem, grown, name):
    (cliff,) = (each for each in CLIFFS if each.name == name)
    device = load(DEVICES.get(name, "h100-sxm"))
    ((axis, value),) = grown.items()

    def change(size):
        sizes = (getattr(problem, axis), size)
        arrays = [replace(problem, **{axis: np.array([each])}) for each in sizes]
        kind = "window" if "window" in name else "any"
        return Change(kind, axis, "×2", *(predict_arrays(each, device) for each in arrays))

    assert np.all(cliff.applies(change(value)))
    assert np.all(np.asarray(cliff.most(change(value))) > 1.0)
    assert not np.any(cliff.applies(change(getattr(problem, axis))))


def test_cliffs_say_why_and_the_model_page_leads_to_them():
    page = (FOLDER.parents[1] / "docs" / "model.md").read_text(encoding="utf-8")
    assert {"(../tests/physics/cliffs.py)", "(../tests/physics/jumps.py)"} <= set(
        re.findall(r"\([^()\s]+\)", page)
    )
    names = [cliff.name for cliff in (*CLIFFS, *JUMPS)]
    assert len(set(names)) > 20
    assert all(len(cliff.why.split()) > 3 for cliff in CLIFFS)
