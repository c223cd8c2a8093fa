"""The glossary has every word that the tool shows: headings, limiters, what is known, statuses.

The words are read from the code that shows them, so that a new one asks for its entry.
"""

import ast
import re
from functools import lru_cache
from typing import get_args

import pytest
from transcripts import ROOT

from perfmodel.cli import list_
from perfmodel.collectives import collectiveprediction as collectives
from perfmodel.collectives import nccl
from perfmodel.formats import schema
from perfmodel.glossary import WORDS, load
from perfmodel.hardware.facts import Status
from perfmodel.hardware.levels import LINKS, OWN
from perfmodel.render import terms
from perfmodel.render.serving import KINDS as CLASSES
from perfmodel.timing import architectures
from perfmodel.timing.knowledge import LEVELS

PACKAGE = ROOT / "perfmodel"
NAMES = [name.lower() for word in WORDS.values() for name in (word.name, *word.aliases)]
"""Every word that has an entry, in lower case."""


@pytest.fixture(scope="module")
def words():
    return set(NAMES)


@lru_cache(maxsize=1)
def headings():
    """The headings that are written where columns of tables are made."""
    sources = (path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    nodes = [
        node
        for source in sources
        if "Column" in source or "render.report" in source
        for node in ast.walk(ast.parse(source))
    ]
    makers = {"Column"} | {
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef)
        and isinstance(node.returns, ast.Name)
        and node.returns.id == "Column"
        and [argument.arg for argument in node.args.args[:1]] == ["header"]
    }
    calls = [node for node in nodes if isinstance(node, ast.Call) and node.args]
    heads = [
        call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id in makers
    ]
    texts = {head.value for head in heads if isinstance(head, ast.Constant)}
    return {text for text in texts if isinstance(text, str) and text}


# What only this page's subject has: how its own columns are headed.
REFERENCE = {"column", "needed", "cells", "if empty", "also read as"}


def test_headings_are_found_where_they_are():
    found = headings()
    assert {"limiter", "FLOP/B", "TTFT ms", "speed-up", "spilled", "median |ln|"} <= found
    assert len(found) > 100


def test_every_heading_of_a_table_has_an_entry(words):
    missing = {head for head in headings() - REFERENCE if head.lower() not in words}
    assert not missing, f"add to perfmodel/glossary.yaml: {sorted(missing)}"


SHOWN = {
    "limiters": [*(term for part in terms.PARTS.values() for term in part), *OWN, *LINKS],
    "classes of kernels": CLASSES,
    "parts of a prediction": terms.PARTS,
    "what is known": [*LEVELS, *(word for known in LEVELS.values() for word in known)],
    "what is known of collectives": [
        word
        for known in (collectives.DeviceKnown, collectives.LibraryKnown, collectives.LinkKnown)
        for word in get_args(known)
    ],
    "statuses of numbers": get_args(Status),
    "matrix instructions": get_args(architectures.Instruction),
    "ways of copying": get_args(architectures.Copies),
    "protocols": get_args(nccl.Protocol),
    "schedules": list_.SCHEDULES,
    "levels": list_.LEVELS,
    "kinds of names": list_.KINDS,
}


@pytest.mark.parametrize("kind", SHOWN)
def test_every_word_of_the_code_has_an_entry(words, kind):
    missing = {word for word in SHOWN[kind] if word.lower() not in words}
    assert not missing, f"{kind}: add to perfmodel/glossary.yaml: {sorted(missing)}"


def test_every_key_of_a_prediction_has_an_entry(words):
    keys = schema("prediction")["$defs"]["Prediction"]["properties"]
    missing = {key for key in keys if key not in words}
    assert not missing, f"add to perfmodel/glossary.yaml: {sorted(missing)}"


def test_entries_are_sorted_and_short():
    heads = [*WORDS]
    assert heads == sorted(heads, key=lambda head: re.sub(r"[^a-z0-9]", "", head.casefold()))
    assert all(len(word.about.split()) <= 90 for word in WORDS.values())


def test_no_word_has_two_entries():
    assert len(NAMES) == len(set(NAMES))


def test_a_word_s_page_has_its_heading():
    for page, _, anchor in (word.page.partition("#") for word in WORDS.values() if word.page):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        anchors = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
        assert not anchor or anchor in anchors, f"{page}#{anchor}"


def test_a_status_and_a_level_of_knowledge_are_told_in_full():
    for status in get_args(Status):
        assert f"{status}: " in WORDS["status"].about
    for kind in ("device", "implementation"):
        for level in LEVELS[kind]:
            about = load(level).about.lower().replace("of an ", "of a ")
            assert f"of a {kind}" in about, level
