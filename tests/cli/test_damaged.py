"""Damaged and hostile files: sweeps, tables, specs and declarations end in one line."""

import json
import os

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from refusing import refused

from perfmodel import yamltable
from perfmodel.algorithms.case import MOST_ELEMENTS
from perfmodel.algorithms.declaration import declare
from perfmodel.algorithms.expressions import evaluate
from perfmodel.analysis.sweep import parts, read_manifest
from perfmodel.analysis.sweep.expressions import condition, quantity
from perfmodel.errors import OutputError, PerfmodelError, ProblemError, SpecError, TableError
from perfmodel.hardware import load
from perfmodel.hardware.specfile import loads, validate_file
from perfmodel.napkin.tiles import COLUMNS, fewest
from perfmodel.plaintext import whole_number
from perfmodel.replacing import replacing
from perfmodel.table.records import read_table, tidy, write_table
from perfmodel.units import UnitError, parse


def said(kind, call, *arguments):
    with pytest.raises(kind) as caught:
        call(*arguments)
    line = str(caught.value)
    assert "\n" not in line
    return line


# ---- Sweeps --------------------------------------------------------------------------------------

ASK = ("sweep", "ask", "folder", "--best")


@pytest.fixture
def folder(cli, tmp_path):
    """A finished sweep of two devices, with a manifest that can be edited."""
    given = ("softmax", "-d", "h100-sxm,b200", "--rows", "1:6", "--cols", "64", "--chunk", "4")
    assert cli("sweep", *given, "-o", "folder")[0] == 0
    assert cli(*ASK)[0] == 0
    return tmp_path / "folder"


def edited(folder, change):
    path = folder / "manifest.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("devices"),
        lambda d: d.update(devices=[]),
        lambda d: d.update(devices=["h100-sxm"]),
        lambda d: d["devices"].append(d["devices"][0]),
        lambda d: d["devices"][0].update(slug=None),
        lambda d: d.update(parts=0),
        lambda d: d.update(parts="4"),
        lambda d: d.update(parts=d["parts"] + 2),
        lambda d: d.update(points=7),
        lambda d: d.update(chunk=0),
        lambda d: d.update(operator=None),
        lambda d: d.update(grid=None),
        lambda d: d["grid"].pop("sizes"),
        lambda d: d["grid"]["sizes"].update(rows=5),
        lambda d: d["grid"]["sizes"].update(rows={"start": 1}),
        lambda d: d["grid"].update(kinds=[]),
        lambda d: d["grid"].update(schedules=[]),
        lambda d: d["grid"].update(follows={"a": 1}),
    ],
)
def test_a_manifest_that_does_not_hold_together_is_refused(cli, folder, change):
    edited(folder, change)
    said(TableError, read_manifest, folder)
    refused(cli(*ASK), "manifest.json: not a sound manifest", "sweep again")


def test_a_deep_manifest_is_refused(cli, folder):
    (folder / "manifest.json").write_text("[" * 100_000)
    refused(cli(*ASK), "not a sound manifest")


def test_a_manifest_with_a_key_more_is_another_sweep(cli, folder):
    edited(folder, lambda d: d.update(extra=None))
    given = ("softmax", "-d", "h100-sxm,b200", "--rows", "1:6", "--cols", "64", "--chunk", "4")
    refused(cli("sweep", *given, "-o", "folder"), "another sweep: its extra differs")
    assert cli(*ASK)[0] == 0


def part(folder, change):
    path = sorted(folder.rglob("*h100*/*.parquet"))[0]
    pq.write_table(change(pq.read_table(path)), path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.drop_columns(["time_us"]), "column 'time_us' is missing"),
        (lambda t: t.drop_columns(["rows"]), "column 'rows' is missing"),
        (lambda t: t.drop_columns(["dtype"]), "column 'dtype' is missing"),
        (lambda t: t.set_column(0, "case", pa.array(["x"] * 4)), "column 'case' is missing"),
        (lambda t: t.set_column(1, "schedule", pa.array([1] * 4)), "column 'schedule' is number"),
        (lambda t: t.set_column(1, "schedule", pa.array([[1]] * 4)), "column 'schedule'"),
        (lambda t: t.slice(0, 3), "3 rows instead of 4"),
        (lambda t: pa.concat_tables([t, t]), "8 rows instead of 4"),
    ],
)
def test_a_part_of_another_sweep_is_refused(cli, folder, change, words):
    part(folder, change)
    refused(cli(*ASK), words, "run the same sweep again")


