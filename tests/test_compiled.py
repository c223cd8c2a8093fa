"""Compiled documents: each equals its YAML file, and a stale one is not used."""

from __future__ import annotations

import ast
import re

import pytest

from perfmodel import yamltable
from perfmodel.compiled import __main__ as compiler
from perfmodel.errors import SpecError
from perfmodel.hardware import Device, catalogue, load, loads, names
from perfmodel.hardware.facts import walk

DOCUMENTS = dict(compiler.documents())
ANEW = "compile the documents anew: python -m perfmodel.compiled"


def test_all_documents_are_compiled_and_nothing_else_is_there():
    here = {path.name for path in compiler.HERE.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert here == set(compiler.modules()), ANEW


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_what_is_compiled_is_what_the_file_says(path):
    text = path.read_text(encoding="utf-8")
    found = yamltable.compiled(path, text)
    assert found is not None, ANEW
    assert found == DOCUMENTS[path](text)
    assert repr(found) == repr(DOCUMENTS[path](text)), "1, 1.0 and True are equal"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_an_edited_file_is_read_itself(path, tmp_path):
    other = tmp_path / path.parent.name / path.name
    other.parent.mkdir()
    text = path.read_text(encoding="utf-8")
    other.write_text(text, encoding="utf-8")
    assert yamltable.compiled(other, text) is yamltable.compiled(path, text)
    assert yamltable.compiled(other, text + "\n") is None
    other.write_text("said: otherwise\n", encoding="utf-8")
    assert yamltable.read(other) == {"said": "otherwise"}


@pytest.mark.parametrize("name", ["a", "A b.c", "../x", "1"])
def test_a_file_of_any_name_has_a_module_name(name, tmp_path):
    assert re.fullmatch("[a-z0-9_]+", yamltable.module_name(tmp_path / f"{name}.yaml"))


def test_no_yaml_is_a_value_error(tmp_path):
    with pytest.raises(ValueError, match="expected"):
        yamltable.parse("a: [1,\n b: 2")
    with pytest.raises(FileNotFoundError):
        yamltable.read(tmp_path / "none.yaml")


def test_two_files_of_one_module_are_refused(monkeypatch, tmp_path):
    paths = [tmp_path / "a-b.yaml", tmp_path / "a_b.yaml"]
    for path in paths:
        path.write_text("x: 1\n", encoding="utf-8")
    monkeypatch.setattr(compiler, "documents", lambda: [(p, yamltable.parse) for p in paths])
    with pytest.raises(ValueError, match="rename one"):
        compiler.modules()


@pytest.mark.parametrize(
    "value", [{}, [], {"a": [1.5, None, True] * 40}, [{"b'": 'c"\n'}] * 9, {64: [[1, 2]]}]
)
def test_literals_are_read_back(value):
    text = compiler.literal(value)
    assert ast.literal_eval(text) == value


@pytest.mark.parametrize("name", names())
def test_a_device_is_the_same_compiled_and_read(name):
    path = catalogue.shipped() / f"{name}.yaml"
    text = path.read_text(encoding="utf-8")
    checked, trusted = loads(text, str(path)), Device.trusted(yamltable.compiled(path, text))
    assert trusted == checked
    assert repr(trusted) == repr(checked)
    assert trusted.model_dump_json() == checked.model_dump_json()
    assert [fact.si for _, fact in walk(trusted) if hasattr(fact, "si")] == [
        fact.si for _, fact in walk(checked) if hasattr(fact, "si")
    ]
    assert trusted.dump() == checked.dump()
    assert trusted.scaled(hbm_bandwidth=2.0) == checked.scaled(hbm_bandwidth=2.0)


def test_a_spec_that_was_edited_is_checked(tmp_path):
    path = tmp_path / "hardware_specs" / "h100-sxm.yaml"
    path.parent.mkdir()
    text = (catalogue.shipped() / "h100-sxm.yaml").read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    assert load(path) == load("h100-sxm")
    path.write_text(text.replace("vendor: NVIDIA", "vender: NVIDIA"), encoding="utf-8")
    with pytest.raises(SpecError, match="unknown key 'vender'"):
        load(path)
