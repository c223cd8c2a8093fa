"""`perfmodel demo`: standard against tiled attention, against published runs, with charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from perfmodel.algorithms import Attention
from perfmodel.cli.build import command
from perfmodel.cli.output import Shown, say
from perfmodel.errors import OutputError, reason
from perfmodel.fieldoption import FieldOption
from perfmodel.hardware import load
from perfmodel.predict import predict_arrays
from perfmodel.prediction import Prediction
from perfmodel.render.report import Column, Row

if TYPE_CHECKING:
    import pandas as pd

    from perfmodel.render.chart import Chart
    from perfmodel.render.roofs import Kernel

_RAN: Mapping[str, Mapping[str, str]] = {
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
_TYPE = "fp16"
_CASE = f"attention {_TYPE}, {HEADS} heads of {HEAD_DIM}, batches of {TOKENS:,} tokens"
_MEASURED = "Measured: FlashAttention-2 figure 5 (A100), FlashAttention-3 figure 5 (H100)."
_SPEED_UP = Column("speed-up", "speed_up", "{:.1f}x".format)


def demo(
    output_dir: Annotated[
        str, FieldOption(metavar="FOLDER", help="Folder for the charts.")
    ] = "build/demo",
) -> None:
    """Predict standard against tiled attention on A100, H100 and B200 over sequence lengths.

    Prints bytes per level, intensity, limiter, time, speed-up and memory; compares with published
    FlashAttention runs; draws rooflines, a scatter chart, and time and speed-up over the length.

    \b
    perfmodel demo
    perfmodel demo --output-dir charts
    """
    from perfmodel.render import errors, predictions
    from perfmodel.render.chart import save
    from perfmodel.render.scatter import scatter_chart
    from perfmodel.table.records import published
    from perfmodel.validation import judging
    from perfmodel.validation.compare import predict_table

    folder = Path(output_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot make the folder {folder}: {reason(error)}; choose another"
        ) from None
    compared = predict_table(published())
    answers = [pair for name in _RAN for pair in _predicted(name)]
    rows: list[Row] = []
    for standard, tiled in answers:
        speed_up = standard.seconds / tiled.seconds
        rows += [{**standard.as_dict()}, {**tiled.as_dict(), "speed_up": speed_up}]
    report = predictions.report(rows, rows, ["batch", "seq_q"], {"seq_kv": "seq_q"})
    notes = ["* needs more memory than the device has: it could not run", *report.notes]
    Shown().emit(replace(report, columns=[*report.columns, _SPEED_UP], notes=notes))
    groups = ["device", "implementation", "direction"]
    title = "\nAgainst runs published in the FlashAttention papers (1, 2 and 3)"
    Shown().emit(errors.report(judging.report(compared, groups), groups, title))
    charts = {**_charts(answers, compared), "scatter": scatter_chart(compared, "implementation")}
    for name, chart in sorted(charts.items()):
        save(chart, folder / f"{name}.svg")
        say(f"wrote {folder / name}.svg")


def _predicted(slug: str) -> Iterator[tuple[Prediction, ...]]:
    """Both schedules at each length."""
    batch = np.maximum(TOKENS // LENGTHS, 1)
    heads, dim = np.full_like(LENGTHS, HEADS), np.full_like(LENGTHS, HEAD_DIM)
    problem = Attention(batch, heads, heads, LENGTHS, LENGTHS, dim, dtype=_TYPE)
    answers = [predict_arrays(problem, load(slug), schedule=name) for name in SCHEDULES]
    return (tuple(each.one(i) for each in answers) for i in range(len(LENGTHS)))


def _charts(answers: list[tuple[Prediction, ...]], compared: pd.DataFrame) -> dict[str, Chart]:
    """Rooflines with kernels at two lengths, and time and speed-up over the lengths."""
    from perfmodel.render.dots import Dots, dots_chart
    from perfmodel.render.roofline import roofline_chart
    from perfmodel.render.roofs import Kernel, roofs

    kernels: list[Kernel] = []
    lines: list[dict[str, Any]] = []
    gains: list[dict[str, Any]] = []
    for pair in answers:
        problem, gain = pair[0].problem, pair[0].seconds / pair[1].seconds
        length, device = problem["seq_q"], pair[0].device
        gains += [{"device": device, "seq": length, "speed_up": gain}] if pair[0].fits else []
        for schedule, prediction in zip(SCHEDULES, pair, strict=True):
            point = {"schedule": f"{device} {schedule}", "seq": length}
            seconds = prediction.seconds / problem["batch"]
            lines += [{**point, "seconds": seconds}] if prediction.fits else []
            kernel = Kernel.of_prediction(prediction, schedule, dtype=_TYPE, at=str(length), of="N")
            kernels += [kernel] if length in CHARTED else []
            for row in _published(compared, device, schedule, length):
                seconds = row["measured_us"] * 1e-6
                lines.append({**point, "seconds": seconds / row["batch"], "measured": True})
                ran = kernel.ran(prediction.work / seconds, row["implementation"])
                kernels += [ran] if length in CHARTED else []
    heads: Mapping[str, str] = {
        "seq": "Sequence length", "seconds": "Time per sequence",
        "speed_up": "Speed-up, tiled over standard (×)",
    }  # fmt: skip
    times = Dots(f"Time: {_CASE}", ["seq"], ["seconds"], by=["schedule"], joined=["schedule"],
                 measured="measured", headers=heads, kinds={"seq": "length"})  # fmt: skip
    gain_dots = replace(times, title=f"Speed-up: {_CASE}", y=["speed_up"], log="x", by=["device"],
                        joined=["device"], measured="")  # fmt: skip
    panels = [roofs(load(slug), [_TYPE]) for slug in _RAN]
    return {
        "roofline": roofline_chart(panels, kernels, title=_CASE, note=_MEASURED),
        "standard-vs-tiled": dots_chart(lines, times, caption=["Lines: predicted.", _MEASURED]),
        "speed-up": dots_chart(gains, gain_dots),
    }


def _published(
    compared: pd.DataFrame, device: str, schedule: str, length: int
) -> list[dict[Any, Any]]:
    """The published runs of a schedule's kernel at a length."""
    runs = compared[
        (compared["device"] == device)
        & (compared["implementation"] == _RAN[device].get(schedule))
        & (compared["direction"] == "fwd")
        & (compared["head_dim"] == HEAD_DIM)
        & (compared["seq_q"] == length)
        & ~compared["causal"].astype(bool)
    ]
    return runs.to_dict("records")


app = command(demo)
