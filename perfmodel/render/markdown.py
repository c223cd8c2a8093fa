"""Markdown: the columns for people as a table that GitHub and notebooks understand."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perfmodel.plaintext import printable
from perfmodel.render.report import Report

_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_MARKS = re.compile(r"[\\`*\[\]|]")


def render(report: Report) -> Iterator[str]:
    """Title, header, a line per row, notes."""
    if report.title:
        yield f"**{escaped(report.title)}**\n\n"
    columns = report.columns
    yield _line([column.header for column in columns])
    yield "| " + " | ".join("---:" if column.number else "---" for column in columns) + " |\n"
    for row in report.rows:
        yield _line([column.cell(row) for column in columns])
    for note in report.notes:
        yield f"\n{escaped(note)}\n"


def escaped(text: str) -> str:
    """`text` as Markdown that shows it: no HTML, links, emphasis, code or cells in it."""
    return _MARKS.sub(r"\\\g<0>", printable(text).translate(_HTML))


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(map(escaped, cells)) + " |\n"
