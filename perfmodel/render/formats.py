"""Reports as data (JSON, CSV) and as documents (Markdown, LaTeX).

Data has every value of every row; documents have the columns that people see. Each format yields
its text piece by piece.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from perfmodel.plaintext import csv_cell, printable, without_controls
from perfmodel.render.report import Report, Row

SCHEMA_VERSION = 1
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_MARKS = re.compile(r"[\\`*\[\]|]")
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "²": r"$^2$",
    "√": r"$\surd$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "≥": r"$\ge$",
    "≤": r"$\le$",
    "β": r"$\beta$",
    "σ": r"$\sigma$",
    "µ": r"\textmu{}",
    "→": r"$\rightarrow$",
    "−": r"$-$",
    "–": "--",
    "α": r"$\alpha$",
    "λ": r"$\lambda$",
    "Σ": r"$\Sigma$",
    "∞": r"$\infty$",
    "—": "---",
    "›": r"$\rightarrow$",
    "⌈": r"$\lceil$",
    "⌉": r"$\rceil$",
    "*": "*",
}


def as_json(report: Report) -> Iterator[str]:
    """One document: `schema_version`, the report's own members, its title and notes, and its rows
    under their name, one line each as they come."""
    words = {"title": report.title, "notes": list(report.notes)}
    head = {"schema_version": SCHEMA_VERSION, **report.head}
    head |= {name: value for name, value in words.items() if value}
    yield _json(head)[:-1] + f', "{report.name}": ['
    separator = "\n"
    for row in report.rows:
        yield separator + _json(row)
        separator = ",\n"
    yield "\n]}\n"


def _json(value: Any) -> str:
    return json.dumps(_json_value(value), allow_nan=False)  # ASCII, which every encoding can carry


def _json_value(value: Any) -> Any:
    """`value` with null for numbers that JSON lacks."""
    if isinstance(value, dict):
        return {key: _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def as_csv(report: Report) -> Iterator[str]:
    """A header and a line for each row, nested names joined by underscores (`terms_us_hbm`).

    Numbers are written in full. Text that a spreadsheet would run as a formula gets a leading
    apostrophe (`perfmodel.plaintext.csv_cell`); the reader of measured-run tables removes it.
    """
    rows = report.rows if report.examples else list(report.rows)
    header = dict.fromkeys(key for row in report.examples or rows for key in _cells(row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(header), restval="", lineterminator="\n")
    writer.writerow({name: _text(name) for name in header})
    for row in rows:
        writer.writerow(_cells(row))
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _text(value: str) -> str:
    return csv_cell(without_controls(value))


def _item_text(item: Any) -> str:
    """An item of a list as text; of a table, its members."""
    if isinstance(item, dict):
        return " ".join(f"{key}={value}" for key, value in item.items())
    return str(item)


def _cells(row: Row, prefix: str = "") -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            cells |= _cells(value, f"{prefix}{key}_")
        elif isinstance(value, list | tuple):
            cells[prefix + key] = _text("; ".join(_item_text(item) for item in value))
        elif isinstance(value, float) and math.isnan(value):
            cells[prefix + key] = ""
        else:
            cells[prefix + key] = _text(value) if isinstance(value, str) else value
    return cells


def as_markdown(report: Report) -> Iterator[str]:
    """A table that GitHub and notebooks read: title, header, one line for each row, notes."""
    if report.title:
        yield f"**{markdown(report.title)}**\n\n"
    columns = report.visible
    rule = ["---:" if column.number else "---" for column in columns]
    yield from _lines(report, markdown, "| {} |\n", " | ", f"| {' | '.join(rule)} |\n")
    for note in report.notes:
        yield f"\n{markdown(note)}\n"


def as_latex(report: Report) -> Iterator[str]:
    """A floating booktabs table, ready for a paper: the title is its caption, notes are below it.

    Needs `\\usepackage{booktabs}`. Columns are aligned only left or right, so the table fits
    any document class.
    """
    yield "\\begin{table}\n\\centering\n"
    if report.title:
        yield f"\\caption{{{latex(printable(report.title))}}}\n"
    yield f"\\label{{tab:{re.sub(r'[^A-Za-z0-9-]+', '-', report.name)}}}\n"
    alignment = "".join("r" if column.number else "l" for column in report.visible)
    yield f"\\begin{{tabular}}{{{alignment}}}\n\\toprule\n"
    yield from _lines(report, _latex_cell, "{} \\\\\n", " & ", "\\midrule\n")
    yield "\\bottomrule\n\\end{tabular}\n"
    if report.notes:
        notes = " \\\\\n".join(latex(printable(note)) for note in report.notes)
        yield f"\\par\\footnotesize\n{notes}\n"
    yield "\\end{table}\n"


def _lines(
    report: Report, escape: Callable[[str], str], line: str, separator: str, rule: str
) -> Iterator[str]:
    """The header, a rule and a line for each row."""

    def joined(cells: Iterable[str]) -> str:
        return line.format(separator.join(map(escape, cells)))

    yield joined(column.header for column in report.visible)
    yield rule
    for row in report.rows:
        yield joined(column.cell(row) for column in report.visible)


def markdown(text: str) -> str:
    """`text` as literal Markdown: no HTML, links, emphasis, code or cells in it."""
    return _MARKS.sub(r"\\\g<0>", printable(text).translate(_HTML))


def latex(text: str) -> str:
    """Plain text with LaTeX's special characters, and ours beyond Latin, written out."""
    return re.sub(r"[^\x00-\xff]", "?", "".join(_SPECIAL.get(c, c) for c in text))


def _latex_cell(text: str) -> str:
    """A cell; LaTeX would read one that begins with a bracket as an option of the line end."""
    cell = latex(text)
    return f"{{}}{cell}" if cell.startswith("[") else cell
