"""Files of facts: what each kernel states, what is refused, and that nothing else names kernels."""

from __future__ import annotations

import json
import re
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path

import pytest
import yaml
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from perfmodel import formats
from perfmodel.algorithms.attention import Attention
from perfmodel.entries import Misfit, made, written
from perfmodel.entryschema import about
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import load as device
from perfmodel.predict import predict
from perfmodel.timing import constants
from perfmodel.timing.libraries import (
    AttentionFacts,
    ChainFacts,
    GemmFacts,
    RowFacts,
    files,
    kernel_facts,
    kernels,
    naming,
    resolve,
)
from perfmodel.timing.libraries.facts import GIVEN, KINDS, Caller, KernelFacts
from perfmodel.timing.machine import machine

FOLDER = Path(files.__file__).parent
LIBRARIES = {name: item for name, item in files.load().items() if name != files.NAMES}
ENTRIES = {n: e for item in LIBRARIES.values() for n, e in item.parts["kernels"].items()}


def read(tmp_path, entry, name="mine"):
    """The kernels of a file with one entry, beside the shipped ones."""
    path = tmp_path / "acme.yaml"
    path.write_text(yaml.safe_dump({"kernels": {name: entry}}), encoding="utf-8")
    return files.facts_of([files.document(path, "acme")], files.entries(files.load().values()))


def test_every_kernel_says_by_itself_where_its_facts_come_from():
    for name in ENTRIES:
        assert len(ENTRIES[name]["source"].split()) > 3
        assert kernel_facts(name).source == ENTRIES[name]["source"]
        assert kernel_facts(name).library in LIBRARIES


def test_facts_written_and_read_again_are_the_same():
    for name in ENTRIES:
        kernel = kernel_facts(name)
        entry = written(kernel, without=GIVEN)
        text = yaml.safe_load(yaml.safe_dump({"operator": kernel.operator, **entry}))
        assert (
            made(
                KINDS.get(kernel.operator, ChainFacts),
                text,
                {key: getattr(kernel, key) for key in GIVEN},
            )
            == kernel
        )


def test_a_kernel_that_is_like_another_differs_where_it_says():
    one, other = kernel_facts("trtllm"), kernel_facts("fmha")
    own = {"name", "library", "source", "about", "prepares", "fallback", "narrow_products"}
    assert {f.name for f in fields(one) if getattr(one, f.name) != getattr(other, f.name)} == own
    first = kernel_facts("flash1-first")
    assert (first.cut, first.tiles) == (None, kernel_facts("flash1").tiles)


def test_what_is_like_nothing_or_itself_is_one_line(tmp_path):
    for other in ("flash33", "mine", 3):
        with pytest.raises(PerfmodelError, match=r"acme\.yaml: mine: like: there is no kernel"):
            read(tmp_path, {"like": other, "source": "here"})
    found = read(tmp_path, {"like": "trtllm", "prepares": 2, "source": "here"})["mine"]
    own = {"source": "here", "name": "mine", "library": "acme", "about": ""}
    other = replace(kernel_facts("trtllm"), prepares=2, **own)
    assert found == other


def test_a_name_is_taken_once(tmp_path):
    with pytest.raises(PerfmodelError, match=r"flash3: the name is taken in flash_attention\.yaml"):
        read(tmp_path, {"like": "flash2", "source": "here"}, "flash3")


