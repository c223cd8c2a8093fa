"""Names and sizes on the command line: unknown names are errors, and numbers of cases are
limited."""

import json
import re

import numpy as np
import pytest
from refusing import refused

from perfmodel import operators
from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.algorithms.rowwise import MAPS, VARIANTS
from perfmodel.algorithms.sizes import LARGEST, MOST_CASES, MOST_POINTS
from perfmodel.analysis.sweep import Grid, Sweep
from perfmodel.cli import known
from perfmodel.cli.list_ import KINDS
from perfmodel.cli.operatorgroup import read
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import load
from perfmodel.operators.builtin import BUILT_IN
from perfmodel.predict import predict
from perfmodel.table.records import published
from perfmodel.timing.libraries import implementations, kernels, naming

COMMANDS = {"predict": (), "whatif": (), "roofline": ("-o", "x.svg"), "sweep": ("--best",)}


def names(operator):
    return implementations(BUILT_IN[operator].library)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("operator", "options", "said"),
    [
        ("gemm", ("--implementation", "foo"), "no implementation of gemm named 'foo'"),
        ("attention", ("--implementation", "flashmb"), "did you mean flash"),
        ("gemm", ("--implementation", "fused-rows"), "fused-rows computes row-wise operators"),
        ("attention", ("--schedule", "split-kv", "--implementation", "fused-rows"), "not atten"),
        ("attention", ("--schedule", "tild"), "did you mean tiled"),
        ("gemm", ("--schedule", "standard"), "no schedule of gemm named 'standard'"),
        ("pointwise", ("--variant", "foo"), "no variant of pointwise named 'foo'"),
        ("pointwise", ("--variant", "gelu,foo"), "no variant of pointwise named 'foo'"),
    ],
)  # fmt: skip
def test_names_that_mean_nothing_are_refused(cli, command, operator, options, said):
    line = refused(cli(command, operator, "-d", "h100-sxm", *options, *COMMANDS[command]))
    assert said in line
    if "no implementation" in line:
        assert f"perfmodel list implementations --operator {operator}" in line


@pytest.mark.parametrize("operator", [*BUILT_IN])
def test_every_class_of_an_operator_is_a_name_and_those_of_others_are_not(operator):
    own = names(operator)
    for name in kernels():
        if name in own:
            assert known.implementation(BUILT_IN[operator], name) == name
        elif naming.asked_for(BUILT_IN[operator].library, name) is None:
            with pytest.raises(ProblemError):
                known.implementation(BUILT_IN[operator], name)


def test_names_of_libraries_are_known_and_what_merely_contains_one_is_not():
    for spelling in ("FlashAttention-2", "flash_attention_v2", "FA2", "flash-attn-2", "fa2"):
        assert known.implementation(BUILT_IN["attention"], spelling) == "flash2"
    for name in ("cudnn", "sdpa", "vllm", "vllm-0.24.0:vllm_flash_attn_fa3", "flashinfer", "CUDNN"):
        assert known.implementation(BUILT_IN["attention"], name).lower() == name.lower()
    for name in ("foo", "myflash2", "notcudnn", "cudnn9000", "vllmfoo", "", "flash9"):
        with pytest.raises(UnknownName):
            known.implementation(BUILT_IN["attention"], name)
    for name in ("foo", ".*", "torchy"):
        with pytest.raises(UnknownName):
            known.implementation(BUILT_IN["gemm"], name)


@pytest.mark.parametrize(
    "spelling", ["FlashAttention-2", "flash_attention_v2", "FA2", "flash-attn-3", "CUDNN", "Triton"]
)
def test_a_name_means_the_same_from_python_as_on_the_command_line(spelling):
    name = known.implementation(BUILT_IN["attention"], spelling)
    problem, device = Attention(1, 8, 8, 1024, 1024, 64), load("h100-sxm")
    found = predict(problem, device, implementation=spelling)
    assert found == predict(problem, device, implementation=name)
    assert found.known.implementation != "assumed"


def test_every_implementation_of_the_published_runs_can_be_asked_for():
    table = published()
    for op, name in table[["op", "implementation"]].drop_duplicates().itertuples(index=False):
        assert known.implementation(BUILT_IN[op], name)


def test_every_map_that_is_counted_can_be_asked_for():
    assert set(VARIANTS) <= set(MAPS)
    cases = read(
        operators.load("pointwise"),
        {
            "rows": "1",
            "cols": "1",
            "inputs": "1",
            "outputs": "1",
            "variant": ",".join(MAPS),
            "dtype": "bf16",
            "output_dtype": None,
            "direction": "fwd",
        },
    )
    assert cases.kinds["variant"] == MAPS


