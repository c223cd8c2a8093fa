"""Predictions as JSON: one schema, whatever the command, the operator and the flags."""

import csv
import io
import json

import pytest
from cases import cases, listed
from jsonschema import Draft202012Validator
from predictionschema import SCHEMA, validator
from reportresults import COMMANDS

from perfmodel.cli import run
from perfmodel.formats.results import DOCUMENTS
from perfmodel.hardware import load, names
from perfmodel.operators.builtin import BUILT_IN


@pytest.fixture
def document(capsys, tmp_path, monkeypatch):
    """The JSON of a successful command, NaN and Infinity not being allowed."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        assert run([*map(str, arguments), "--format", "json"]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)

    return call


def test_the_schema_is_sound_and_describes_every_member():
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    nouns = [each for name, each in SCHEMA["$defs"].items() if name[0].isupper()]
    assert len(nouns) > 10
    for each in nouns:
        assert all(
            len(member.get("description", "x")) > 0 for member in each["properties"].values()
        )
        assert each["description"]


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() & DOCUMENTS))
def test_every_command_writes_what_its_result_declares(document, name):
    """A member more, one that lacks, or of another type is an error."""
    validator(name).validate(document(*COMMANDS[name].split()))


def test_a_document_with_another_member_or_type_is_refused(document):
    schema = validator("predictions")
    good = document("predict", "gemm", "-d", "h100-sxm")
    (row,) = good["predictions"]
    for bad in (
        {**row, "quantity": "time"}, {**row, "time_us": "172 µs"}, {**row, "time_us": -1.0},
        {**row, "known": {**row["known"], "device": "perhaps"}}, {**row, "fits": 1},
        {name: value for name, value in row.items() if name != "limiter"},
    ):  # fmt: skip
        assert schema.is_valid(good)
        assert not schema.is_valid({**good, "predictions": [bad]})
    assert not validator("rows").is_valid(good)


CASES = listed(__file__, "CASES")
DEVICES = ("h100-sxm", "mi300x", "epyc-9654", "wse-2")


@pytest.mark.parametrize("operator", [*BUILT_IN])
def test_every_prediction_follows_the_schema_and_terms_change_nothing(document, operator):
    schema = validator("predictions")
    for options in CASES.get(operator, [(), ("--direction", "fwd,bwd"), ("--dtype", "fp32")]):
        given = ("predict", operator, "-d", "h100-sxm", *options)
        found = document(*given)
        schema.validate(found)
        assert document(*given, "--terms") == found
        assert document(*given, "--harness", "cuda_graph")["predictions"] != []


@pytest.mark.parametrize("device", DEVICES)
def test_every_make_of_device_follows_the_schema(document, device):
    assert device in names()
    for operator in ("gemm", "softmax", "attention"):
        options = ("--dtype", {"epyc-9654": "fp32", "wse-2": "fp16"}.get(device, "bf16"))
        validator("predictions").validate(document("predict", operator, "-d", device, *options))


@cases
def test_what_ifs_follow_the_schema(document, given):
    validator("whatif").validate(document("whatif", *given))


@cases
def test_sweeps_follow_the_schema_asked_at_once_or_later(document, question):
    schema = validator("rows")
    given = ("sweep", "attention", "-d", "h100-sxm,a100", "--heads", "8", "--kv-heads", "2,3,8")
    given += ("--seq", "1,1k", "--window", "0,64", "--causal")
    at_once = document(*given, *question)
    schema.validate(at_once)
    assert document(*given, *question, "-o", "folder") == at_once
    assert document("sweep", "ask", "folder", *question) == at_once


@pytest.mark.parametrize("operator", ["gemm", "pointwise", "quantise", "rmsnorm"])
def test_sweeps_of_every_operator_follow_the_schema(document, operator):
    validator("rows").validate(document("sweep", operator, "-d", "b200", "--best"))


@pytest.mark.parametrize("mesh", ["k=2@peer", "k=2@optics"])
def test_meshes_follow_the_schema(document, tmp_path, mesh):
    rate = '{value: "100 GB/s", source: [formula], status: derived}'
    more = f"  further:\n    optics: {{name: Ring, bandwidth_per_direction: {rate}}}\n"
    spec = load("h100-sxm").dump().replace("slug: h100-sxm\n", "slug: mine\n")
    spec = spec.replace("\nlinks:\n", f"\nlinks:\n{more}")
    (tmp_path / "mine.yaml").write_text(spec, encoding="utf-8")
    given = ("gemm", "-d", str(tmp_path / "mine.yaml"), "--mesh", mesh)
    validator("predictions").validate(document("predict", *given))
    validator("whatif").validate(document("whatif", *given))
    found = document("sweep", *given, "--best")
    validator("rows").validate(found)
    assert found["rows"][0][f"bytes_{mesh.partition('@')[2]}"] > 0


def test_terms_add_nothing_to_csv(capsys):
    given = ["predict", "attention", "-d", "h100-sxm", "--seq", "1k,2k", "--format", "csv"]
    assert run(given) == 0
    plain = capsys.readouterr().out
    assert run([*given, "--terms"]) == 0
    assert capsys.readouterr().out == plain
    row = next(csv.DictReader(io.StringIO(plain)))
    assert all(float(row[name]) >= 0 for name in row if name.startswith(("terms_", "bytes_")))
