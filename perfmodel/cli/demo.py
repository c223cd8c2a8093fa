"""`perfmodel demo`: standard against tiled attention, against published runs, with charts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from perfmodel.algorithms import Attention
from perfmodel.cli.build import command
from perfmodel.cli.output import emit, say
from perfmodel.errors import OutputError
from perfmodel.fieldoption import FieldOption
from perfmodel.hardware import Device, load
from perfmodel.predict import predict_arrays
from perfmodel.prediction import Predictions
from perfmodel.render import Column, Report
from perfmodel.render.report import Row, binary, micros, quantity, ratio, text

if TYPE_CHECKING:
    import pandas as pd

    from perfmodel.render.roofs import Kernel


DEVICES = ("a100-sxm4-80gb", "h100-sxm", "b200")
LENGTHS = 2 ** np.arange(9, 17)  # 512 to 64k
CHARTED = (1024, 8192)  # lengths on the rooflines
# The setting of the FlashAttention-2 and -3 papers: 16k tokens, hidden size 2048, heads of 128.
TOKENS, HEADS, HEAD_DIM = 16384, 16, 128
_TYPE = "fp16"


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
    from perfmodel.evidence.records.records import published
    from perfmodel.validation.compare import predict_table
    from perfmodel.validation.judging import report

    folder = _folder(output_dir)
    runs = [_run(load(name)) for name in DEVICES]
    emit(_table(runs), None, None)
    compared = predict_table(published())
    summary = report(compared, ["device", "implementation", "direction"])
    emit(_errors(summary), None, None)
    for path in _charts(runs, compared, folder):
        say(f"wrote {path}")


@dataclass(frozen=True)
class _Run:
    """Both schedules on one device over `LENGTHS`."""

    device: Device
    standard: Predictions
    tiled: Predictions


def _batch() -> np.ndarray:
    """Sequences in a batch: enough for `TOKENS` tokens, at least one."""
    return np.maximum(TOKENS // LENGTHS, 1)


def _run(device: Device) -> _Run:
    batch = _batch()
    heads, dim = np.full_like(LENGTHS, HEADS), np.full_like(LENGTHS, HEAD_DIM)
    problem = Attention(batch, heads, heads, LENGTHS, LENGTHS, dim, dtype=_TYPE)
    standard, tiled = (predict_arrays(problem, device, schedule=s) for s in ("standard", "tiled"))
    return _Run(device, standard, tiled)


def _folder(path: str) -> Path:
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(f"cannot make the folder {path}: {reason}; choose another") from None
    return folder


def _table(runs: Iterable[_Run]) -> Report:
    title = (
        f"Attention forward, {HEADS} heads of {HEAD_DIM}, {_TYPE}, no mask; "
        f"batches of {TOKENS} tokens, or of one longer sequence"
    )
    rows = [row for run in runs for i in range(len(LENGTHS)) for row in _rows(run, i)]
    notes = ["* needs more memory than the device has: it could not run"]
    return Report("predictions", rows, _COLUMNS, title, notes=notes)


def _rows(run: _Run, i: int) -> list[Row]:
    """Standard and tiled at one length; the tiled row has the speed-up."""
    standard, tiled = run.standard.one(i), run.tiled.one(i)
    rows: list[dict[str, Any]] = [dict(p.as_dict()) for p in (standard, tiled)]
    rows[1]["speed_up"] = standard.seconds / tiled.seconds
    return [*rows]


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
    Column("time", lambda row: row["time_us"], micros),
    Column("speed-up", lambda row: row.get("speed_up"), lambda value: f"{value:.1f}x", rank=1),
    Column("memory", _memory, rank=3, style=lambda row: "" if row["fits"] else "red"),
)


def _errors(summary: pd.DataFrame) -> Report:
    from perfmodel.cli.compare import COLUMNS
    from perfmodel.validation.judging import plain_lines

    columns = [text(name, name) for name in ("device", "implementation", "direction")]
    title = "\nAgainst runs published in the FlashAttention papers (1, 2 and 3)"
    return Report("report", plain_lines(summary), [*columns, *COLUMNS], title)


def _charts(runs: list[_Run], compared: pd.DataFrame, folder: Path) -> list[Path]:
    from perfmodel.render.chart import save
    from perfmodel.render.roofline import roofline_chart
    from perfmodel.render.roofs import roofs
    from perfmodel.render.scatter import scatter_chart
    from perfmodel.render.sequence import sequence_chart

    kernels = [kernel for run in runs for kernel in _kernels(run, compared)]
    devices = [roofs(run.device, [_TYPE]) for run in runs]
    note = "Measured: FlashAttention-2 figure 5 (A100), FlashAttention-3 figure 5 (H100)."
    case = f"attention {_TYPE}, {HEADS} heads of {HEAD_DIM}, batches of {TOKENS:,} tokens"
    charts = {
        "roofline": roofline_chart(devices, kernels, title=case, note=note),
        "scatter": scatter_chart(compared, "implementation"),
        "standard-vs-tiled": sequence_chart(
            [_sweep(run, compared) for run in runs], title=case, note=note
        ),
    }
    paths = [folder / f"{name}.svg" for name in charts]
    for path, chart in zip(paths, charts.values(), strict=True):
        save(chart, path)
    return paths


# The published kernels of each schedule in this setting.
_RAN = {
    "a100-sxm4-80gb": {"standard": "torch", "tiled": "flash2"},
    "h100-sxm": {"standard": "torch", "tiled": "flash3"},
}


def _published(run: _Run, compared: pd.DataFrame, schedule: str) -> pd.DataFrame:
    """Published forward runs of one schedule in the setting of this demo."""
    implementation = _RAN.get(run.device.slug, {}).get(schedule, "")
    rows = compared[
        (compared["device"] == run.device.slug)
        & (compared["implementation"] == implementation)
        & (compared["direction"] == "fwd")
        & (compared["head_dim"] == HEAD_DIM)
        & ~compared["causal"].astype(bool)
    ]
    return rows.sort_values("seq_q")


def _kernels(run: _Run, compared: pd.DataFrame) -> list[Kernel]:
    from perfmodel.render.roofs import Kernel

    kernels = []
    for length in CHARTED:
        i = int(np.flatnonzero(length == LENGTHS)[0])
        for name, answer in (("standard", run.standard), ("tiled", run.tiled)):
            prediction = answer.one(i)
            kernel = Kernel.of_prediction(prediction, name, dtype=_TYPE, at=str(length), of="N")
            kernels.append(kernel)
            rows = _published(run, compared, name)
            rows = rows[rows["seq_q"] == length]
            for library, time in zip(rows["implementation"], rows["measured_us"], strict=True):
                kernels.append(kernel.ran(prediction.work / (float(time) * 1e-6), str(library)))
    return kernels


def _sweep(run: _Run, compared: pd.DataFrame) -> Any:
    from perfmodel.render.sequence import Sweep

    measured = []
    for schedule in ("standard", "tiled"):
        rows = _published(run, compared, schedule)
        if len(rows):
            times = (rows["measured_us"] / rows["batch"]).to_numpy(float) * 1e-6
            name = str(rows["implementation"].iloc[0])
            measured.append((schedule, name, rows["seq_q"].to_numpy(float), times))
    batch = _batch()
    return Sweep(
        run.device.slug,
        LENGTHS,
        run.standard.seconds / batch,
        run.tiled.seconds / batch,
        run.standard.footprint_bytes / batch,
        run.tiled.footprint_bytes / batch,
        run.device.memory_bytes,
        tuple(measured),
    )


app = command(demo)
