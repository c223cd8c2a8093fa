"""`perfmodel compile`: options, formats, and one line for each error."""

from __future__ import annotations

import json

import click
import pytest
from cases import cases

pytest.importorskip("triton")

from perfmodel import usercache
from perfmodel.cli.compile import app, problems
from perfmodel.cli.kerneloptions import Asked
from perfmodel.errors import PerfmodelError
from perfmodel.proof import registry


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(usercache.ENVIRONMENT, str(tmp_path_factory.mktemp("cache")))
        yield


def run(*arguments: str) -> None:
    made = app
    made.main(args=list(arguments), prog_name="perfmodel compile", standalone_mode=False)


SMALL = ("matmul", "-m", "256", "-n", "256", "-k", "256", "--config", "bm=64", "--config", "bn=64",
         "-c", "bk=32", "-c", "warps=4", "-c", "stages=2")  # fmt: skip


def test_json_has_every_number_of_every_device(capsys):
    run(*SMALL, "--target", "sm_90", "--device", "h100-sxm", "--device", "h20", "--format", "json")
    found = json.loads(capsys.readouterr().out)
    assert found["schema_version"] == 1
    first, second = found["compiled"]
    assert (first["device"], second["device"]) == ("h100-sxm", "h20")
    assert first["target"] == "sm_90"
    assert first["matrix_operations_per_pass"] == 2 * 64 * 64 * 32
    assert first["per_pass"]["matrix"] > 0
    assert first["config"]["bm"] == 64
    assert first["limiter"] == max(first["cycles_per_pass"], key=first["cycles_per_pass"].get)


@pytest.mark.parametrize("form", ["table", "csv", "markdown"])
def test_people_get_a_line_per_target(capsys, form):
    run(*SMALL, "-t", "sm_90", "-t", "gfx942", "--format", form)
    lines = capsys.readouterr().out.splitlines()
    assert sum("sm_90" in line for line in lines) == 1
    assert sum("gfx942" in line for line in lines) == 1


def test_output_is_written_whole(tmp_path, capsys):
    run(*SMALL, "-t", "sm_90", "--output", str(tmp_path / "out.json"))
    assert json.loads((tmp_path / "out.json").read_text())["compiled"]
    assert capsys.readouterr().out == ""


@cases
def test_bad_input_is_one_line(arguments, says):
    with pytest.raises((PerfmodelError, click.UsageError)) as error:
        run(*arguments)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_sizes_follow_the_spellings_of_predict():
    kernels = registry.kernels()
    attention = kernels["attention-tiled"]
    given = ["--heads", "16", "--seq", "1k,2k", "--causal", "--dtype=fp16"]
    first, second = problems(attention, given)
    assert (first.heads_q, first.heads_kv, first.causal, first.dtype) == (16, 16, True, "fp16")
    assert (first.seq_q, first.seq_kv) == (1024, 1024)
    assert (second.seq_q, second.seq_kv) == (2048, 2048)
    (grouped,) = problems(attention, ["--heads", "16", "--kv-heads", "4"])
    assert grouped.heads_kv == 4
    (decode,) = problems(kernels["attention-decode"], [])
    assert decode.seq_q == 1
    (backward,) = problems(kernels["attention-backward"], [])
    assert backward.direction == "bwd"


def test_every_kernel_has_usual_sizes():
    for kernel in registry.kernels().values():
        (problem,) = problems(kernel, [])
        assert kernel.launches(problem, kernel.configs[0])


def test_config_values_take_the_type_of_their_field():
    config = registry.kernel("matmul").configs[0]
    fields = {"bm": "32", "flatten": "true", "split_k": "none", "group_m": "4"}
    made = Asked("matmul", fields).configured(config)
    assert (made.bm, made.flatten, made.split_k, made.group_m) == (32, True, None, 4)
