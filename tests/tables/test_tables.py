"""Tables as people have them: every layout read and scored, every bad row named."""

import csv
import io
import json
import sys
import tracemalloc
from pathlib import Path

import pandas as pd
import pytest
from cases import cases
from folders import TESTS
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import examples

from perfmodel.errors import PerfmodelError, TableError, UnknownName
from perfmodel.operators import load, names
from perfmodel.table import delimited, files
from perfmodel.table.headings import measure
from perfmodel.table.hints import Hints
from perfmodel.table.layout import Layout
from perfmodel.table.numerals import decimal_comma, number
from perfmodel.table.operatorlayout import OPERATORS
from perfmodel.table.reading import of_sheet, read
from perfmodel.table.template import template
from perfmodel.table.vocabulary import normal, vocabulary
from perfmodel.validation.kinds import load as load_kind

LAYOUTS = TESTS / "layouts"
GEMM = {"device": "h100-sxm", "op": "gemm", "dtype": "bf16", "m": 4096, "n": 8192, "k": 1024}
ATTENTION = {
    "device": "h100-sxm", "op": "attention", "dtype": "fp16", "batch": 2, "heads_q": 32,
    "heads_kv": 8, "seq_q": 4096, "seq_kv": 4096, "head_dim": 128, "causal": True,
}  # fmt: skip


def reading(text, name="runs.csv", layout=OPERATORS, folder=None, **hints):
    path = Path(folder) / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(path, layout, Hints(**hints))


@pytest.fixture
def table(tmp_path):
    def call(text, name="runs.csv", layout=OPERATORS, **hints):
        return reading(text, name, layout, tmp_path, **hints)

    return call


def written(rows, separator=",", decimal="."):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow([str(v).replace(".", decimal) if isinstance(v, float) else v
                         for v in row.values()])  # fmt: skip
    return text.getvalue()


# ---- Layouts of real tools: the file, what its user adds, and its first row ----------------------

