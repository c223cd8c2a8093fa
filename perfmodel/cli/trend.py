"""`perfmodel trend`: growth of operations, memory and interconnects, as table and chart."""

from __future__ import annotations

from typing import Annotated

import typer

from perfmodel.analysis.trend import device_points
from perfmodel.cli import completing, known
from perfmodel.cli.drawing import Drawing, with_drawing
from perfmodel.cli.output import Format, chosen_format, emit
from perfmodel.hardware import specs
from perfmodel.render.chart import SUFFIXES
from perfmodel.render.trend import report, trend_chart

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("trend")
@with_drawing
def trend(
    device: Annotated[
        list[str] | None,
        typer.Option(
            "--device",
            "--gpu",
            "-d",
            metavar="NAMES",
            help="Only these devices, with commas or repeated: a100,h100 [default: all].",
            autocompletion=completing.devices,
        ),
    ] = None,
    format: Format = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            "--chart",
            metavar="FILE",
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