def test_parts_that_differ_are_refused(cli, folder):
    path = sorted(folder.rglob("*.parquet"))[1]
    pq.write_table(pq.read_table(path).append_column("more", pa.array([1] * 2)), path)
    refused(cli(*ASK), "its columns are not those of the other files")


def test_text_that_is_no_text_is_refused(cli, folder):
    path = sorted(folder.rglob("*h100*/*.parquet"))[0]
    table = pq.read_table(path)
    names = pa.array([b"\xff\xfe"], pa.binary()).cast(pa.string(), safe=False)
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 4, pa.int32()), names)
    pq.write_table(table.set_column(table.schema.names.index("limiter"), "limiter", column), path)
    refused(cli(*ASK, "--format", "json"), "not a sound Parquet file")


def test_a_damaged_part_that_counts_its_rows_still_is_one_line(cli, folder):
    part(folder, lambda table: table.drop_columns(["reason"]))
    given = ("softmax", "-d", "h100-sxm,b200", "--rows", "1:6", "--cols", "64", "--chunk", "4")
    refused(cli("sweep", *given, "-o", "folder"), "not a sound Parquet file")


def test_a_file_in_the_place_of_a_folder_is_one_line(cli, tmp_path):
    given = ("softmax", "-d", "h100-sxm", "--rows", "1:6", "-o", "folder")
    assert cli("sweep", *given)[0] == 0
    path = next((tmp_path / "folder").glob("device=*"))
    for item in path.iterdir():
        item.unlink()
    path.rmdir()
    path.write_text("")
    refused(cli("sweep", *given), "cannot make the folder")


DIGITS = "9" * 5000  # more than Python converts


@pytest.mark.parametrize("number", [DIGITS, "²", "٣", "", "-1", "1.0", " 1"])
def test_no_other_text_is_a_whole_number(number):
    assert whole_number(number) is None
    assert whole_number("00012") == 12


@pytest.mark.parametrize("number", [DIGITS, "²"])
def test_digits_that_are_no_number_are_one_line(cli, tmp_path, number):
    refused(cli("predict", "gemm", "-d", "t4", "--mesh", f"k={number}@nvlink"), "AXIS=RANKS@LINK")
    refused(cli("predict", "gemm", "-d", "t4", "--tile", f"m={number}"), "DIMENSION=SIZE")
    refused(cli("whatif", "gemm", "-d", "t4", "--change", f"SM {number}"), "SM")
    (tmp_path / "mine.yaml").write_text(f"'{number}': {{}}\n", encoding="utf-8")
    refused(cli("network", str(tmp_path / "mine.yaml"), "-d", "t4"), "mine.yaml")
    refused(cli("compile", "matmul", "-t", f"sm_{number}"), "target")


def test_a_file_that_cannot_be_written_is_said_before_what_is_left_out(cli):
    """One line, not one for each impossible case before it."""
    sizes = ("--head-dim", "80", "--seq-kv", "32,64", "-d", "groq-lpu", "-d", "t4")
    refused(cli("predict", "attention", *sizes, "-o", "no/such/x.csv"), "cannot write no/such")


def test_names_with_null_characters_are_one_line(cli, tmp_path):
    bad = "a\x00b"
    refused(cli("sweep", "softmax", "-d", "t4", "-o", bad), "cannot make the folder", "null")
    refused(cli("predict", "softmax", "-d", "t4", "-o", f"{bad}.csv"), "cannot write", "null")
    refused(cli("compare", f"{bad}.csv"), "cannot be read", "null")
    refused(cli("predict", "softmax", "-d", f"./{bad}.yaml"), "cannot be read", "null")
    refused(cli("predict", "softmax", "-d", bad), "no device named")
    assert "null" in validate_file(f"{bad}.yaml")[0]
    with pytest.raises(OutputError, match="null"), replacing(tmp_path / bad):
        pass