def test_list_has_every_name(cli):
    code, out, err = cli("list", "--format", "json")
    assert (code, err) == (0, "")
    rows = json.loads(out)["names"]
    assert {row["kind"] for row in rows} == set(KINDS) - {"words"}
    of = {kind: {row["name"] for row in rows if row["kind"] == kind} for kind in KINDS}
    assert of["implementations"] == set(kernels())
    every = [operators.load(name) for name in operators.names()]
    assert of["operators"] == {item.name for item in every}
    assert of["schedules"] == {name for item in every for name in item.schedules}
    assert of["variants"] == set(MAPS)
    for row in rows:
        assert row["about"], row
    asked = json.loads(cli("list", "implementations", "--operator", "softmax", "-f", "json")[1])
    assert {row["name"] for row in asked["names"]} == set(names("softmax"))
    assert "did you mean types" in refused(cli("list", "tpyes"))
    assert cli("list", "gpus") == cli("list", "device") == cli("list", "devices")
    assert "no operator named 'foo'" in refused(cli("list", "--operator", "foo"))


BOUNDLESS = [
    ("gemm", ("-m", "1:9000000", "-n", "1:9000000"), r"81,000,000,000,000 cases are more than"),
    ("attention", ("--heads", "1:60000", "--kv-heads", "1:60000"), r"3,600,000,000 cases are more"),
    ("softmax", ("--rows", "1:8000000", "--cols", "1:8"), r"64,000,000 cases are more than"),
]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("operator", "options", "said"), BOUNDLESS)
def test_too_many_cases_are_refused_before_anything_is_made(
    cli, monkeypatch, command, operator, options, said
):
    def made(*_arguments, **_options):
        raise AssertionError("values were made")

    monkeypatch.setattr(np, "arange", made)
    monkeypatch.setattr("perfmodel.hardware.load", made)
    line = refused(cli(command, operator, "-d", "h100-sxm", *options, *COMMANDS[command]))
    assert re.search(rf"{said}.*; \w+", line)


def test_all_commands_have_one_cap():
    sizes = {"m": np.arange(1, 8000), "n": np.arange(1, 8000), "k": np.array([1])}
    sweep = Sweep(Grid(operators.load("gemm"), sizes, {"dtype": ("bf16",)}), (load("h100-sxm"),))
    with pytest.raises(ProblemError, match=f"63,984,001 cases are more than {MOST_CASES:,}; "):
        sweep.check()
    sweep.check(yes=True)


def test_the_grid_of_heads_is_searched_block_by_block(monkeypatch):
    monkeypatch.setattr("perfmodel.operators.grid._PAIRS", 8)
    sizes = {"batch": [1], "heads_q": np.arange(1, 40), "head_dim": [64], "seq_q": [64]}
    kinds = {"causal": (False,), "dtype": ("bf16",)}
    follows = {"seq_kv": "seq_q"}
    found = Grid(
        operators.load("attention"), {**sizes, "heads_kv": np.array([50, 36, 35])}, kinds, follows
    )
    (heads,) = found._multiples()
    assert found._first_pair(heads) == {"heads_q": [35], "heads_kv": [35]}
    with pytest.raises(ProblemError, match="the grid is empty"):
        Grid(operators.load("attention"), {**sizes, "heads_kv": np.array([50, 41])}, kinds, follows)


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (lambda: Matmul(LARGEST + 1, 1, 1), "m must be at most 2^40"),
        (lambda: Rowwise("softmax", 1, np.array([1, 2**50])), f"at most 2^40, not {2**50}"),
        (lambda: Matmul(np.array([8, -3, 0]), 1, 1), "m must be at least 1, not -3"),
        (lambda: Matmul(LARGEST, LARGEST, LARGEST, 2), "beyond 2^120"),
        (lambda: Attention(LARGEST, 1, 1, LARGEST, LARGEST, 64), "beyond 2^120"),
        (lambda: Matmul(np.array([1, LARGEST]), LARGEST, LARGEST, np.array([1, 2])), "2^120"),
    ],
)  # fmt: skip
def test_problems_have_a_largest_size(problem, said):
    with pytest.raises(ProblemError, match=re.escape(said)):
        problem()


def test_the_largest_problems_are_allowed():
    assert Matmul(LARGEST, LARGEST, LARGEST).flops() == 2 * MOST_POINTS
