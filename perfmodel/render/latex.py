"""LaTeX: the columns of the table as a booktabs table, ready for a paper.

Needs `\\usepackage{booktabs}`. Columns are aligned only left or right, so the table works in any
document class. The title is its caption, and the notes follow below.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from perfmodel.plaintext import printable
from perfmodel.render.latextext import escaped
from perfmodel.render.report import Report


def render(report: Report) -> Iterator[str]:
    """A floating table: caption, header, a line per row, notes."""
    columns = report.visible
    yield "\\begin{table}\n\\centering\n"
    if report.title:
        yield f"\\caption{{{escaped(printable(report.title))}}}\n"
    yield f"\\label{{tab:{re.sub(r'[^A-Za-z0-9-]+', '-', report.name)}}}\n"
    yield f"\\begin{{tabular}}{{{''.join('r' if column.number else 'l' for column in columns)}}}\n"
    yield "\\toprule\n"
    yield _line([column.header for column in columns])
    yield "\\midrule\n"
    for row in report.rows:
        yield _line([column.cell(row) for column in columns])
    yield "\\bottomrule\n\\end{tabular}\n"
    if report.notes:
        notes = " \\\\\n".join(escaped(printable(note)) for note in report.notes)
        yield f"\\par\\footnotesize\n{notes}\n"
    yield "\\end{table}\n"


def _line(cells: list[str]) -> str:
    # LaTeX would read a cell that begins with a bracket as an option of the preceding line end.
    texts = [f"{{}}{cell}" if cell.startswith("[") else cell for cell in map(escaped, cells)]
    return " & ".join(texts) + " \\\\\n"
