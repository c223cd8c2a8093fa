"""`perfmodel hardware`: the catalogue, one device, validation, differences, the schema."""

import json

import pytest
from refusing import refused

from perfmodel.hardware import load, names


def test_list_names_every_device(cli):
    code, out, _ = cli("hardware", "list", "--format", "json")
    devices = json.loads(out)["devices"]
    assert code == 0
    assert [item["slug"] for item in devices] == names()
    assert next(d for d in devices if d["slug"] == "h100-sxm")["units"] == 132


def test_list_by_vendor(cli):
    _, out, _ = cli("hardware", "list", "--vendor", "amd", "-f", "json")
    found = {item["vendor"] for item in json.loads(out)["devices"]}
    assert found == {"AMD"}


def test_show_gives_every_fact_with_its_source(cli):
    _, out, _ = cli("hardware", "show", "h100-sxm", "--format", "json")
    document = json.loads(out)
    facts = {fact["fact"]: fact for fact in document["facts"]}
    assert facts["memory.hbm.bandwidth"]["si"] == load("h100-sxm").hbm_bytes_per_s
    assert all(source in document["sources"] for f in facts.values() for source in f["sources"])
    assert "memory.hbm.bandwidth" in cli("hardware", "show", "H100 SXM")[1]


def test_diff_gives_what_differs_and_by_how_much(cli):
    _, out, _ = cli("hardware", "diff", "a100-sxm4-40gb", "a100-sxm4-80gb", "--format", "json")
    rows = {row["fact"]: row for row in json.loads(out)["differences"]}
    one, other = load("a100-sxm4-40gb"), load("a100-sxm4-80gb")
    wanted = other.hbm_bytes_per_s / one.hbm_bytes_per_s
    assert rows["memory.hbm.bandwidth"]["ratio"] == pytest.approx(wanted)
    assert "compute.units" not in rows
    assert json.loads(cli("hardware", "diff", "a100", "a100", "-f", "json")[1])["differences"] == []


def test_validate_says_the_line_and_what_to_write(cli, tmp_path):
    text = load("h100-sxm").dump()
    good = tmp_path / "h100-sxm.yaml"
    good.write_text(text)
    assert cli("hardware", "validate", good) == (0, "1 file is valid\n", "")
    bad = tmp_path / "bad.yaml"
    bandwidth = load("h100-sxm").memory.hbm.bandwidth.text
    bad.write_text(
        text.replace("slug: h100-sxm", "slug: bad", 1).replace(f'"{bandwidth}"', "3.35e12", 1)
    )
    code, out, err = cli("hardware", "validate", good, bad)
    assert (code, out) == (2, "")
    assert err.startswith(f"{bad}:")
    assert "has no unit; write it like" in err
    assert err.splitlines()[1:] == ["1 of 2 files cannot be used"]


def test_validate_lists_every_bad_file(cli, tmp_path):
    code, _, err = cli("hardware", "validate", tmp_path / "a.yaml", tmp_path / "b.yaml")
    assert code == 2
    assert err.splitlines()[-1] == "2 of 2 files cannot be used"


def test_unknown_device_is_one_line(cli):
    refused(cli("hardware", "show", "h10-sxm"), "did you mean h100-sxm")


def test_schema_is_json_schema(cli):
    schema = json.loads(cli("hardware", "schema")[1])
    assert schema["$schema"].startswith("https://json-schema.org/")
