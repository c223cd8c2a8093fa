"""Sentences about a prediction say what its numbers say."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from perfmodel import Attention, Matmul, Rowwise, load, names, predict
from perfmodel.analysis.why import why
from perfmodel.errors import PerfmodelError
from perfmodel.networks import library
from perfmodel.render.formats import as_json
from perfmodel.render.html import readers
from perfmodel.render.html.results import Results
from perfmodel.render.steps import notes, several
from perfmodel.training.plan import Plan
from perfmodel.training.step import predict_step

PROBLEMS = (
    Matmul(4096, 4096, 4096, dtype="fp16"),
    Matmul(4096, 4096, 4096),
    Attention(1, 32, 32, 2048, 2048, 128, dtype="fp16"),
    Rowwise("softmax", 4096, 4096),
)
WITHOUT_L2 = [name for name in names() if load(name).level("l2") is None]


def answers(device):
    for problem in PROBLEMS:
        try:
            yield problem, predict(problem, device)
        except PerfmodelError:
            continue


@pytest.mark.parametrize("name", WITHOUT_L2)
def test_no_level_that_a_device_lacks_is_named(name):
    found = [answer for _, answer in answers(load(name))]
    assert found
    for answer in found:
        assert "l2" not in (answer.limiter, answer.runner_up)


@pytest.mark.parametrize("name", [*WITHOUT_L2, "p100-sxm2", "v100-sxm2", "h100-sxm"])
def test_no_floor_is_above_its_prediction(name):
    device = load(name)
    for problem, answer in answers(device):
        reason = why(problem, device, answer)
        assert reason.floor_seconds <= answer.seconds * (1 + 1e-9)
        assert all(share <= 1 + 1e-9 for level, share in reason.roofs.items() if level == "matrix")


def test_values_that_are_widened_have_the_roof_of_the_wider_type():
    """An M4 Max multiplies fp16 as fp32: a large product runs near that roof."""
    device = load("m4-max")
    shares = []
    for dtype in ("fp16", "fp32"):
        problem = Matmul(8192, 8192, 8192, dtype=dtype)
        shares.append(why(problem, device, predict(problem, device)).roofs["matrix"])
    assert shares[0] == pytest.approx(shares[1], rel=0.1)


@pytest.mark.parametrize("share", [0.4, 1.0, 1.21])
def test_a_part_longer_than_the_step_is_hidden_in_part(share):
    step = predict_step(library.load("gpt2"), Plan(seq=256), load("h100-sxm"))
    step = replace(step, classes={"communication": share * step.seconds})
    (line,) = [note for note in notes(step, "causal") if "communication" in note]
    results = Results()
    readers.add(json.loads("".join(as_json(several([step], [], "causal")))), results, "step.json")
    (section,) = results.sections(late=False)
    assert line in " ".join(section.sentences)
    percents = [int(text) for text in re.findall(r"(\d+)%", line)]
    assert percents == ([121, 21] if share > 1 else [round(100 * share)])
    assert ("hidden" in line) == (share > 1)
