"""Sources that several specs name: said once, the spec's own first."""

from collections import Counter

import pytest

from perfmodel.errors import SpecError
from perfmodel.hardware import catalogue, load, loads, sources
from perfmodel.yamltable import parse

SPECS = {
    path: parse(path.read_text(encoding="utf-8")) for path in catalogue.shipped().rglob("*.yaml")
}


def test_a_source_of_several_specs_is_said_once():
    said = Counter(key for data in SPECS.values() for key in data.get("sources", {}))
    assert max(said.values()) == 1, f"move {said.most_common(1)} to {sources.PATH.name}"
    assert not said.keys() & sources.shared().keys()
    named = Counter(key for data in SPECS.values() for key in set(sources._source_keys(data)))
    assert {key for key in sources.shared() if named[key] < 2} == set()
    assert list(sources.shared()) == sorted(sources.shared())


def test_a_spec_has_all_that_it_names_and_no_more():
    device = load("h20")
    assert device.sources["memory"] == sources.shared()["memory"]
    assert "h20-sec" in device.sources
    assert "fa1" not in device.sources


def test_its_own_comes_first():
    assert sources.completed({"a": {"source": ["memory"]}, "sources": {"memory": "mine"}}) == {
        "a": {"source": ["memory"]},
        "sources": {"memory": "mine"},
    }


@pytest.mark.parametrize("own", ["text", ["a"], None])
def test_what_is_no_mapping_is_left_to_the_check(own):
    assert sources.completed({"sources": own}) == {"sources": own}


def test_a_source_that_nobody_explains_is_refused():
    text = (catalogue.shipped() / "h20.yaml").read_text(encoding="utf-8")
    with pytest.raises(SpecError, match=r"source 'memry' is not explained under sources"):
        loads(text.replace("source: [memory]", "source: [memry]"))
