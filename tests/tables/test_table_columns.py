"""The reference of tables' columns: `compare --columns` and the templates say what is read."""

import csv
import io
import json

import pytest
from cases import listed
from refusing import refused

from perfmodel.formats.catalogue import schema
from perfmodel.serving.served import METRICS as SERVED
from perfmodel.serving.servingrows import MEMORY, SIZES
from perfmodel.table.operatorlayout import OPERATORS
from perfmodel.table.reading import read
from perfmodel.table.reference import columns
from perfmodel.table.vocabulary import normal, vocabulary
from perfmodel.training.metrics import METRICS as TRAINED
from perfmodel.validation.kinds import KINDS, load

OTHERS = [name for name in KINDS if load(name).example]


@pytest.fixture
def predicted(tmp_path):
    """What a kind of table predicts of one row, by column."""

    def of(kind, row):
        path = tmp_path / "runs.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(row))
            writer.writeheader()
            writer.writerow(row)
        reading = read([path], kind.layout)
        found = kind.predicted(reading.table, reading.faults).iloc[0]
        assert found["reason"] == ""
        return found[kind.fields.predicted]

    return of


@pytest.mark.parametrize("name", KINDS)
def test_every_column_that_is_read_is_told_of(name):
    layout = load(name).layout
    found = {column.name: column for column in columns(layout, name)}
    assert found.keys() == {*layout.columns(), layout.measured}
    needed = {column.name for column in found.values() if column.needed == "yes"}
    assert needed == {*layout.needed, layout.measured}
    for column in found.values():
        assert column.about, column.name
        for spelling in column.names:
            meanings = vocabulary().meanings[normal(spelling)]
            assert column.name in [meaning.column for meaning in meanings]


def test_sizes_that_one_operator_needs_are_told_so():
    needed = {column.name: column.needed for column in columns(OPERATORS, "operator")}
    assert (needed["heads_q"], needed["k"], needed["rows"]) == (
        "attention", "gemm, grouped-gemm", "row-wise"
    )  # fmt: skip
    assert needed["window"] == ""


@pytest.mark.parametrize(
    ("kind", "column", "words"),
    [
        ("training", "metric", TRAINED),
        ("serving", "metric", (*SERVED, MEMORY)),
        ("serving", "load", tuple(SIZES)),
    ],
)
def test_a_column_of_few_words_lists_them_all(kind, column, words):
    (about,) = (one.about for one in columns(load(kind).layout, kind) if one.name == column)
    assert set(words) <= {*about.replace(":", ",").replace(" or ", ", ").split(", ")}


PLAIN = ("fwd", "no", "bf16", "nccl", "none", "megatron", "system", "0", "1", "128", "fp8")
ROWS = listed(__file__, "ROWS")


@pytest.mark.parametrize("name", KINDS)
def test_an_empty_cell_stands_for_what_is_said(name, predicted):
    kind, row = load(name), ROWS[name]
    usual = predicted(kind, row)
    told = {one.name: one.empty for one in columns(kind.layout, name) if one.name not in row}
    filled = {column: said for column, said in told.items() if said in PLAIN}
    filled |= {
        column: row[said.removeprefix("as ")]
        for column, said in told.items()
        if said.removeprefix("as ") in row
    }
    assert filled
    assert predicted(kind, row | filled) == usual


@pytest.mark.parametrize("name", OTHERS)
def test_a_template_with_a_value_in_it_is_predicted(name, predicted, cli):
    kind = load(name)
    code, out, err = cli("compare", "--template", name)
    assert (code, err, out) == (0, "", kind.template)
    (row,) = csv.DictReader(io.StringIO(out))
    assert set(row) <= {one.name for one in columns(kind.layout, name)}
    assert predicted(kind, row | {kind.layout.measured: "100"}) > 0


@pytest.mark.parametrize("name", OTHERS)
def test_a_table_without_its_columns_is_told_of_the_template(name, cli, tmp_path):
    (tmp_path / "runs.csv").write_text("device,seconds\nh100-sxm,1\n")
    refused(
        cli("compare", tmp_path / "runs.csv", "--kind", name),
        f"or see: perfmodel compare --template {name}",
    )


def test_the_schema_of_measured_runs_says_the_same():
    said = {one.name: (one.about, one.unit) for one in columns(OPERATORS, "operator")}
    for name, entry in schema("runs")["items"]["properties"].items():
        about, unit = said[name]
        unit = f" ({unit})" if unit else ""
        assert entry["description"] == f"{about[0].upper()}{about[1:]}{unit}."


def test_columns_are_printed_in_every_format(cli):
    code, out, _ = cli("compare", "--columns", "serving", "--format", "json")
    rows = {row["name"]: row for row in json.loads(out)["columns"]}
    assert (code, rows["isl"]["unit"], rows["engine"]["needed"]) == (0, "tokens", "yes")
    assert "input tokens" in rows["isl"]["names"]
    assert cli("compare", "--columns", "operator")[1].startswith("columns of operator tables\n")
