"""Files as profilers write them, with two cases in them: a product and a decode step or a softmax.

Headers are those of public exports (see the readers); numbers are small enough to add up by hand.
"""

from __future__ import annotations

import json

from perfmodel.cases import attention, gemm, rowwise

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

# Blackwell's names of memory's bytes, without any other metric.
BLACKWELL = """"ID","Kernel Name","Device","CC","thread Domain:Push/Pop_Range","dram__bytes_op_read.sum","dram__bytes_op_write.sum","gpu__time_duration.sum"
"","","","","","Mbyte","Mbyte","us"
"0","matmul_kernel","0","10.0","<default domain>:{gemm}:none","101.50","32.50","900.00"
""".replace("{gemm}", GEMM.label())  # fmt: skip # noqa: E501

# A copy, the two kernels of a decode step, a product; then another report, after an empty line.
NSYS_TRACE = """NOTICE: Existing SQLite export found: report.sqlite
Processing [report.sqlite] with [cuda_gpu_trace.py]...
Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name
100,5000,117,,,,,,,,,,8.389,1677722.4,Pageable,Device,NVIDIA H200 (0),1,,7,[CUDA memcpy Host-to-Device]
6000,120000,121,512,1,1,128,1,1,168,0.001,0.071,,,,,NVIDIA H200 (0),1,,7,"void cutlass::split<float, 3>(Params)"
127000,40000,122,64,1,1,128,1,1,32,0.000,0.000,,,,,NVIDIA H200 (0),1,,7,combine
168000,1234500,125,1024,1,1,256,1,1,255,0.000,0.197,,,,,NVIDIA H200 (0),1,,7,matmul_kernel

Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Operation
100.0,5000,1,5000.0,5000.0,5000,5000,0.0,[CUDA memcpy Host-to-Device]
"""  # noqa: E501

NSYS_KERNELS = """Time (%),Total Time (us),Instances,Avg (us),Med (us),Min (us),Max (us),StdDev (us),Name
88.0,12345.0,10,1234.5,1200.0,1190.0,1500.0,90.0,matmul_kernel
9.0,1240.0,10,124.0,120.0,119.0,160.0,12.0,"void cutlass::split<float, 3>(Params)"
3.0,400.0,10,40.0,40.0,40.0,40.0,0.0,combine
"""  # noqa: E501

# Two launches of 186.2 us and one of 46.55, as nsys wrote its sums and traces over the years.
NSYS_SUMS: dict[str, str] = {
    "ns": """Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
88.9,372400,2,186200.0,186000.0,186000,186400,200.0,nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT
11.1,46550,1,46550.0,46550.0,46550,46550,0.0,vectorized_elementwise_kernel
""",
    "us-commas": """Time (%),Total Time (us),Instances,Avg (us),Med (us),Min (us),Max (us),StdDev (us),Name
88.9,"372.4",2,"186.2","186.0","186.0","186.4","0.2",nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT
11.1,46.55,1,46.55,46.55,46.55,46.55,0.0,vectorized_elementwise_kernel
""",  # noqa: E501
    "ms": """Processing [report.sqlite] with [cuda_gpu_kern_sum.py]...
Time (%),Total Time (ms),Instances,Avg (ms),Med (ms),Min (ms),Max (ms),StdDev (ms),Name
88.9,0.3724,2,0.1862,0.186,0.186,0.1864,0.0,nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT
11.1,0.04655,1,0.04655,0.04655,0.04655,0.04655,0.0,vectorized_elementwise_kernel
""",
    "gpukernsum": """Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,Name
88.9,"372,400",2,"186,200.0","186,000","186,400",nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT
11.1,"46,550",1,"46,550.0","46,550","46,550",vectorized_elementwise_kernel
""",
    "bare": """Time(%),Total Time,Instances,Average,Minimum,Maximum,Name
88.9,372400,2,186200.0,186000,186400,nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT
11.1,46550,1,46550.0,46550,46550,vectorized_elementwise_kernel
""",
    "grids": """Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),GridXYZ,BlockXYZ,Name
88.9,372400,2,186200.0,186000.0,186000,186400,200.0, 132    1    1, 384    1    1,nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT
11.1,46550,1,46550.0,46550.0,46550,46550,0.0,4096    1    1, 128    1    1,vectorized_elementwise_kernel
""",  # noqa: E501
}  # fmt: skip
NSYS_TRACES: dict[str, str] = {
    "ns": """Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,Device,Ctx,Strm,Name
1000,186000,121,132,1,1,384,1,1,168,NVIDIA H100 80GB HBM3 (0),1,7,nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT
190000,186400,122,132,1,1,384,1,1,168,NVIDIA H100 80GB HBM3 (0),1,7,nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT
380000,46550,123,4096,1,1,128,1,1,32,NVIDIA H100 80GB HBM3 (0),1,7,vectorized_elementwise_kernel
""",  # noqa: E501
    "us": """Start (us),Duration (us),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Name
1,186,121,132,1,1,384,1,1,nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT
190,186.4,122,132,1,1,384,1,1,nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT
380,46.55,123,4096,1,1,128,1,1,vectorized_elementwise_kernel
""",
    "gputrace": """Start(nsec),Duration(nsec),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Name
"1,000","186,000",121,132,1,1,384,1,1,nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT
"190,000","186,400",122,132,1,1,384,1,1,nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT
"380,000","46,550",123,4096,1,1,128,1,1,vectorized_elementwise_kernel
""",
}  # fmt: skip