A100 = {"device": "a100-sxm4-80gb", "dtype": "fp16"}
REAL = {
    # FlashAttention's own benchmark prints these names; the table is how people save them.
    "flash-attention.csv": (
        {"stated": {"dtype": "fp16"}},
        {**ATTENTION, "device": "NVIDIA H100 80GB HBM3", "heads_q": 16, "heads_kv": 16,
         "seq_q": 8192, "seq_kv": 8192, "implementation": "flash2", "measured_us": 1720.0},
        3,
    ),
    # triton.testing.perf_report(...).run(save_path=...): a column a line, "name (ylabel)".
    "triton-matmul.csv": (
        {"stated": A100},
        {"op": "gemm", "implementation": "cublas", "measured_us": 2 * 1024**3 / 95.325091e6},
        6,
    ),
    "triton-softmax.csv": (
        {"stated": {**A100, "op": "softmax", "rows": "4096", "dtype": "fp32"},
         "mapping": {"N": "cols"}},
        {"rows": 4096, "cols": 2048, "measured_us": 2 * 4 * 4096 * 2048 / 1100.523437e3},
        4,
    ),
    # rocblas-bench -f gemm (ROCm/rocBLAS, clients/): padded cells, Gflops beside us.
    "rocblas-bench.csv": (
        {"stated": {"device": "mi300x", "dtype": "fp16"}},
        {"op": "gemm", "m": 4096, "measured_us": 242.8},
        2,
    ),
    # hipblaslt-bench (rocm.docs.amd.com): the solution's index before the first name.
    "hipblaslt-bench.csv": (
        {"stated": {"device": "mi300x"}},
        {"dtype": "fp16", "m": 1024, "n": 512, "k": 1024, "batch": 1, "measured_us": 16.1189},
        1,
    ),
    # cutlass_profiler --output (NVIDIA/cutlass): Runtime is in ms and does not say so.
    "cutlass-profiler.csv": (
        {"stated": {"device": "a100-sxm4-80gb"}, "mapping": {"A": "dtype"}, "unit": "ms"},
        {"op": "gemm", "dtype": "fp16", "implementation": "CUTLASS", "measured_us": 556.1},
        2,
    ),
    # flashinfer_benchmark.py --output_path: times in ms without a unit.
    "flashinfer.csv": (
        {"stated": {"device": "h100-sxm"}, "unit": "ms"},
        {"op": "attention", "seq_q": 1, "seq_kv": 4096, "heads_kv": 8, "dtype": "bf16",
         "measured_us": 89.3, "std_us": 1.2},
        2,
    ),
    # aiconfigurator's collectors (gemm_perf.txt): latency in ms.
    "aiconfigurator-gemm.csv": (
        {"unit": "ms"},
        {"dtype": "bf16", "implementation": "vllm_default", "m": 128, "measured_us": 19.2},
        2,
    ),
    # A spreadsheet of German Windows: semicolons, decimal commas, code page 1252.
    "excel-german.csv": (
        {"mapping": {"Grafikkarte": "device", "Datentyp": "dtype"}},
        {"device": "RTX 4090", "op": "gemm", "dtype": "fp16", "m": 4096, "measured_us": 1012.5},
        2,
    ),
    "own-norms.tsv": (
        {}, {"op": "rmsnorm", "direction": "fwd", "measured_us": 45.1, "max_us": 47.9}, 2,
    ),
    "results.jsonl": (
        {}, {"op": "attention", "heads_q": 32, "seq_q": 4096, "causal": True, "measured_us": 412.0,
             "p20_us": 410.0}, 2,
    ),
    # nvbench --csv: an index called Device, two columns called Noise (%).
    "nvbench.csv": (
        {"mapping": {"T": "dtype"}},
        {"device": "NVIDIA A100-SXM4-80GB", "op": "gemm", "dtype": "fp16", "measured_us": 556.11},
        2,
    ),
    # A table of a README: bars, 4k, a column a direction, an empty cell.
    "readme-table.md": (
        {}, {"direction": "fwd", "seq_kv": 4096, "heads_kv": 16, "causal": True,
             "measured_us": 840.0}, 5,
    ),
    "units-below.csv": ({}, {"op": "softmax", "rows": 4096, "measured_us": 31.2}, 2),
    # Google Benchmark's --benchmark_format=json with user counters: a unit a row.
    "google-benchmark.json": (
        {"stated": A100}, {"op": "gemm", "m": 1024, "measured_us": 21.4}, 2,
    ),
    # genai-perf's profile_export_genai_perf.json; the server is no Triton, so the engine is stated.
    "genai-perf.json": (
        {"stated": {"device": "h100-sxm", "engine": "tensorrt-llm"}},
        {"network": "Llama-3.1-8B", "engine": "tensorrt-llm", "load": "concurrency", "isl": 1000,
         "osl": 200, "concurrency": 32, "metric": "ttft_ms", "statistic": "p50", "value": 86.2}, 6,
    ),
    # trtllm-bench throughput --streaming --report_json.
    "trtllm-bench.json": (
        {"stated": {"device": "h100-sxm"}},
        {"network": "Llama-3.1-70B", "weights_dtype": "fp8", "kv_dtype": "fp8", "tensor": 4,
         "concurrency": 63, "metric": "output_tokens_per_s", "value": 3180.0}, 6,
    ),
}  # fmt: skip
SERVING = ("genai-perf.json", "trtllm-bench.json")


def kind_of(name):
    return load_kind("serving" if name in SERVING else "operator")


@pytest.mark.parametrize("name", REAL)
def test_real_layouts_are_read(name):
    hints, first, rows = REAL[name]
    found = read(LAYOUTS / name, kind_of(name).layout, Hints(**hints))
    assert len(found.table) == rows
    assert (found.faults == "").all()
    assert found.notes
    row = found.table.iloc[0]
    for column, value in first.items():
        assert row[column] == (
            pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
        )


