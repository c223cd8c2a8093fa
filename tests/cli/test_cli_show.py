"""`perfmodel show`: what is said of a kernel or a harness is what its file states."""

import csv
import io
import json
from dataclasses import fields, is_dataclass

import pytest

from perfmodel.cli.list_ import KINDS as LISTED
from perfmodel.cli.list_ import names_of, singular
from perfmodel.entries import plain
from perfmodel.plaintext import listed
from perfmodel.render.facts import shown
from perfmodel.timing import stated
from perfmodel.timing.libraries import files, kernel_facts, kernels
from perfmodel.timing.runs import HARNESSES
from perfmodel.units import seconds


def value_at(holder, path):
    for name in path.split("."):
        holder = getattr(holder, name)
    return holder


def usual(kernel):
    """Names of facts that a kernel's dataclasses have no default for, or another value than it."""
    bare = {name: value for name, value in vars(kernel).items() if is_dataclass(value)}
    for above, holder in (("", kernel), *((f"{name}.", value) for name, value in bare.items())):
        for item in fields(holder):
            default = item.default_factory() if callable(item.default_factory) else item.default
            if getattr(holder, item.name) == default:
                yield above + item.name


def test_each_fact_is_stated_by_the_kernel_that_is_said_to_or_is_the_usual_one():
    for name in [*kernels()]:
        kernel = kernel_facts(name)
        by_default = set(usual(kernel))
        for fact in stated.of_kernel(name):
            assert fact.meaning, fact.name
            assert plain(value_at(kernel, fact.name)) == fact.value
            if fact.by is None:
                assert fact.source is None
                assert fact.name in by_default, fact.name
            else:
                teller = kernel_facts(fact.by)
                assert fact.source == teller.source
                assert plain(value_at(teller, fact.name)) == fact.value


def test_a_fact_comes_from_the_kernel_that_another_is_like():
    facts = {fact.name: fact for fact in stated.of_kernel("flash1-first")}
    assert facts["share"].by == facts["tiles"].by == "flash1"
    assert (facts["cut"].value, facts["cut"].by) == (None, "flash1-first")
    assert facts["stages"].value == 1
    assert facts["steps"].by is None


def test_a_rule_that_is_stated_anew_owes_nothing_to_the_one_before(tmp_path, monkeypatch):
    first = {
        "operator": "attention",
        "schedule": "tiled-3",
        "source": "a",
        "tiles": [[64, 64, 128]],
    }
    first["cut"] = {"rule": "even", "margin": 1.2, "most": 8}
    second = {"like": "one", "cut": {"rule": "even", "most": 4}, "source": "b"}
    known = files.Document("acme", "acme.yaml", {"kernels": {"one": first, "two": second}})
    monkeypatch.setattr(files, "brought", lambda: (known,))
    by = files.stated("two")
    assert by["tiles"] == by["schedule"] == "one"
    assert by["cut.most"] == by["source"] == "two"
    assert "cut.margin" not in by
    assert "like" not in by


def test_a_table_fits_100_columns(cli):
    for i, name in enumerate(kernels()):
        code, out, err = cli("show", "implementation", name, *[("--all",), ()][i % 2])
        assert (code, err) == (0, "")
        assert max(map(len, out.splitlines())) <= 100
        for part in kernel_facts(name).source.split()[:3]:
            assert part in out


@pytest.mark.parametrize("kind", [*LISTED])
def test_lists_fit_100_columns_and_are_whole_in_json(cli, kind):
    assert max(map(len, cli("list", kind)[1].splitlines())) <= 100
    rows = json.loads(cli("list", kind, "-f", "json")[1])["names"]
    assert not any(row["about"].endswith("...") for row in rows)


def test_the_whole_list_fits_too(cli):
    assert max(map(len, cli("list")[1].splitlines())) <= 100