GEMM = {"operator": "gemm", "formats": ["fp16"], "tiles": [[64, 64, 128]], "source": "here"}
SOUND = {"operator": "attention", "schedule": "tiled-2", "tiles": [[64, 64, 128]], "source": "here"}
REFUSED = [
    (GEMM | {"tile": 1}, "tile: there is no such key; did you mean tiles?"),
    (GEMM | {"packs": True}, "packs: there is no such key"),
    (GEMM | {"caller": {}}, "caller: there is no such key"),
    (GEMM | {"operator": "gem"}, "operator: no such operator as 'gem'; write one of attention"),
    (GEMM | {"tiles": [[64, 64]]}, "tiles.0: .* is not a list of 3; write as many"),
    (GEMM | {"tiles": {"64": [[64, 64, 128]]}}, "tiles.64: '64' is not a whole number"),
    (GEMM | {"tiles": [[64, 0, 128]]}, "tiles.0: a tile needs rows, columns and threads"),
    (GEMM | {"tiles": []}, "tiles.0: a tile needs rows"),
    (GEMM | {"share": "half"}, "share: 'half' is not a number of 0 or more"),
    (GEMM | {"share": 1.5}, "share: 1.5 is not a share; write a number above 0"),
    (GEMM | {"share": float("nan")}, "share: 'nan' is not a number"),
    (GEMM | {"splits": [2, 1]}, "splits: numbers of slices must rise from 1"),
    (GEMM | {"few_rows": True}, "few_rows: 'True' is not a whole number"),
    (GEMM | {"formats": ["fp61"]}, "formats: there is no type 'fp61' of products; did you mean"),
    (GEMM | {"formats": []}, "formats: there is no type"),
    (GEMM | {"instruction": "wgmma"}, "instruction: 'wgmma' is not known; write one of register"),
    (GEMM | {"runs_on": {"instruction": ["9.0"]}}, "runs_on.instruction.0: '9.0' is not known"),
    (GEMM | {"runs_on": ["hopper"]}, "runs_on: .* is not a mapping"),
    (GEMM | {"runs_on": {"architecture": ["hoper"]}}, "runs_on.architecture: .*'hoper'; did"),
    (GEMM | {"runs_on": {"copies": ["tensor"]}}, "fallback: the kernel runs on some architectures"),
    (GEMM | {"fallback": "flash2"}, "fallback: there is no kernel 'flash2' of gemm"),
    (GEMM | {"fallback": "mine"}, "fallback: fallbacks form a cycle .mine, mine."),
    ({k: v for k, v in GEMM.items() if k != "source"}, "source: the key is missing; add it"),
    ({k: v for k, v in GEMM.items() if k != "tiles"}, "tiles: the key is missing; add a menu"),
    (GEMM | {"source": "  "}, "source: '  ' is not a text"),
    (SOUND | {"cut": {"rule": "even", "margins": 1}}, "cut.margins: .* did you mean margin"),
    (SOUND | {"cut": {"rule": "waves", "keys": 4}}, "cut.waves: the key is missing"),
    (SOUND | {"cut": {"keys": 4}}, "cut.rule: the key is missing; write one of smallest"),
    (SOUND | {"cut": {"rule": "evn"}}, "cut.rule: 'evn' is not known; write one of smallest"),
    (SOUND | {"stages": 0}, "stages: 0 is too few"),
    (SOUND | {"packs": "yes"}, "packs: 'yes' is neither true nor false"),
    ({"operator": "softmax", "source": "here", "rows": {"load": 4}}, "rows.held_columns: the key"),
    ("flash2", "it has no facts; write operator"),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "said"), REFUSED)
def test_what_is_no_fact_is_one_line_with_file_kernel_key_and_what_to_do(tmp_path, entry, said):
    with pytest.raises(PerfmodelError, match=rf"acme\.yaml: mine: {said}") as caught:
        read(tmp_path, entry)
    assert "\n" not in str(caught.value)
    assert ";" in str(caught.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.sampled_from(sorted(ENTRIES)), st.data(), VALUES)
def test_any_value_anywhere_is_a_fact_or_one_line(name, data, value):
    kernel = kernel_facts(name)
    whole = {"operator": kernel.operator, **written(kernel, without=GIVEN)}
    known = [field.name for field in fields(kernel) if field.name not in GIVEN]
    entry = {**whole, data.draw(st.sampled_from(known)): value}
    document = files.Document("acme", "acme.yaml", {"kernels": {"mine": entry}})
    said = ""
    try:
        files.facts_of([document], files.entries(files.load().values()))
    except PerfmodelError as error:
        said = str(error)
    assert not said or said.startswith("acme.yaml: mine: ")
    assert "\n" not in said


@pytest.mark.parametrize("kind", [AttentionFacts, GemmFacts, RowFacts])
def test_operators_have_facts_of_their_own(kind):
    """No fact is one that another operator's kernels would ignore."""
    own, common = ({field.name for field in fields(each)} for each in (kind, KernelFacts))
    for other in {AttentionFacts, GemmFacts, RowFacts} - {kind}:
        shared = own & {field.name for field in fields(other)}
        matrix = {
            "instruction",
            "overlap",
            "tiles",
            "share",
            "specialises",
            "prepares",
            "widening_ops",
        }
        assert shared <= common | (matrix if RowFacts not in (kind, other) else set())
    used = [k for k in kernels().values() if isinstance(k, kind)]
    for item in fields(kind):  # a fact that no kernel states is none
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        if item.name not in common:
            assert any(getattr(k, item.name) != default for k in used), item.name


