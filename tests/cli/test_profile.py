"""`perfmodel profile`: every format read, every launch accounted for, time where it is."""

import gzip
import json
import sqlite3

import numpy as np
import pandas as pd
import profilefiles as files
import pytest
from cases import cases
from folders import TESTS
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.errors import TableError
from perfmodel.hardware import load
from perfmodel.profile import formats, jsonstream, kernelnames, operations, order
from perfmodel.profile.matching import NAME, NONE, ORDER, SHAPE, grouped
from perfmodel.profile.timeline import Columns, Recorded, What
from perfmodel.table.records import read_table
from perfmodel.validation.profile import judge

TRACES = TESTS / "traces"
DEVICE = {"nvidia": "h100-sxm", "amd": "mi300x"}


def written(name, folder, **program):
    write, file, maker, shaped = files.FORMATS[name]
    launches = files.program(maker=maker, **program)
    return write(launches, folder / file), launches, maker, shaped


def nodes():
    return [each.row for each in files.program(layers=1)]


# ---- Formats -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", files.FORMATS)
def test_every_launch_of_every_format_is_there(name, tmp_path):
    path, launches, *_ = written(name, tmp_path)
    timeline = formats.read(path)
    assert [timeline.whats[i].kernel for i in timeline.what] == [each.kernel for each in launches]
    assert timeline.duration.tolist() == pytest.approx([each.duration for each in launches])
    gaps = (len(launches) - 1) * 700 if timeline.tool != "Nsight Compute" else 0
    assert timeline.span_ns - timeline.busy_ns == pytest.approx(gaps, abs=1)


@pytest.mark.parametrize("name", files.FORMATS)
def test_every_launch_is_explained_by_shape_or_by_order(name, tmp_path):
    path, launches, maker, shaped = written(name, tmp_path)
    timeline = formats.read(path)
    matched = grouped(timeline, nodes())
    found = judge(timeline, matched, load(DEVICE[maker]))
    assert found.share(SHAPE, ORDER, explained=True) == pytest.approx(1.0)
    assert sum(found.calls(how) for how in (SHAPE, ORDER, NAME, NONE)) == len(launches)
    # Rotary embedding, cache write and gated activation are no operators of PyTorch's: by order.
    assert found.calls(ORDER) == (6 if shaped else len(launches))
    by = {(g.kind, g.row.get("m"), g.row.get("n"), g.row.get("k")): g for g in matched.groups}
    for each in launches:
        if each.row["op"] == "gemm":
            group = by["gemm", each.row["m"], each.row["n"], each.row["k"]]
            assert any(abs(ns - each.duration) < 1 for ns in group.nanoseconds)


def test_without_a_graph_kernels_without_shapes_are_only_named(tmp_path):
    path, launches, *_ = written("nsys", tmp_path)
    matched = grouped(formats.read(path))
    assert {group.how for group in matched.groups} == {NAME}
    assert sum(group.calls for group in matched.groups) == len(launches)


def test_kernels_without_an_external_id_are_found_by_their_launch(tmp_path):
    launches = files.program()
    plain = grouped(formats.read(files.torch_trace(launches, tmp_path / "a.json")))
    bare = files.torch_trace(launches, tmp_path / "b.json", external=False)
    assert grouped(formats.read(bare)).groups == plain.groups


def test_kernels_of_one_operator_are_one_call(tmp_path):
    """A split product and the sum of its parts."""
    path = files.torch_trace(files.program(layers=1), tmp_path / "a.json")
    document = json.loads(path.read_text())
    kernel = next(e for e in document["traceEvents"] if "nvjet" in e["name"])
    part = {**kernel, "name": "void cublasLt::splitKreduce_kernel<32>", "dur": 10.0,
            "ts": kernel["ts"] + kernel["dur"]}  # fmt: skip
    document["traceEvents"].append(part)
    path.write_text(json.dumps(document))
    groups = grouped(formats.read(path)).groups
    assert not [group for group in groups if "splitK" in group.kernel]
    assert max(group.nanoseconds[0] for group in groups) == (kernel["dur"] + 10) * 1e3