KINDS = {"time_us": "number", "m": "number", "limiter": "text"}


def test_constants_divide_as_columns_do():
    table = {"m": [1.0, 2.0]}
    assert condition("0/0 == 0/0", KINDS)(table).tolist() is False
    assert (
        condition("1/0 > m", KINDS)({"m": pd.Series(table["m"]).to_numpy()}).tolist() == [True] * 2
    )


@pytest.mark.parametrize("text", ["0/0", "1", "1 + 2", "-(3)"])
def test_what_is_minimised_names_a_column(cli, text):
    assert "the same in every row; name a column" in said(ProblemError, quantity, text, KINDS)
    refused(cli("sweep", "softmax", "-d", "t4", "--best", "--by", text), "name a column")


def test_a_sum_of_hundreds_is_refused_and_not_descended():
    text = " + ".join(["m"] * 5000)
    assert "more than 300 words" in said(ProblemError, quantity, text, KINDS)


# ---- Measured tables -----------------------------------------------------------------------------

ROW = {"device": "h100-sxm", "op": "gemm", "dtype": "bf16", "m": 64, "n": 64, "k": 64,
       "measured_us": 5.0}  # fmt: skip


def parquet(path, **changes):
    table = pa.table({name: pa.array([value]) for name, value in ROW.items()})
    for name, column in changes.items():
        place = table.schema.names.index(name) if name in table.schema.names else None
        table = table.append_column(name, column) if place is None else table.set_column(
            place, name, column
        )  # fmt: skip
    pq.write_table(table, path)
    return path


@pytest.mark.parametrize(
    ("name", "column", "words"),
    [
        ("m", pa.array([2**63], pa.uint64()), "row 1: m is '9223372036854775808', not a whole"),
        ("m", pa.array([[64]]), "row 1: m is '[64]', not a whole number"),
        ("m", pa.array([b"64"]), "not a whole number"),
        ("measured_us", pa.array([{"a": 1}]), "not a number"),
        ("measured_us", pa.array([1e300]), "not a positive number of microseconds"),
        ("measured_us", pa.array([1e-300]), "not a positive number of microseconds"),
    ],
)
def test_cells_of_other_types_are_refused(cli, tmp_path, name, column, words):
    parquet(tmp_path / "t.parquet", **{name: column})
    refused(cli("compare", "t.parquet"), words)


@pytest.mark.parametrize("cell", [pa.array([["gemm"]]), pa.array([{"a": 1}]), pa.array([b"\xff"])])
def test_an_operation_that_is_no_text_cannot_be_predicted_and_is_reported(cli, tmp_path, cell):
    parquet(tmp_path / "t.parquet", op=cell, note=cell)
    code, out, err = cli("compare", "t.parquet", "--by", "note")
    assert (code, err) == (0, "")
    assert "no model of operation" in out


@pytest.mark.parametrize("name", ["m", "measured_us"])
def test_half_precision_is_read_without_a_warning(cli, tmp_path, name):
    parquet(tmp_path / "t.parquet", **{name: pa.array([64.0], pa.float16())})
    assert cli("compare", "t.parquet", "--by", "op,op", "--explain")[::2] == (0, "")


def test_a_chart_that_cannot_be_drawn_leaves_no_table_behind(cli, tmp_path):
    parquet(tmp_path / "t.parquet", op=pa.array(["foo"]))
    refused(cli("compare", "t.parquet", "-o", "out.csv", "--chart", "x.svg"), "no row is left")
    assert [item.name for item in tmp_path.iterdir()] == ["t.parquet"]


def test_no_warning_comes_of_times_at_the_edge(cli, tmp_path):
    parquet(tmp_path / "t.parquet", measured_us=pa.array([1e15]))
    assert cli("compare", "t.parquet", "--explain")[0] == 0