@pytest.mark.parametrize("kind", [*dict.fromkeys(KINDS.values()), Caller])
def test_every_fact_has_a_meaning(kind):
    for name, said in about(kind).items():
        assert said.meaning.endswith("."), name
        assert said.meaning[0].isupper(), name


def test_no_fact_is_the_name_of_a_constant():
    names = {constant.name for constant in constants.shipped()}

    for name, entry in ENTRIES.items():
        stated = {key: value for key, value in entry.items() if key != "source"}
        assert not names & set(re.findall(r"\w+", json.dumps(stated))), name


def validator():
    jsonschema = pytest.importorskip("jsonschema")
    committed = formats.schema("library")
    jsonschema.Draft202012Validator.check_schema(committed)
    return jsonschema.Draft202012Validator(committed)


def test_shipped_files_are_valid_by_the_schema():
    check = validator()
    for item in LIBRARIES.values():
        check.validate(json.loads(json.dumps(item.parts)))
    shared = {part: files.load()[files.NAMES].parts[part] for part in ("names", "callers")}
    check.validate(json.loads(json.dumps({"kernels": {"a": GEMM}, **shared})))


@pytest.mark.parametrize(
    "entry",
    [
        e
        for e, said in REFUSED
        if re.search("no such key|is missing; add it|is not known|no list of", said)
    ],
)
def test_the_schema_refuses_what_is_refused(entry):
    check = validator()
    assert check.is_valid({"kernels": {"mine": GEMM}})
    assert not check.is_valid(json.loads(json.dumps({"kernels": {"mine": entry}})))


def test_patterns_stand_in_one_file_and_are_matched_in_one_module():
    for item in LIBRARIES.values():
        assert item.parts.keys() == {"library", "kernels"}
    root = FOLDER.parents[1]
    matching = [
        path.relative_to(root).as_posix()
        for folder in ("timing", "operators", "predict.py", "cli/known.py", "cli/list_.py")
        for path in ([root / folder] if folder.endswith(".py") else (root / folder).rglob("*.py"))
        if re.search(r"^(import|from) re\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert matching == ["timing/libraries/naming.py"]


def test_shipped_files_that_are_not_there_are_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "FOLDER", tmp_path)
    with pytest.raises(PerfmodelError, match="there are no files of facts; reinstall"):
        files.load.__wrapped__()
    (tmp_path / "names.yaml").write_text("a: [1,\n b: 2", encoding="utf-8")
    with pytest.raises(
        PerfmodelError, match=r"names\.yaml: cannot be read .*; reinstall"
    ) as caught:
        files.load.__wrapped__()
    assert "\n" not in str(caught.value)


@cases
def test_names_that_cannot_be_used_are_one_line(parts, said):
    document = files.Document("acme", "acme", parts)
    with pytest.raises(PerfmodelError, match=said) as caught:
        (naming.known_as if "names" in parts else naming.called_as)(document)
    assert "\n" not in str(caught.value)


def test_every_entry_of_the_names_is_of_a_kernel():
    named = {entry.kernel for entry in (*naming.names(), *naming.usual_kernels())}
    assert named <= kernels().keys()
    for entry in naming.callers():
        assert entry.changes
        assert entry.source


def test_a_kernel_that_nothing_runs_on_falls_back():
    here = machine(device("mi300x"))
    assert resolve("attention", "flash3", "bf16", here)[0].name == "ck-flash"
    tables = [k.runs_on for k in kernels().values()]
    assert all(not is_dataclass(v) for r in tables for v in vars(r).values())


def test_misfits_say_where():
    entry = SOUND | {"cut": {"rule": "even", "margin": "x"}}
    with pytest.raises(Misfit, match=r"^cut\.margin: 'x' is not a number"):
        made(AttentionFacts, entry, {"name": "a", "library": "b"})


def test_a_fact_moves_the_time():
    shape = Attention(1, 8, 8, 4096, 4096, 128)
    assert predict(shape, device("h100-sxm"), implementation="flash3").seconds < 0.9 * (
        predict(shape, device("h100-sxm"), implementation="flash2").seconds
    )


def test_a_line_about_a_kernel_is_its_own_and_short():
    lines = {name: facts.about for name, facts in kernels().items() if facts.about}
    assert lines == {name: entry["about"] for name, entry in ENTRIES.items() if "about" in entry}
    assert all(len(line.split()) <= 40 and "\n" not in line for line in lines.values())
    assert {"flash3", "cublas", "vllm-fused-experts"} <= lines.keys()
