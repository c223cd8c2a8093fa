"""Results as text and charts: each format only reads a report's columns and rows.

    for text in RENDERERS["table"](report): print(text, end="")

A format yields its text piece by piece, so a long sweep is never held in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from perfmodel.render import formats, table
from perfmodel.render.report import Column, Report

Renderer = Callable[[Report], Iterator[str]]
RENDERERS: dict[str, Renderer] = {
    "table": table.render,
    "json": formats.as_json,
    "csv": formats.as_csv,
    "markdown": formats.as_markdown,
    "latex": formats.as_latex,
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