# ---- Traces of this library's own runs, on a CPU ------------------------------------------------


@pytest.mark.parametrize(("name", "least"), [("llama-eager", 0.99), ("llama-compiled", 0.95)])
def test_a_traced_llama_is_explained(name, least):
    timeline = formats.read(TRACES / f"{name}.json.gz")
    matched = grouped(timeline)
    found = judge(timeline, matched, load("epyc-9654"))
    assert found.share(SHAPE, explained=True) >= least
    assert found.share(NONE) == 0
    sizes = {
        (g.row["m"], g.row["n"], g.row["k"]): g.calls for g in matched.groups if g.kind == "gemm"
    }
    # Two layers: queries and output, keys and values, gate and up, down; 2 x 512 tokens.
    assert sizes == {(1024, 256, 256): 4, (1024, 128, 256): 4, (1024, 688, 256): 4,
                     (1024, 256, 688): 2}  # fmt: skip
    (attention,) = (g for g in matched.groups if g.kind == "attention")
    assert attention.calls == 2
    wanted = {"heads_q": 4, "heads_kv": 2, "seq_q": 512, "head_dim": 64, "causal": True}
    assert wanted.items() <= attention.row.items()


@pytest.mark.parametrize("name", ["llama-eager", "llama-compiled"])
def test_host_operators_account_for_their_time_once(name):
    """Outermost operators' times are the sum of what the timeline holds."""
    with gzip.open(TRACES / f"{name}.json.gz") as file:
        events = json.load(file)["traceEvents"]
    ops = [e for e in events if e.get("ph") == "X" and e["cat"] == "cpu_op"]
    ops.sort(key=lambda e: (e["ts"], -e["dur"]))
    outer, end = 0.0, -1.0
    for each in ops:
        if each["ts"] >= end:
            outer, end = outer + each["dur"], each["ts"] + each["dur"]
    assert formats.read(TRACES / f"{name}.json.gz").duration.sum() / 1e3 == pytest.approx(
        outer, rel=1e-3
    )


# ---- Names and shapes ----------------------------------------------------------------------------


def test_each_example_is_named_by_its_own_entry():
    for entry in kernelnames.entries():
        assert entry.pattern.search(entry.example)
        first = next(e for e in kernelnames.entries() if e.pattern.search(entry.example))
        assert first is entry


@cases
def test_names_say_class_type_and_tile(name, kind, dtype, tile):
    found = kernelnames.named(name)
    assert (found.kind, found.dtype, dict(found.tile)) == (kind, dtype, tile)


BF16 = "c10::BFloat16"


