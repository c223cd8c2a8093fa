"""The options that every chart takes: style, title, size, and a file of the numbers drawn."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Annotated

from perfmodel.cli.output import say
from perfmodel.errors import OutputError, ProblemError, UnknownName
from perfmodel.evidence.records.replacing import replacing
from perfmodel.fieldoption import FieldOption
from perfmodel.plaintext import quoted
from perfmodel.render import RENDERERS, Report
from perfmodel.render.chart import Chart, chart_suffix, save
from perfmodel.render.page import STYLES, Page

_CHART = "Chart"
_INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4}
_DATA = {".csv": "csv", ".json": "json"}


@dataclass(frozen=True)
class Drawing:
    """Layout of a chart, and the file of its numbers."""

    style: Annotated[str, FieldOption(_CHART, "NAME", single=True, names=tuple(STYLES))] = "default"
    """Style of the chart."""
    title: Annotated[str | None, FieldOption(_CHART, "TEXT")] = None
    """Title of the chart in place of its own; "" for none."""
    # An operator may have a size of this name; then only the longer spelling is available.
    width: Annotated[str | None, FieldOption(_CHART, "INCHES", ("--width", "--chart-width"))] = None
    """Width of the chart, in inches (3.3 or 3.3in) or millimetres (84mm)."""
    no_caption: Annotated[bool, FieldOption(_CHART)] = False
    """Draw no text below the chart."""
    dpi: Annotated[int, FieldOption(_CHART, "DOTS", least=None)] = 200
    """Resolution of a .png, in dots an inch."""
    transparent: Annotated[bool, FieldOption(_CHART)] = False
    """Draw the chart on a transparent background."""
    data: Annotated[str | None, FieldOption(_CHART, "FILE")] = None
    """Write the numbers of the chart (.csv or .json)."""

    @cached_property
    def page(self) -> Page:
        """The layout. Raises `UnknownName` for a style, `ProblemError` for a width."""
        if self.style not in STYLES:
            raise UnknownName("style", self.style, STYLES)
        return Page(
            style=self.style,
            title=self.title,
            width=None if self.width is None else _inches(self.width),
            captioned=False if self.no_caption else None,
            dpi=self.dpi,
            transparent=self.transparent,
        )

    def check(self, path: str | None, *, wants: str = "--chart FILE") -> None:
        """Check file names before any work is done. Options without a chart are an error."""
        if path is None:
            given = [each.name for each in fields(self) if getattr(self, each.name) != each.default]
            if given:
                option = given[0].replace("_", "-")
                raise ProblemError(f"--{option} is an option of charts; add {wants}, or drop it")
            return
        chart_suffix(path)
        _ = self.page
        if self.data is not None and Path(self.data).suffix not in _DATA:
            raise OutputError(f"{self.data}: data are written as .csv or .json; change the name")

    def save(self, chart: Chart, path: str) -> None:
        """Write the chart and its numbers, and print what was written."""
        for line in self.write(chart, path):
            say(line)

    def write(self, chart: Chart, path: str) -> list[str]:
        """Write the chart and its numbers; returns messages.

        A message names a caption that the picture has no room for.
        """
        save(chart, path)
        messages = [f"wrote {path}"]
        if self.data is not None:
            report = Report("data", chart.rows, (), head={"title": chart.title})
            with replacing(self.data) as partial, partial.open("w", encoding="utf-8") as file:
                file.writelines(RENDERERS[_DATA[Path(self.data).suffix]](report))
            messages.append(f"wrote {self.data}")
        if not self.page.caption and chart.caption:
            messages.append(f"caption: {' '.join(chart.caption)}")
        return messages


def _inches(text: str) -> float:
    """A length with its unit; inches by default."""
    unit = next((unit for unit in _INCHES if text.strip().endswith(unit)), "in")
    try:
        return float(text.strip().removesuffix(unit)) * _INCHES[unit]
    except ValueError:
        raise ProblemError(f"--width {quoted(text)} is no length; write 3.3in or 84mm") from None
