"""The text of docs/accuracy.md, from the template accuracy.md beside this file.

The template has the head of the page and all possible sections in order: a heading, the question
that the section answers (in italics), and how to read its tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp
from pathlib import Path

from perfmodel.timing import constants

IN_SAMPLE = "in sample"
"""The column of the first table for errors in sample, with nothing left out."""
_SECTION = re.compile(r"^## (.+)\n\n\*(.+)\*\n(.*)", re.DOTALL)


@dataclass(frozen=True)
class Section:
    """A section of the page."""

    answers: str
    """The question that it answers."""
    prose: str
    """How to read its tables, in Markdown; empty if not needed."""


@lru_cache(maxsize=1)
def template() -> tuple[str, Mapping[str, Section]]:
    """The head of the page, with placeholders for figures, and its sections by heading."""
    text = Path(__file__).with_name("accuracy.md").read_text(encoding="utf-8")
    head, *parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    matches = (_SECTION.fullmatch(part) for part in parts)
    return head.rstrip("\n"), {
        match[1]: Section(match[2], match[3].strip()) for match in matches if match is not None
    }


def page(
    figures: Mapping[str, object], tables: Mapping[str, str], others: Iterable[str] = ()
) -> str:
    """The page: its head with `figures`, a table of contents, and every section with its tables.

    `others` are sections of other commands, which follow.
    """
    head, sections = template()
    parts = [head.format(**figures), contents([*tables, *others])]
    count = str(sum(item.fitted for item in constants.shipped()))
    for name, table in tables.items():
        prose = sections[name].prose.replace("{fitted}", count)
        question = f"*{sections[name].answers}*"
        parts.append("\n\n".join(filter(None, [f"## {name}", question, prose, table])))
    return "\n\n".join(parts) + "\n"


def contents(headings: Iterable[str]) -> str:
    """The table of contents of a page with these sections."""
    _, sections = template()
    rows = [f"| [{name}](#{_anchor(name)}) | {sections[name].answers} |" for name in headings]
    return "\n".join(["| section | answers |", "|---|---|", *rows])


def _anchor(heading: str) -> str:
    """A heading's anchor, as GitHub and GitLab make it."""
    return heading.lower().replace(",", "").replace(" ", "-")


def expected(rows: Sequence[Mapping[str, str]]) -> str:
    """The expected errors of a prediction in two sentences, from the first table of the page.

    They are the worst over the ways in which runs are left out, or in sample if none is.
    """
    scores = {row["line"]: worst(row) for row in rows}
    medians, tails = zip(*scores.values(), strict=True)
    last = max(scores, key=lambda line: scores[line][1])
    return (
        "With its source, framework, kernel, architecture or device left out of the fit, a run is\n"
        f"off by {min(medians):.0%} to {max(medians):.0%} in the median, by kind of run.\n"
        f"One run in ten is off by more than a factor of {exp(min(tails)):.2f} of the best kind,\n"
        f"and of {exp(max(tails)):.2f} of the worst, {last}."
    )


def worst(row: Mapping[str, str]) -> tuple[float, float]:
    """The largest median and the largest 90th percentile of a line over the held-out columns."""
    cells = [value for name, value in row.items() if name.startswith("without its ") and value]
    pairs = [errors(value) for value in cells or [row[IN_SAMPLE]]]
    return max(median for median, _ in pairs), max(tail for _, tail in pairs)


def errors(cell: str) -> tuple[float, float]:
    """Median and 90th percentile of a cell `0.088 / 0.30`."""
    median, tail = cell.split("/")
    return float(median), float(tail)
