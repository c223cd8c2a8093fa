"""Reports as text: each format reads the same rows."""

import csv
import io
import json
import re
import tracemalloc

import pytest
from cases import listed

from perfmodel.plaintext import csv_text, without_controls
from perfmodel.render import RENDERERS, Column, Report, table
from perfmodel.render.report import micros, quantity, ratio, text

ROWS = [
    {"name": "a|b", "n": 3, "error": 0.125, "parts": {"hbm": 1.5}, "said": ["x", "y"]},
    {"name": "", "n": 1_000_000, "error": float("nan"), "parts": {"hbm": float("inf")}, "said": []},
]
COLUMNS = [
    text("name", "name"),
    Column("n", "n"),
    Column("error", "error", "{:.1%}"),
    Column("HBM", lambda row: row["parts"]["hbm"], quantity("B")),
]


def rendered(format, **changes):
    report = Report("things", ROWS, COLUMNS, "A title", {"extra": 1}, ["a note"])
    return "".join(RENDERERS[format](report))


def test_json_is_valid_and_has_null_for_what_is_no_number():
    document = json.loads(rendered("json"), parse_constant=pytest.fail)
    assert document["schema_version"] == document["extra"] == 1
    assert (document["title"], document["notes"]) == ("A title", ["a note"])
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
    assert Column("x", "x", "{:.3f}").cell({"x": 0.12345}) == "0.123"
    assert Column("x", "x", "{:.3f}").cell({}) == "-"


HOSTILE = listed(__file__, "HOSTILE")


def hostile(**more):
    rows = [{"name": word, "n": i, "error": -0.5, "parts": {"hbm": -1.5}} for i, word in
            enumerate(HOSTILE)]  # fmt: skip
    return Report("things", rows, COLUMNS, "<b>title</b>\x1b[2J", {}, ["note <i>\x07"], **more)


def test_markdown_shows_hostile_text_as_text():
    out = "".join(RENDERERS["markdown"](hostile()))
    assert "<" not in out
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in out
    for mark in ("[", "]", "`"):
        assert out.count(mark) == out.count(f"\\{mark}")
    lines = [line for line in out.splitlines() if line.startswith("|")]
    assert len(lines) == len(HOSTILE) + 2
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {5}


def test_tables_have_no_control_characters_and_a_line_a_row():
    out = "".join(RENDERERS["table"](hostile()))
    assert all(char.isprintable() for char in out.replace("\n", ""))
    assert len(out.splitlines()) == len(HOSTILE) + 4
    assert "red" in out


def test_csv_cells_are_no_formulas_and_numbers_stay_numbers():
    rows = list(csv.DictReader(io.StringIO("".join(RENDERERS["csv"](hostile())))))
    names = [row["name"] for row in rows]
    assert "'=cmd|' /C calc'!A0" in names
    assert "'@SUM(A1)" in names
    assert [csv_text(name) for name in names] == [without_controls(word) for word in HOSTILE]
    assert not any("\x1b" in name for name in names)
    assert {float(row["error"]) for row in rows} == {-0.5}
    assert {float(row["parts_hbm"]) for row in rows} == {-1.5}


def test_csv_headers_are_no_formulas():
    out = "".join(RENDERERS["csv"](Report("things", [{"=1+1": 2, "ok": {"x": -3}}], [])))
    assert out == "'=1+1,ok_x\n2,-3\n"


def test_json_is_ascii_whatever_carries_it():
    out = "".join(RENDERERS["json"](hostile()))
    assert out.isascii()
    assert [row["name"] for row in json.loads(out)["things"]] == HOSTILE


def test_numbers_keep_all_their_digits():
    value = 0.1 + 0.2
    report = Report("things", [{"x": value}], [])
    assert json.loads("".join(RENDERERS["json"](report)))["things"][0]["x"] == value
    assert float("".join(RENDERERS["csv"](report)).splitlines()[1]) == value


def at(report, width, **how):
    """The lines of a report at a terminal."""
    return "".join(table.at_terminal(report, width, coloured=how.get("coloured", False)))


WIDE = Report(
    "things",
    [{"name": "a100-sxm4-80gb", "time": "1.25 ms", "kernel": "flash2", "rate": "170 TFLOP/s",
      "about": "three words here"}],
    [
        text("device", "name"),
        Column("kernel", lambda row: f"{row['kernel']} (tiled-2)", number=False, fold=9),
        Column("time", lambda row: row["time"], style=lambda row: "red"),
        text("rate", "rate", rank=2),
        text("about", "about", wrap=6, rank=1),
    ],
    "a title of five words",
    notes=["a note of five words"],
)  # fmt: skip


@pytest.mark.parametrize("report", [WIDE, hostile()], ids=["wide", "hostile"])
def test_a_terminal_cuts_no_word_and_is_not_overrun(report):
    words = {word for line in at(report, 400).splitlines() for word in line.split()}
    longest = max(len(word) for word in words if "─" not in word)
    label = max(len(column.header) for column in report.columns)
    known = words | {word for column in report.columns for word in column.header.split()}
    for width in (*range(1, 40), *range(40, 120, 7)):
        lines = at(report, width).splitlines()
        assert max(map(len, lines)) <= max(width, longest, label + 2 + max(table._LEAST, longest))
        said = {word for line in lines if not line.startswith("─") for word in line.split()}
        told = f"not in {width} columns: " + ", ".join(c.header for c in report.columns)
        notes = {f"{w}{end}" for w in f"{told} ({table._BRIEFER})".split() for end in ("", ",")}
        assert said <= known | notes | {f"{word}," for word in notes}


def test_the_columns_that_matter_most_stay():
    assert "170 TFLOP/s" in at(WIDE, 80)
    assert at(WIDE, 80).splitlines()[1].split("  ")[0] == "device"
    narrow = at(WIDE, 43)
    assert "flash2 (tiled-2)" not in narrow
    assert "flash2" in narrow
    assert "170 TFLOP/s" not in narrow
    assert "three" in narrow
    assert "not in 43 columns: rate" in narrow.replace("\n  ", " ")
    blocks = at(WIDE, 20)
    assert "─" not in blocks
    assert re.search(r"^time +1\.25 ms$", blocks, re.MULTILINE)


def test_colour_changes_no_character():
    plain, coloured = at(WIDE, 80), at(WIDE, 80, coloured=True)
    assert "\x1b[31m1.25 ms\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain


def test_a_wide_terminal_shows_what_a_pipe_gets():
    for report in (hostile(), Report("things", ROWS, COLUMNS, "A title", {}, ["a note"]),
                   Report("things", [], COLUMNS)):  # fmt: skip
        assert "".join(RENDERERS["table"](report)) == at(report, 400)


def test_a_long_table_takes_no_more_memory_than_a_short_one():
    def peak(count):
        rows = ({"name": f"row {i}", "n": i, "error": 0.5, "parts": {"hbm": 1.5}}
                for i in range(count))  # fmt: skip
        tracemalloc.start()
        lines = sum(1 for _ in RENDERERS["table"](Report("things", rows, COLUMNS)))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert lines == count + 2
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "_IN_MEMORY", 2**14)
        peak(10)  # what is imported at first use
        assert peak(20_000) < 2 * peak(2_000)
