"""Formats of files: a schema of each in two drafts, the check behind `validate`, and the hooks."""

import json
import re
import subprocess
from copy import deepcopy

import pytest
from cases import cases
from folders import ROOT
from jsonschema import Draft7Validator, Draft202012Validator

from perfmodel import formats
from perfmodel.formats import catalogue
from perfmodel.formats.catalogue import PACKAGE
from perfmodel.formats.draft07 import as_draft07
from perfmodel.table import records
from perfmodel.validation import kinds
from perfmodel.yamltable import parse

SHIPPED = {
    "hardware": sorted((ROOT / "hardware_specs").glob("*.yaml")),
    "system": sorted((ROOT / "hardware_specs" / "systems").glob("*.yaml")),
    "network": sorted((PACKAGE / "networks/presets").glob("*.yaml")),
    "engine": sorted((PACKAGE / "serving/engines").glob("*.yaml")),
    "library": [p for p in (PACKAGE / "timing/libraries").glob("*.yaml") if p.stem != "names"],
    "algorithm": sorted((PACKAGE / "algorithms/declared").glob("*.yaml")),
    "graph": sorted((PACKAGE / "graph/declared").glob("*.yaml")),
}


def read(path):
    return parse(path.read_text(encoding="utf-8"))


def as_json(data):
    """The data as JSON has it: keys are text."""
    return json.loads(json.dumps(data))


def validators(name):
    new, old = formats.schema(name), formats.schema(name, "7")
    Draft202012Validator.check_schema(new)
    Draft7Validator.check_schema(old)
    return Draft202012Validator(new), Draft7Validator(old)


