"""Counter files: Nsight Compute's CSV in both forms, torch's traces, tables of cases; damaged."""

from __future__ import annotations

import csv
import io
import json

from commands import mishap, shown
from dice import DEVICES, Dice
from inputs import Input

LABELS = (
    "perfmodel|op=gemm|dtype=bf16|m=4096|n=4096|k=4096",
    "perfmodel|op=softmax|dtype=bf16|rows=4096|cols=4096",
    "perfmodel|op=attention|dtype=bf16|batch=16|heads_q=32|heads_kv=8|seq_q=1|seq_kv=8192|head_dim=128",
    "perfmodel|op=gemm", "perfmodel|", "perfmodel|op=foo|dtype=bf16|m=x", "perfmodel|m=1|m=2",
)  # fmt: skip
_METRICS = (
    ("dram__bytes_read.sum", "Mbyte"), ("dram__bytes_write.sum", "Mbyte"),
    ("gpu__time_duration.sum", "us"), ("lts__t_sectors_srcunit_tex.sum", "sector"),
    ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", ""),
    ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "%"),
)  # fmt: skip
_NUMBERS = (
    "1.50",
    "1,234.5",
    "0",
    "",
    "n/a",
    "-1",
    "1e308",
    "nan",
    "inf",
    "9" * 30,
    "1.234,5",
    "0x1",
)


def make(dice: Dice) -> Input:
    """A command that imports counters, or holds a profile against the model."""
    maker = dice.choice((_raw, _long, _trace, _trace, _operators))
    name, text = maker(dice)
    if dice.chance(0.35):
        text = dice.damaged(text)
    data = text.encode("utf-8", "surrogatepass")
    if dice.chance(0.15):
        data = dice.broken(data)
    files = {name: data}
    arguments = ["counters", "import", name, "--device", dice.choice((*DEVICES, "foo", "=x"))]
    if dice.chance(0.4):
        files["cases.csv"] = _cases(dice)
        arguments += ["--cases", dice.choice(("cases.csv", "none.csv", name))]
    if dice.chance(0.4):
        graph = ("--graph", dice.choice(("decoder-layer", "unfused-attention", "foo")))
        arguments = ["profile", *arguments[2:5], *(graph if dice.chance(0.3) else ())]
    arguments += shown(dice, files=False)
    if dice.chance(0.2):
        arguments += ["--output", dice.choice(("out.csv", "out.parquet", "out.xml"))]
    if dice.chance(0.03):
        arguments = mishap(dice, arguments)
    return Input("counters", tuple(arguments), files)


def _operators(dice: Dice) -> tuple[str, str]:
    """A trace of operators with shapes, and of kernels that some of them launched."""
    names = ("aten::mm", "aten::linear", "aten::add_", "aten::_softmax", "aten::view", "mine::op",
             "aten::_scaled_dot_product_flash_attention", "aten::native_layer_norm")  # fmt: skip
    odd = (0, 1, 64, -1, 2**62, 2**63, 1.5, None, "x", True)
    events = []
    for i in range(dice.choice((0, 1, 3, 8))):
        dims = [[dice.choice((64, 128, *odd)) for _ in range(dice.choice((0, 1, 2, 2, 4)))]
                for _ in range(dice.choice((0, 1, 2, 3)))]  # fmt: skip
        given = {"External id": dice.choice((i, *odd)), "Input Dims": dice.choice((dims, dims, 7)),
                 "Input type": ["c10::BFloat16"] * len(dims), "correlation": dice.choice((i, *odd)),
                 "Concrete Inputs": dice.choice((["", "-1", "True"], [], "x"))}  # fmt: skip
        events += [
            {"ph": "X", "cat": category, "name": dice.choice((*names, *odd)),
             "ts": dice.choice((i * 10, *odd)), "dur": dice.choice((5, *odd)),
             "pid": 1, "tid": dice.choice((1, 2)), "args": given}
            for category in ("cpu_op", "cuda_runtime", "kernel") if dice.chance(0.7)
        ]  # fmt: skip
    return "trace.json", json.dumps({"traceEvents": events})


