"""Files of profilers beyond the sound JSON and SQLite: sums and traces as CSV, whole CUDA graphs,
numbers that are none, lost ends, and files that unpack to more than they are."""

import gzip
import io
import json
import sqlite3
import zipfile

import pytest
from profilefiles import Ran, operator_trace
from profilersamples import NSYS_SUMS, NSYS_TRACES

from perfmodel import documents
from perfmodel.errors import TableError
from perfmodel.hardware import load
from perfmodel.profile import formats
from perfmodel.profile.matching import NAME, grouped
from perfmodel.validation.profile import judge

LAUNCH = Ran("aten::mm", [[64, 64], [64, 64]], ["c10::BFloat16"] * 2)


# ---- Nsight Systems' reports ---------------------------------------------------------------------


@pytest.mark.parametrize("form", NSYS_SUMS)
def test_sums_by_kernel_of_each_year_are_read(cli, tmp_path, form):
    (tmp_path / "sum.csv").write_text(NSYS_SUMS[form])
    code, out, _ = cli("profile", "sum.csv", "-d", "h100-sxm", "-f", "json")
    found = json.loads(out)
    kernels = {row["operator"]: (row["calls"], row["measured_us"]) for row in found["kernels"]}
    assert code == 0
    assert kernels["gemm"] == (2, pytest.approx(372.4))
    assert kernels["pointwise"] == (1, pytest.approx(46.55))
    assert found["idle_us"] is None
    assert "no idle time to see" in cli("profile", "sum.csv", "-d", "h100-sxm")[1]


@pytest.mark.parametrize("form", NSYS_TRACES)
def test_traces_of_each_year_are_read(tmp_path, form):
    (tmp_path / "trace.csv").write_text(NSYS_TRACES[form])
    timeline = formats.read(tmp_path / "trace.csv")
    assert timeline.duration.tolist() == pytest.approx([186000, 186400, 46550])
    assert timeline.start.tolist() == pytest.approx([0, 189000, 379000])
    assert timeline.span_ns - timeline.busy_ns == pytest.approx(3000 + 3600)
    assert timeline.whats[0].grid == (132, 1, 1)
    assert timeline.device in ("", "NVIDIA H100 80GB HBM3")


def test_sums_are_not_matched_with_a_graph_by_order(tmp_path):
    (tmp_path / "sum.csv").write_text(NSYS_SUMS["ns"])
    nodes = [{"op": "gemm", "dtype": "bf16", "m": 64, "n": 64, "k": 64}]
    matched = grouped(formats.read(tmp_path / "sum.csv"), nodes)
    assert {group.how for group in matched.groups} == {NAME}
    assert "no order" in matched.notes[0]


@pytest.mark.parametrize("text", [NSYS_SUMS["ns"], NSYS_TRACES["ns"]], ids=["sums", "trace"])
@pytest.mark.parametrize("command", [("compare",), ("counters", "import", "-d", "h100-sxm")])
def test_a_command_that_reads_no_profile_names_the_one_that_does(cli, tmp_path, command, text):
    (tmp_path / "x.csv").write_text(text)
    code, _, err = cli(*command, "x.csv")
    assert code == 2
    assert "perfmodel profile" in err
    assert err.count("\n") == 1


# ---- Whole graphs --------------------------------------------------------------------------------


def graphs(path, *, kernels=True):
    """Three kernels around two launches of a graph, in nanoseconds."""
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        db.execute("INSERT INTO StringIds VALUES (1, 'nvjet_tst_256x128_64x4')")
        if kernels:
            db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, demangledName)")
            spans = [(1000, 201000), (220000, 265000), (10500000, 10545000)]
            db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 1)", spans)
        db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start, end, graphId)")
        spans = [(300000, 5300000), (5400000, 10400000)]
        db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (?, ?, 1)", spans)
    return path


def test_whole_graphs_are_time_of_the_device_that_is_not_explained(cli, tmp_path):
    graphs(tmp_path / "g.sqlite")
    code, out, _ = cli("profile", "g.sqlite", "-d", "h100-sxm", "-f", "json")
    found = json.loads(out)
    assert code == 0
    assert found["total_us"] == pytest.approx(10_000 + 290)
    assert found["idle_us"] == pytest.approx(19 + 35 + 100 + 100)
    assert found["explained"] == 0
    (graph,) = [row for row in found["kernels"] if row["operator"] == "graph"]
    assert (graph["calls"], graph["measured_us"]) == (2, pytest.approx(10_000))
    assert "--cuda-graph-trace=node" in cli("profile", "g.sqlite", "-d", "h100-sxm")[1]


