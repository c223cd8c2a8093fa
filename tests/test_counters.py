"""Counters: what profilers write becomes measured runs, in bytes and microseconds."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from perfmodel.errors import TableError
from perfmodel.evidence import ncu, traces
from perfmodel.evidence.cases import attention, gemm, rowwise
from perfmodel.evidence.counters import (
    NCU_METRICS,
    import_counters,
    traffic_report,
    write,
)
from perfmodel.evidence.records import read_table

GEMM = gemm(4096, 4096, 4096)
SOFTMAX = rowwise("softmax", 4096, 4096)
DECODE = attention(16, 32, 8, 1, 8192, 128)

# The raw page: a line of units under the header, thousands separators, units that differ by column,
# a case of two launches, a case that ran twice, and a launch that belongs to no case.
RAW = """==PROF== Connected to process 4242 (/usr/bin/python3)
==PROF== Profiling "matmul" - 0: 0%....50%....100% - 8 passes
the program's own line, with "Kernel Name" in it
==PROF== Disconnected from process 4242
"ID","Process ID","Process Name","Host Name","thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum","l1tex__data_pipe_lsu_wavefronts_mem_shared.sum","lts__t_sectors_srcunit_tex.sum","sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active","sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active","sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
"","","","","","","","","","","","","Mbyte","Mbyte","us","","sector","%","%","%"
"0","4242","python3","host","","fill(int)","1","7","(128, 1, 1)","(1, 1, 1)","0","9.0","0.00","1.00","2.00","0","1,000","0","0","0"
"1","4242","python3","host","<default domain>:{gemm}:none:none:none:none:none:none","matmul_kernel","1","7","(256, 1, 1)","(1,024, 1, 1)","0","9.0","101.50","32.50","1,234.50","5,000,000","80,000,000","1.5","2.5","90.0"
"2","4242","python3","host","<default domain>:{decode}:none","void cutlass::split<float, 3>(Params)","1","7","(128, 1, 1)","(512, 1, 1)","0","9.0","500.00","2.00","120.00","1,000","20,000,000","30","10","40"
"3","4242","python3","host","<default domain>:{decode}:none","combine","1","7","(128, 1, 1)","(64, 1, 1)","0","9.0","2.00","1.00","40.00","10","200,000","10","50","0"
"4","4242","python3","host","<default domain>:{decode}:none","void cutlass::split<float, 3>(Params)","1","7","(128, 1, 1)","(512, 1, 1)","0","9.0","510.00","2.00","124.00","1,000","20,000,000","30","10","40"
"5","4242","python3","host","<default domain>:{decode}:none","combine","1","7","(128, 1, 1)","(64, 1, 1)","0","9.0","2.00","1.00","40.00","10","200,000","10","50","0"
""".replace("{gemm}", GEMM.label()).replace("{decode}", DECODE.label())  # fmt: skip # noqa: E501

LONG = """"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"
"0","1","python3","host","softmax_row","1","7","(128, 1, 1)","(4096, 1, 1)","0","9.0","Command line profiler metrics","dram__bytes_read.sum","Mbyte","33.55"
"0","1","python3","host","softmax_row","1","7","(128, 1, 1)","(4096, 1, 1)","0","9.0","Command line profiler metrics","dram__bytes_write.sum","Kbyte","31,000"
"0","1","python3","host","softmax_row","1","7","(128, 1, 1)","(4096, 1, 1)","0","9.0","GPU Speed Of Light Throughput","Duration","usecond","21.50"
"1","1","python3","host","matmul_kernel","1","7","(256, 1, 1)","(1024, 1, 1)","0","9.0","Command line profiler metrics","dram__bytes_read.sum","byte","101,500,000"
"1","1","python3","host","matmul_kernel","1","7","(256, 1, 1)","(1024, 1, 1)","0","9.0","Command line profiler metrics","dram__bytes_write.sum","Mbyte","32.5"
"1","1","python3","host","matmul_kernel","1","7","(256, 1, 1)","(1024, 1, 1)","0","9.0","Command line profiler metrics","gpu__time_duration.sum","msecond","1.2345"
"""  # noqa: E501


def file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_the_raw_page_with_ranges(tmp_path: Path) -> None:
    path = file(tmp_path, "ncu.csv", RAW)
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
    rows, _ = import_counters(file(tmp_path, "ncu.csv", RAW), device="h200-sxm")
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
    rows, said = import_counters(file(tmp_path, "l.csv", LONG), device="h100-sxm", cases=cases)
    assert said == []
    assert [row["implementation"] for row in rows] == ["mine", "ncu:matmul_kernel"]
    assert [row["measured_us"] for row in rows] == ["21.5", "1234.5"]
    assert float(rows[0]["hbm_bytes_measured"]) == pytest.approx(64.55e6)
    assert rows[0]["l2_bytes_measured"] == ""
    assert rows[1]["n"] == "4096"


def test_several_launches_a_case(tmp_path: Path) -> None:
    cases = file(tmp_path, "c.csv", "op,dtype,m,n,k,kernels\ngemm,bf16,4096,4096,4096,2\n")
    rows, _ = import_counters(file(tmp_path, "l.csv", LONG), device="h100-sxm", cases=cases)
    assert [row["measured_us"] for row in rows] == ["1256"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("op,m\ngemm,1\n", r"not Nsight Compute's CSV"),
        ("", r"not Nsight Compute's CSV"),
        ('"ID","Kernel Name","Device","dram__bytes_read.sum"\n', "the header stands alone"),
        (
            '"ID","Kernel Name","Device","dram__bytes_read.sum"\n"","","","byte"\n',
            "no kernel was profiled",
        ),
        (
            '"ID","Kernel Name","Device","dram__bytes_read.sum"\n"","","","byte"\n"0","k",0,"1"\n',
            "none of 1 launches ran in a range named after a case",
        ),
        ('{"ph": 1', "not a sound trace"),
        ('{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 2}]}',
         "no range is named after a case"),
        ('{"schemaVersion": 1, "ph": 2}', "no traceEvents"),
    ],
)  # fmt: skip
def test_another_format_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(TableError, match=said) as caught:
        import_counters(file(tmp_path, "x.csv", text), device="h200-sxm")
    assert "\n" not in str(caught.value)


def test_other_troubles_are_one_line_too(tmp_path: Path) -> None:
    report = tmp_path / "report.ncu-rep"
    report.write_bytes(b"NVR\x00\xff\xfe\x00")
    with pytest.raises(TableError, match="binary data; give Nsight Compute's CSV"):
        import_counters(report, device="h200-sxm")
    with pytest.raises(TableError, match="cannot be read"):
        import_counters(tmp_path / "nothing.csv", device="h200-sxm")
    path = file(tmp_path, "l.csv", LONG)
    for table, said in (
        ("op,dtype\ngemm,bf16\n", "asks for 1 launches, .* has 2"),
        ("op,dtype,kernels\ngemm,bf16,two\n", "kernels is 'two'"),
        ("m,n,k\n1,2,3\n", "not a table of cases"),
        ("op,dtype,m\ngemm,bf16,x\ngemm,bf16,1\n", "not a whole number"),
    ):
        with pytest.raises(TableError, match=said):
            import_counters(path, device="d", cases=file(tmp_path, "c.csv", table))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234.50", 1234.5), ("1234.5", 1234.5), ("12,345,678", 12345678.0), ("9,00", 9.0),
        ("1.234,5", 1234.5), ("0", 0.0), ("1.5e+03", 1500.0), ("1'234'567", 1234567.0),
        ("-1,000", -1000.0), ("n/a", None), ("", None),
    ],
)  # fmt: skip
def test_numbers_as_profilers_write_them(text: str, value: float | None) -> None:
    assert ncu.number(text) == value


def trace(*events: dict[str, object]) -> str:
    return json.dumps({"deviceProperties": [{"name": "NVIDIA H200"}], "traceEvents": list(events)})


def span(name: str, category: str, ts: float, dur: float, **args: object) -> dict[str, object]:
    return {"ph": "X", "cat": category, "name": name, "ts": ts, "dur": dur, "args": args}


def test_a_trace_with_ranges_on_the_device(tmp_path: Path) -> None:
    label = SOFTMAX.label()
    text = trace(
        span(label, "user_annotation", 0, 10),
        span(label, "gpu_user_annotation", 100, 30),
        span("softmax_a(float*)", "kernel", 100, 12, correlation=1),
        span("softmax_b", "kernel", 115, 8, correlation=2),
        span("another", "kernel", 131, 50, correlation=3),
        span(label, "gpu_user_annotation", 200, 30),
        span("softmax_a(float*)", "kernel", 200, 14, correlation=4),
        span("softmax_b", "kernel", 216, 8, correlation=5),
        {"ph": "M", "name": "process_name"},
    )
    rows, said = import_counters(file(tmp_path, "t.json", text), device="h200-sxm")
    assert said == []
    assert [(r["op"], r["measured_us"], r["kernels"], r["instances"]) for r in rows] == [
        ("softmax", "21", "2", "2")
    ]
    assert rows[0]["implementation"] == "profiler:softmax_a"


def test_a_trace_whose_ranges_are_on_the_host(tmp_path: Path) -> None:
    text = trace(
        span(GEMM.label(), "user_annotation", 10, 20),
        span("cudaLaunchKernel", "cuda_runtime", 12, 1, correlation=1),
        span("cudaLaunchKernel", "cuda_runtime", 40, 1, correlation=2),
        span("gemm", "kernel", 500, 77, correlation=1),
        span("other", "kernel", 600, 5, correlation=2),
    )
    rows, _ = import_counters(file(tmp_path, "t.json", text), device="h200-sxm")
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
    found = traces.ranges(path.read_text(), "trace")
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
    text = (Path(__file__).parent.parent / "docs" / "counters.md").read_text()
    for metric in NCU_METRICS:
        assert metric in text
