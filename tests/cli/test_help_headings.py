"""Long help pages have headings, and an option stands under that of the noun that it fills."""

from __future__ import annotations

import re

import pytest

LONG = {
    "predict attention": {"--heads": "Problem", "--tile": "Kernel", "--device": "Options"},
    "sweep gemm": {"--m": "Problem", "--schedule": "Kernel", "--pareto": "Question"},
    "roofline gemm": {"--dtype": "Problem", "--mesh": "Kernel", "--dpi": "Chart"},
    "whatif softmax": {"--rows": "Problem", "--place": "Kernel", "--chart": "Chart"},
    "network predict": {"--seq": "Pass", "--stack": "Pass", "--format": "Output"},
    "compare": {"--unit": "Columns", "--worse": "Gate", "--chart": "Chart", "--kind": "Options"},
    "train": {"--tensor": "Plan", "--dtype": "Pass", "--zero": "Plan"},
    "infer": {"--isl": "Load", "--weights": "Formats"},
    "hold": {"--batch": "Options", "--output": "Output"},
    "trace": {"--harness": "Kernel", "--input": "Options"},
}


def headings(page):
    """The heading of each option of a help page."""
    found, heading = {}, ""
    for line in page.splitlines():
        if re.fullmatch(r"[A-Z][A-Za-z ]*:", line):
            heading = line[:-1]
        elif match := re.match(r"  (-[\w-]+(?:, -[\w-]+)*)", line):
            found |= dict.fromkeys(match[1].split(", "), heading)
    return found


@pytest.mark.parametrize("command", LONG)
def test_an_option_stands_under_its_noun(output, command):
    out = output(*command.split(), "--help")
    found = headings(out)
    assert {option: found.get(option) for option in LONG[command]} == LONG[command]
    assert sum(heading == "Options" for heading in found.values()) <= 12