def test_every_schema_of_the_package_is_a_format(tmp_path, monkeypatch):
    """None is kept: those that are written for editors are the printed ones."""
    written = {item.written for item in formats.FORMATS.values() if item.written}
    assert {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.schema.json")} <= written
    for name in written:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(catalogue, "PACKAGE", tmp_path)
    catalogue.write()
    for name, item in formats.FORMATS.items():
        if item.written:
            assert (tmp_path / item.written).read_text("utf-8") == formats.text(name)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_files_are_valid_in_both_drafts(name):
    assert SHIPPED[name]
    new, old = validators(name)
    for path in SHIPPED[name][:20]:
        data = as_json(read(path))
        assert new.is_valid(data), path
        assert old.is_valid(data), path
        assert formats.format_of(path) == name


def damaged(data):
    """The document with each of its keys misspelt, and each of its values replaced, once."""
    yield {**data, "no_such_key": 1}
    for key in data:
        yield {("x" + k if k == key else k): v for k, v in data.items()}
        yield {**data, key: None}
        yield {**data, key: [[1]]}
        if isinstance(data[key], dict):
            for inner in damaged(data[key]):
                yield {**data, key: inner}


@pytest.mark.parametrize("name", SHIPPED)
def test_both_drafts_refuse_the_same_documents(name):
    new, old = validators(name)
    smallest = min(SHIPPED[name], key=lambda path: path.stat().st_size)
    refused = 0
    for document in list(damaged(as_json(read(smallest))))[:150]:
        assert new.is_valid(document) == old.is_valid(document), document
        refused += not new.is_valid(document)
    assert refused > 3


def test_what_draft_07_has_by_another_name():
    schema = {
        "$defs": {"pair": {"prefixItems": [{"type": "number"}], "items": {"type": "string"}}},
        "properties": {"a": {"$ref": "#/$defs/pair", "minItems": 1}, "$ref": {"const": 1}},
        "dependentRequired": {"a": ["b"]},
    }
    before = deepcopy(schema)
    old = as_draft07(schema)
    assert schema == before
    for document in ({"a": [1, "x"], "b": 0}, {"a": [1, 2], "b": 0}, {"a": []}, {"$ref": 2}, {}):
        assert Draft7Validator(old).is_valid(document) == Draft202012Validator(schema).is_valid(
            document
        ), document


def test_the_schema_of_runs_has_the_columns_that_are_read():
    layout, runs = kinds.load("operator").layout, formats.schema("runs")
    assert set(runs["items"]["properties"]) == {*layout.columns(), layout.measured}
    assert tuple(runs["items"]["required"]) == records.NEEDED


def test_rows_of_measured_runs_follow_their_schema():
    rows = json.loads(records.published().head(50).to_json(orient="records"))
    new, old = validators("runs")
    for row in rows:
        row["measured_us"] = row["measured_us"] or 1.0
    assert new.is_valid(rows)
    assert old.is_valid(rows)
    del rows[0]["device"]
    assert not new.is_valid(rows)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_files_pass_their_check(name):
    for path in SHIPPED[name][:4]:
        assert formats.check(path) == []
        assert formats.check(path, name) == []


@pytest.mark.parametrize("name", sorted(SHIPPED.keys() - {"engine"}))
def test_shipped_files_name_their_schema(name):
    item = formats.FORMATS[name]
    for path in SHIPPED[name]:
        named = re.search(
            r"^# yaml-language-server: \$schema=(\S+)$", path.read_text("utf-8"), re.M
        )
        assert named
        assert (path.parent / named[1]).resolve() == PACKAGE / item.written


def test_schema_on_the_command_line(cli, output):
    out = output("schema")
    assert all(name in out for name in formats.FORMATS)
    for name in formats.FORMATS:
        assert json.loads(cli("schema", name)[1])["$schema"].endswith("2020-12/schema")
        assert json.loads(cli("schema", name, "--draft", "7")[1])["$schema"].endswith("07/schema#")
    code, _, err = cli("schema", "grph")
    assert (code, err) == (2, "perfmodel: no format of files named 'grph'; did you mean graph?\n")
    assert cli("schema", "graph", "--draft", "4")[0] == 2


@cases
def test_what_is_wrong_with_a_file_is_one_line(cli, tmp_path, text, said):
    (tmp_path / "x.yaml").write_text(text)
    code, out, err = cli("validate", "x.yaml")
    assert (code, out) == (2, "")
    assert said in err
    assert all(line.startswith(("x.yaml", "perfmodel")) for line in err.splitlines())


def test_validate_on_the_command_line(cli):
    good = SHIPPED["graph"][0]
    assert cli("validate", good)[:2] == (0, "1 file is valid\n")
    code, _, err = cli("validate", good, "none.yaml")
    assert code == 2
    assert err.endswith("1 of 2 files cannot be used\n")
    assert "none.yaml: cannot be read" in err
    code, _, err = cli("validate", "--as", "runs", good)
    assert code == 2
    assert "no format that can be checked named 'runs'" in err


def test_hooks_run_commands_that_there_are(cli):
    hooks = parse((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert {hook["id"] for hook in hooks} == {"perfmodel-validate", "perfmodel-hardware-validate"}
    for hook in hooks:
        program, *arguments = hook["entry"].split()
        assert (program, hook["language"]) == ("perfmodel", "python")
        spec = ROOT / "hardware_specs" / "h100-sxm.yaml"
        assert cli(*arguments, spec)[0] == 0
    for name, pattern in (("a.graph.yaml", 0), ("my.engine.yml", 0), ("x/hardware_specs/b.yml", 1)):
        assert re.search(hooks[pattern]["files"], name)
    assert not re.search(hooks[1]["files"], "hardware_specs/systems/x.yaml")


@pytest.fixture
def action():
    return parse((ROOT / "action.yml").read_text())


def test_the_action_s_script_runs_as_written(action, tmp_path):
    """Its last step in a shell, with a `perfmodel` that writes down what it was given."""
    script = action["runs"]["steps"][-1]["run"]
    fake = tmp_path / "perfmodel"
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    fake.chmod(0o755)
    given = {
        "PATH": f"{tmp_path}:/usr/bin:/bin", "RUNS": "a b.csv\n$(touch x).csv\n", "BY": "op",
        "MAX_ERROR": "20%", "BASELINE": "", "WORSE": "0%", "OUTPUT": "rows.csv",
    }  # fmt: skip
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env=given, capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    assert result.stdout.splitlines() == [
        "compare", "--format", "github", "--output", "rows.csv", "--by", "op", "--max-error", "20%",
        "--", "a b.csv", "$(touch x).csv",
    ]  # fmt: skip
    assert not (tmp_path / "x").exists()


def test_the_action_installs_what_it_belongs_to_and_names_others_by_commit(action, tmp_path):
    others = [step["uses"] for step in action["runs"]["steps"] if "uses" in step]
    assert others
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each) for each in others)
    (install,) = (step for step in action["runs"]["steps"] if step.get("name") == "Install")
    assert install["env"]["ACTION"] == "${{ github.action_path }}"
    assert action["inputs"]["version"]["default"] == ""
    fake = tmp_path / "python"
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    fake.chmod(0o755)
    for version, installed in (("", "/an action"), ("perfmodel==1.0", "perfmodel==1.0")):
        given = {"PATH": f"{tmp_path}:/bin", "VERSION": version, "ACTION": "/an action"}
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", install["run"]],
            env=given, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.splitlines()[-1] == installed


def test_the_action_passes_inputs_as_variables_only(action):
    for step in action["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
        used = re.findall(r"inputs\.([\w-]+)", json.dumps(step))
        assert set(used) <= action["inputs"].keys()
        assert step.get("shell", "bash") == "bash"
    assert action["runs"]["using"] == "composite"
