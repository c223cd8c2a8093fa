"""Files as profilers write them, of a program whose problems and times are known.

Formats: Kineto's trace (categories and arguments as torch.profiler exports them), Nsight Systems'
SQLite (CUPTI_ACTIVITY_KIND_KERNEL, StringIds, NVTX_EVENTS; docs.nvidia.com/nsight-systems), Nsight
Compute's raw page, rocprofv3's kernel_trace.csv and rocpd database (tables end with the run's id;
rocm.docs.amd.com/projects/rocprofiler-sdk).
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfmodel.algorithms.problem import describe
from perfmodel.graph import load

KERNELS = {
    "nvidia": {
        "gemm": "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT",
        "attention": "void flash::compute_attn_ws<Flash_fwd_kernel_traits<128, 128, 176, 12, 2, "
        "false, 1, cutlass::bfloat16_t>>(cute::Params)",
        "rmsnorm": "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*, float, int, int)",
        "rotary": "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)",
        "kv-write": "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16>()",
        "pointwise": "void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add>(int)",
    },
    "amd": {
        "gemm": "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64_MI16x16x1_SN",
        "attention": "void ck_tile::kentry<256, 2, ck_tile::FmhaFwdKernel<ck_tile::Pipeline>>()",
        "rmsnorm": "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*, float, int, int)",
        "rotary": "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)",
        "kv-write": "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16>()",
        "pointwise": "void at::native::elementwise_kernel_manual_unroll<128, 8, add>(int)",
    },
}
GRAPH, SIZES = "decoder-layer", {"batch": 1, "seq": 4096}


@dataclass(frozen=True)
class Launch:
    """One launch of the program: what it computes, and when it ran (nanoseconds)."""

    kernel: str
    row: dict[str, Any]
    start: int
    duration: int


def program(layers: int = 2, maker: str = "nvidia", gap: int = 700) -> list[Launch]:
    """Layers of the graph, one after another; durations are numbers that tell nodes apart."""
    nodes = load(GRAPH).at(dict(SIZES), None).nodes
    found, now = [], 1_000_000
    for layer in range(layers):
        for i, node in enumerate(nodes):
            row = {"op": node.problem.operator, **describe(node.problem, 0)}
            spent = 100_000 + 1000 * i + layer
            found.append(Launch(KERNELS[maker][row["op"]], row, now, spent))
            now += spent + gap
    return found


def recorded(row: dict[str, Any]) -> tuple[str, list[list[int]], list[str]]:
    """The framework's operator of a problem: name, extents, arguments that are no tensors."""
    if row["op"] == "gemm":
        return "aten::mm", [[row["m"], row["k"]], [row["k"], row["n"]]], ["", ""]
    if row["op"] == "attention":
        queries = [row["batch"], row["heads_q"], row["seq_q"], row["head_dim"]]
        keys = [row["batch"], row["heads_kv"], row["seq_kv"], row["head_dim"]]
        given = ["", "", "", "0.", "True", "False", ""]
        return "aten::_scaled_dot_product_flash_attention", [queries, keys, keys], given
    if row["op"] == "rmsnorm":
        return "aten::rms_norm", [[row["rows"], row["cols"]], [], [row["cols"]], []], [""] * 4
    if row["op"] == "pointwise":
        shape = [row["rows"], row["cols"]]
        return f"aten::{row['variant']}", [shape] * row["inputs"], [""] * row["inputs"]
    shape = [row["tokens"], row["heads"], row["head_dim"]]
    return f"vllm::{row['op']}", [shape], [""]


def torch_trace(launches: list[Launch], path: Path, *, external: bool = True) -> Path:
    """Kineto's trace: operators, launches and kernels; without `external` ids on kernels."""
    events: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": 0}]
    for i, each in enumerate(launches, start=1):
        name, dims, given = recorded(each.row)
        ts = each.start / 1e3 - 500
        types = ["c10::BFloat16" if dim else "" for dim in dims]
        shapes = {"Input Dims": dims, "Input type": types, "Concrete Inputs": given}
        host = {"pid": 7, "tid": 8}
        events += [
            {"ph": "X", "cat": "cpu_op", "name": name, "ts": ts, "dur": 60, **host,
             "args": {"External id": i, **shapes}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": ts + 20, "dur": 5,
             **host, "args": {"External id": i, "correlation": 1000 + i}},
            {"ph": "X", "cat": "kernel", "name": each.kernel, "ts": each.start / 1e3,
             "dur": each.duration / 1e3, "pid": 0, "tid": 7,
             "args": {"correlation": 1000 + i, "grid": [132, 1, 1], "block": [384, 1, 1],
                      **({"External id": i} if external else {})}},
        ]  # fmt: skip
    text = json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@dataclass(frozen=True)
class Ran:
    """An operator as Kineto records it, with the kernel that it launched."""

    name: str
    dims: list[Any]
    types: list[str]
    given: list[str] = field(default_factory=list)
    kernel: str = "void at::native::vectorized_elementwise_kernel<4>(int)"
    us: float = 50.0
    strides: list[Any] = field(default_factory=list)
    said: dict[str, Any] = field(default_factory=dict)
    kernel_said: dict[str, Any] = field(default_factory=dict)