def test_json_and_csv_have_every_fact_whole(cli):
    kernel = kernel_facts("cublas")
    document = json.loads(cli("show", "implementation", "cublas", "--format", "json")[1])
    assert (document["kind"], document["name"], document["operator"]) == (
        "implementation", "cublas", "gemm",
    )  # fmt: skip
    assert "torch" in document["goes_by"]
    rows = {row["name"]: row for row in document["facts"]}
    assert rows["tiles"]["value"]["0"] == [list(tile) for tile in kernel.tiles[0]]
    assert rows["tiles"]["source"] == kernel.source
    assert rows["few_rows"] == rows["few_rows"] | {"value": 0, "unit": "rows", "by": None}
    said = csv.DictReader(io.StringIO(cli("show", "implementation", "cublas", "-f", "csv")[1]))
    cells = {row["name"]: row for row in said}
    assert cells.keys() == rows.keys()
    assert json.loads(cells["tiles"]["value"]) == rows["tiles"]["value"]


def test_people_see_what_is_stated_unless_they_ask_for_all(cli):
    some, every = (cli("show", "implementation", "deepgemm", *more)[1] for more in ((), ["--all"]))
    assert "promoted" in some
    assert "few_rows" in every
    assert "few_rows" not in some
    assert "... (7)" in some
    assert cli("show", "implementation", "deepgemm", "-f", "markdown")[1].startswith("**deepgemm")


def test_a_harness_has_the_values_of_its_entry(cli):
    found = json.loads(cli("show", "harness", "cuda_graph", "-f", "json")[1])
    run_ = HARNESSES["cuda_graph"]
    rows = {row["name"]: row for row in found["facts"]}
    assert found["about"] == run_.about
    assert rows["warm"]["value"] == run_.warm
    assert rows["warm"]["source"] == run_.sources["warm"]
    for operator, start in run_.starts.items():
        assert rows[f"starts.{operator}"]["value"] == start
    assert rows["one_at_a_time"]["by"] is None
    assert seconds(run_.starts["attention"]) in cli("show", "harness", "cuda_graph")[1]


@pytest.mark.parametrize("name", [*HARNESSES])
def test_every_harness_says_all_that_its_entry_does(name):
    found = HARNESSES[name]
    said = {fact.name: fact for fact in stated.of_harness(found) if fact.by is not None}
    assert {key: fact.source for key, fact in said.items()} == dict(found.sources)


def test_other_kinds_and_files(cli, tmp_path):
    assert "--head-dim" in cli("show", "operator", "attention")[1]
    assert "16 bits" in cli("show", "type", "bf16")[1]
    assert cli("show", "implementation", "FlashAttention-2")[1].startswith("flash2, attention")
    code, out, err = cli("show", "level", "hbm", "-o", "level.json")
    assert (code, out, err) == (0, "", "wrote level.json\n")
    assert json.loads((tmp_path / "level.json").read_text())["name"] == "hbm"


def test_every_kind_of_the_list_can_be_shown(cli):
    for kind in LISTED:
        name = next(names_of(kind))["name"]
        code, out, err = cli("show", singular(kind), name, "--all")
        assert (code, err) == (0, ""), kind
        assert out.startswith(name)


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (0.6, "of the matrix rate", "0.6 of the matrix rate"),
        (True, "yes or no", "yes"),
        (None, "elements", ""),
        ([], "", ""),
        (0.0, "s", "0.00 s"),
        (2.32e-6, "s", "2.32 µs"),
        ([32, 64], "elements", "32, 64 elements"),
        ({"0": [[64, 128, 256]]}, "[rows, columns, threads]", "64x128x256"),
        ({64: [[1, 2, 3]] * 9}, "x", "64: 1x2x3, 1x2x3, 1x2x3, ... (9)"),
        ("native", "register, native", "native"),
    ],
)
def test_values_are_written_for_people(value, unit, said):
    assert shown(value, unit) == said


def test_lists_and_texts_are_cut_with_a_mark():
    assert listed(["a", "b"], 4) == "a, b"
    assert listed(["aaaa", "bbbb", "cccc"], 16) == "aaaa, bbbb, cccc"
    assert listed(["aaaa", "bbbb", "cccc"], 15) == "aaaa, ... (3)"
    assert listed(["a" * 50], 10) == "a" * 50