def test_every_file_of_layouts_is_in_the_list():
    assert {path.name for path in LAYOUTS.iterdir()} == set(REAL)
    assert len(REAL) >= 12


def test_real_layouts_are_scored():
    for name, (hints, _, rows) in REAL.items():
        kind = kind_of(name)
        found = read(LAYOUTS / name, kind.layout, Hints(**hints))
        predicted = kind.predicted(found.table, found.faults)
        assert (predicted["reason"] == "").all(), name
        ratio = predicted[kind.fields.predicted] / predicted[kind.fields.measured]
        assert len(ratio) == rows
        assert ratio.between(0.4, 2.5).all(), name


@pytest.fixture
def workbook(tmp_path):
    pytest.importorskip("openpyxl")
    path = tmp_path / "bench.xlsx"
    row = {"GPU": "H100", "Kernel": "gemm", "Type": "bf16", "M": 4096, "N": 4096, "K": 4096}
    with pd.ExcelWriter(path) as book:
        pd.DataFrame().to_excel(book, sheet_name="empty")
        pd.DataFrame([row | {"Time [ms]": 0.2}]).to_excel(book, sheet_name="runs", index=False)
    return path


def test_excel_where_its_engine_is_there(workbook):
    found = read(workbook, OPERATORS)
    assert found.table["measured_us"].tolist() == [200.0]
    assert found.table["op"].tolist() == ["gemm"]
    assert "sheet 'runs' read" in found.notes[0]


def test_excel_without_its_engine_says_what_to_install(workbook, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(TableError, match="Excel needs openpyxl, which is not installed"):
        read(workbook, OPERATORS)


def test_what_only_looks_like_excel_is_one_line(table):
    with pytest.raises(TableError, match="not a sound Excel file"):
        table(b"PK\x03\x04" + b"x" * 60, "bench.xlsx")


# ---- Laws ----------------------------------------------------------------------------------------

SPELLINGS = {
    column: [
        meaning.spelling
        for meanings in vocabulary().meanings.values()
        for meaning in meanings
        if meaning.column == column and not meaning.shared
    ]
    for column in ATTENTION
}


@pytest.mark.parametrize("column", SPELLINGS)
def test_a_column_by_another_name_is_the_same_column(table, column):
    row = ATTENTION | {"measured_us": 400.0}
    plain = table(written([row])).table
    assert SPELLINGS[column]
    for spelling in SPELLINGS[column]:
        renamed = {spelling.title() if name == column else name: row[name] for name in row}
        pd.testing.assert_frame_equal(table(written([renamed])).table, plain)


@given(
    st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=4),
    st.sampled_from(["s", "ms", "us", "ns"]),
    st.sampled_from(["time_{}", "Latency [{}]", "{}", "GPU time ({})", "avg_{}"]),
)
def test_a_time_is_the_same_in_any_unit(tmp_path_factory, times, unit, heading):
    factor = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}[unit]
    assume(heading != "{}" or unit != "s")  # a lone s is a sequence
    rows = [GEMM | {heading.format(unit): float(repr(time / factor))} for time in times]
    found = reading(written(rows), folder=tmp_path_factory.mktemp("units"))
    assert found.table["measured_us"].tolist() == pytest.approx(times, rel=1e-12)


@examples(0.4)
@given(st.lists(st.floats(1e-2, 1e9).map(lambda value: round(value, 4)), min_size=1, max_size=5))
def test_a_number_is_the_same_in_every_locale(tmp_path_factory, times):
    folder = tmp_path_factory.mktemp("locales")
    rows = [GEMM | {"time_us": time} for time in times]
    point = reading(written(rows), folder=folder)
    comma = reading(written(rows, separator=";", decimal=","), folder=folder)
    tabs = reading(written(rows, separator="\t", decimal=","), folder=folder)
    assert point.table["measured_us"].tolist() == times
    pd.testing.assert_frame_equal(point.table, comma.table)
    # Without a semicolon to tell, one cell has to: 1,234 alone is a group of thousands.
    parts = [repr(time).split(".") for time in times]
    if any(len(whole) > 3 or len(part) != 3 for whole, part in parts):
        pd.testing.assert_frame_equal(point.table, tabs.table)