@pytest.mark.parametrize(
    ("recorded", "row"),
    [
        (Recorded("aten::linear", ((2, 512, 256), (688, 256), ()), (BF16,) * 2),
         {"op": "gemm", "m": 1024, "n": 688, "k": 256, "batch": 1, "dtype": "bf16"}),
        (Recorded("aten::bmm", ((8, 64, 32), (8, 32, 16)), ("float",) * 2),
         {"op": "gemm", "m": 64, "n": 16, "k": 32, "batch": 8, "dtype": "fp32"}),
        (Recorded("aten::addmm", ((16,), (64, 32), (32, 16)), ("c10::Half",) * 3),
         {"op": "gemm", "m": 64, "n": 16, "k": 32, "batch": 1, "dtype": "fp16"}),
        (Recorded("aten::_flash_attention_forward", ((2, 512, 8, 64), (2, 1024, 2, 64),
                  (2, 1024, 2, 64)), (BF16,) * 3),
         {"op": "attention", "batch": 2, "heads_q": 8, "heads_kv": 2, "seq_q": 512, "seq_kv": 1024,
          "head_dim": 64, "causal": False}),
        (Recorded("aten::_softmax", ((4, 8, 128), (), ()), (BF16,), ("", "-1", "False")),
         {"op": "softmax", "rows": 32, "cols": 128}),
        (Recorded("aten::_softmax", ((4, 8, 128), (), ()), (BF16,), ("", "1", "False")),
         {"op": "softmax", "rows": 512, "cols": 8}),
        (Recorded("aten::add_", ((64, 128), (64, 128), ()), (BF16,) * 2),
         {"op": "pointwise", "variant": "add", "inputs": 2, "rows": 64, "cols": 128}),
        (Recorded("aten::mul", ((64, 128), (128,)), (BF16,) * 2), {"variant": "mul", "inputs": 1}),
        (Recorded("aten::cat", (((4, 64), (8, 64)),), ("TensorList",)),
         {"variant": "copy", "rows": 12, "inputs": 1, "outputs": 1}),
        (Recorded("aten::mm", ((4, 5), (6, 7))), None),
        (Recorded("aten::mm", ()), None), (Recorded("aten::view", ((4, 5),)), None),
        (Recorded("aten::mm", ((0, 5), (5, 7))), None), (Recorded("mine::op", ((4,),)), None),
    ],
)  # fmt: skip
def test_recorded_operators_as_problems(recorded, row):
    found = operations.problem(recorded)
    if row is None:
        assert found is None
    else:
        assert row.items() <= found.row.items()


def test_names_of_ranges_hold_operators_and_sizes():
    found = operations.from_text("aten::mm, seq = 1, op_id = 5, sizes = [[64, 32], [32, 16]]")
    assert found == Recorded("aten::mm", ((64, 32), (32, 16)))
    assert operations.from_text(
        "aten::mm, op_id = 5, sizes = [[], [4]], input_op_ids = [(1,0)]"
    ).dims == ((), (4,))
    assert operations.from_text("a step of training") is None


@given(st.lists(st.sampled_from("gabn"), min_size=1, max_size=8), st.integers(1, 5))
def test_launches_in_the_graphs_own_order_are_matched_whole(kinds, layers):
    found = order.aligned(kinds * layers, kinds)
    assert found == [i for _ in range(layers) for i in range(len(kinds))]


@given(st.lists(st.sampled_from("gabn"), min_size=2, max_size=6), st.data())
def test_foreign_launches_between_lose_no_place(kinds, data):
    launches = []
    for kind in kinds * 2:
        launches += [kind, *data.draw(st.lists(st.just("x"), max_size=2))]
    found = [place for place, kind in zip(order.aligned(launches, kinds), launches, strict=True)
             if kind != "x"]  # fmt: skip
    assert found == list(range(len(kinds))) * 2


def test_a_graph_of_something_else_matches_nothing(tmp_path):
    path, *_ = written("nsys", tmp_path)
    matched = grouped(formats.read(path), [{"op": "gemm", "dtype": "bf16", "m": 1, "n": 1, "k": 1},
                                           *({"op": "softmax"},) * 9])  # fmt: skip
    assert {group.how for group in matched.groups} == {NAME}
    assert "none is matched" in matched.notes[0]


# ---- Where time is -------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 200)), min_size=1, max_size=30))
def test_busy_time_is_the_length_of_the_union(spans):
    columns = Columns()
    for start, duration in spans:
        columns.add(What("k"), float(start), float(duration))
    timeline = columns.timeline("t")
    covered = np.zeros(1300, dtype=bool)
    for start, duration in spans:
        covered[start : start + duration] = True
    assert timeline.busy_ns == pytest.approx(covered.sum())
    assert timeline.span_ns >= timeline.busy_ns


@pytest.mark.parametrize("times", [0.5, 1.0, 3.0])
def test_lost_time_is_what_was_measured_beyond_the_prediction(times, tmp_path):
    path, *_ = written("torch", tmp_path, layers=1)
    timeline = formats.read(path)
    found = judge(timeline, grouped(timeline), load("h100-sxm"))
    line = next(line for line in found.lines if line.group.kind == "attention")
    line.group.nanoseconds[:] = [line.predicted_us * 1e3 * times] * 2
    assert line.lost_us == pytest.approx(2 * (times - 1) * line.predicted_us, abs=1e-6)
    assert ("another implementation" in line.advice) == (times > 1.5)