def _launches(dice: Dice) -> list[tuple[str, str]]:
    """(kernel, range) of each launch."""
    kernels = (
        "matmul_kernel",
        "void cutlass::split<float, 3>(Params)",
        "combine",
        "::",
        "<>",
        "",
        " ",
    )
    ranges = [f"<default domain>:{{{label}}}:none" for label in LABELS]
    return [
        (dice.choice(kernels), dice.choice((*ranges, "", ranges[0])))
        for _ in range(dice.randrange(0, 5))
    ]


def _raw(dice: Dice) -> tuple[str, str]:
    head = [
        "ID",
        "Process Name",
        "thread Domain:Push/Pop_Range:PL_Type:Msg",
        "Kernel Name",
        "Device",
    ]
    metrics = dice.some(_METRICS, 0.8)
    rows = [[*head, *(name for name, _ in metrics)]]
    rows.append([*[""] * len(head), *(unit for _, unit in metrics)])
    for i, (kernel, where) in enumerate(_launches(dice)):
        values = [dice.choice(_NUMBERS) if dice.chance(0.3) else "12.5" for _ in metrics]
        rows.append([str(i), "python3", where, kernel, "0", *values])
    return "ncu.csv", _quoted(rows, dice)


def _long(dice: Dice) -> tuple[str, str]:
    rows = [["ID", "Kernel Name", "thread Domain:Push/Pop_Range:PL_Type:Msg", "Section Name",
             "Metric Name", "Metric Unit", "Metric Value"]]  # fmt: skip
    for i, (kernel, where) in enumerate(_launches(dice)):
        for name, unit in dice.some((*_METRICS, ("Duration", "usecond")), 0.7):
            value = dice.choice(_NUMBERS) if dice.chance(0.2) else "12.5"
            rows.append([str(i), kernel, where, "Speed Of Light", name, unit, value])
    return "ncu.csv", _quoted(rows, dice)


def _quoted(rows: list[list[str]], dice: Dice) -> str:
    if dice.chance(0.3):
        row = dice.choice(rows)
        row[dice.randrange(len(row))] = dice.hostile()
    if dice.chance(0.1):
        dice.choice(rows).pop()
    text = io.StringIO()
    text.write("==PROF== Connected to process 1\n")
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _trace(dice: Dice) -> tuple[str, str]:
    events: list[dict[str, object]] = []
    for i in range(dice.randrange(0, 4)):
        start, label = 100.0 * i, dice.choice(LABELS[:3] if dice.chance(0.9) else LABELS)
        marks = dice.choice(("gpu_user_annotation", "user_annotation"))
        base = {"ph": "X", "ts": start, "dur": 50, "pid": 1, "tid": 1}
        events.append({**base, "cat": marks, "name": label})
        link = {"args": {"correlation": i}}
        events.append({**base, "cat": "cuda_runtime", "name": "cudaLaunchKernel", **link})
        events.append({**base, "cat": "kernel", "name": "matmul_kernel", "ts": start + 1, **link})
    document: object = {"traceEvents": events, "deviceProperties": [{"name": "NVIDIA H100"}]}
    if dice.chance(0.1):
        document = events
    for _ in range(dice.choice((0, 1, 1, 2))):
        document = dice.document(document)
    if dice.chance(0.02):
        return "trace.json", '{"ph": ' + "[" * dice.choice((100, 100_000))
    return "trace.json", json.dumps(document)


def _cases(dice: Dice) -> bytes:
    header = ["op", "dtype", "m", "n", "k", "kernels", "implementation"]
    cells = ["gemm", "bf16", "512", "512", "512.0"]
    rows = [[*cells, dice.choice(("1", "", "2", "x")), "mine"] for _ in range(dice.randrange(0, 4))]
    return _quoted([header, *rows], dice).partition("\n")[2].encode("utf-8", "surrogatepass")
