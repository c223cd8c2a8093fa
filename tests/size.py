"""Lines of each room beside its budget, and the net lines of the change: `make size`.

A room is a part of the planned layout and is held by one or more of today's packages. *Lines* are
all lines, blank ones and docstrings included; *code* are lines that hold a token which is neither a
comment nor part of a docstring. The change is everything since the branch left `main`, or since the
last commit on `main` itself, with what is not committed yet.
"""

from __future__ import annotations

import ast
import io
import subprocess
import tokenize
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
TOP = ("perfmodel/[!c]*.py", "perfmodel/c[!a]*.py", "perfmodel/catalogue.py")
CASES = ("perfmodel/cases.py", "perfmodel/casefile.py")
ROOMS: dict[str, tuple[int, tuple[str, ...]]] = {
    "schema, units, errors, numbers": (1_000, (*TOP, "perfmodel/formats")),
    "count": (3_000, ("perfmodel/count", "perfmodel/schedules", "perfmodel/algorithms")),
    "machine": (1_700, ("perfmodel/hardware",)),
    "time, compiled": (4_300, ("perfmodel/timing", "perfmodel/compiled")),
    "operators": (1_800, ("perfmodel/operators",)),
    "graph": (1_800, ("perfmodel/graph",)),
    "links": (1_000, ("perfmodel/collectives",)),
    "networks": (2_800, ("perfmodel/networks",)),
    "plans": (
        3_200,
        ("perfmodel/training", "perfmodel/offload", "perfmodel/compression",
         "perfmodel/context_parallel", "perfmodel/embeddings", "perfmodel/onchip"),
    ),
    "serving": (2_000, ("perfmodel/serving",)),
    "trace": (1_400, ("perfmodel/tracing", "perfmodel/triton")),
    "search": (2_000, ("perfmodel/napkin",)),
    "ask": (1_800, ("perfmodel/analysis",)),
    "table": (1_200, ("perfmodel/table", *CASES)),
    "profile": (1_500, ("perfmodel/profile",)),
    "proof": (2_800, ("perfmodel/proof",)),
    "judge": (2_800, ("perfmodel/validation", "perfmodel/fitting", "perfmodel/learned")),
    "show": (3_400, ("perfmodel/render",)),
    "cli": (1_900, ("perfmodel/cli",)),
    "kernels and bench": (12_000, ("kernels", "perfmodel/measured")),
    "tests": (30_000, ("tests",)),
}  # fmt: skip
"""Each room's budget in lines, and the packages that hold it today."""
KINDS = (".py", ".js", ".css")
WORDS = 52_000
"""The budget of the documents in docs/, in words with output and tables."""


def sources(places: Iterable[str]) -> list[Path]:
    """The source files of packages, or those that a pattern names."""
    paths = []
    for place in places:
        inside = ROOT.glob(place) if "*" in place else (ROOT / place).rglob("*")
        paths += [path for path in inside if path.suffix in KINDS]
    return sorted(paths)


def code_lines(path: Path) -> int:
    """Lines of a file that hold code; of a script or a style sheet, all that are not blank."""
    text = path.read_text()
    if path.suffix != ".py":
        return sum(bool(line.strip()) for line in text.splitlines())
    docstrings = {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    silent = {
        tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
        tokenize.ENCODING, tokenize.ENDMARKER,
    }  # fmt: skip
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in silent:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def net_lines() -> dict[str, int]:
    """Lines added less lines removed, by file, since the change began; nothing outside git."""
    head, start = _git("rev-parse", "HEAD"), _git("merge-base", "HEAD", "main")
    changed = _git("diff", "--numstat", f"{head}~1" if start == head else start)
    net: dict[str, int] = {}
    for line in changed.splitlines():
        added, removed, path = line.split("\t")
        if added != "-":
            net[path] = int(added) - int(removed)
    return net


def main() -> None:
    """Print the table; the library's rooms are summed before kernels and tests."""
    table = Table("room", "budget", "lines", "code", "change", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    changes, library = net_lines(), [0, 0, 0, 0]
    for room, (budget, places) in ROOMS.items():
        paths = sources(places)
        lines = sum(len(path.read_text().splitlines()) for path in paths)
        code = sum(map(code_lines, paths))
        change = sum(changes.get(path.relative_to(ROOT).as_posix(), 0) for path in paths)
        figures = (budget, lines, code, change)
        if room == "kernels and bench":
            table.add_row("library", *_shown(*library), end_section=True)
        table.add_row(room, *_shown(*figures))
        if room not in ("kernels and bench", "tests"):
            library = [sum(pair) for pair in zip(library, figures, strict=True)]
    words = sum(len(path.read_text().split()) for path in (ROOT / "docs").rglob("*.md"))
    table.add_row("docs, words", f"{WORDS:,}", f"{words:,}", "", "")
    Console(width=80).print(table)


def _shown(budget: int, lines: int, code: int, change: int) -> tuple[str, ...]:
    return f"{budget:,}", f"{lines:,}", f"{code:,}", f"{change:+,}"


if __name__ == "__main__":
    main()