def operator_trace(ran: list[Ran], path: Path, *, kernels: bool = True) -> Path:
    """Kineto's trace of these operators, one kernel each; of a host alone without `kernels`."""
    events: list[dict[str, Any]] = []
    for i, each in enumerate(ran, 1):
        shapes = {"Input Dims": each.dims, "Input type": each.types}
        shapes |= {"Concrete Inputs": each.given} if each.given else {}
        shapes |= {"Input Strides": each.strides} if each.strides else {}
        ts = 1000.0 * i
        host = {"pid": 7, "tid": 8}
        events.append({"ph": "X", "cat": "cpu_op", "name": each.name, "ts": ts, "dur": 60, **host,
                       "args": {"External id": i, **shapes, **each.said}})  # fmt: skip
        if kernels:
            events.append({"ph": "X", "cat": "kernel", "name": each.kernel, "ts": ts + 100,
                           "dur": each.us, "pid": 0, "tid": 7,
                           "args": {"External id": i, **each.kernel_said}})  # fmt: skip
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def nsys_database(launches: list[Launch], path: Path, *, ranges: bool = True) -> Path:
    """Nsight Systems' export; `ranges` are those of emit_nvtx(record_shapes=True)."""
    names = {name: i for i, name in enumerate(dict.fromkeys(each.kernel for each in launches), 1)}
    with sqlite3.connect(path) as db:
        db.executescript(
            """CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
            CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER,
                globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,
                deviceId INTEGER, streamId INTEGER, correlationId INTEGER, demangledName INTEGER,
                shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER,
                blockY INTEGER, blockZ INTEGER);"""
        )
        if ranges:
            db.execute(
                "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, "
                "text TEXT, textId INTEGER, globalTid INTEGER)"
            )
        db.executemany("INSERT INTO StringIds VALUES (?, ?)", [(i, n) for n, i in names.items()])
        db.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100 80GB HBM3')")
        for i, each in enumerate(launches, 1):
            moment = each.start - 50_000
            db.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 5, ?, 0)",
                (moment, moment + 4000, i),
            )
            db.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,0,7,?,?,?,132,1,1,384,1,1)",
                (each.start, each.start + each.duration, i, names[each.kernel], names[each.kernel]),
            )
            if ranges:
                name, dims, _ = recorded(each.row)
                text = f"{name}, seq = {i}, op_id = {i}, sizes = {dims}"
                outer = (moment - 900, moment + 9000, 59, "step", None, 5)
                db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?)", outer)
                inner = (moment - 500, moment + 8000, 59, text, None, 5)
                db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?)", inner)
    return path


def ncu_csv(launches: list[Launch], path: Path) -> Path:
    """Nsight Compute's raw page."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(["ID", "Kernel Name", "Block Size", "Grid Size", "gpu__time_duration.sum"])
    writer.writerow(["", "", "", "", "us"])
    for i, each in enumerate(launches):
        writer.writerow(
            [i, each.kernel, "(384, 1, 1)", "(132, 1, 1)", f"{each.duration / 1e3:,.3f}"]
        )
    path.write_text("==PROF== Connected to process 4242\n" + text.getvalue())
    return path


_TRACE = (
    "Kind", "Agent_Id", "Queue_Id", "Stream_Id", "Thread_Id", "Dispatch_Id", "Kernel_Id",
    "Kernel_Name", "Correlation_Id", "Start_Timestamp", "End_Timestamp", "LDS_Block_Size",
    "Workgroup_Size_X", "Workgroup_Size_Y", "Workgroup_Size_Z", "Grid_Size_X", "Grid_Size_Y",
    "Grid_Size_Z",
)  # fmt: skip


def rocprof_csv(launches: list[Launch], path: Path) -> Path:
    """rocprofv3's kernel_trace.csv."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(_TRACE)
        for i, each in enumerate(launches, 1):
            end = each.start + each.duration
            sizes = (256, 1, 1, 65536, 1, 1)
            writer.writerow(["KERNEL_DISPATCH", "Agent 2", 1, 0, 70, i, i, each.kernel, i,
                             each.start, end, 0, *sizes])  # fmt: skip
    return path


def rocpd_database(launches: list[Launch], path: Path, run: str = "_0f3a") -> Path:
    """rocprofv3's database: tables of a run, with the names of kernels in a table of symbols."""
    names = {name: i for i, name in enumerate(dict.fromkeys(each.kernel for each in launches), 1)}
    with sqlite3.connect(path) as db:
        db.executescript(
            f"""CREATE TABLE rocpd_info_kernel_symbol{run} (id INTEGER PRIMARY KEY, guid TEXT,
                kernel_name TEXT, display_name TEXT);
            CREATE TABLE rocpd_kernel_dispatch{run} (id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER,
                pid INTEGER, kernel_id INTEGER, dispatch_id INTEGER, start BIGINT, "end" BIGINT,
                workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER,
                grid_size_x INTEGER, grid_size_y INTEGER, grid_size_z INTEGER);"""
        )
        symbols = [(i, name, f"{name}.kd") for name, i in names.items()]
        db.executemany(
            f"INSERT INTO rocpd_info_kernel_symbol{run} VALUES (?, '', ?2, ?2)",
            [(i, name) for i, name, _ in symbols],
        )
        for i, each in enumerate(launches, 1):
            cells = (i, names[each.kernel], i, each.start, each.start + each.duration)
            db.execute(
                f"INSERT INTO rocpd_kernel_dispatch{run} VALUES "
                "(?1, '', 1, 1, ?2, ?3, ?4, ?5, 256, 1, 1, 65536, 1, 1)",
                cells,
            )
    return path


FORMATS = {
    "torch": (torch_trace, "trace.json", "nvidia", True),
    "torch-gz": (torch_trace, "trace.json.gz", "nvidia", True),
    "nsys-ranges": (nsys_database, "report.sqlite", "nvidia", True),
    "nsys": (lambda x, p: nsys_database(x, p, ranges=False), "report.sqlite", "nvidia", False),
    "ncu": (ncu_csv, "ncu.csv", "nvidia", False),
    "rocprof": (rocprof_csv, "kernel_trace.csv", "amd", False),
    "rocpd": (rocpd_database, "results.db", "amd", False),
}
"""Writer, name of the file, maker of the device, whether shapes are recorded."""