def test_a_file_of_whole_graphs_alone_is_read(tmp_path):
    timeline = formats.read(graphs(tmp_path / "g.sqlite", kernels=False))
    found = judge(timeline, grouped(timeline), load("h100-sxm"))
    assert found.total_us == pytest.approx(10_000)


# ---- JSON as it is written -----------------------------------------------------------------------

COPY = {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD", "ts": 1, "dur": 2}


@pytest.mark.parametrize("word", ["inf", "-inf", "nan", "-nan", "Infinity", "NaN"])
def test_numbers_that_are_none_are_read(cli, tmp_path, word):
    path = operator_trace([LAUNCH, LAUNCH], tmp_path / "t.json")
    copy = json.dumps(COPY | {"args": {"bytes": "WORD", "why": "it said inf, nan"}})
    label = "perfmodel|op=gemm|dtype=bf16|m=64|n=64|k=64"
    named = {"ph": "X", "cat": "gpu_user_annotation", "name": label, "ts": 0, "dur": 9000}
    text = path.read_text().replace("[", f"[{copy}, {json.dumps(named)}, ", 1)
    path.write_text(text.replace('"WORD"', word))
    timeline = formats.read(path)
    assert sorted(timeline.whats[i].kernel for i in timeline.what)[0] == "Memcpy DtoD"
    assert len(timeline.what) == 3
    assert cli("counters", "import", "t.json", "-d", "h100-sxm")[0] == 0


def test_numbers_in_quotes_are_numbers(tmp_path):
    path = operator_trace([LAUNCH], tmp_path / "t.json")
    plain = formats.read(path)
    document = json.loads(path.read_text())
    for event in document["traceEvents"]:
        event |= {"ts": str(event["ts"]), "dur": str(event["dur"])}
        event["args"]["External id"] = str(event["args"]["External id"])
    path.write_text(json.dumps(document))
    quoted = formats.read(path)
    assert (quoted.whats, quoted.duration.tolist()) == (plain.whats, plain.duration.tolist())


@pytest.mark.parametrize("cut", [1, 2, 3, 40])
def test_a_trace_without_its_end_is_read_to_its_last_whole_event(tmp_path, cut):
    path = operator_trace([LAUNCH] * 5, tmp_path / "t.json")
    path.write_text(path.read_text()[:-cut])
    timeline = formats.read(path)
    # The end of the document: "]}"; beyond that the last event is cut.
    assert len(timeline.what) == (5 if cut <= 2 else 4)
    assert bool(timeline.notes) == (cut > 1)


# ---- What files unpack to ------------------------------------------------------------------------


@pytest.mark.parametrize("start", [b"\0", b'{"traceEvents": [', b'"ID","Kernel Name"\n'])
@pytest.mark.parametrize(
    "command", [("profile", "-d", "h100-sxm"), ("counters", "import", "-d", "h100-sxm"),
                ("compare",), ("report",)],
)  # fmt: skip
def test_a_small_file_that_unpacks_to_far_more_is_one_line(
    cli, tmp_path, monkeypatch, command, start
):
    monkeypatch.setattr(documents, "FREE_BYTES", 1 << 20)  # as 64 MiB is, and read sooner
    zeros = b" " * (2 << 20)
    (tmp_path / "zero.json.gz").write_bytes(gzip.compress(start + zeros, 1))
    code, _, err = cli(*command, "zero.json.gz")
    assert code == 2
    assert "unpack to more than 1 MiB" in err
    assert err.count("\n") == 1


def test_an_excel_sheet_that_unpacks_to_far_more_is_one_line(cli, tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b" " * (documents.FREE_BYTES + 1))
    (tmp_path / "x.xlsx").write_bytes(packed.getvalue())
    code, _, err = cli("compare", "x.xlsx")
    assert code == 2
    assert "unpack to more than 64 MiB" in err


def test_what_a_file_may_unpack_to_grows_with_it_to_an_end():
    sizes = [documents.most_unpacked(1 << power) for power in range(40)]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (documents.FREE_BYTES, documents.MOST_BYTES)


def test_a_sound_trace_in_gzip_is_read(tmp_path):
    path = operator_trace([LAUNCH] * 3, tmp_path / "t.json")
    packed = tmp_path / "t.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert len(formats.read(packed).what) == 3
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(TableError, match="cannot be read"):
        formats.read(packed)
