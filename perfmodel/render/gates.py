"""A gated report for CI systems: JUnit XML, and annotations of GitHub.

    "".join(FORMATS["junit"](report, verdicts, "runs.csv"))

Each line of the report is a test case, which fails if its gate does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from perfmodel.plaintext import printable
from perfmodel.render.report import Report
from perfmodel.validation.judging import Verdict

GateFormat = Callable[[Report, Sequence[Verdict], str], Iterator[str]]


def junit(report: Report, verdicts: Sequence[Verdict], source: str) -> Iterator[str]:
    """JUnit XML: a case for each line of the report, its figures as the case's output."""
    failures = sum(bool(item.miss) for item in verdicts)
    name = quoteattr(printable(f"perfmodel compare {source}"))
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n'
    yield f'  <testsuite name={name} tests="{len(verdicts)}" failures="{failures}" errors="0">\n'
    lines = list(report.rows)
    for i, item in enumerate(verdicts):
        case = quoteattr(printable(item.group))
        yield f'    <testcase classname="perfmodel.compare" name={case}>\n'
        if item.miss:
            yield f"      <failure message={quoteattr(printable(item.miss))}/>\n"
        if i < len(lines):
            figures = ", ".join(f"{each.header}: {each.cell(lines[i])}" for each in report.visible)
            yield f"      <system-out>{escape(printable(figures))}</system-out>\n"
        yield "    </testcase>\n"
    yield "  </testsuite>\n</testsuites>\n"


def github(report: Report, verdicts: Sequence[Verdict], source: str) -> Iterator[str]:
    """Workflow commands of GitHub Actions: an error for each line that fails, a notice for all.

    (GitHub Docs, "Workflow commands for GitHub Actions": values escape %, CR and LF, properties
    the colon and the comma too.)
    """
    place = f"file={_property(source)},title={_property('perfmodel compare')}"
    failures = [item for item in verdicts if item.miss]
    for item in failures:
        yield f"::error {place}::{_value(f'{item.group}: {item.miss}')}\n"
    summary = f"{report.title}, {len(failures)} of {len(verdicts)} lines fail their gate"
    yield f"::notice {place}::{_value(summary)}\n"


def _value(text: str) -> str:
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _value(text).replace(":", "%3A").replace(",", "%2C")


FORMATS: Mapping[str, GateFormat] = {"junit": junit, "github": github}
"""Formats of `perfmodel compare` besides those of every command."""
