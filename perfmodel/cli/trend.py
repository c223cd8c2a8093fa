"""`perfmodel trend`: growth of operations, memory and interconnects, as table and chart."""

from __future__ import annotations

from typing import Annotated

from perfmodel.analysis.trend import device_points
from perfmodel.cli import completing, known
from perfmodel.cli.build import command
from perfmodel.cli.drawing import Drawing
from perfmodel.cli.output import Format, chosen_format, emit
from perfmodel.fieldoption import FieldOption
from perfmodel.hardware import specs
from perfmodel.render.chart import SUFFIXES
from perfmodel.render.trend import report, trend_chart


def trend(
    device: Annotated[
        list[str] | None,
        FieldOption(
            metavar="NAMES",
            spellings=("--device", "--gpu", "-d"),
            help="Only these devices, with commas or repeated: a100,h100 [default: all].",
            complete=completing.devices,
        ),
    ] = None,
    format: Format = None,
    output: Annotated[
        str | None,
        FieldOption(
            metavar="FILE",
            spellings=("--output", "-o", "--chart"),
            help="Write the chart (.svg, .pdf, .png) or the table (.json, .csv, .md, .txt).",
        ),
    ] = None,
    *,
    drawing: Drawing,
) -> None:
    """Show the memory wall: the growth of operations, memory and interconnects.

    \b
    perfmodel trend
    perfmodel trend --output trend.svg
    perfmodel trend -d a100 -d h100 -d b200 --output trend.pdf
    """
    drawn = output is not None and output.lower().endswith(SUFFIXES)
    chosen_format(format, None if drawn else output)
    drawing.check(output if drawn else None, wants="--output FILE.svg")
    points = device_points(known.devices(device) if device else specs())
    emit(report(points), format, None if drawn else output)
    if drawn:
        drawing.save(trend_chart(points, drawing.page), str(output))


app = command(trend)
