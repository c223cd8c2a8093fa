"""`perfmodel trend`: growth of operations, memory and interconnects, as table and chart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from perfmodel.analysis.trend import device_points
from perfmodel.cli.arguments import SomeDevices
from perfmodel.cli.build import command
from perfmodel.cli.drawing import Drawing
from perfmodel.cli.output import Format, Shown
from perfmodel.fieldoption import FieldOption
from perfmodel.hardware import specs
from perfmodel.render.chart import SUFFIXES
from perfmodel.render.trend import report, trend_chart


@dataclass(frozen=True)
class Asked:
    """What `trend` is asked for."""

    device: SomeDevices = ()
    """Only these devices, with commas or repeated: a100,h100 [default: all]."""
    format: Format = None
    """Output format."""
    output: Annotated[str | None, FieldOption(None, "FILE", ("--output", "-o", "--chart"))] = None
    """Write the chart (.svg, .pdf, .png) or the table (.json, .csv, .md, .txt)."""


def trend(asked: Asked, drawing: Drawing) -> None:
    """Show the memory wall: the growth of operations, memory and interconnects.

    \b
    perfmodel trend
    perfmodel trend --output trend.svg
    perfmodel trend -d a100 -d h100 -d b200 --output trend.pdf
    """
    path = asked.output
    chart = path if path is not None and path.lower().endswith(SUFFIXES) else None
    printer = Shown(asked.format, None if chart else path)
    drawing.check(chart, wants="--output FILE.svg")
    points = device_points(asked.device or specs())
    printer.emit(report(points))
    if chart is not None:
        drawing.save(trend_chart(points, drawing.page), chart)


app = command(trend)
