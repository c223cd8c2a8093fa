"""Specs can override facts of their device's architecture."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from cases import cases
from refusing import refused

from perfmodel.entries import made, written
from perfmodel.errors import SpecError
from perfmodel.hardware import load, loads
from perfmodel.timing.architectures import _KEYS, ARCHITECTURES, Architecture, architecture_of
from perfmodel.timing.machine import machine

PREDICT = ["predict", "gemm", "-m", "4k", "-n", "4k", "-k", "4k", "-f", "json"]


def spec_text(facts, device="h100-sxm"):
    """The text of a spec with facts of its own."""
    source = next(iter(load(device).sources))
    line = f"architecture_facts: {{values: {facts}, source: [{source}], status: unverified}}\n"
    return load(device).dump() + line


def own(facts, device="h100-sxm"):
    return loads(spec_text(facts, device), "my.yaml")


def test_a_spec_without_facts_of_its_own_has_its_architecture():
    assert architecture_of(load("h100-sxm")) is ARCHITECTURES["hopper"]


def test_what_a_spec_says_holds_and_the_rest_is_the_architecture():
    device = own("{integer_lanes: 128, copies: asynchronous, clusters: false}")
    found, row = architecture_of(device), ARCHITECTURES["hopper"]
    changed = {f.name for f in fields(row) if getattr(found, f.name) != getattr(row, f.name)}
    assert changed == {"integer_lanes", "copies", "clusters"}
    assert (found.integer_lanes, found.copies, found.clusters) == (128, "asynchronous", False)
    assert machine(device).integer_per_unit == 2 * machine(load("h100-sxm")).integer_per_unit


def test_the_file_comes_back_as_it_was():
    device = own("{copies: tensor, node_nm: 3.5, single_issue: true}")
    assert loads(device.dump()) == device
    assert loads(device.dump()).dump() == device.dump()


@cases
def test_a_wrong_fact_is_one_line_that_says_what_to_write(cli, tmp_path, facts, says):
    device = own(facts)
    with pytest.raises(SpecError, match="h100-sxm: ") as error:
        architecture_of(device)
    assert says in str(error.value)
    (tmp_path / "h100-sxm.yaml").write_text(spec_text(facts), encoding="utf-8")
    line = spec_text(facts).count("\n")
    code, out, err = cli("hardware", "validate", "h100-sxm.yaml")
    assert (code, out) == (2, "")
    assert err.startswith(f"h100-sxm.yaml:{line}: ")
    assert err.count("\n") == 1
    assert says in err
    refused(cli(*PREDICT, "-d", "./h100-sxm.yaml"), says)


@pytest.mark.parametrize("facts", ["{}", "{copies: {a: 1}}", "[copies]", "tensor"])
def test_what_is_no_table_of_facts_is_no_spec(facts):
    with pytest.raises(SpecError, match=r"my\.yaml:\d+: .*architecture_facts"):
        own(facts)


def test_every_fact_of_every_architecture_may_be_said_by_a_spec():
    for row in ARCHITECTURES.values():
        facts = {key: fact for key, fact in written(row).items() if key not in _KEYS}
        assert made(Architecture, facts, {key: getattr(row, key) for key in _KEYS}) == row


def test_a_prediction_follows_the_facts(cli):
    cli("hardware", "new", "my.yaml", "--like", "h100-sxm")
    with open("my.yaml", "a", encoding="utf-8") as file:
        file.write(
            "architecture_facts: {values: {clusters: false, copies: asynchronous}, "
            "source: [copied], status: unverified}\n"
        )
    assert cli("hardware", "validate", "my.yaml")[0] == 0
    assert "architecture_facts.values.copies" in cli("hardware", "show", "./my.yaml")[1]
    found = [
        json.loads(cli(*PREDICT, "-d", name)[1])["predictions"][0]
        for name in ("./my.yaml", "h100-sxm")
    ]
    assert found[0]["time_us"] > found[1]["time_us"]
    assert (
        found[0]["bytes"]["l2"] > found[1]["bytes"]["l2"]
    )  # nothing is sent to two blocks at once