def test_tables_open_in_spreadsheets_without_harm_and_are_read_back(tmp_path):
    hostile = "=cmd|' /C calc'!A0"
    frame = tidy(
        pd.DataFrame(
            [
                {**ROW, "note": text, hostile: -1.5, "delta": -2, "s": number}
                for text, number in (("@x", "-3"), ("'=1", "+4.5"), ("", "x"))
            ]
        )
    )
    for name in ("t.csv", "t.csv.gz"):
        write_table(frame, tmp_path / name)
        again = read_table(tmp_path / name)
        assert list(again.columns) == list(frame.columns)
        assert again["note"].tolist() == ["@x", "'=1", ""]
        assert again["s"].tolist() == ["-3", "+4.5", "x"]
        assert again[hostile].astype(float).tolist() == [-1.5] * 3
    lines = (tmp_path / "t.csv").read_text().splitlines()
    header, first, second = lines[:3]
    assert f"'{hostile}" in header
    assert first.split(",")[-4:] == ["'@x", "-1.5", "-2", "-3"]
    assert second.split(",")[-4:] == ["''=1", "-1.5", "-2", "+4.5"]


def test_hostile_names_in_a_table_reach_no_format(output, tmp_path):
    frame = pd.DataFrame([{**ROW, "device": "\x1b[31mh100", "note": "<script>x</script>"}])
    frame.to_csv(tmp_path / "t.csv", index=False)
    for format in ("table", "markdown", "csv", "json"):
        out = output("compare", "t.csv", "--by", "note,device", "-f", format)
        assert "\x1b" not in out
        assert format != "markdown" or "<" not in out


# ---- Specs ---------------------------------------------------------------------------------------


def spec(*path, to):
    """A shipped spec with the value at `path` replaced."""
    document = yamltable.parse(load("h100-sxm").dump())
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return yaml.safe_dump(document)


@pytest.mark.parametrize("text", ["{" * 500, "? " * 500, "{{a: 1}: 2}", "? [1]\n: 2\n"])
def test_keys_are_text_however_deep_they_would_go(text):
    assert "keys are text" in said(SpecError, loads, text)


@pytest.mark.parametrize("clock", ["0 MHz", "0 Hz", "1e-400 Hz"])
def test_a_latency_has_a_clock_above_zero(clock):
    text = spec("latency", "l2", "at_clock", to=clock)
    assert "must be above zero" in said(SpecError, loads, text)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("memory", "hbm", "bandwidth", "value"), "1e-300 B/s"),
        (("memory", "hbm", "bandwidth", "value"), "1e30 TB/s"),
        (("tdp", "value"), "1e200 W"),
        (("latency", "hbm", "value"), "1e30 cycles"),
        (("compute", "units", "value"), 10**30),
        (("occupancy", "max_threads_per_unit"), 10**30),
    ],
)
def test_numbers_beyond_any_device_are_refused(path, value):
    line = said(SpecError, loads, spec(*path, to=value))
    assert "beyond any device" in line or "is not from 1 to" in line


@pytest.mark.parametrize("name", ["=1+1", "+x", "-x", "@x", " =x", "'=x"])
@pytest.mark.parametrize("key", ["slug", "name"])
def test_names_do_not_begin_like_a_formula(key, name):
    assert "does not begin with one of" in said(SpecError, loads, spec(key, to=name))


def test_a_long_number_is_refused_at_once():
    said(UnitError, parse, "1" * 100_000 + " a b", "bandwidth")


@pytest.mark.parametrize("name", ["x" * 300, "h" * 100_000])
def test_a_long_name_is_no_device_and_is_not_printed_whole(cli, name):
    result = cli("predict", "gemm", "-d", name)
    refused(result, "no device named")
    assert len(result[2]) < 3000


@pytest.mark.skipif(os.name != "posix", reason="links as POSIX has them")
def test_a_link_to_nowhere_among_the_specs_does_no_harm(cli, tmp_path, monkeypatch):
    (tmp_path / "mine.yaml").symlink_to(tmp_path / "gone.yaml")
    monkeypatch.setenv("PERFMODEL_HARDWARE_PATH", str(tmp_path))
    assert cli("predict", "gemm", "-d", "H100 SXM5")[0] == 0


