"""`perfmodel hardware new`: a spec to edit, with the numbers of a device that is like it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from refusing import refused

from perfmodel.hardware import load, names, validate_file
from perfmodel.hardware.copying import like
from perfmodel.hardware.facts import walk

GEMM = ["predict", "gemm", "-m", "512", "-n", "2k", "-k", "1k", "-f", "json"]
SOFTMAX = ["predict", "softmax", "--rows", "512", "--cols", "4k", "-f", "json"]


def predicted(output, device, command):
    out = output(*command, "-d", device)
    found = json.loads(out)["predictions"][0]
    # No runs on the newcomer were fitted, so that its range may be wider.
    apart = ("device", "assumptions", "known", "low_us", "high_us")
    assert {*apart} <= {*found}
    return {k: v for k, v in found.items() if k not in apart}


@pytest.mark.parametrize("device", ["l40s", "h100-sxm", "b300", "mi300x", "gtx1080ti"])
def test_a_newcomer_is_as_fast_as_what_it_is_like(cli, output, device):
    assert cli("hardware", "new", "my.yaml", "--like", device) == (0, "", "wrote my.yaml\n")
    assert cli("hardware", "validate", "my.yaml", "--warnings") == (0, "1 file is valid\n", "")
    for command in (GEMM, SOFTMAX):
        assert predicted(output, "./my.yaml", command) == predicted(output, device, command)


def test_a_newcomer_is_found_by_its_name_in_a_folder_of_ones_own(
    cli, output, tmp_path, monkeypatch
):
    cli("hardware", "new", "rtx4090d.yaml", "--like", "4090")
    monkeypatch.setenv("PERFMODEL_HARDWARE_PATH", str(tmp_path))
    assert predicted(output, "rtx4090d", GEMM) == predicted(output, "rtx4090", GEMM)
    assert load("4090").slug == "rtx4090"


def test_every_device_may_be_copied_and_every_fact_says_so(tmp_path):
    for name in names():
        original, path = load(name), tmp_path / "my-gpu.yaml"
        path.write_text(like(original, "my-gpu").dump(), encoding="utf-8")
        assert validate_file(path) == []
        mine = load(path)
        assert (mine.slug, mine.name, mine.aliases) == ("my-gpu", "my-gpu", ())
        assert name in mine.notes[0]
        assert name in mine.sources["copied"]
        for (where, fact), (same, other) in zip(walk(mine), walk(original), strict=True):
            assert where == same
            assert fact.source == ("copied",)
            assert fact.status == ("measured" if other.status == "measured" else "unverified")
            assert getattr(fact, "value", None) == getattr(other, "value", None)


def test_a_file_that_is_there_stays_as_it_is(cli, tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text("mine\n", encoding="utf-8")
    refused(cli("hardware", "new", "my.yaml", "--like", "l40s"), "my.yaml: the file exists already")
    assert path.read_text(encoding="utf-8") == "mine\n"


def test_an_editor_finds_the_schema(cli, tmp_path):
    cli("hardware", "new", "my.yaml", "--like", "l40s")
    line = (tmp_path / "my.yaml").read_text(encoding="utf-8").splitlines()[1]
    assert json.loads(Path(line.partition("$schema=")[2]).read_text(encoding="utf-8"))["$schema"]


def test_an_edited_number_moves_the_prediction(cli, output, tmp_path):
    cli("hardware", "new", "my.yaml", "--like", "l40s")
    path = tmp_path / "my.yaml"
    text = path.read_text(encoding="utf-8")
    bandwidth = yaml.safe_load(text)["memory"]["hbm"]["bandwidth"]["value"]
    path.write_text(text.replace(bandwidth, "1.2 TB/s", 1), encoding="utf-8")
    streamed = ["predict", "softmax", "--rows", "64k", "--cols", "4k", "-f", "json"]
    faster, slower = (
        predicted(output, name, streamed)["time_us"] for name in ("./my.yaml", "l40s")
    )
    assert faster < slower
