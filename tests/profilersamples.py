"""Files as profilers write them, with two cases in them: a product and a decode step or a softmax.

Headers are those of public exports (see the readers); numbers are small enough to add up by hand.
"""

from __future__ import annotations

import json

from folders import TESTS

from perfmodel.cases import attention, gemm, rowwise

GEMM = gemm(4096, 4096, 4096)
SOFTMAX = rowwise("softmax", 4096, 4096)
DECODE = attention(16, 32, 8, 1, 8192, 128)


def sample(name: str) -> str:
    """A file of tests/profiles, with the names of the two cases in it."""
    text = (TESTS / "profiles" / f"{name}.csv").read_text(encoding="utf-8")
    return text.replace("{gemm}", GEMM.label()).replace("{decode}", DECODE.label())


# The raw page: a line of units under the header, thousands separators, units that differ by column,
# a case of two launches, a case that ran twice, and a launch that belongs to no case.
RAW = sample("raw")

LONG = sample("long")

# Blackwell's names of memory's bytes, without any other metric.
BLACKWELL = sample("blackwell")

# A copy, the two kernels of a decode step, a product; then another report, after an empty line.
NSYS_TRACE = sample("nsys-trace")

NSYS_KERNELS = sample("nsys-kernels")

# Two launches of 186.2 us and one of 46.55, as nsys wrote its sums and traces over the years.
NSYS_SUMS = {
    each: sample(f"nsys-sums-{each}")
    for each in ("ns", "us-commas", "ms", "gpukernsum", "bare", "grids")
}
NSYS_TRACES = {each: sample(f"nsys-traces-{each}") for each in ("ns", "us", "gputrace")}

# A kernel that ran in one run of the range only, and a range that is no case.
NSYS_RANGES = sample("nsys-ranges")

_COUNTERS = '"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size","Kernel_Id","Kernel_Name","Workgroup_Size","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count","Counter_Name","Counter_Value","Start_Timestamp","End_Timestamp"'  # noqa: E501
_DISPATCH = '{n},{n},"Agent 4",1,20,20,65536,{n},"{kernel}",256,2048,0,64,0,80,"{counter}",{value},{start},{end}'  # noqa: E501


def rocprof_counters(counter: str, *values: float, start: int = 1569078135380312) -> str:
    """A pass of counter_collection: softmax (two kernels), then a product, one counter."""
    kernels = ("softmax_max(float*)", "softmax_sum(float*)", "Cijk_Alik_Bljk_BBS")
    spent = (12_000, 9_500, 1_234_500)
    lines = [_COUNTERS]
    for n, (kernel, took, value) in enumerate(zip(kernels, spent, values, strict=True), start=1):
        begin = start + n * 2_000_000
        lines.append(
            _DISPATCH.format(
                n=n, kernel=kernel, counter=counter, value=f"{value:f}", start=begin,
                end=begin + took,
            )
        )  # fmt: skip
    return "\n".join(lines) + "\n"


ROCPROF_READ = rocprof_counters("FETCH_SIZE", 32768.0, 32768.0, 98304.0)
ROCPROF_WRITTEN = rocprof_counters("WRITE_SIZE", 16.0, 32768.0, 32768.0)

# Renamed after roctx ranges, in the order of neither start nor dispatch.
ROCPROF_TRACE = sample("rocprof-trace")

CASES = "op,dtype,rows,cols,m,n,k,kernels,kernel\nsoftmax,bf16,4096,4096,,,,2,\ngemm,bf16,,,4096,4096.0,4096,,\n"  # noqa: E501
DECODES = sample("decodes")


def span(name: str, category: str, ts: float, dur: float, **args: object) -> dict[str, object]:
    """A complete event of a trace."""
    return {"ph": "X", "cat": category, "name": name, "ts": ts, "dur": dur, "args": args}


def trace(*events: dict[str, object]) -> str:
    """A trace of these events."""
    return json.dumps({"deviceProperties": [{"name": "NVIDIA H200"}], "traceEvents": list(events)})


DEVICE_TRACE = trace(
    span(SOFTMAX.label(), "user_annotation", 0, 10),
    span(SOFTMAX.label(), "gpu_user_annotation", 100, 30),
    span("softmax_a(float*)", "kernel", 100, 12, correlation=1),
    span("softmax_b", "kernel", 115, 8, correlation=2),
    span("another", "kernel", 131, 50, correlation=3),
    span(SOFTMAX.label(), "gpu_user_annotation", 200, 30),
    span("softmax_a(float*)", "kernel", 200, 14, correlation=4),
    span("softmax_b", "kernel", 216, 8, correlation=5),
    {"ph": "M", "name": "process_name"},
)
HOST_TRACE = trace(
    span(GEMM.label(), "user_annotation", 10, 20),
    span("cudaLaunchKernel", "cuda_runtime", 12, 1, correlation=1),
    span("cudaLaunchKernel", "cuda_runtime", 40, 1, correlation=2),
    span("gemm", "kernel", 500, 77, correlation=1),
    span("other", "kernel", 600, 5, correlation=2),
)

# Every format that is read, and what gives its cases their names.
SAMPLES: dict[str, tuple[str, str | None]] = {
    "ncu-raw": (RAW, None),
    "ncu-long": (LONG, CASES.replace(",2,", ",1,")),
    "ncu-blackwell": (BLACKWELL, None),
    "nsys-trace": (NSYS_TRACE, DECODES),
    "nsys-kernels": (NSYS_KERNELS, DECODES),
    "nsys-ranges": (NSYS_RANGES, None),
    "rocprof-counters": (ROCPROF_READ, CASES),
    "rocprof-trace": (ROCPROF_TRACE, None),
    "trace-device": (DEVICE_TRACE, None),
    "trace-host": (HOST_TRACE, None),
}
