"""The text of docs/accuracy.md, from the template accuracy.md beside this file.

`{table}` in a section of the template stands for its table; a line that links to a file of
docs/accuracy is there if the file is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from math import exp
from pathlib import Path

from perfmodel.timing import constants

IN_SAMPLE = "in sample"
"""The column of the first table for errors in sample, with nothing left out."""
_FILE = re.compile(r"\(accuracy/([\w-]+\.csv)\)")


def page(figures: Mapping[str, str], tables: Mapping[str, str], files: Collection[str] = ()) -> str:
    """The page: the template with `figures` for its placeholders, `tables` by heading.

    A section without its table is left out, and so is a line about a file that is not in `files`.
    """
    template = Path(__file__).with_name("accuracy.md").read_text(encoding="utf-8")
    parts = []
    for section in re.split(r"^(?=## )", template, flags=re.MULTILINE):
        heading = section.partition("\n")[0].removeprefix("## ")
        if "{table}" not in section or heading in tables:
            parts.append(section.replace("{table}", tables.get(heading, "")))
    lines = (line for line in "".join(parts).splitlines() if set(_FILE.findall(line)) <= set(files))
    text = "\n".join(lines) + "\n"
    fitted = str(sum(item.fitted for item in constants.shipped()))
    for name, figure in {**figures, "fitted": fitted}.items():
        text = text.replace(f"{{{name}}}", figure)
    return text


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