def test_lines_stand_by_lost_time():
    timeline = formats.read(TRACES / "llama-eager.json.gz")
    lost = [x.lost_us for x in judge(timeline, grouped(timeline), load("epyc-9654")).lines]
    known = [value for value in lost if value is not None]
    assert known == sorted(known, reverse=True)
    assert lost[: len(known)] == known


# ---- As a user runs it ---------------------------------------------------------------------------


def test_profile_prints_coverage_first_and_writes_a_table(cli, tmp_path):
    path, launches, *_ = written("nsys", tmp_path)
    code, out, err = cli("profile", path, "-d", "h100-sxm", "--graph", "decoder-layer",
                         "-o", "kernels.csv")  # fmt: skip
    assert code == 0
    first = out.splitlines()[0]
    assert "Nsight Systems on h100-sxm: 100% of 2.5 ms explained" in first
    assert f"by order {len(launches)}, named only 0, unknown 0" in first
    assert "idle between launches: 16.1 µs" in out
    assert err == "wrote kernels.csv: 10 rows\n"  # both norms, and both sums, are alike
    table = read_table("kernels.csv")
    assert set(table["op"]) == {each.row["op"] for each in launches}
    assert set(table["how"]) == {ORDER}
    assert cli("compare", "kernels.csv", "--by", "op")[0] == 0


def test_profile_as_json(cli, tmp_path):
    path, *_ = written("torch", tmp_path)
    code, out, _ = cli("profile", path, "-d", "h100-sxm", "-f", "json")
    document = json.loads(out)
    assert code == 0
    assert document["calls"] == {"shape": 18, "order": 0, "name": 6, "unknown": 0}
    assert sum(document["time_share"].values()) == pytest.approx(1.0)
    assert sum(row["measured_us"] for row in document["kernels"]) == pytest.approx(
        document["total_us"]
    )


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("x.json", b"", "the file is empty"),
        ("x.json", b"{}", "no traceEvents; write it with export_chrome_trace"),
        ("x.json", b'{"traceEvents": {}}', "traceEvents is no list"),
        ("x.json", b'{"traceEvents": [{"ph": "X"', "the trace is cut short"),
        ("x.json", b'{"traceEvents": [{}, ', "the trace is cut short"),
        ("x.json", b'{"traceEvents": [{"ph": X}, {"ph": "X"}]}', "not sound JSON"),
        ("x.json", b'{"traceEvents": [{}]}', "no operator and no kernel"),
        ("x.json", b'{"traceEvents": [' + b"[" * 200_000, "nested too deeply|not sound JSON"),
        ("x.json.gz", b"\x1f\x8bxx", "cannot be read|not a profile"),
        ("x.csv", b"a,b\n1,2\n", "not a profile that can be read"),
        ("x.csv", b"\xff\xfe\x00\x01", "not a profile that can be read"),
        ("x.sqlite", b"SQLite format 3\x00" + b"x" * 200, "not a sound SQLite file"),
        ("x.nsys-rep", b"abc", "nsys export --type sqlite"),
        ("x.ncu-rep", b"abc", "ncu --import FILE --csv"),
        ("kernel_trace.csv", b'"Kernel_Name","Start_Timestamp","End_Timestamp"\n"k",5,1\n',
         "no launch has a time"),
        ("x.csv", b'"ID","Kernel Name","dram__bytes_read.sum"\n"","","byte"\n"0","k","1"\n',
         "no launch has a time"),
        ("x.csv", b"Time (%),Total Time (ns),Instances,Name\n1,2,0,k\n", "Instances is '0'"),
        ("x.csv", b"Time (%),Total Time (ns),Instances,Name\n1,2,99000000,k\n",
         "more than 10,000,000 launches"),
        ("x.csv", b'"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n', "nvprof"),
    ],
)  # fmt: skip
def test_another_file_is_one_line(cli, tmp_path, name, data, said):
    (tmp_path / name).write_bytes(data)
    code, out, err = cli("profile", name, "-d", "h100-sxm")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert any(part in err for part in said.split("|")), err


