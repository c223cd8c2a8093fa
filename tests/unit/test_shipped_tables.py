"""Shipped tables: names are found however they are written; damage is one line with its place."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml
from cases import listed

from perfmodel.catalogue import Table
from perfmodel.compression.quantised import FORMATS
from perfmodel.embeddings.dlrm import RECOMMENDERS
from perfmodel.errors import SpecError, UnknownName
from perfmodel.glossary import WORDS
from perfmodel.networks.hosts import HOSTS
from perfmodel.networks.stack import STACKS
from perfmodel.offload.flexgen import FITTED
from perfmodel.timing import constants
from perfmodel.timing.architectures import ARCHITECTURES
from perfmodel.timing.runs import HARNESSES
from perfmodel.training.optimisers import CLIPPING, OPTIMISERS, STYLES
from perfmodel.training.precision import RECIPES
from perfmodel.yamltable import parse

CONSTANTS = Table(
    "constant", constants.Constant, Path(constants.__file__).with_name("constants.yaml"),
    "constants",
)  # fmt: skip
TABLES = {
    table._key: table
    for table in (
        ARCHITECTURES, CLIPPING, CONSTANTS, FITTED, FORMATS, HARNESSES, HOSTS, OPTIMISERS, RECIPES,
        RECOMMENDERS, STACKS, STYLES, WORDS,
    )
}  # fmt: skip


@pytest.fixture
def refused(tmp_path):
    """The line that a table's reader has for a text, or for a document in its place."""

    def call(table, text):
        path = tmp_path / table._file.name
        path.write_text(text if isinstance(text, str) else yaml.safe_dump(text), encoding="utf-8")
        with pytest.raises(SpecError) as caught:
            table.read(path)
        line = str(caught.value)
        assert line.startswith(f"{path}: ")
        assert "\n" not in line
        return line

    return call


@pytest.mark.parametrize("name", TABLES)
def test_damage_is_one_line_that_names_file_and_key(refused, tmp_path, name):
    table = TABLES[name]
    sound = parse(table._file.read_text(encoding="utf-8"))
    for other in ({**sound, "version": 9}, {name: sound[name]}, "", "[1, 2]"):
        assert f"{name} of another version; this code reads 1" in refused(table, other)
    for other in ([1], {"one": 3}, None):
        assert f"no mapping {name}" in refused(table, {**sound, name: other})
    entry, fields = next((key, value) for key, value in sound[name].items() if value)
    for field in fields:
        damaged = copy.deepcopy(sound)
        damaged[name][entry][f"{field}x"] = damaged[name][entry].pop(field)
        assert field in refused(table, damaged)
    refused(table, f"version: 1\n{name}: [")
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(SpecError) as caught:
            table.read(path)
        assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("name", "old", "new", "said"), DAMAGED := listed(__file__, "DAMAGED"),
    ids=[new or old for _, old, new, _ in DAMAGED],
)  # fmt: skip
def test_what_an_entry_cannot_be_says_what_it_can(refused, name, old, new, said):
    text = TABLES[name]._file.read_text(encoding="utf-8")
    assert old in text
    assert said in refused(TABLES[name], text.replace(old, new, 1))


@pytest.mark.parametrize("name", TABLES)
def test_names_are_found_however_they_are_written(name):
    table = TABLES[name]
    for entry in table:
        assert table.load(entry.upper().replace("-", "_")) is table[entry]
    longest = max(table, key=len)
    with pytest.raises(UnknownName, match=f"no {table._kind} named .*did you mean"):
        table.load(f"{longest[:-1]}{longest[-1] * 2}z")
