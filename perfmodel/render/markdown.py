"""Markdown: the columns for people as a table that GitHub and notebooks understand."""

from __future__ import annotations

from collections.abc import Iterator

from perfmodel.render.report import Report


def render(report: Report) -> Iterator[str]:
    """Title, header, a line per row, notes."""
    if report.title:
        yield f"**{report.title}**\n\n"
    columns = report.columns
    yield _line([column.header for column in columns])
    yield _line(["---:" if column.number else "---" for column in columns])
    for row in report.rows:
        yield _line([column.cell(row) for column in columns])
    for note in report.notes:
        yield f"\n{note}\n"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
