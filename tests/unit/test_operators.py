"""The registry: every operator goes through one door, those of other packages too."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from folders import ROOT
from hypothesis import given
from hypothesis import strategies as st

from perfmodel import operators
from perfmodel.algorithms import Attention, Matmul, library
from perfmodel.algorithms.declaredproblem import DeclaredProblem
from perfmodel.algorithms.problem import arrays, columns, describe, length, pick, single
from perfmodel.analysis.sweep import Grid, Sweep
from perfmodel.cli import run as main
from perfmodel.count import compulsory_bytes
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import load
from perfmodel.napkin.fit import Target
from perfmodel.napkin.mapper import search
from perfmodel.operators import Request, operator_of
from perfmodel.operators.builtin import BUILT_IN
from perfmodel.operators.declared import DeclaredOperator, as_built_in, fastest
from perfmodel.predict import predict, predict_arrays
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine
from perfmodel.timing.plan import time_plan
from perfmodel.timing.setting import Setting
from perfmodel.validation.compare import predict_table

H100 = load("h100-sxm")
DECLARED = [name for name in operators.names() if name not in BUILT_IN]
SMALL = {
    "conv": {"batch": 2, "height": 4, "channels": 64},
    "linear-attention": {"heads": 2, "seq": 256},
    "mla-expanded": {"heads": 2, "seq": 128, "latent": 64, "rope": 32, "head_dim": 64},
}
"""Sizes of those whose search takes seconds at their own."""
SIMILAR = [name for name in library.names() if library.load(name).operator]


def problem(name, **given):
    """A declared algorithm at given parameters, whether or not an operator is called so too."""
    return DeclaredOperator(library.load(name)).problem(**given)


def test_what_kind_of_problem_it_is_nobody_asks_outside_the_registry():
    kinds = re.compile(r"isinstance\([^)]*\b(Attention|Matmul|Rowwise|DeclaredProblem)\b")
    asking = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "perfmodel").rglob("*.py")
        if kinds.search(path.read_text(encoding="utf-8"))
    ]
    # The gradients of a recorded or traced call, and what fuses with it, depend on which operator
    # it became; so does what an engine does otherwise than the network that it runs.
    rooms = {"networks", "operators", "serving", "tracing"}
    assert {path.split("/")[1] for path in asking} == rooms


@pytest.mark.parametrize("name", DECLARED)
def test_every_declared_algorithm_is_an_operator(name):
    found = predict(problem(name, **SMALL.get(name, {})), H100)
    assert found.algorithm == library.load(name).name
    assert 0 < found.low_seconds <= found.seconds <= found.high_seconds
    assert found.seconds >= max(found.terms.values()) * (1 - 1e-9)
    assert found.bytes["hbm"] <= found.bytes["l2"] * (1 + 1e-9)
    assert found.footprint_bytes > 0
    assert found.terms[found.limiter] > 0
    assert json.dumps(found.as_dict())


@pytest.mark.parametrize("name", ["cross-entropy", "gated-mlp", "conv"])
def test_a_declared_operator_takes_the_time_of_the_schedule_found(name):
    one = problem(name, **SMALL.get(name, {}))
    found, mapped = predict(one, H100), search(one.cases[0], H100)
    assert found.seconds - found.terms["launch"] == pytest.approx(mapped.seconds, rel=1e-12)
    assert found.schedule == " | ".join("+".join(k.nest.steps) for k in mapped.kernels)
    assert found.implementation == "mapped"
    assert any("no library's kernel is known" in said for said in found.assumptions)


@pytest.mark.parametrize("name", ["mlp", "layernorm-matmul"])
def test_searching_every_fusion_is_never_slower_than_one_of_them(name):
    best, *others = (
        predict(problem(name), H100, schedule=schedule).seconds
        for schedule in ("auto", "unfused", "fused")
        if schedule != "fused" or name == "layernorm-matmul"
    )
    assert best <= min(others)


@pytest.mark.parametrize("slug", ["h100-sxm", "b200", "mi300x"])
@pytest.mark.parametrize("name", SIMILAR)
def test_the_map_is_never_slower_than_the_prediction(name, slug):
    device, case = load(slug), problem(name).cases[0]
    best = fastest(case, device, default())
    _, same = as_built_in(case)
    library = predict(same, device)
    library_seconds = library.seconds - library.terms["launch"]
    assert best.seconds <= library_seconds * (1 + 1e-12)
    assert best.seconds <= best.found.seconds
    assert best.library_seconds == pytest.approx(library_seconds, rel=1e-12)
    assert best.of_library == (best.library_seconds < best.found.seconds)
    assert predict(problem(name), device).seconds == library.seconds


@pytest.mark.parametrize("slug", ["h100-sxm", "a100-sxm4-80gb", "b200", "mi300x"])
@pytest.mark.parametrize("one", [Matmul(4096, 4096, 4096, dtype="fp16"),
                                 Attention(2, 16, 16, 2048, 2048, 128, dtype="fp16")])  # fmt: skip
def test_the_search_times_a_librarys_schedule_as_the_library_is_timed(slug, one):
    """One style: what a kernel is worth goes by its steps and not by who chose its tile."""
    here, constants = machine(load(slug)), default()
    operator = operator_of(one)
    kernel, _ = operator.kernels(one, Request(schedule="tiled"), here)
    (plan,) = operator.plans(columns(one)[0], "tiled", kernel, Setting(here, constants))
    style = Target(here, constants, "fp16").style(one.algorithm())
    (part,) = plan.parts
    width = max(value.shape[-1] for value in plan.tile.values())
    theirs, mine = (
        time_plan(here, constants, replace(plan, parts=(replace(part, style=how),)), (1, width))
        for how in (part.style, style)
    )
    assert np.isfinite(theirs.seconds).any()
    assert mine.seconds == pytest.approx(theirs.seconds, rel=1e-12)


def test_the_search_finds_the_librarys_product_and_takes_its_time():
    best = fastest(problem("matmul").cases[0], H100, default())
    (kernel,) = best.found.kernels
    tile = {axis: float(size[0]) for axis, size in best.library.tile.items()}
    assert tile == {"m": kernel.tiles["m"], "n": kernel.tiles["n"], "slices": 1}
    assert best.found.seconds == pytest.approx(best.library_seconds, rel=1e-9)


@given(
    st.lists(st.integers(1, 64).map(lambda n: 64 * n), min_size=1, max_size=3),
    st.sampled_from(["bf16", "fp8"]),
)
def test_arrays_of_declared_problems_are_their_problems_one_by_one(tokens, dtype):
    many = problem("softmax", rows=np.array(tokens), cols=1024, dtype=dtype)
    assert length(many) == len(tokens)
    together = predict_arrays(many, H100)
    for i, n in enumerate(tokens):
        one = problem("softmax", rows=n, cols=1024, dtype=dtype)
        assert describe(single(many, i)) == describe(one) == describe(many, i)
        assert together.one(i).seconds == predict(one, H100).seconds
        assert compulsory_bytes(many)[i] == compulsory_bytes(one)


def test_declared_problems_count_what_the_built_in_ones_count():
    declared = problem("gqa", seq=2048, heads=8, kv_heads=2, causal=True)
    operator, built_in = as_built_in(declared.cases[0])
    assert operator is BUILT_IN["attention"]
    assert compulsory_bytes(declared) == compulsory_bytes(built_in)
    # The papers' convention leaves out half of the diagonal.
    diagonal = 4 * 128 * 8 * 2048 / 2
    assert declared.flops() - diagonal == built_in.flops()
    product = problem("matmul", m=512, n=256, k=128)
    _, plain = as_built_in(product.cases[0])
    assert compulsory_bytes(product) == compulsory_bytes(plain)
    assert product.flops() == plain.flops() == 2 * 512 * 256 * 128


def test_picking_keeps_what_belongs_together():
    many = problem("matmul", m=np.array([64, 128, 256]), n=512)
    assert set(arrays(many)) == {"m", "k"}  # k is declared as m
    two = pick(many, np.array([2, 0]))
    assert two.sizes()["m"].tolist() == two.sizes()["k"].tolist() == [256, 64]
    assert isinstance(two, DeclaredProblem)


def test_a_grid_of_problems_without_meaning_is_one_line():
    sizes = {"tokens": np.array([64]), "top_k": np.array([9])}
    sweep = Sweep(Grid(operators.load("moe"), sizes, {}), (H100,))
    with pytest.raises(ProblemError, match="moe needs top_k <= experts"):
        sweep.check()
    both = Grid(operators.load("moe"), {**sizes, "top_k": np.array([2, 9])}, {})
    Sweep(both, (H100,)).check()
    some, neither = both.decode(0, 2).groups
    assert some.problem is not None
    assert (neither.problem, neither.rows.tolist()) == (None, [1])


def test_a_problem_without_meaning_is_one_line():
    with pytest.raises(UnknownName, match="no parameter of cross-entropy named 'token'"):
        problem("cross-entropy", token=4)
    with pytest.raises(ProblemError, match="is no number; write 0\\.25"):
        problem("block-sparse-attention", share="much")
    with pytest.raises(UnknownName, match="no operator named 'atention'; did you mean"):
        operators.load("atention")
    assert operators.find("atention") is None


def test_a_declaration_that_says_a_wrong_operator_is_one_line():
    sound = library.load("matmul")

    def said(operator):
        changed = replace(sound, operator=operator)
        return DeclaredProblem(changed, {}).cases[0]

    with pytest.raises(UnknownName, match="no operator that matmul is named 'gem'"):
        as_built_in(said({"name": "gem"}))
    with pytest.raises(UnknownName, match="no size of gemm that matmul gives named 'mm'"):
        as_built_in(said({"name": "gemm", "mm": "m"}))


def test_measured_runs_of_a_declared_operator_are_compared():
    import pandas as pd

    row = {"device": "h100-sxm", "op": "cross-entropy", "dtype": "bf16", "measured_us": 9000.0}
    sizes = {"tokens": 4096, "hidden": 4096, "vocabulary": 128256}
    found = predict_table(pd.DataFrame([row | sizes, row | sizes | {"tokens": 0}]))
    wanted = predict(problem("cross-entropy", **sizes), H100).seconds * 1e6
    assert found["predicted_us"][0] == pytest.approx(wanted)
    assert found["reason"].tolist() == ["", "axis t of cross-entropy is tokens = 0, which is no "
        "whole number of at least 1 and at most 2^40; change tokens = 0"]  # fmt: skip


def test_a_declaration_of_ones_own_is_a_command(tmp_path, capsys):
    path = tmp_path / "mine.yaml"
    path.write_text((ROOT / "perfmodel/algorithms/declared/softmax.yaml").read_text())
    path.write_text(path.read_text().replace("name: softmax", "name: mine", 1))
    code = main(["predict", str(path), "-d", "h100-sxm", "--rows", "1k,2k", "-f", "json"])
    assert code == 0
    rows = json.loads(capsys.readouterr().out)["predictions"]
    assert [row["algorithm"] for row in rows] == ["mine", "mine"]
    text = path.read_text().replace("{rows: 4096, cols: 4096}", "{rows: 4096, format: 8}")
    text = re.sub(r"operator: .*\n", "", text.replace("cols", "format"))
    path.write_text(text)
    assert main(["predict", str(path), "-d", "h100-sxm"]) == 2
    said = "parameter format is called as the option --format"
    assert said in capsys.readouterr().err


def test_csv_has_the_tile_of_every_case_of_a_declared_algorithm(capsys):
    found = {}
    for format in ("csv", "json"):
        given = ("embedding", "-d", "b200", "--tokens", "1,16", "--hidden", "1,4096")
        assert main(["predict", *given, "--format", format]) == 0
        found[format] = capsys.readouterr().out
    tiles = [row["tile"] for row in json.loads(found["json"])["predictions"]]
    assert len({frozenset(tile) for tile in tiles}) > 1
    for row, tile in zip(csv.DictReader(io.StringIO(found["csv"])), tiles, strict=True):
        cells = {k.removeprefix("tile_"): v for k, v in row.items() if k.startswith("tile_") and v}
        assert {axis: float(size) for axis, size in cells.items()} == tile
