"""The options that every chart takes: its file, style, title, size, and a file of the numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated

from perfmodel.cli.arguments import CHART, written
from perfmodel.cli.output import say
from perfmodel.errors import ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.plaintext import quoted
from perfmodel.render import RENDERERS, Report
from perfmodel.render.chart import Chart, save
from perfmodel.render.page import STYLES, Page
from perfmodel.replacing import replacing

_CHART = "Chart"
_INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4}
_DATA = (".csv", ".json")


def _inches(text: str) -> list[float]:
    """A length, or a width and a height: 3.3, 84mm, 6x4.5; in inches by default."""
    try:
        lengths = text.lower().split("x")
        units = [next((u for u in _INCHES if part.strip().endswith(u)), "") for part in lengths]
        values = [
            float(part.strip().removesuffix(unit)) * _INCHES.get(unit, 1.0)
            for part, unit in zip(lengths, units, strict=True)
        ]
    except ValueError:
        values = []
    if len(values) not in (1, 2):
        raise ProblemError(f"--size {quoted(text)} is no size; write 3.3in, 84mm or 6x4.5")
    return values


NUMBERS = FieldOption(
    _CHART, "FILE", ("--data", "--chart-data"), single=True, read=partial(written, _DATA)
)
"""The file of a chart's numbers."""


@dataclass(frozen=True)
class Drawing:
    """A chart: its file, its layout, and the file of its numbers."""

    chart: Annotated[str | None, CHART] = None
    """Chart (.svg, .pdf, .png)."""
    style: Annotated[str, FieldOption(_CHART, "NAME", single=True, names=tuple(STYLES))] = "default"
    """Style of the chart."""
    title: Annotated[str | None, FieldOption(_CHART, "TEXT")] = None
    """Title of the chart in place of its own; "" for none."""
    # Another option may have one of these names; then only the longer spelling is available.
    size: Annotated[
        Sequence[float] | None,
        FieldOption(_CHART, "INCHES", ("--size", "--width", "--chart-width"), read=_inches),
    ] = None
    """Width of the chart, or width x height, in inches (3.3, 6x4.5) or millimetres (84mm)."""
    no_caption: Annotated[bool, FieldOption(_CHART)] = False
    """Draw no text below the chart."""
    dpi: Annotated[int, FieldOption(_CHART, "DOTS", least=None)] = 200
    """Resolution of a .png, in dots an inch."""
    transparent: Annotated[bool, FieldOption(_CHART)] = False
    """Draw the chart on a transparent background."""
    chart_data: Annotated[str | None, NUMBERS] = None
    """Write the numbers of the chart (.csv or .json)."""

    def __post_init__(self) -> None:
        """Check before any work is done. Raise `ProblemError` for a size that is none, and for
        options without a chart."""
        if any(self.paths):
            _ = self.page
            return
        layout = [each for each in fields(Drawing) if each.name != "chart"]
        given = [each.name for each in layout if getattr(self, each.name) != each.default]
        if given:
            option = given[0].replace("_", "-")
            raise ProblemError(f"--{option} is an option of charts; add {self.wants}, or drop it")

    @property
    def paths(self) -> tuple[str | None, ...]:
        """The files of charts."""
        return (self.chart,)

    @property
    def wants(self) -> str:
        """The option that asks for a chart."""
        return "--chart FILE"

    @cached_property
    def page(self) -> Page:
        """The layout. Raises `ProblemError` for a size."""
        width, height = (*(self.size or ()), None, None)[:2]
        captioned = False if self.no_caption else None
        return Page(self.style, self.title, width, height, captioned, self.dpi, self.transparent)

    def draw(self, make: Callable[[Page], Chart]) -> None:
        """Write the chart, if one is asked for, and its numbers; say what was written."""
        if self.chart is not None:
            self.save(make(self.page), self.chart, self.chart_data)

    def save(self, chart: Chart, path: str, numbers: str | None = None) -> None:
        """Write a chart and perhaps its numbers, and say what was written.

        A line names a caption that the picture has no room for.
        """
        save(chart, path)
        say(f"wrote {path}")
        if numbers is not None:
            report = Report("data", chart.rows, (), head={"title": chart.title})
            with replacing(numbers) as file, file.open("w", encoding="utf-8") as stream:
                stream.writelines(RENDERERS[Path(numbers).suffix.removeprefix(".")](report))
            say(f"wrote {numbers}")
        if not self.page.caption and chart.caption:
            say(f"caption: {' '.join(chart.caption)}")
