"""Measured-run tables for `compare` and `roofline --measured`: CSV, gzip, Parquet, all damaged."""

from __future__ import annotations

import csv
import gzip
import io
import json
from typing import Any

from commands import IMPLEMENTATIONS, VARIANTS, mishap, shown
from dice import DEVICES, TYPES, Dice
from inputs import Input

_SIZES = {
    "attention": ("batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "head_dim"),
    "gemm": ("m", "n", "k"),
    "softmax": ("rows", "cols"),
    "layernorm": ("rows", "cols"),
    "rmsnorm": ("rows", "cols"),
    "pointwise": ("rows", "cols"),
    "quantise": ("rows", "cols"),
}
_EXTRA = ("source", "harness", "includes", "flag", "phase", "reason", "note", "=cmd|' /C calc'!A0",
          "kernels", "hbm_bytes_measured", "predicted_us", "windowed", "decode")  # fmt: skip
Row = dict[str, Any]


def make(dice: Dice) -> Input:
    """A command that reads a table."""
    rows = [_row(dice) for _ in range(dice.choice((0, 1, 1, 2, 2, 5, 5)))]
    for _ in range(dice.choice((0, 1, 1, 2, 3))):
        _mishap(dice, rows)
    if dice.chance(0.3):
        name, data = "runs.parquet", _parquet(dice, rows)
    else:
        name, data = "runs.csv", _csv(dice, rows)
        if dice.chance(0.1):
            name, data = "runs.jsonl", _json(rows)
        elif dice.chance(0.2):
            name, data = "runs.csv.gz", gzip.compress(data)
    if dice.chance(0.2):
        data = dice.broken(data)
    piped = dice.chance(0.05)
    arguments = ["compare", "-" if piped else name, *_options(dice)]
    if dice.chance(0.02):
        arguments = ["roofline", "gemm", "-d", "h100-sxm", "--measured", name, "-o", "roof.svg"]
    if dice.chance(0.03):
        arguments = mishap(dice, arguments)
    return Input("tables", tuple(arguments), {name: data}, stdin=data if piped else b"")


def _options(dice: Dice) -> list[str]:
    found = shown(dice, files=False)
    for flag, words, share in (
        ("--by", ("op,device", "implementation", "note", "foo", "op,op", ",", "measured_us"), 0.4),
        ("--where", ("op=gemm", "device=h100-sxm", "note=x", "foo=1", "op", "flag="), 0.2),
        ("--max-error", ("20%", "0.2", "0", "500%", "x", "nan"), 0.1),
        ("--output", ("out.csv", "out.csv.gz", "out.csv", "out.parquet", "out.xml"), 0.15),
        ("--chart", ("scatter.svg", "scatter.xml"), 0.01),
        ("--map", ("note=source", "m=k", "measured_us=tflops", "x=y", "op", "m=measured_us"), 0.1),
        ("--set", ("harness=kernel", "dtype=bf16,batch=1", "m=x", "foo=1", "="), 0.1),
        ("--unit", ("ms", "ns", "weeks", ""), 0.1),
        ("--flops", ("full", "causal", "half"), 0.05),
        ("--template", ("gemm", "foo", "../x.yaml"), 0.01),
    ):
        if dice.chance(share):
            found += [flag, dice.choice(words)]
    return [*found, *dice.some(("--explain", "--include-flags"), 0.2)]


def _row(dice: Dice) -> Row:
    op = dice.choice(list(_SIZES))
    row: Row = {"device": dice.choice(DEVICES), "op": op, "dtype": dice.choice(TYPES)}
    row |= {name: 2 ** dice.randrange(0, 13) for name in _SIZES[op]}
    row["measured_us"] = round(10 ** dice.uniform(0, 6), 3)
    if op == "attention":
        row |= {
            "heads_kv": row["heads_q"],
            "head_dim": dice.choice((64, 128)),
            "causal": dice.chance(0.5),
        }
        if dice.chance(0.2):
            row["window"] = dice.choice((0, 128, 4096))
        if dice.chance(0.2):
            row["variant"] = dice.choice(("padding_mask", "dropout+keys_only", "foo"))
    if op == "pointwise":
        row["variant"] = dice.choice(VARIANTS)
    if dice.chance(0.5):
        row["implementation"] = dice.choice(IMPLEMENTATIONS)
    if dice.chance(0.3):
        row["direction"] = dice.choice(("fwd", "bwd", "fwdbwd", ""))
    if dice.chance(0.3):
        row["harness"] = dice.choice(("kernel", "cuda_graph", "paper", "foo"))
    if dice.chance(0.2):
        row["includes"] = dice.choice(("transpose", "quantise_activations", "kv_write", "foo", "+"))
    if dice.chance(0.2):
        row["flag"] = dice.choice(("noisy", "failed", "timer_floor", "foo"))
    if dice.chance(0.2):
        row[dice.choice(_EXTRA)] = dice.choice(("x", dice.hostile(), 1.5))
    return row


def _mishap(dice: Dice, rows: list[Row]) -> None:
    """One cell, or one column of all rows, is not what it was."""
    if not rows:
        return
    row = dice.choice(rows)
    name = dice.choice(list(row))
    if name in ("device", "op", "dtype", "measured_us") and dice.chance(0.7):
        name = dice.choice(("source", "implementation", "variant", "flag", "harness", "includes"))
    draw = dice.choice((0, 0, 1, 1, 3, 3, 2, 4))
    if draw == 0:
        row[name] = dice.hostile()
    elif draw == 1:
        row[name] = dice.choice((0, -1, 2**40, 2**41, 2**62, 2**63, 2**64 - 1, 1e308, 1e-308, 0.5,
                                 "nan", "inf", "", None, "1e400", "٣", True))  # fmt: skip
    elif draw == 2:
        for each in rows:
            each.pop(name, None)
    elif draw == 3:
        for each in rows:
            each[name] = dice.hostile()
    else:
        for each in rows:
            if name in each:
                other = (name.upper(), f" {name} ", "time_ms", "TFLOPS", "nheads", "Latency (s)")
                each[dice.choice((*_EXTRA, *other))] = each.pop(name)


def _csv(dice: Dice, rows: list[Row]) -> bytes:
    header = list(dict.fromkeys(name for row in rows for name in row)) or [
        "device",
        "op",
        "dtype",
        "measured_us",
    ]
    if dice.chance(0.05):
        header.append(dice.choice(header))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=dice.choice(("\n", "\n", "\r\n")),
                        delimiter=dice.choice("," * 18 + ";\t"))  # fmt: skip
    writer.writerow(header)
    for row in rows:
        cells = [row.get(name, "") for name in header]
        writer.writerow(["" if cell is None else cell for cell in cells])
    body = text.getvalue()
    if dice.chance(0.08):
        body = dice.damaged(body)
    return body.encode(dice.choice(("utf-8",) * 9 + ("utf-16",)), "surrogatepass")