# ---- Declarations --------------------------------------------------------------------------------

MINE = {
    "name": "mine",
    "parameters": {"m": 64, "n": 64, "k": 64},
    "axes": {"i": "m", "j": "n", "l": "k"},
    "tensors": {"A": ["i", "l"], "B": ["l", "j"], "C": ["i", "j"]},
    "steps": {"multiply": {"contraction": ["A", "B"], "to": "C", "over": "l"}},
    "outputs": "C",
}


@pytest.mark.parametrize(
    "size", ["1e308*10", "2**70", "m * m * m * m * m * m * m", "0/0", "1e400", float("inf"),
             float("nan"), 2**41, "sqrt(-1)", "(" * 190, "-" * 199, "1.5", True, [1], None],
)  # fmt: skip
def test_an_axis_is_a_size_or_is_refused(size):
    data = {**MINE, "axes": {**MINE["axes"], "i": size}}
    said(ProblemError, lambda: declare(**data).at(m=64))


def test_declared_sizes_have_a_largest_value(cli):
    mine = declare(**MINE)
    assert mine.at(m=2**40, n=2**16, k=1).sizes["i"] == 2**40
    assert "at most 2^40" in said(ProblemError, lambda: mine.at(m=2**40 + 1))
    line = said(ProblemError, lambda: mine.at(m=2**40, n=2 * MOST_ELEMENTS // 2**40))
    assert "tensor C of mine has more than 2^56 elements" in line
    for size in ("3593109915664745", "1024G"):
        refused(cli("map", "butterfly-attention", "-d", "h100-sxm", "--seq", size), "2^")
    assert "no value" in said(ProblemError, evaluate, "ceil(1e308*10)", {})


def test_tiles_of_the_longest_axis_are_a_sample(cli):
    assert len(fewest(2**40)) <= COLUMNS
    assert len(fewest(10**6)) == 1998
    tiles = fewest(2**40)
    trips = -(-(2**40) // tiles)
    assert (-(-(2**40) // trips) == tiles).all()


@pytest.mark.parametrize(
    "change",
    [
        {"name": "a\nb"}, {"name": "\x1b[31m"}, {"name": "x" * 100}, {"name": ["mine"]},
        {"axes": {"i\x00": 1}}, {"axes": {7: 1}}, {"axes": {f"a{i}": 1 for i in range(101)}},
        {"tensors": {**MINE["tensors"], "A": {"axes": ["i", "l"], "windows": 5}}},
        {"tensors": {**MINE["tensors"], "A": {"axes": ["i", "l"], "windows": [[["i"], "l"]]}}},
        {"tensors": {**MINE["tensors"], "A": {"axes": ["i", "l"], "windows": [["i", "l", "x"]]}}},
        {"steps": {"multiply": {**MINE["steps"]["multiply"], "along": ["i"]}}},
        {"steps": {"multiply": {**MINE["steps"]["multiply"], "vector": float("nan")}}},
        {"steps": {"multiply": {**MINE["steps"]["multiply"], "vector": 1e300}}},
        {"mask": {"query": "i", "key": "j", "window": 2.5}},
        {"mask": {"query": "i", "key": "j", "window": -3}},
    ],
)  # fmt: skip
def test_declarations_that_say_nonsense_are_one_line(change):
    said(PerfmodelError, lambda: declare(**{**MINE, **change}).at())


def test_what_a_declaration_says_of_itself_is_printed_as_text(cli, tmp_path):
    data = {**MINE, "about": "<b>x</b>\x1b[31m\n```", "source": "[a](javascript:b)"}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(data))
    for format in ("text", "markdown", "latex", "json"):
        code, out, err = cli("explain", "mine.yaml", "-f", format)
        assert (code, err) == (0, "")
        assert "\x1b" not in out
        if format == "markdown":
            assert "<b>" not in out
            assert "[a]" not in out
            assert sum(line.startswith("```") for line in out.splitlines()) % 2 == 0


def test_parts_are_read_as_they_were_written(folder):
    assert [table.num_rows for table in parts(folder)] == [4, 2, 4, 2]
