"""Results as text and charts: each format is one file that only reads results.

    for text in RENDERERS["table"](report): print(text, end="")

A format yields its text piece by piece, so a long sweep is never held in memory. Formats are
imported on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module

from perfmodel.render.report import Column, Report

Renderer = Callable[[Report], Iterator[str]]


def _renderer(module: str) -> Renderer:
    def render(report: Report) -> Iterator[str]:
        pieces: Iterator[str] = import_module(f"perfmodel.render.{module}").render(report)
        return pieces

    return render


RENDERERS: dict[str, Renderer] = {
    "table": _renderer("table"),
    "json": _renderer("json_"),
    "csv": _renderer("csv_"),
    "markdown": _renderer("markdown"),
    "latex": _renderer("latex"),
}
SUFFIXES = {
    ".json": "json",
    ".csv": "csv",
    ".md": "markdown",
    ".tex": "latex",
    ".txt": "table",
}

PEOPLE = ("table", "markdown", "latex")
"""Formats for people; the others are data."""

__all__ = ["PEOPLE", "RENDERERS", "SUFFIXES", "Column", "Renderer", "Report"]
