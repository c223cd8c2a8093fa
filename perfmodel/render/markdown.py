"""Markdown: the columns of the table in the form that GitHub and notebooks read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perfmodel.plaintext import printable
from perfmodel.render.report import Report

_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_MARKS = re.compile(r"[\\`*\[\]|]")


def render(report: Report) -> Iterator[str]:
    """Title, header, one line for each row, notes."""
    if report.title:
        yield f"**{escaped(report.title)}**\n\n"
    columns = report.visible
    yield _line([column.header for column in columns])
    yield "| " + " | ".join("---:" if column.number else "---" for column in columns) + " |\n"
    for row in report.rows:
        yield _line([column.cell(row) for column in columns])
    for note in report.notes:
        yield f"\n{escaped(note)}\n"


def escaped(text: str) -> str:
    """`text` as literal Markdown: no HTML, links, emphasis, code or cells in it."""
    return _MARKS.sub(r"\\\g<0>", printable(text).translate(_HTML))


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(map(escaped, cells)) + " |\n"
