"""Systems: every shipped file is sound, names lead to files, bad ones are refused in a line."""

from __future__ import annotations

import json

import jsonschema
import pytest
import yaml
from cases import cases

from perfmodel import formats
from perfmodel.entries import made
from perfmodel.errors import SpecError, UnknownName
from perfmodel.hardware import System, catalogue, load, sources, systems
from perfmodel.hardware.system import SystemLevel
from perfmodel.yamltable import parse

NAMES = systems.names()
FOLDER = catalogue.shipped() / systems.FOLDER
ASKED = (
    "dgx-a100", "dgx-a100-40gb", "dgx-h100", "dgx-h200", "dgx-b200", "gb200-nvl72", "8xl40s",
    "8xrtx-pro-6000", "8xmi300x", "tpu-v5p-pod", "dgx-1-v100", "a100-pcie-80gb-pairs", "8xl4",
)  # fmt: skip


def test_the_systems_that_people_ask_for_are_there():
    assert set(ASKED) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_system_is_sound_and_what_its_file_says(name):
    path = FOLDER / f"{name}.yaml"
    assert systems.validate_file(path) == []
    text = path.read_text(encoding="utf-8")
    assert systems.load(name) == made(System, sources.completed(parse(text)))
    assert all(isinstance(level, SystemLevel) for level in systems.load(name).levels)
    jsonschema.validate(parse(text), formats.schema("system"))


@pytest.mark.parametrize("name", NAMES)
def test_links_fall_outwards(name):
    system = systems.load(name)
    rates = [load(system.device).hbm_bytes_per_s, *(x.bytes_per_s for x in system.levels)]
    assert rates == sorted(rates, reverse=True)
    joined = [level.devices.value for level in system.levels]
    assert joined == sorted(set(joined))
    assert system.devices == joined[-1]
    assert system.devices % system.node_devices == 0


@pytest.mark.parametrize("spelling", ["DGX H100", "hgx_h100", "dgx-h100", "NVIDIA DGX H100"])
def test_other_spellings(spelling):
    assert systems.load(spelling).slug == "dgx-h100"


def test_a_device_is_the_system_that_its_own_links_make():
    made = systems.load("h200-nvl")
    device = load("h200-nvl")
    assert [level.name for level in made.levels] == ["peer"]
    assert made.levels[0].bytes_per_s == device.level("peer").bytes_per_s
    pairs = systems.of_device(load("a100-pcie-40gb"), "pairs")
    assert [(x.name, x.topology) for x in pairs.levels][:2] == [
        ("peer", "pairs"), ("host", "host-bridge"),
    ]  # fmt: skip
    assert pairs.levels[0].devices.value == 2


def test_an_unknown_name_has_its_nearest_ones():
    with pytest.raises(UnknownName, match="no system named 'dgx-h101'; did you mean dgx-h100"):
        systems.load("dgx-h101")


def changed(**changes):
    """The file of a DGX H100 with some values of its levels changed, by level and key."""
    data = parse((FOLDER / "dgx-h100.yaml").read_text(encoding="utf-8"))
    for place, value in changes.items():
        level, key = place.split("__")
        entry = data["levels"][("nvlink", "network").index(level)]
        if value is None:
            entry.pop(key)
        elif isinstance(entry.get(key), dict):
            entry[key]["value"] = value
        else:
            entry[key] = value
    return data


@cases
def test_what_cannot_be_is_refused_in_one_line(changes, says, tmp_path):
    path = tmp_path / "dgx-h100.yaml"
    path.write_text(yaml.safe_dump(changed(**changes), sort_keys=False))
    problems = systems.validate_file(path)
    assert any(says in line for line in problems), problems
    assert all(line.startswith(f"{path}:") and "\n" not in line for line in problems)
    with pytest.raises(SpecError):
        systems.load(path)


def test_an_own_system_is_found_by_name(tmp_path, monkeypatch):
    folder = tmp_path / "systems"
    folder.mkdir()
    data = changed() | {"slug": "mine", "aliases": ["our box"]}
    (folder / "mine.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    monkeypatch.setenv(catalogue.ENVIRONMENT, str(tmp_path))
    assert systems.load("Our Box").slug == "mine"
    assert "mine" in systems.names()
    (folder / "other.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    with pytest.raises(SpecError, match="slug 'mine' is not the file's name 'other'"):
        systems.load("other")


def test_a_system_of_no_device_is_refused(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump(changed() | {"slug": "x", "device": "abacus"}))
    assert "device 'abacus' has no spec" in systems.validate_file(path)[0]


def test_the_command_line_lists_shows_and_validates(cli, tmp_path):
    code, out, _ = cli("hardware", "show", "dgx-h100", "-f", "json")
    shown = json.loads(out)
    assert (code, shown["system"]) == (0, "dgx-h100")
    facts = {row["fact"]: row["value"] for row in shown["facts"]}
    assert facts["levels.nvlink.bandwidth_per_direction"] == "450 GB/s"
    listed = json.loads(cli("hardware", "systems", "-f", "json")[1])["systems"]
    assert {row["slug"] for row in listed} == set(NAMES)
    names = json.loads(cli("list", "systems", "-f", "json")[1])["names"]
    assert [row["name"] for row in names] == NAMES
    assert cli("hardware", "validate", FOLDER / "dgx-h100.yaml")[1] == "1 file is valid\n"
    path = tmp_path / "dgx-h100.yaml"
    path.write_text(yaml.safe_dump(changed(nvlink__topology="star"), sort_keys=False))
    code, out, err = cli("hardware", "validate", path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert json.loads(cli("hardware", "schema", "--system")[1])["title"] == "System"
