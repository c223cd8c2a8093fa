"""Counters: what profilers write becomes measured runs, in bytes and microseconds."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pandas as pd
import profilefiles
import profilersamples as sample
import pytest
from cases import cases
from folders import ROOT, TESTS
from profilersamples import GEMM, SOFTMAX, span, trace

from perfmodel.cases import rowwise
from perfmodel.errors import PerfmodelError, TableError
from perfmodel.measured.counters import BYTES, COLUMNS, import_counters, write
from perfmodel.profile import formats, ncu
from perfmodel.profile.profiletable import cells, number
from perfmodel.table.records import read_table
from perfmodel.validation.kinds.operator import traffic_report

sys.path.insert(0, str(TESTS / "fuzz"))
from damage import damaged
from dice import Dice


def file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_the_raw_page_with_ranges(tmp_path: Path) -> None:
    path = file(tmp_path, "ncu.csv", sample.RAW)
    rows, said = import_counters(path, device="h200-sxm")
    assert said == [f"{path}: 1 launches without a case's range left out"]
    first, second = rows
    assert first["implementation"] == "ncu:matmul_kernel"
    assert {k: first[k] for k in ("op", "dtype", "m", "device", "harness", "measured_us")} == {
        "op": "gemm", "dtype": "bf16", "m": "4096", "device": "h200-sxm", "harness": "profiler",
        "measured_us": "1234.5",
    }  # fmt: skip
    assert float(first["hbm_bytes_measured"]) == pytest.approx(134e6)
    assert float(first["l2_bytes_measured"]) == pytest.approx(80e6 * 32)
    assert float(first["shared_bytes_measured"]) == pytest.approx(5e6 * 128)
    assert (first["tensor_pipe_pct"], first["xu_pipe_pct"], first["fma_pipe_pct"]) == (
        "90", "1.5", "2.5",
    )  # fmt: skip
    # Two launches each, run twice: sums, then medians of (505, 515) MB and (160, 164) µs.
    assert second["implementation"] == "ncu:split"
    assert (second["kernels"], second["instances"]) == ("2", "2")
    assert float(second["hbm_bytes_measured"]) == pytest.approx(510e6)
    assert float(second["measured_us"]) == pytest.approx(162.0)
    # Utilisation is weighted by time: (30·120 + 10·40)/160 = 25 and (30·124 + 10·40)/164 = 25.12.
    assert float(second["xu_pipe_pct"]) == pytest.approx((25 + 4120 / 164) / 2, rel=1e-5)


def test_the_table_can_be_read_and_compared(tmp_path: Path) -> None:
    rows, _ = import_counters(file(tmp_path, "ncu.csv", sample.RAW), device="h200-sxm")
    write(rows, tmp_path / "counted.csv")
    table = read_table(tmp_path / "counted.csv")
    assert list(table["measured_us"]) == [1234.5, 162.0]
    assert table["hbm_bytes_measured"].astype(float).iloc[0] == pytest.approx(134e6)


def test_the_long_form_with_a_table_of_cases(tmp_path: Path) -> None:
    cases = file(
        tmp_path,
        "cases.csv",
        "op,dtype,rows,cols,m,n,k,implementation\n"
        "softmax,bf16,4096,4096,,,,mine\n"
        "gemm,bf16,,,4096,4096.0,4096,\n",
    )
    rows, said = import_counters(
        file(tmp_path, "l.csv", sample.LONG), device="h100-sxm", cases=cases
    )
    assert said == []
    assert [row["implementation"] for row in rows] == ["mine", "ncu:matmul_kernel"]
    assert [row["measured_us"] for row in rows] == ["21.5", "1234.5"]
    assert float(rows[0]["hbm_bytes_measured"]) == pytest.approx(64.55e6)
    assert rows[0]["l2_bytes_measured"] == ""
    assert rows[1]["n"] == "4096"


def test_several_launches_a_case(tmp_path: Path) -> None:
    cases = file(tmp_path, "c.csv", "op,dtype,m,n,k,kernels\ngemm,bf16,4096,4096,4096,2\n")
    rows, _ = import_counters(file(tmp_path, "l.csv", sample.LONG), device="h100-sxm", cases=cases)
    assert [row["measured_us"] for row in rows] == ["1256"]


HEADER = '"ID","Kernel Name","Device","dram__bytes_read.sum"\n'
UNITS = '"","","","byte"\n'
ANNOTATION = {"ph": "X", "cat": "user_annotation", "name": GEMM.label(), "ts": 1, "dur": 2}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("op,m\ngemm,1\n", "not a profile that can be read; give the CSV of ncu"),
        ("", "the file is empty; give the CSV of ncu"),
        ('==PROF== Connected\n==ERROR== Failed to find metric "x__y.sum"\n',
         'nothing was profiled: Failed to find metric "x__y.sum"'),
        (HEADER, "the header stands alone"),
        (HEADER + '"","","","byte"\n', "no kernel was profiled"),
        (HEADER + '"","","","byte"\n"0","k",0,"1"\n',
         "none of 1 launches ran in a range named after a case"),
        (HEADER + UNITS + f'"0","{GEMM.label()}",0,""\n', "no time and no counter of any case"),
        # A row of units one cell short, or of other units, is no reason to take bytes for seconds.
        (HEADER + '"","","byte"\n"0","k",0,"1"\n', "no row of units as wide as the header"),
        (HEADER + '"","","","us"\n"0","k",0,"1"\n',
         "dram__bytes_read.sum is in 'us', which is no unit of bytes"),
        (sample.RAW.replace('"Mbyte","us"', '"Mbyte","Mbyte"'),
         "gpu__time_duration.sum is in 'Mbyte', which is no unit of time"),
        (sample.LONG.replace('"msecond"', '"Mbyte"'), "is in 'Mbyte', which is no unit of time"),
        (HEADER + '"0","k",0,"1\n', r"x.csv:\d: not sound CSV"),
        (HEADER + UNITS + '"0","perfmodel|op=gemm|dtype=bf16|m=x",0,"1"\n',
         "'x' is not a whole number"),
        (HEADER + UNITS + '"0","perfmodel|op=gemm|dtype=bf16|m=²",0,"1"\n',
         "is not a whole number"),
        ('{"ph": 1', "no traceEvents"),
        ("[" * 50_000, "nested too deeply for a trace"),
        ('[{"ph": "X", "cat": "kernel", "name": "k", "ts": NaN}]', "ts is nan, not a time"),
        (trace({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 2}),
         "no range is named after a case"),
        ('{"schemaVersion": 1, "ph": 2}', "no traceEvents"),
        (trace(ANNOTATION | {"ts": "soon"}), r"traceEvents\[0\] .*: ts is 'soon', not a time"),
        (trace({}, {"ph": "X", "cat": "kernel", "name": "k"}),
         r"traceEvents\[1\] \(kernel\): ts is None"),
        (trace(ANNOTATION | {"ts": 10**400}), "ts is 1000.*not a time"),
        (trace(ANNOTATION | {"name": 7}), "name is 7, not text"),
        (trace(ANNOTATION | {"args": {"correlation": [1]}}), "correlation is .1., not a number"),
        ("Time (%),Total Time (ns),Num Calls,Avg (ns),Name\n1,2,3,4,cudaLaunchKernel\n",
         "names no launches; export nvtx_kern_sum, cuda_gpu_kern_sum or cuda_gpu_trace"),
        ("Range,Style,Total Proj Time (ns),Range Instances\nx,PushPop,1,1\n",
         "names no launches; export nvtx_kern_sum"),
        ("COUNT,AAvg (ns),API Name,Kernel Name\n1,2,cuLaunch,k\n", "names no launches"),
        ('"Name","Calls","TotalDurationNs","AverageNs"\n"k",1,2,2\n',
         "without kernels' launches; give kernel_trace or counter_collection"),
        ('"Domain","Function","Start_Timestamp","End_Timestamp"\n"HIP","hipFree",1,2\n',
         "without kernels' launches"),
        ('"Index","KernelName","gpu-id","DurationNs"\n0,"k",0,5\n', "profile with rocprofv3"),
        (sample.NSYS_KERNELS, "a sum over kernels names no cases; give --cases FILE"),
        (sample.NSYS_KERNELS.replace("combine", f"{GEMM.label()}:combine"),
         "do not say how often a range ran; export nvtx_kern_sum"),
        (sample.NSYS_KERNELS.replace("1234.5", "n/a"), "give --cases"),
        (sample.NSYS_RANGES.replace(",3,3,3703500", ",3,three,3703500"),
         r"x.csv:5: Kern Inst is 'three', not a number above 0"),
        (sample.NSYS_RANGES.replace(",3,3,3703500", ",2.5,3,3703500"), "is '2.5', not whole"),
        (sample.NSYS_RANGES.replace("perfmodel|", "other|"), "none of 6 rows is of a range named"),
        (sample.ROCPROF_TRACE.replace("172352211295504", "172352210061004"),
         r"x.csv:2: End_Timestamp is not after Start_Timestamp"),
        (sample.ROCPROF_TRACE.replace("172352211295504", "1.5"), "'1.5', not a number of nano"),
        (sample.ROCPROF_TRACE.replace("172352211295504", "²"), "'²', not a number of nano"),
        (sample.NSYS_RANGES.replace(",3,3,3703500", ",3,0,3703500"), "is '0', not a number above"),
        (sample.ROCPROF_READ + sample.ROCPROF_READ.split("\n")[1] + "\n",
         "x.csv:5: dispatch '1' has 'FETCH_SIZE' twice; give each pass its own file"),
    ],
)  # fmt: skip
def test_another_format_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(TableError, match=said) as caught:
        import_counters(file(tmp_path, "x.csv", text), device="h200-sxm")
    assert "\n" not in str(caught.value)


def test_other_troubles_are_one_line_too(tmp_path: Path) -> None:
    report = tmp_path / "report.ncu-rep"
    report.write_bytes(b"NVR\x00\xff\xfe\x00")
    with pytest.raises(TableError, match="write it anew by ncu --import FILE --csv"):
        import_counters(report, device="h200-sxm")
    with pytest.raises(TableError, match="binary data; give the CSV of ncu"):
        import_counters(report.rename(tmp_path / "x.csv"), device="h200-sxm")
    zipped = tmp_path / "trace.json.gz"
    zipped.write_bytes(b"\x1f\x8b\x08 cut short")
    for path in (tmp_path / "nothing.csv", zipped, "a\0b.csv"):
        with pytest.raises(TableError, match="cannot be read"):
            import_counters(path, device="h200-sxm")
    with pytest.raises(TableError, match="no profile given"):
        import_counters([], device="h200-sxm")
    path = file(tmp_path, "l.csv", sample.LONG)
    for table, said in (
        ("op,dtype\ngemm,bf16\n", "asks for 1 launches, .* has 2"),
        ("op,dtype,kernels\ngemm,bf16,two\n", "c.csv:2: kernels is 'two'"),
        ("op,dtype,kernels\ngemm,bf16,²\n", "kernels is '²'"),
        ("m,n,k\n1,2,3\n", "not a table of cases"),
        ("", "not a table of cases"),
        ("op,dtype,m\ngemm,bf16,x\ngemm,bf16,1\n", "c.csv:2: .*not a whole number"),
        ("op,dtype,m\ngemm,bf16\n", "c.csv:2: 2 cells where the header has 3"),
        ('op,dtype\ngemm,"bf16\n', "c.csv:2: not sound CSV"),
        ("op,dtype\nge|mm,bf16\n", "c.csv:2: .*is not a column=value of a case"),
    ):
        with pytest.raises(TableError, match=said):
            import_counters(path, device="d", cases=file(tmp_path, "c.csv", table))


# ---- Formats -------------------------------------------------------------------------------------


def imported(
    folder: Path, name: str, text: str = "", cases: str | None = None
) -> tuple[list[dict[str, str]], list[str]]:
    """Rows of a sample (or of `text`), and what was said, without the file's name."""
    own_text, own_cases = sample.SAMPLES[name]
    path = file(folder, f"{name}.csv", text or own_text)
    table = cases or own_cases
    listed = None if table is None else file(folder, "cases.csv", table)
    rows, said = import_counters(path, device="here", cases=listed)
    return rows, [line.removeprefix(f"{path}: ") for line in said]