def test_a_database_of_another_program_is_one_line(tmp_path):
    with sqlite3.connect(tmp_path / "x.sqlite") as db:
        db.execute("CREATE TABLE songs (id INTEGER)")
    with pytest.raises(TableError, match=r"a database without kernels \(songs\)"):
        formats.read(tmp_path / "x.sqlite")
    with sqlite3.connect(tmp_path / "y.sqlite") as db:
        db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER)")
    with pytest.raises(TableError, match="no kernel was launched"):
        formats.read(tmp_path / "y.sqlite")


def read_or_said(path):
    """The timeline of a file, or the one line that says what is wrong with it."""
    try:
        return formats.read(path)
    except TableError as error:
        said = str(error)
    assert "\n" not in said
    return said


@pytest.mark.parametrize("name", files.FORMATS)
def test_a_file_cut_anywhere_is_read_or_one_line(name, tmp_path):
    path, *_ = written(name, tmp_path, layers=1)
    data = path.read_bytes()
    for share in (0.999, 0.9, 0.6, 0.3, 0.05):
        cut = tmp_path / f"cut-{share}{path.suffix}"
        cut.write_bytes(data[: int(len(data) * share)])
        found = read_or_said(cut)
        assert isinstance(found, str) or len(found.what) <= 12


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=4))
def test_a_damaged_trace_is_read_or_one_line(tmp_path_factory, place, bytes_):
    folder = tmp_path_factory.mktemp("damaged")
    data = bytearray(files.torch_trace(files.program(layers=1), folder / "a.json").read_bytes())
    at = place % len(data)
    data[at : at + len(bytes_)] = bytes_
    (folder / "b.json").write_bytes(data)
    found = read_or_said(folder / "b.json")
    assert isinstance(found, str) or grouped(found).groups


def test_hostile_names_stay_text(output, tmp_path):
    name = "<script>alert(1)</script>=cmd|' /C calc'!A0\x1b[31m"
    row = ("k", 1, 2)
    path = tmp_path / "kernel_trace.csv"
    path.write_text(
        f'"Kernel_Name","Start_Timestamp","End_Timestamp"\n"{name}",{row[1]},{row[2]}\n'
    )
    out = output("profile", path, "-d", "mi300x")
    assert "\x1b" not in out
    assert "unknown 1" in out


def test_events_come_one_by_one_from_pieces(tmp_path, monkeypatch):
    """Pieces of the file end anywhere, inside names and numbers too."""
    path = files.torch_trace(files.program(layers=1), tmp_path / "a.json")
    whole = list(jsonstream.events(path))
    for size in (7, 64, 1000):
        monkeypatch.setattr(jsonstream, "_PIECE", size)
        assert list(jsonstream.events(path)) == whole
    (tmp_path / "b.json").write_text(json.dumps(whole))
    assert list(jsonstream.events(tmp_path / "b.json")) == whole


def test_rows_are_the_middle_of_their_calls(cli, tmp_path):
    path, launches, *_ = written("torch", tmp_path, layers=3)
    assert cli("profile", path, "-d", "h100-sxm", "-o", "rows.csv")[0] == 0
    rows = pd.read_csv("rows.csv").set_index("op")
    middle = sorted(e.duration for e in launches if e.row["op"] == "attention")[1]
    assert rows.loc["attention", "measured_us"] == pytest.approx(middle / 1e3)
    assert rows.loc["attention", "samples"] == 3
    assert rows.loc["attention", "implementation"] == "flash3"