@examples(0.4)
@given(
    st.integers(0, 3),
    st.sampled_from([("m", "fast"), ("m", "4.5"), ("measured_us", "OOM"), ("measured_us", "-3"),
                     ("causal", "maybe"), ("measured_us", ""), ("k", "1e99")]),
)  # fmt: skip
def test_a_bad_cell_costs_its_row_and_no_other(tmp_path_factory, place, cell):
    folder = tmp_path_factory.mktemp("cells")
    rows = [GEMM | {"causal": "no", "measured_us": 100.0 + i} for i in range(4)]
    good = reading(written(rows), folder=folder).table
    column, text = cell
    rows[place] = rows[place] | {column: text}
    found = reading(written(rows), folder=folder)
    kept = [i for i in range(4) if i != place]
    pd.testing.assert_frame_equal(found.table.iloc[kept], good.iloc[kept])
    assert [bool(said) for said in found.faults] == [i == place for i in range(4)]
    assert found.faults[place].startswith(f"{folder}/runs.csv:{place + 2}: {column} is ")
    assert pd.isna(found.table["measured_us"][place])


@pytest.mark.parametrize("op", names())
def test_a_template_with_a_time_in_it_is_predicted(table, op):
    head, row = template(op).splitlines()
    operator = load(op)
    with pytest.raises(TableError, match="measured_us is empty"):
        table(f"{head}\n{row}\n")
    found = table(f"{head}\n{row}50\n").table
    assert not [name for name in operator.needed if found[name].isna().any()]
    if op in ("attention", "gemm", "softmax", "pointwise", "quantise", "embedding"):
        kind = load_kind("operator")
        predicted = kind.predict(found)
        assert predicted["reason"].tolist() == [""]


@given(st.text(max_size=120), st.sampled_from(["x.csv", "x.jsonl", "x.json", "x.md"]))
def test_any_text_is_a_table_or_one_line(tmp_path_factory, text, name):
    with pytest.raises(PerfmodelError) as caught:
        reading(text.encode("utf-8", "replace"), name, folder=tmp_path_factory.mktemp("text"))
    assert "\n" not in str(caught.value)


@given(st.text(alphabet="0123456789.,kM e+-", max_size=12), st.booleans())
def test_what_is_read_as_a_number_is_finite(text, comma):
    value = number(text, comma, scaled=True)
    assert value is None or abs(value) < float("inf")


# ---- Numbers, units, headings --------------------------------------------------------------------


@cases
def test_numbers_as_tables_write_them(text, comma, value):
    assert number(text, comma, scaled=True) == value


@cases
def test_which_comma_a_table_means(texts, likely, comma):
    assert decimal_comma(texts, likely) is comma


@cases
def test_headings_of_measurements(heading, kind, unit, statistic, other):
    found = measure(heading)
    assert found is not None
    named = found.unit.name if found.unit else None
    assert (found.kind, named, found.statistic, found.other) == (kind, unit, statistic, other)


@cases
def test_headings_of_nothing_measured(heading):
    assert measure(heading) is None


# ---- What is refused, and what is said -----------------------------------------------------------


def refused(table, text, **hints):
    with pytest.raises((TableError, UnknownName)) as caught:
        table(text, **hints)
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_one_message_names_all_that_is_missing(table):
    said = refused(table, "nheads,seqlen,op,Runtime\n16,4096,attention,3\n")
    for part in (
        "device (or gpu, gpu name", "dtype (or data type", "batch (or batch size", "head_dim (or",
        "column 'Runtime' is a time without a unit", "it has 'nheads', 'seqlen', 'op', 'Runtime'",
        "--map theirs=ours", "--set column=value", "perfmodel compare --template attention",
    ):  # fmt: skip
        assert part in said
    assert "seq_q" not in said


