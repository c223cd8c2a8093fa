"""Reports as text: each format reads the same rows."""

import csv
import io
import json

import pytest

from perfmodel.render import RENDERERS, Column, Report
from perfmodel.render.report import fixed, integer, micros, percent, quantity, ratio, text

ROWS = [
    {"name": "a|b", "n": 3, "error": 0.125, "parts": {"hbm": 1.5}, "said": ["x", "y"]},
    {"name": "", "n": 1_000_000, "error": float("nan"), "parts": {"hbm": float("inf")}, "said": []},
]
COLUMNS = [
    text("name", "name"),
    integer("n", "n"),
    percent("error", "error"),
    Column("HBM", lambda row: row["parts"]["hbm"], quantity("B")),
]


def rendered(format, **changes):
    report = Report("things", ROWS, COLUMNS, "A title", {"extra": 1}, ["a note"])
    return "".join(RENDERERS[format](report))


def test_json_is_valid_and_has_null_for_what_is_no_number():
    document = json.loads(rendered("json"), parse_constant=pytest.fail)
    assert document["schema_version"] == document["extra"] == 1
    assert document["things"][0] == ROWS[0]
    assert document["things"][1]["error"] is document["things"][1]["parts"]["hbm"] is None


def test_json_of_nothing_is_an_empty_list():
    document = "".join(RENDERERS["json"](Report("things", [], COLUMNS)))
    assert json.loads(document) == {"schema_version": 1, "things": []}


def test_csv_flattens_names():
    rows = list(csv.DictReader(io.StringIO(rendered("csv"))))
    assert list(rows[0]) == ["name", "n", "error", "parts_hbm", "said"]
    assert rows[0] == {
        "name": "a|b",
        "n": "3",
        "error": "0.125",
        "parts_hbm": "1.5",
        "said": "x; y",
    }
    assert rows[1]["error"] == ""


def test_csv_streams_rows_under_the_header_of_the_examples():
    stream = ({"n": i} for i in range(3))
    report = Report("things", stream, COLUMNS, examples=[{"n": 0}, {"m": 0}])
    pieces = RENDERERS["csv"](report)
    assert next(pieces) == "n,m\n0,\n"
    assert "".join(pieces) == "1,\n2,\n"


def test_table_is_plain_and_never_cut_in_a_pipe():
    found = rendered("table")
    assert "\x1b" not in found
    title, header, _, first, second, note = found.splitlines()
    assert (title, note) == ("A title", "a note")
    assert header.split() == ["name", "n", "error", "HBM"]
    assert first.split() == ["a|b", "3", "12.5%", "1.50", "B"]
    assert second.split() == ["-", "1000000", "-", "inf", "B"]
    long = Report("things", [{"name": "x" * 5000}], [text("name", "name")])
    assert "x" * 5000 in "".join(RENDERERS["table"](long))


def test_markdown_escapes_bars():
    lines = rendered("markdown").splitlines()
    assert lines[2:5] == [
        "| name | n | error | HBM |",
        "| --- | ---: | ---: | ---: |",
        "| a\\|b | 3 | 12.5% | 1.50 B |",
    ]
    assert lines[0] == "**A title**"
    assert lines[-1] == "a note"


@pytest.mark.parametrize(
    ("value", "shown"), [(0.25, "0.25"), (12.34, "12.3"), (999.6, "1000"), (4096.4, "4096")]
)
def test_ratios_never_have_exponents(value, shown):
    assert ratio(value) == shown


def test_numbers_for_people():
    assert micros(1234) == "1.23 ms"
    assert fixed("x", "x").cell({"x": 0.12345}) == "0.123"
    assert fixed("x", "x").cell({}) == "-"