def shown(rows: list[dict[str, str]], *names: str) -> list[tuple[str, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


NAMES = ("op", "measured_us", "kernels", "instances")


@pytest.mark.parametrize("name", sample.SAMPLES)
def test_every_format_ends_in_a_table_that_can_be_compared(tmp_path: Path, name: str) -> None:
    rows, _ = imported(tmp_path, name)
    assert {row["op"] for row in rows} <= {"gemm", "attention", "softmax"}
    write(rows, tmp_path / "counted.csv")
    table = read_table(tmp_path / "counted.csv")
    assert (table["measured_us"] > 0).all()
    assert (table["flag"] == "").all()


def cannot_be(row: dict[str, str]) -> bool:
    """Whether a row says what no measured run can say."""
    timed = (row["measured_us"] != "") == (row["flag"] != "failed")
    moved = (float(row[name]) for name in BYTES if row[name])
    return (
        set(row) != set(COLUMNS)
        or not timed
        or not float(row["measured_us"] or 1) > 0
        or not all(0 <= value < 1e40 for value in moved)
    )


@pytest.mark.parametrize("seed", range(10))
def test_damaged_profiles_are_read_or_refused_in_one_line(tmp_path: Path, seed: int) -> None:
    dice, read, refused = Dice(seed), [], []
    for name, (text, listed) in [*sample.SAMPLES.items()] * 3:
        path = tmp_path / f"{name}.{'json' if text.startswith('{') else 'csv'}"
        path.write_bytes(damaged(dice, path.name, text.encode()))
        table = tmp_path / "cases.csv"
        table.write_bytes(damaged(dice, "cases.csv", (listed or "").encode()))
        try:
            rows, said = import_counters(path, device="x", cases=table if listed else None)
        except PerfmodelError as error:
            refused.append(str(error))
        else:
            read += rows
            assert not any("\n" in line for line in said)
    assert all("\n" not in line and str(tmp_path) in line and len(line) < 2000 for line in refused)
    assert read
    assert refused
    assert not [row for row in read if cannot_be(row)]


def test_every_format_but_traces_is_in_the_table_of_formats(tmp_path: Path) -> None:
    """Each sample fits one entry, and each entry has a sample."""
    fitting = []
    for text, _ in sample.SAMPLES.values():
        if not text.startswith("{"):
            header = next(line for line in text.split("\n") if "Name" in line and "," in line)
            columns = cells(header)
            named = [each.name for each in formats.FORMATS if each.fits(columns)]
            fitting.append(named)
    if any("the program's own line" in text for text, _ in sample.SAMPLES.values()):
        fitting = [named for named in fitting if named]
    assert all(len(named) == 1 for named in fitting)
    assert {name for named in fitting for name in named} == {f.name for f in formats.FORMATS}


def test_blackwells_names_of_bytes(tmp_path: Path) -> None:
    rows, said = imported(tmp_path, "ncu-blackwell")
    assert shown(rows, "hbm_bytes_measured", "l2_bytes_measured") == [("1.34e+08", "")]
    assert said == []


def test_missing_bytes_are_said_with_what_to_ask_for(tmp_path: Path) -> None:
    text = sample.BLACKWELL.replace("dram__bytes_op_read.sum", "dram__bytes_op_x.sum")
    _, said = imported(tmp_path, "ncu-blackwell", text)
    assert len(said) == 1
    assert "ask ncu for dram__bytes_read.sum,dram__bytes_write.sum (dram__bytes_op_read" in said[0]


def test_launches_of_nsys_in_the_order_of_cases(tmp_path: Path) -> None:
    rows, said = imported(tmp_path, "nsys-trace")
    assert shown(rows, *NAMES) == [("attention", "160", "2", "1"), ("gemm", "1234.5", "1", "1")]
    assert [row["implementation"] for row in rows] == ["nsys:split", "nsys:matmul_kernel"]
    assert all(row[name] == "" for row in rows for name in row if name.endswith("bytes_measured"))
    assert said == [
        "1 copies and fills of memory left out",
        "no bytes of memory; Nsight Systems counts no bytes; profile with ncu for them",
    ]
    copies = "\n".join(sample.NSYS_TRACE.split("\n")[:4])
    with pytest.raises(TableError, match="no kernel among 1 rows; only copies ran"):
        imported(tmp_path, "nsys-trace", copies)


def test_launches_of_nsys_named_by_its_option(tmp_path: Path) -> None:
    """cuda_gpu_trace:nvtx-name writes the range before the kernel."""
    named = sample.NSYS_TRACE.replace(",7,matmul", f",7,{GEMM.label()}:matmul")
    rows, _ = import_counters(file(tmp_path, "x.csv", named), device="here")
    assert shown(rows, *NAMES) == [("gemm", "1234.5", "1", "1")]


@pytest.mark.parametrize("name", ["nsys", "rocpd"])
def test_launches_of_databases_in_the_order_of_cases(tmp_path: Path, name: str) -> None:
    write, base, maker, _ = profilefiles.FORMATS[name]
    launches = profilefiles.program(layers=1, maker=maker)[:2]
    path = write(launches, tmp_path / base)
    cases = file(tmp_path, "c.csv", "op,dtype,m,n,k\ngemm,bf16,1,1,1\ngemm,bf16,2,2,2\n")
    rows, _ = import_counters(path, device="here", cases=cases)
    assert [row["measured_us"] for row in rows] == [f"{x.duration / 1e3:g}" for x in launches]


def test_sums_of_nsys_over_kernels(tmp_path: Path) -> None:
    """Medians of one launch each, in the report's unit: 120 + 40 and 1200 microseconds."""
    rows, _ = imported(tmp_path, "nsys-kernels")
    assert shown(rows, *NAMES) == [("attention", "160", "2", "10"), ("gemm", "1200", "1", "10")]
    mean = sample.NSYS_KERNELS.replace("Med (us)", "Mid (us)")
    rows, _ = imported(tmp_path, "nsys-kernels", mean)
    assert [row["measured_us"] for row in rows] == ["164", "1234.5"]
    total = mean.replace("Avg (us)", "Ave (us)")
    rows, _ = imported(tmp_path, "nsys-kernels", total)
    assert [row["measured_us"] for row in rows] == ["164", "1234.5"]
    for name, said in (
        ("split<float; ", "fits none of 3"),
        ("l", "fits 2 of 3"),
        ("", "no kernel"),
    ):
        cases = f"op,dtype,m,n,k,kernel\ngemm,bf16,1,1,1,{name}\n"
        with pytest.raises(TableError, match=f"cases.csv:2: .*{said}"):
            imported(tmp_path, "nsys-kernels", cases=cases)


def test_sums_of_nsys_over_ranges(tmp_path: Path) -> None:
    """A run of decode: split once (median 120), combine twice (40 each), prepare in one of four."""
    rows, _ = imported(tmp_path, "nsys-ranges")
    assert shown(rows, *NAMES) == [("attention", "202.5", "3", "4"), ("gemm", "1234.5", "1", "3")]
    # A kernel that two threads launched has two rows.
    line = next(row for row in sample.NSYS_RANGES.split("\n") if "matmul" in row)
    twice = sample.NSYS_RANGES + line.replace(",1,1,3,3,", ",1,2,3,3,") + "\n"
    rows, _ = imported(tmp_path, "nsys-ranges", twice)
    assert shown(rows, *NAMES)[1] == ("gemm", "1234.5", "1", "6")


def test_counters_of_rocprof_from_two_passes(tmp_path: Path) -> None:
    """FETCH_SIZE and WRITE_SIZE are KiB: softmax (32 + 32) MiB read, 16 KiB + 32 MiB written."""
    passes = [
        file(tmp_path, "read.csv", sample.ROCPROF_READ),
        file(tmp_path, "written.csv", sample.ROCPROF_WRITTEN),
    ]
    cases = file(tmp_path, "cases.csv", sample.CASES)
    rows, said = import_counters(passes, device="mi300x", cases=cases)
    assert said == []
    assert shown(rows, *NAMES) == [("softmax", "21.5", "2", "1"), ("gemm", "1234.5", "1", "1")]
    counted = [float(row["hbm_bytes_measured"]) for row in rows]
    assert counted == pytest.approx([(96 * 1024 + 16) * 1024, 128 * 2**20], rel=1e-5)
    _, said = import_counters(passes[:1], device="mi300x", cases=cases)
    assert "--pmc FETCH_SIZE WRITE_SIZE" in said[0]
    other = file(tmp_path, "o.csv", sample.ROCPROF_WRITTEN.replace("softmax_max", "other"))
    with pytest.raises(TableError, match="not passes of one program"):
        import_counters([passes[0], other], device="mi300x", cases=cases)


def test_the_newer_names_of_rocprofs_counters(tmp_path: Path) -> None:
    names = {"FETCH_SIZE": "FetchSize", "WRITE_SIZE": "WriteSize"}
    read = sample.ROCPROF_READ.replace("FETCH_SIZE", names["FETCH_SIZE"])
    written = sample.ROCPROF_WRITTEN.replace("WRITE_SIZE", names["WRITE_SIZE"])
    used = sample.rocprof_counters("MfmaUtil", 0.0, 0.0, 71.5)
    paths = [file(tmp_path, f"{i}.csv", text) for i, text in enumerate((read, written, used))]
    cases = file(tmp_path, "cases.csv", sample.CASES)
    rows, _ = import_counters(paths, device="mi300x", cases=cases)
    assert shown(rows, "hbm_bytes_measured", "tensor_pipe_pct")[1] == ("1.34218e+08", "71.5")


def test_launches_of_rocprof_in_the_order_of_their_start(tmp_path: Path) -> None:
    rows, said = imported(tmp_path, "rocprof-trace")
    assert shown(rows, *NAMES) == [("gemm", "1234.5", "1", "2")]
    assert said[0] == "1 launches without a case's range left out"
    assert said[1].startswith("kernels are called after their range")
    cases = "op,dtype,m,n,k\n" + "softmax,bf16,,,\n" + "gemm,bf16,1,1,1\n" * 2
    rows, _ = imported(tmp_path, "rocprof-trace", cases=cases)
    assert [row["measured_us"] for row in rows] == ["3.565", "1234.5", "1234.5"]


def test_lines_between_rows_are_left_out_and_said(tmp_path: Path) -> None:
    lines = sample.LONG.splitlines()
    text = "\n".join([*lines[:3], "step 1, loss 0.5", *lines[3:], '"1","2","3"'])
    rows, said = imported(tmp_path, "ncu-long", text)
    assert [row["measured_us"] for row in rows] == ["21.5", "1234.5"]
    assert said == ["2 lines that are no rows of Nsight Compute's CSV left out"]


def test_files_of_windows_and_of_gzip_are_read(tmp_path: Path) -> None:
    import gzip

    text = sample.BLACKWELL.replace("\n", "\r\n")
    for name, data in (
        ("utf16.csv", text.encode("utf-16")),
        ("bom.csv", text.encode("utf-8-sig")),
        ("zipped.csv.gz", gzip.compress(text.encode())),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        rows, _ = import_counters(path, device="b200")
        assert [row["measured_us"] for row in rows] == ["900"], name


def test_a_kernel_without_a_name_is_one(tmp_path: Path) -> None:
    text = sample.LONG.replace('"softmax_row"', '"<::(("')
    rows, _ = imported(tmp_path, "ncu-long", text)
    assert rows[0]["implementation"] == "ncu:kernel"


def test_a_long_trace_is_not_read_quadratically(tmp_path: Path) -> None:
    """Each range finds its kernels by their order: 30,000 would else take minutes."""
    count = 30_000
    events = [span("k", "kernel", 10.0 * i, 5) for i in range(count)]
    events += [span(SOFTMAX.label(), "gpu_user_annotation", 10.0 * i, 9) for i in range(count)]
    path = file(tmp_path, "t.json", trace(*events))
    start = time.process_time()
    instances = formats.contents(path).instances
    assert time.process_time() - start < 20
    assert [each.seconds for each in instances] == pytest.approx([5e-6] * count)


@cases
def test_numbers_as_profilers_write_them(text: str, value: float | None) -> None:
    assert number(text) == value


def test_a_trace_with_ranges_on_the_device(tmp_path: Path) -> None:
    path = file(tmp_path, "t.json", sample.DEVICE_TRACE)
    rows, said = import_counters(path, device="h200-sxm")
    assert said == [
        f"{path}: no bytes of memory; torch's profiler counts no bytes; profile with ncu or "
        "rocprofv3 for them"
    ]
    assert [(r["op"], r["measured_us"], r["kernels"], r["instances"]) for r in rows] == [
        ("softmax", "21", "2", "2")
    ]
    assert rows[0]["implementation"] == "profiler:softmax_a"


def test_a_trace_whose_ranges_are_on_the_host(tmp_path: Path) -> None:
    rows, _ = import_counters(file(tmp_path, "t.json", sample.HOST_TRACE), device="h200-sxm")
    assert [row["measured_us"] for row in rows] == ["77"]


def test_torch_profilers_own_trace(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "trace.json"
    x = torch.randn(64, 64)
    label = rowwise("softmax", 64, 64, "fp32").label()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for _ in range(3):
            with torch.profiler.record_function(label):
                torch.softmax(x, -1)
    profiler.export_chrome_trace(str(path))
    found = formats.contents(path).instances
    assert [each.label for each in found] == [label] * 3
    rows, _ = import_counters(path, device="cpu")
    assert float(rows[0]["measured_us"]) > 0
    assert rows[0]["instances"] == "3"


def test_traffic_errors_by_level_and_group() -> None:
    table = pd.DataFrame(
        {
            "op": ["gemm", "gemm", "softmax", "softmax"],
            "predicted_hbm_bytes": [110.0, 90.0, 100.0, None],
            "hbm_bytes_measured": ["100", "100", "100", "100"],
            "predicted_l2_bytes": [1.0, 1.0, 1.0, 1.0],
            "l2_bytes_measured": ["", "", "2", ""],
        }
    )
    report = traffic_report(table, ["op"])
    assert [tuple(line) for line in report[["level", "op", "n"]].to_numpy()] == [
        ("hbm", "gemm", 2), ("hbm", "softmax", 1), ("hbm", "all", 3), ("l2", "softmax", 1),
        ("l2", "all", 1),
    ]  # fmt: skip
    assert report["mape"].iloc[0] == pytest.approx(0.1)
    assert report["bias"].iloc[3] == pytest.approx(0.5)
    assert traffic_report(table[["op"]], ["op"]).empty


def test_the_documented_line_asks_for_what_is_read() -> None:
    text = (ROOT / "docs" / "counters.md").read_text()
    for metric in ncu.METRICS:
        assert metric in text
