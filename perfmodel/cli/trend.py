"""`perfmodel trend`: growth of operations, memory and interconnects, as table and chart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
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
class Asked(Drawing):
    """What `trend` is asked for: a table, and perhaps a chart of it."""

    device: SomeDevices = ()
    """Only these devices, with commas or repeated: a100,h100 [default: all]."""
    format: Format = None
    """Output format."""
    chart: Annotated[str | None, FieldOption(None, "FILE", ("--output", "-o", "--chart"))] = None
    """Write the chart (.svg, .pdf, .png) or the table (.json, .csv, .md, .txt)."""
    wants = "--output FILE.svg"

    @property
    def paths(self) -> tuple[str | None, ...]:
        """The chart, if the file is none of a table."""
        return (self.chart,) if (self.chart or "").lower().endswith(SUFFIXES) else ()


def trend(asked: Asked) -> None:
    """Show the memory wall: the growth of operations, memory and interconnects.

    \b
    perfmodel trend
    perfmodel trend --output trend.svg
    perfmodel trend -d a100 -d h100 -d b200 --output trend.pdf
    """
    printer = Shown(asked.format, None if asked.paths else asked.chart)
    points = device_points(asked.device or specs())
    printer.emit(report(points))
    if asked.paths:
        asked.draw(partial(trend_chart, points))


app = command(trend)
