"""Compiled documents: each equals its YAML file, and a stale one is not used."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel import yamltable
from perfmodel.compiled import __main__ as compiler
from perfmodel.errors import SpecError
from perfmodel.hardware import Device, catalogue, load, loads, names
from perfmodel.hardware.facts import walk

KINDS = get_args(yamltable.Kind)
DOCUMENTS = {path: kind for kind in KINDS for path in compiler.documents(kind)}
ANEW = "compile the documents anew: python -m perfmodel.compiled"


def test_all_documents_are_compiled_and_nothing_else_is_there():
    found = {path.name: path.read_text("utf-8") for path in yamltable.FOLDER.glob("*.jsonl")}
    assert found == compiler.texts(), ANEW


def test_a_document_is_one_line_so_that_an_edit_changes_one():
    lines = [line for text in compiler.texts().values() for line in text.splitlines()]
    assert len(lines) == len(DOCUMENTS)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_what_is_compiled_is_what_the_file_says(path):
    kind, text = DOCUMENTS[path], path.read_text(encoding="utf-8")
    found = yamltable.compiled(kind, text)
    assert found is not None, ANEW
    assert repr(found) == repr(compiler.parse(kind, text)), "1, 1.0 and True are equal"
    assert yamltable.compiled(kind, text + "\n") is None
    assert all(yamltable.compiled(other, text) is None for other in KINDS if other != kind)


def test_the_hash_is_the_same_under_every_python():
    """The check value of CRC-32 (ISO 3309) is that of these nine digits."""
    assert yamltable.hash_of("123456789") == "cbf43926" + "00000009"


@given(st.text(st.characters(codec="utf-8"), min_size=1), st.data())
def test_an_edit_of_one_character_changes_the_hash(text, data):
    at = data.draw(st.integers(0, len(text) - 1))
    other = text[:at] + data.draw(st.characters(codec="utf-8")) + text[at + 1 :]
    assert (yamltable.hash_of(other) == yamltable.hash_of(text)) == (other == text)


def test_an_edited_table_is_read_itself(tmp_path):
    shipped = next(compiler.documents("tables"))
    copy = tmp_path / shipped.name
    text = shipped.read_text(encoding="utf-8")
    copy.write_text(text, encoding="utf-8")
    assert yamltable.read(copy) is yamltable.read(shipped)
    copy.write_text("said: otherwise\n", encoding="utf-8")
    assert yamltable.read(copy) == {"said": "otherwise"}


def test_without_compiled_files_the_text_is_parsed(monkeypatch, tmp_path):
    monkeypatch.setattr(yamltable, "FOLDER", tmp_path)
    monkeypatch.setattr(yamltable, "_document", yamltable._document.__wrapped__)
    monkeypatch.setattr(yamltable, "_lines", yamltable._lines.__wrapped__)
    shipped = next(compiler.documents("tables"))
    text = shipped.read_text(encoding="utf-8")
    assert yamltable.compiled("tables", text) is None
    assert yamltable.read(shipped) == yamltable.parse(text)


def test_no_yaml_is_a_value_error(tmp_path):
    with pytest.raises(ValueError, match="expected"):
        yamltable.parse("a: [1,\n b: 2")
    with pytest.raises(FileNotFoundError):
        yamltable.read(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        {"a": [1.5, None, True]},
        [{"b'": 'c"\n\u2028é'}],
        {64: [[1, 2]], 0: {}},
        float("inf"),
    ],
)
def test_a_line_says_all_of_a_document(document):
    line = yamltable.line("text", "name", document)
    assert "\n" not in line
    assert repr(yamltable._loads(line)[2]) == repr(document)


@pytest.mark.parametrize("document", [{"64": 1}, {64: 1, "a": 2}, {1.5: 0}, {None: 0}])
def test_what_json_would_change_is_refused(document):
    with pytest.raises(ValueError, match="whole numbers"):
        yamltable.line("text", "name", document)


@pytest.mark.parametrize("name", names())
def test_a_device_is_the_same_compiled_and_read(name):
    path = catalogue.shipped() / f"{name}.yaml"
    text = path.read_text(encoding="utf-8")
    checked, trusted = loads(text, str(path)), Device.trusted(yamltable.compiled("devices", text))
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
