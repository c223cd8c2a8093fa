"""Measured-run tables: what is read back, what is refused, and that nothing is half-written."""

import gzip
import io
import sys
from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.errors import OutputError, TableError
from perfmodel.table.records import (
    COLUMNS,
    published,
    read_table,
    tidy,
    write_table,
)

GEMM = "device,op,dtype,m,n,k,measured_us\nh100-sxm,gemm,bf16,4096,4096,4096,200\n"


def write(tmp_path, text, name="runs.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(path):
    with pytest.raises(TableError) as caught:
        read_table(path)
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith(str(path))
    return said.removeprefix(str(path))


def test_a_small_table_gets_every_column_in_its_type(tmp_path):
    table = read_table(write(tmp_path, GEMM))
    assert list(table.columns) == list(COLUMNS)
    assert table["m"].dtype == "Int64"
    assert table["causal"].dtype == "boolean"
    assert table["measured_us"].dtype == "float64"
    assert table["flag"].tolist() == [""]
    assert table["batch"].isna().all()


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_written_and_read_back_is_the_same(tmp_path, suffix):
    table = published().assign(note="mine")
    path = tmp_path / f"runs{suffix}"
    write_table(table, path)
    pd.testing.assert_frame_equal(read_table(path), table)
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


def test_gzip_is_the_same_bytes_every_time(tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        write_table(published(), tmp_path / name)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


def test_several_tables_are_one(tmp_path):
    path = write(tmp_path, GEMM)
    table = read_table([path, path])
    assert table.index.tolist() == [0, 1]


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(GEMM.encode())))
    assert read_table("-")["m"].tolist() == [4096]


def test_numbers_as_other_tools_write_them(tmp_path):
    head, row = GEMM.splitlines()
    table = read_table(
        write(tmp_path, f"\ufeff{head},flag,batch\n{row.replace('4096', '4096.0')},nan,\n")
    )
    assert table["m"].tolist() == [4096]
    assert table["flag"].tolist() == [""]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("\n\n", "no line of column names"),
        (
            "op,dtype,measured_us\n",
            "no column for device (or gpu, gpu name, device name ...);",
        ),
        (GEMM.replace(",k,", ",q,"), "no column for k; it has 'device'"),
        (GEMM.replace(",k,", ",m,"), "column 'm' appears twice"),
        (GEMM.replace(",200", ",-1"), ":2: measured_us is '-1', not a positive number"),
        (
            GEMM.replace(",200", ",0"),
            ":2: measured_us is '0', not a positive",
        ),
        (GEMM.replace(",200", ","), ":2: measured_us is empty, not a positive number"),
        (GEMM.replace(",200", ",inf"), ":2: measured_us is 'inf', not a"),
        (GEMM.replace(",200", ",fast"), ":2: measured_us is 'fast', not a number"),
        (GEMM.replace("4096,200", "4.5,200"), ":2: k is '4.5', not a whole number"),
        (GEMM.replace(",200", ""), ":2: every row has 6 cells where the heading has 7"),
        (GEMM.replace(",200", ",200,1"), ":2: every row has 8 cells where the heading has 7"),
        (GEMM + 'h100-sxm,"gemm', "not sound CSV (unexpected end of data)"),
        (b"\x00\x01\x02", "binary data, not CSV"),
        (b"\xff\xfe\xfd", "not UTF-8 text (byte 2)"),
    ],
)
def test_a_damaged_table_is_refused_in_one_line(tmp_path, text, said):
    assert said in refused(write(tmp_path, text))


def test_truth_is_true_or_false(tmp_path):
    sizes = "batch,heads_q,heads_kv,seq_q,seq_kv,head_dim"
    head = f"device,op,dtype,{sizes},causal,measured_us\n"
    row = "h100-sxm,attention,bf16,1,1,1,1,1,64,{},5\n"
    table = read_table(write(tmp_path, head + row.format("True") + row.format("0")))
    assert table["causal"].tolist() == [True, False]
    path = write(tmp_path, head + row.format("maybe"))
    assert ":2: causal is 'maybe', neither yes nor no" in refused(path)


def test_files_cut_short_are_refused(tmp_path):
    write_table(published(), tmp_path / "a.csv.gz")
    write_table(published(), tmp_path / "a.parquet")
    for name, said in (("a.csv.gz", "cut short"), ("a.parquet", "not a sound Parquet file")):
        data = (tmp_path / name).read_bytes()
        assert said in refused(write(tmp_path, data[: len(data) // 2], name))
        assert "not a sound" in refused(write(tmp_path, b"rubbish", name))


def test_missing_files_and_folders(tmp_path):
    assert "no such file or directory" in refused(tmp_path / "none.csv")
    assert "is a directory" in refused(tmp_path)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    path, table = write(tmp_path, b"PAR1", "runs.parquet"), published()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install 'perfmodel[parquet]'" in refused(path)
    with pytest.raises(OutputError, match="pip install"):
        write_table(table, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_paths_that_cannot_be_written(tmp_path):
    for path, said in (
        (tmp_path / "none" / "x.csv", "no such file or directory"),
        (tmp_path, "a table is written as .csv or .csv.gz or .parquet"),
        (tmp_path / "x.xlsx", "a table is written as"),
    ):
        with pytest.raises(OutputError, match=said):
            write_table(published(), path)
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(OutputError, match="it is a folder"):
        write_table(published(), tmp_path / "x.csv")


def test_published_runs_follow_the_papers():
    table = published()
    assert set(table["harness"]) == {"paper"}
    assert table["source"].str.contains("arXiv").all()
    # FlashAttention, Table 18: 2147.05 ms at 65536 tokens, batch 16, 8 heads of 64.
    longest = table[(table["seq_q"] == 65536) & (table["direction"] == "fwd")]
    assert longest["measured_us"].tolist() == [2147050.0]
    # FlashAttention-3, Figure 5: 648 TFLOP/s at 16384 tokens, 16 heads of 128, no mask:
    # 4 x 16384^2 x 2048 FLOP / 648e12 = 3393.5 us.
    bar = table[
        (table["implementation"] == "flash3") & (table["seq_q"] == 16384) & ~table["causal"]
    ]
    assert bar["measured_us"].tolist() == [pytest.approx(3393.5, abs=0.1)]
    assert not table.duplicated().any()


@given(st.binary(max_size=200))
def test_any_bytes_are_a_table_or_one_line(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("bytes")
    for name in ("x.csv", "x.csv.gz", "x.parquet"):
        path = write(folder, gzip.compress(data) if name == "x.csv.gz" else data, name)
        with pytest.raises(TableError) as caught:
            read_table(path)
        assert "\n" not in str(caught.value)


def test_tidy_leaves_other_columns_alone():
    frame = pd.DataFrame(
        {"device": ["a"], "op": ["softmax"], "dtype": ["fp16"], "rows": [1], "cols": [2],
         "measured_us": [1.0], "mine": [[1, 2]]}
    )  # fmt: skip
    assert tidy(frame)["mine"].tolist() == [[1, 2]]
