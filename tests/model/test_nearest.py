"""The published run nearest to a load or a step: what is near, and what is said of it."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.cli import run
from perfmodel.hardware import load as load_device
from perfmodel.published import REACH, Point, Run, nearest, sentences, together
from perfmodel.serving import publishedruns
from perfmodel.serving.served import serve
from perfmodel.serving.servingrows import asked
from perfmodel.serving.steps import Steps
from perfmodel.training import publishedsteps
from perfmodel.training.step import predict_step
from perfmodel.training.trainingrows import plan_of

LENGTHS = st.floats(1.0, 1e5)
SIZES = st.fixed_dictionaries({"isl": LENGTHS, "devices": LENGTHS})
RUNS = st.lists(st.builds(lambda sizes: Point(("llama",), sizes), SIZES), min_size=1, max_size=6)


def runs_of(points):
    return [Run(f"run {i}", "paper", "", point, {"tpot_ms": (1.0, i)})
            for i, point in enumerate(points)]  # fmt: skip


def served(row):
    """A row's load, with the lengths that it states and 128 for others."""
    ask = asked(row)
    (load,) = serve(Steps(ask.deployment), ask.load, [ask.size], ask.isl, ask.osl)
    return ask, load


@given(SIZES, RUNS, st.randoms())
def test_the_order_of_runs_does_not_matter(sizes, points, random):
    runs, point = runs_of(points), Point(("llama",), sizes)
    shuffled = random.sample(runs, len(runs))
    assert nearest(point, runs, float) == nearest(point, shuffled, float)


@given(SIZES, SIZES, SIZES)
def test_it_is_a_distance(a, b, c):
    here, there, beyond = (Point(("llama",), sizes) for sizes in (a, b, c))
    assert here.distance(here) == 0.0
    assert here.distance(there) == pytest.approx(there.distance(here), abs=1e-12)
    assert here.distance(beyond) <= here.distance(there) + there.distance(beyond) + 1e-12


@given(SIZES, st.sampled_from(["isl", "devices"]), st.floats(0.01, 100.0))
def test_a_size_is_as_far_as_the_logarithm_of_its_factor(sizes, name, factor):
    point, run = Point((), sizes), Point((), sizes | {name: sizes[name] * factor})
    assert point.distance(run) == pytest.approx(abs(math.log(factor)), abs=1e-9)
    near = nearest(point, runs_of([run]), float)
    assert (near is None) == (point.distance(run) > REACH)
    assert near is None or near.factors[name] == pytest.approx(factor)


@given(SIZES)
def test_other_words_are_never_near_and_unstated_sizes_do_not_count(sizes):
    point = Point(("llama", "hopper"), sizes)
    assert nearest(point, runs_of([Point(("llama", "ada"), sizes)]), float) is None
    assert nearest(point, [], float) is None
    assert point.distance(Point(point.words, {"isl": sizes["isl"]})) == 0.0


@pytest.mark.parametrize("index", range(0, len(publishedruns.table()), 8))
def test_a_published_load_is_its_own_nearest(index):
    row = publishedruns.table()[index]
    ask, load = served(row)
    near = publishedruns.nearest(load)
    assert near is not None
    assert near.distance == 0.0
    assert near.source == row["source"]
    metric = ask.metric + ("_per_device" if ask.per_device else "")
    assert near.measured[metric] == float(row["value"])
    assert near.predicted[metric] == pytest.approx(load.metric(ask.metric).value * ask.portion)


@pytest.mark.parametrize("index", range(0, len(publishedsteps.table()), 9))
def test_a_published_step_is_its_own_nearest(index):
    row = publishedsteps.table()[index]
    ask = plan_of(row)
    near = publishedsteps.nearest(predict_step(ask.network, ask.plan, load_device(row["device"])))
    assert near is not None
    assert near.distance == 0.0
    assert (near.source, near.measured[row["metric"]]) == (row["source"], float(row["value"]))


