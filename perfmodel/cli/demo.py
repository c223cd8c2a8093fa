"""`perfmodel demo`: standard against tiled attention, against published runs, with charts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from perfmodel.algorithms import Attention
from perfmodel.cli.build import command
from perfmodel.cli.output import Shown, say
from perfmodel.errors import OutputError
from perfmodel.fieldoption import FieldOption
from perfmodel.hardware import Device, load
from perfmodel.predict import predict_arrays
from perfmodel.prediction import Predictions
from perfmodel.render import Report
from perfmodel.render.report import Column, Row, binary, micros, quantity, ratio, text

if TYPE_CHECKING:
    import pandas as pd

_RAN = {
    "a100-sxm4-80gb": {"standard": "torch", "tiled": "flash2"},
    "h100-sxm": {"standard": "torch", "tiled": "flash3"},
    "b200": {},
}
"""The devices, and the published kernels of each schedule on them in this setting."""
SCHEDULES = ("standard", "tiled")
LENGTHS = 2 ** np.arange(9, 17)  # 512 to 64k
CHARTED = (1024, 8192)  # lengths on the rooflines
# The setting of the FlashAttention-2 and -3 papers: 16k tokens, hidden size 2048, heads of 128.
TOKENS, HEADS, HEAD_DIM = 16384, 16, 128
BATCH = np.maximum(TOKENS // LENGTHS, 1)
"""Sequences in a batch: enough for `TOKENS` tokens, at least one."""
_TYPE = "fp16"


@dataclass(frozen=True)
class _Run:
    """Both schedules on one device over `LENGTHS`, and the published runs."""

    device: Device
    answers: dict[str, Predictions]
    published: dict[str, Any]


def demo(
    output_dir: Annotated[
        str, FieldOption(metavar="FOLDER", help="Folder for the charts.")
    ] = "build/demo",
) -> None:
    """Predict standard against tiled attention on A100, H100 and B200 over sequence lengths.

    Prints FLOPs, bytes per level, intensity, limiter, time, speed-up and memory; compares with
    published FlashAttention runs; draws rooflines, a scatter chart and a speed-up chart.

    \b
    perfmodel demo
    perfmodel demo --output-dir charts
    """
    from perfmodel.render import errors
    from perfmodel.render.chart import save
    from perfmodel.render.scatter import scatter_chart
    from perfmodel.table.records import published
    from perfmodel.validation import judging
    from perfmodel.validation.compare import predict_table

    folder = Path(output_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(f"cannot make the folder {folder}: {reason}; choose another") from None
    compared = predict_table(published())
    runs = [_run(load(name), compared) for name in _RAN]
    Shown().emit(_table(runs))
    groups = ["device", "implementation", "direction"]
    title = "\nAgainst runs published in the FlashAttention papers (1, 2 and 3)"
    Shown().emit(errors.report(judging.report(compared, groups), groups, title))
    charts = {**_charts(runs), "scatter": scatter_chart(compared, "implementation")}
    for name, chart in sorted(charts.items()):
        save(chart, folder / f"{name}.svg")
        say(f"wrote {folder / name}.svg")


def _run(device: Device, compared: pd.DataFrame) -> _Run:
    heads, dim = np.full_like(LENGTHS, HEADS), np.full_like(LENGTHS, HEAD_DIM)
    problem = Attention(BATCH, heads, heads, LENGTHS, LENGTHS, dim, dtype=_TYPE)
    answers = {name: predict_arrays(problem, device, schedule=name) for name in SCHEDULES}
    forward = compared[
        (compared["device"] == device.slug)
        & (compared["direction"] == "fwd")
        & (compared["head_dim"] == HEAD_DIM)
        & ~compared["causal"].astype(bool)
    ].sort_values("seq_q")
    return _Run(
        device,
        answers,
        {s: forward[forward["implementation"] == k] for s, k in _RAN[device.slug].items()},
    )


def _table(runs: list[_Run]) -> Report:
    """Standard and tiled at each length; the tiled row has the speed-up."""
    rows: list[Row] = []
    for run in runs:
        for i in range(len(LENGTHS)):
            standard, tiled = (run.answers[name].one(i) for name in SCHEDULES)
            speed_up = standard.seconds / tiled.seconds
            rows += [dict(standard.as_dict()), {**tiled.as_dict(), "speed_up": speed_up}]
    title = (
        f"Attention forward, {HEADS} heads of {HEAD_DIM}, {_TYPE}, no mask; "
        f"batches of {TOKENS} tokens, or of one longer sequence"
    )
    notes = ["* needs more memory than the device has: it could not run"]
    return Report("predictions", rows, _COLUMNS, title, notes=notes)


def _traffic(header: str, level: str, rank: int) -> Column:
    return Column(header, lambda row: row["bytes"][level], quantity("B"), rank=rank)


def _memory(row: Row) -> str:
    return binary(row["footprint_bytes"]) + ("" if row["fits"] else "*")


_COLUMNS = (
    text("device", "device"),
    Column("batch", lambda row: row["problem"]["batch"], str, rank=5),
    Column("N", lambda row: row["problem"]["seq_q"], str),
    text("schedule", "schedule"),
    Column("matrix FLOP", lambda row: row["flops"]["matrix"], quantity("FLOP"), rank=6),
    _traffic("HBM", "hbm", 2),
    _traffic("L2", "l2", 7),
    _traffic("shared", "shared", 8),
    Column("FLOP/B", lambda row: row["arithmetic_intensity"]["hbm"], ratio, rank=4),
    text("limiter", "limiter"),
    Column("time", "time_us", micros),
    Column("speed-up", "speed_up", "{:.1f}x".format, rank=1),
    Column("memory", _memory, rank=3, style=lambda row: "" if row["fits"] else "red"),
)


def _charts(runs: list[_Run]) -> dict[str, Any]:
    """Rooflines with kernels at two lengths, and both schedules over the lengths."""
    from perfmodel.render.roofline import roofline_chart
    from perfmodel.render.roofs import Kernel, roofs
    from perfmodel.render.sequence import Sweep, sequence_chart

    kernels, sweeps = [], []
    for run in runs:
        measured = []
        for schedule, rows in run.published.items():
            times = (rows["measured_us"] / rows["batch"]).to_numpy(float) * 1e-6
            name, lengths = str(rows["implementation"].iloc[0]), rows["seq_q"].to_numpy(float)
            measured.append((schedule, name, lengths, times))
        standard, tiled = (run.answers[name] for name in SCHEDULES)
        sweeps.append(
            Sweep(
                run.device.slug,
                LENGTHS,
                standard.seconds / BATCH,
                tiled.seconds / BATCH,
                standard.footprint_bytes / BATCH,
                tiled.footprint_bytes / BATCH,
                run.device.memory_bytes,
                tuple(measured),
            )
        )
        for length in CHARTED:
            for schedule, answer in run.answers.items():
                prediction = answer.one(int(np.flatnonzero(length == LENGTHS)[0]))
                fields = {"dtype": _TYPE, "at": str(length), "of": "N"}
                kernel = Kernel.of_prediction(prediction, schedule, **fields)
                kernels.append(kernel)
                ran = run.published.get(schedule)
                rows = [] if ran is None else ran[ran["seq_q"] == length].to_dict("records")
                for row in rows:
                    rate = prediction.work / (row["measured_us"] * 1e-6)
                    kernels.append(kernel.ran(rate, row["implementation"]))
    note = "Measured: FlashAttention-2 figure 5 (A100), FlashAttention-3 figure 5 (H100)."
    case = f"attention {_TYPE}, {HEADS} heads of {HEAD_DIM}, batches of {TOKENS:,} tokens"
    lines = [roofs(run.device, [_TYPE]) for run in runs]
    return {
        "roofline": roofline_chart(lines, kernels, title=case, note=note),
        "standard-vs-tiled": sequence_chart(sweeps, title=case, note=note),
    }


app = command(demo)
