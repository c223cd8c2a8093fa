"""The options that every chart takes: style, title, size, and a file of the numbers drawn."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from perfmodel.cli import completing
from perfmodel.cli.output import say
from perfmodel.errors import OutputError, ProblemError, UnknownName
from perfmodel.evidence.records.replacing import replacing
from perfmodel.plaintext import quoted
from perfmodel.render import RENDERERS, Report
from perfmodel.render.chart import Chart, chart_suffix, save
from perfmodel.render.page import STYLES, Page

_INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4}
_DATA = {".csv": "csv", ".json": "json"}


@dataclass(frozen=True)
class Drawing:
    """Layout of a chart, and the file of its numbers."""

    page: Page
    """Layout."""
    data: str | None
    """File of the chart's numbers; None: none."""
    given: tuple[str, ...]
    """The options that were given."""

    def check(self, path: str | None, *, wants: str = "--chart FILE") -> None:
        """Check file names before any work is done. Options without a chart are an error."""
        if path is None:
            if self.given:
                raise ProblemError(
                    f"{self.given[0]} is an option of charts; add {wants}, or drop it"
                )
            return
        chart_suffix(path)
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


def _option(*names: str, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Chart", **settings)


_OPTIONS: dict[str, tuple[Any, Any, Any]] = {
    "style": (
        str,
        "default",
        _option(
            "--style",
            metavar="NAME",
            help=f"Style of the chart: {', '.join(STYLES)}.",
            autocompletion=completing.of_list(lambda: STYLES),
        ),
    ),
    "title": (
        str | None,
        None,
        _option(
            "--title", metavar="TEXT", help='Title of the chart in place of its own; "" for none.'
        ),
    ),
    "width": (
        str | None,
        None,
        # An operator may have a size of this name; then only the longer spelling is available.
        _option(
            "--width",
            "--chart-width",
            metavar="INCHES",
            help="Width of the chart, in inches (3.3 or 3.3in) or millimetres (84mm).",
        ),
    ),
    "no_caption": (bool, False, _option("--no-caption", help="Draw no text below the chart.")),
    "dpi": (
        int,
        200,
        _option("--dpi", metavar="DOTS", help="Resolution of a .png, in dots an inch."),
    ),
    "transparent": (
        bool,
        False,
        _option("--transparent", help="Draw the chart on a transparent background."),
    ),
    "data": (
        str | None,
        None,
        _option("--data", metavar="FILE", help="Write the numbers of the chart (.csv or .json)."),
    ),
}


def with_drawing(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with the options of a chart; they become its parameter `drawing`."""
    signature = inspect.signature(command, eval_str=True)
    parameters = [item for item in signature.parameters.values() if item.name != "drawing"]
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[kind, option],
        )
        for name, (kind, default, option) in _OPTIONS.items()
    ]

    def run(*args: Any, **values: Any) -> None:
        command(*args, drawing=_drawing({name: values.pop(name) for name in _OPTIONS}), **values)

    run.__signature__ = inspect.Signature([*parameters, *options])  # type: ignore[attr-defined]
    run.__annotations__ = {item.name: item.annotation for item in (*parameters, *options)}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def _drawing(values: dict[str, Any]) -> Drawing:
    options = tuple(
        f"--{name.replace('_', '-')}"
        for name, (_, default, _) in _OPTIONS.items()
        if values[name] != default
    )
    if values["style"] not in STYLES:
        raise UnknownName("style", values["style"], STYLES)
    page = Page(
        style=values["style"],
        title=values["title"],
        width=None if values["width"] is None else _inches(values["width"]),
        captioned=False if values["no_caption"] else None,
        dpi=values["dpi"],
        transparent=values["transparent"],
    )
    return Drawing(page, values["data"], options)


def _inches(text: str) -> float:
    """A length with its unit; inches by default."""
    unit = next((unit for unit in _INCHES if text.strip().endswith(unit)), "in")
    try:
        return float(text.strip().removesuffix(unit)) * _INCHES[unit]
    except ValueError:
        raise ProblemError(f"--width {quoted(text)} is no length; write 3.3in or 84mm") from None