@pytest.mark.parametrize(
    ("text", "hints", "said"),
    [
        ("a\n1\n", {"mapping": {"b": "m"}}, "no column of the table named 'b'"),
        ("a\n1\n", {"mapping": {"a": "colour"}}, "no column to map to named 'colour'"),
        (written([GEMM | {"us": 3.0}]), {"stated": {"colour": "red"}}, "no column to set named"),
        (written([GEMM | {"us": 3.0}]), {"unit": "weeks"}, "no unit of time named 'weeks'"),
        (written([GEMM | {"time": 3.0}]), {}, "column 'time' is a time without a unit"),
        (
            "device,op,dtype,m,n,k,time\n,,,,,,MB\nh100,gemm,bf16,1,1,1,5\n", {},
            "column 'time' is in 'MB' by the row of units, which is no unit of time",
        ),
        (
            "device,op,dtype,m,n,k,Duration (us)\n,,,,,,Mbyte\nh100,gemm,bf16,1,1,1,5\n", {},
            "column 'Duration (us)' is in 'Mbyte' by the row of units",
        ),
        (
            "device,op,dtype,tokens,hidden,TFLOPS\nh100,adamw,bf16,1,1,5\n", {},
            "no column for parameters",
        ),
        ('[{"device": "h100"}, 3]', {}, "no column for op"),
        ("{\n", {}, "not sound JSON"),
    ],
)  # fmt: skip
def test_refusals(table, text, hints, said):
    assert said in refused(table, text, **hints)


def test_units_one_cell_short_give_no_unit(table):
    text = "device,op,dtype,m,n,k,time\n,,,,,us\nh100,gemm,bf16,1,1,1,5\n"
    assert "column 'time' is a time without a unit" in refused(table, text)


def test_rows_cut_short_are_named(table):
    text = written([GEMM | {"us": 3.0}] * 3).rsplit(",", 2)[0]
    found = table(text)
    assert found.faults.tolist()[:2] == ["", ""]
    assert found.faults[2].endswith(":4: has 5 cells where the heading has 7")


def test_the_users_words_come_first(table):
    text = "device,op,dtype,m,n,k,time_us,wall\nh100,gemm,bf16,1,2,3,5,7\n"
    assert table(text).table["measured_us"].tolist() == [5.0]
    found = table(text, mapping={"wall": "measured_us"}, unit="ms", stated={"harness": "kernel"})
    assert found.table["measured_us"].tolist() == [7000.0]
    assert found.table["harness"].tolist() == ["kernel"]
    assert table(text, unit="ns").table["measured_us"].tolist() == [0.005]


@pytest.mark.parametrize(("flops", "times"), [("causal", 1.0), ("full", 2.0)])
def test_rates_by_either_way_of_counting_a_mask(table, flops, times):
    row = ATTENTION | {"tflops": 500.0}
    found = table(written([row]), flops=flops).table["measured_us"][0]
    # 4 b h s^2 d, half of it behind a causal mask (FlashAttention-2, section 4.1).
    assert found == pytest.approx(times * 4 * 2 * 32 * 4096**2 * 128 / 2 / 500e6, rel=1e-3)


def test_rates_beside_times_tell_how_they_count(table):
    causal = 4 * 2 * 32 * 4096**2 * 128 / 2
    for rate, said in ((1, ""), (2, "counts twice the operations"), (1000, "1,000 times too long")):
        row = ATTENTION | {"time_us": 500.0, "tflops": rate * causal / 500e6}
        notes = " ".join(table(written([row])).notes)
        assert (said in notes) if said else ("counts" not in notes and "too" not in notes)


def test_cells_with_units_of_their_own(table):
    rows = [GEMM | {"time_us": "1.5 ms"}, GEMM | {"time_us": 3.0}]
    assert table(written(rows)).table["measured_us"].tolist() == [1500.0, 3.0]


def test_an_operation_may_be_an_element_wise_map(table):
    row = {"device": "h100", "op": "gelu", "dtype": "fp16", "rows": 8, "cols": 64, "us": 3.0}
    found = table(written([row])).table
    assert (found["op"][0], found["variant"][0]) == ("pointwise", "gelu")