@pytest.mark.parametrize(("kept", "stride"), [(publishedruns, 1), (publishedsteps, 4)])
def test_published_runs_are_predicted(kept, stride):
    """The medians over all rows are 0.103 and 0.058; a model of one answer is off by more.

    Every fourth step here: one takes a fifth of a second.
    """
    rows = kept.table()
    errors = [math.log(kept._predicted(i) / float(rows[i]["value"]))
              for i in range(0, len(rows), stride)]  # fmt: skip
    assert np.median(np.abs(errors)) < 0.13
    assert all(row["url"].startswith("https://") and row["source"] for row in rows)


def test_of_runs_at_equal_distance_that_of_most_equal_kinds_is_nearest():
    runs = [Run(name, "paper", "", Point((), {"isl": 2.0}, kinds), {"tpot_ms": (1.0, 0)})
            for name, kinds in {"a": ("vllm", "1"), "b": ("vllm", "2")}.items()]  # fmt: skip
    assert nearest(Point((), {"isl": 2.0}, ("sglang", "2")), runs, float).run == "b"
    assert nearest(Point((), {"isl": 2.0}, ("sglang", "3")), runs, float).run == "a"


def test_loads_that_no_published_run_is_like_have_none():
    row = publishedruns.table()[0]
    ask, load = served(row)
    assert publishedruns.nearest(replace(load, size=load.size * 1000.0)) is None
    cached = serve(Steps(ask.deployment), ask.load, [ask.size], 64, 8, cached=32)[0]
    assert publishedruns.nearest(cached) is None


def test_metrics_of_one_run_are_one_run():
    point = Point((), {"isl": 2.0})
    first, later = (Run("a", "b", "c", point, {name: (1.0, i)})
                    for i, name in enumerate(("ttft_ms", "tpot_ms")))  # fmt: skip
    (run,) = together([first, later])
    assert set(run.values) == {"ttft_ms", "tpot_ms"}
    assert len(together([first, replace(later, name="other")])) == 2


def test_a_sentence_says_what_was_measured_what_is_predicted_and_how_far_it_is():
    point = Point(("llama",), {"isl": 1024.0, "memory_bandwidth": 2e12})
    other = Point(("llama",), {"isl": 2048.0, "memory_bandwidth": 2e12})
    near = nearest(point, [Run("llama", "paper", "", other, {"tpot_ms": (10.0, 12)})], float)
    assert sentences([None, near]) == [
        "nearest published run: llama (paper): TPOT measured 10.0 ms, predicted there 12.0 ms; "
        "distance 0.69, isl 2x"
    ]
    assert sentences([None]) == []


COMMANDS = {
    "infer llama-3-8b -d rtx4090 --batch 1 --engine llama.cpp --osl 1k":
        "on 1 x rtx4090, llama.cpp",
    "infer llama-3-8b -d h100-sxm --batch 4096 --isl 16 --osl 4 --engine vllm": "",
    "train llama-3-8b -d h200-sxm --gpus 32 --seq 8k --global-batch 64 --zero 3 --dtype fp8 "
    "--stack torchtitan --recompute full --micro-batch 2": "on 32 x h200-sxm",
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_say_the_nearest_run_in_a_line(command, capsys):
    run(command.split())
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("nearest")]
    assert len(lines) == bool(COMMANDS[command])
    assert COMMANDS[command] in "".join(lines)


def test_a_page_has_the_nearest_runs_in_a_table(tmp_path):
    files = [str(tmp_path / name) for name in ("loads.json", "page.html")]
    run(["infer", "llama-3-8b", "-d", "rtx4090", "--batch", "1", "--engine", "llama.cpp",
         "--osl", "1k", "-o", files[0]])  # fmt: skip
    run(["report", *files[:1], "-o", files[1]])
    (load,) = json.loads(Path(files[0]).read_text(encoding="utf-8"))["loads"]
    page = Path(files[1]).read_text(encoding="utf-8")
    assert "Served networks: nearest published runs" in page
    assert load["nearest"]["url"] in page