# A kernel that ran in one run of the range only, and a range that is no case.
NSYS_RANGES = """NVTX Range,Style,PID,TID,NVTX Inst,Kern Inst,Total Time (ns),Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Kernel Name
:{decode},PushPop,1,1,4,4,488000,122000.0,120000.0,119000,129000,4000.0,"void cutlass::split<float, 3>(Params)"
:{decode},PushPop,1,1,4,8,320000,40000.0,40000.0,40000,40000,0.0,combine
:{decode},PushPop,1,1,1,1,10000,10000.0,10000.0,10000,10000,0.0,prepare
:{gemm},PushPop,1,1,3,3,3703500,1234500.0,1234500.0,1234500,1234500,0.0,matmul_kernel
:warm-up,PushPop,1,1,1,9,99000,11000.0,11000.0,11000,11000,0.0,fill
,,,,,29,145361,5012.4,5000.0,4000,9000,10.0,fill
""".replace("{decode}", DECODE.label()).replace("{gemm}", GEMM.label())  # noqa: E501

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
ROCPROF_TRACE = """"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"
"KERNEL_DISPATCH","Agent 2",1,0,70,2,16,"{gemm}",119670,172352210061004,172352211295504,0,0,4,4,16,256,1,1,65536,1,1
"KERNEL_DISPATCH","Agent 2",1,0,70,1,33,"__amd_rocclr_fillBufferAligned",119662,172352210005122,172352210008687,0,0,12,4,48,256,1,1,256,1,1
"KERNEL_DISPATCH","Agent 2",1,0,70,3,16,"{gemm}",119672,172352212061004,172352213295506,0,0,4,4,16,256,1,1,65536,1,1
""".replace("{gemm}", GEMM.label())  # noqa: E501

CASES = "op,dtype,rows,cols,m,n,k,kernels,kernel\nsoftmax,bf16,4096,4096,,,,2,\ngemm,bf16,,,4096,4096.0,4096,,\n"  # noqa: E501
DECODES = (
    "op,dtype,phase,batch,heads_q,heads_kv,seq_q,seq_kv,head_dim,m,n,k,kernels,kernel\n"
    "attention,bf16,decode,16,32,8,1,8192,128,,,,2,split<float; combine\n"
    "gemm,bf16,,,,,,,,4096,4096,4096,1,matmul_kernel\n"
)


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