def test_a_declared_operator_keeps_the_names_of_its_parameters(table):
    row = {"device": "h100", "op": "gqa", "dtype": "bf16", "batch": 1, "heads": 32, "kv_heads": 8,
           "seq": 2048, "head_dim": 128, "window": 0, "us": 90.0}  # fmt: skip
    found = table(written([row])).table
    assert found[["heads", "kv_heads", "seq"]].iloc[0].tolist() == [32, 8, 2048]


def test_other_kinds_of_tables_use_the_same_spellings(table):
    layout = Layout(
        needed=("device", "collective", "ranks", "bytes", "latency_us"), measured="latency_us",
        text=("device", "collective", "dtype"), whole=("ranks", "bytes"), numbers=("busbw",),
    )  # fmt: skip
    text = "GPU,op,nranks,size (MiB),type,time (ms),busbw\nh100,AllReduce,8,4,half,0.061,121.5\n"
    row = table(text, layout=layout).table.iloc[0]
    assert row["collective"] == "all-reduce"
    assert (row["ranks"], row["bytes"], row["dtype"]) == (8, 4 * 2**20, "fp16")
    assert (row["latency_us"], row["busbw"]) == (61.0, 121.5)
    assert "no column for collective" in refused(table, "GPU,nranks\nh100,8\n", layout=layout)


def test_a_measurement_that_is_no_time_is_a_column_as_any_other(table):
    layout = Layout(
        needed=("device", "network", "metric", "value"), measured="value",
        text=("device", "network", "metric"), whole=("tensor", "global_batch"),
    )  # fmt: skip
    text = (
        "GPU;Model;metric;value;TP;GBS\nh100;llama;step_ms;1.250,5;8;1.024\nh100;llama;mfu;x;8;64\n"
    )
    found = table(text, layout=layout)
    assert found.table[["value", "tensor", "global_batch"]].iloc[0].tolist() == [1250.5, 8, 1024]
    assert found.faults[1].endswith(":3: value is 'x', not a number")
    assert "no column for metric; value" in refused(table, "GPU,Model\nh100,x\n", layout=layout)


def test_several_files_are_one_table(tmp_path):
    for name, time in (("a.csv", 3.0), ("b.csv", 4.0)):
        (tmp_path / name).write_text(written([GEMM | {"time_ms": time}]))
    found = read([tmp_path / "a.csv", tmp_path / "b.csv"], OPERATORS)
    assert found.table["measured_us"].tolist() == [3000.0, 4000.0]
    assert len(found.notes) == 1


def test_spellings_are_unambiguous_within_a_column():
    """A spelling stands at most once for a column, and cells map to one word."""
    for spelling, meanings in vocabulary().meanings.items():
        assert spelling == normal(spelling)
        assert len({meaning.column for meaning in meanings}) == len(meanings)


def test_a_sheet_knows_its_lines():
    sheet = files.read(str(LAYOUTS / "excel-german.csv"))
    assert sheet.place(0).endswith("excel-german.csv:3")
    assert (
        len(
            of_sheet(
                sheet, OPERATORS, Hints(mapping={"Grafikkarte": "device", "Datentyp": "dtype"})
            ).table
        )
        == 2
    )
    assert json.loads((LAYOUTS / "google-benchmark.json").read_text())["benchmarks"]


def test_equal_cells_of_a_text_are_in_memory_once():
    """A row of 8 cells is a list of 8 references, not 8 texts of 50 bytes and more each."""
    row = "h100-sxm,gemm,bf16,4096,4096,4096,cublas"
    lines = [f"{row},{i}.5" for i in range(20_000)]
    text = "\n".join(["device,op,dtype,m,n,k,implementation,time_ms", *lines])
    delimited.read(text, "first")  # imports
    tracemalloc.start()
    delimited.read(text, "runs.csv")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 600 * len(lines)