def _json(rows: list[Row]) -> bytes:
    """An object a line."""
    return "".join(f"{json.dumps(row, default=str)}\n" for row in rows).encode("utf-8", "replace")


def _parquet(dice: Dice, rows: list[Row]) -> bytes:
    """Columns in all types that Parquet has, now and then another one than the format wants."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        columns[name] = _column(dice, values)
    if dice.chance(0.1):
        columns["extra"] = pa.array([[1]] * len(rows))
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def _column(dice: Dice, values: list[Any]) -> Any:
    import datetime
    import decimal

    import pyarrow as pa

    kinds: list[Any] = [
        lambda: pa.array(values),
        lambda: pa.array(["" if v is None else str(v) for v in values]).dictionary_encode(),
        lambda: pa.array([2**63 + i for i in range(len(values))], pa.uint64()),
        lambda: pa.array([[v] for v in values]),
        lambda: pa.array([{"a": 1} for _ in values]),
        lambda: pa.array([b"\xff\x00" for _ in values]),
        lambda: pa.array([datetime.datetime(2024, 1, 1) for _ in values]),
        lambda: pa.array([decimal.Decimal("1.50") for _ in values]),
        lambda: pa.nulls(len(values)),
        lambda: pa.array([1.5] * len(values), pa.float16()),
        lambda: pa.array([datetime.timedelta(1)] * len(values)),
    ]
    made = kinds[0] if dice.chance(0.9) else dice.choice(kinds)
    try:
        return made()
    except (pa.ArrowException, UnicodeError, OverflowError, TypeError):
        return pa.array([str(v).encode("utf-8", "replace").decode("utf-8") for v in values])
