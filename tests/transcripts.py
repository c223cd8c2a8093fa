"""Finds the examples in the documents, runs them in this process, and compares their output.

    ```console           every `$ perfmodel ...` in it is run, `...` stands for anything
    ```python            executed, one namespace a document; a ```text block right after it is what
                         it prints; a first line `# some/file.py` makes it a file instead
    <!-- not run -->     before a block: left alone

`python tests/transcripts.py [FILE...]` (`make docs`) writes the output anew and copies the charts
that the commands drew into docs/images/, after a change that moves predictions.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 100
"""Columns of the terminal whose output the documents show."""
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SKIPPED = re.compile(r"<!-- not run[^>]*-->\s*\Z")


@dataclass(frozen=True)
class Block:
    """A fenced block: `text` stands at [start, end) of the document, `prints` is its output."""

    language: str
    text: str
    start: int
    end: int
    line: int
    prints: str | None = None
    prints_at: tuple[int, int] | None = None

    @property
    def file(self) -> str | None:
        """The path in a first line such as `# my_package/double.py`."""
        found = re.match(r"# (\S+\.py)\n", self.text)
        return found[1] if found else None


@dataclass(frozen=True)
class Example:
    """One command of a console block, and the lines below it."""

    command: str
    shown: str
    lines: list[str] = field(default_factory=list)


def documents() -> list[Path]:
    """Every document whose examples are run."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(document: str, language: str) -> list[Block]:
    """Fenced blocks of a language that are not marked as not run."""
    matches = list(_FENCE.finditer(document))
    found = []
    for i, match in enumerate(matches):
        if match[1] != language or _SKIPPED.search(document, 0, match.start()):
            continue
        after = matches[i + 1] if i + 1 < len(matches) else None
        block = Block(
            language,
            match[2],
            match.start(2),
            match.end(2),
            document.count("\n", 0, match.start()) + 1,
        )
        if after and after[1] == "text" and not document[match.end() : after.start()].strip():
            block = replace(block, prints=after[2], prints_at=after.span(2))
        found.append(block)
    return found


def examples(block: Block) -> list[Example]:
    """The commands of a console block; a trailing backslash continues one."""
    found: list[Example] = []
    unfinished = False
    for line in block.text.splitlines() if block.text.startswith("$ ") else []:
        if line.startswith("$ "):
            found.append(Example(line[2:], "", [line]))
        elif unfinished:
            last = found[-1]
            found[-1] = Example(f"{last.command[:-1]} {line.strip()}", "", [*last.lines, line])
        else:
            last = found[-1]
            found[-1] = Example(last.command, f"{last.shown}{line}\n", last.lines)
        unfinished = line.endswith("\\") and not found[-1].shown
    return found


def runnable(example: Example) -> bool:
    """Whether this is our command; others (pip, ncu) are only shown."""
    return example.command.startswith("perfmodel ")


class _Terminal(io.StringIO):
    """A terminal without colours."""

    def isatty(self) -> bool:
        return True


class _Into(io.StringIO):
    """A stream that is no terminal, so that it shows no progress, and goes into another one."""

    def __init__(self, other: io.StringIO) -> None:
        super().__init__()
        self._other = other

    def write(self, text: str) -> int:
        return self._other.write(text)


def run(command: str, width: int = WIDTH) -> str:
    """What a `perfmodel` command writes to a terminal, both streams as they come."""
    from perfmodel.cli import run as perfmodel

    out = _Terminal()
    plain = {"NO_COLOR": "1", "COLUMNS": str(width), "TERM": "dumb"}
    with patch.dict(os.environ, plain), redirect_stdout(out), redirect_stderr(_Into(out)):
        perfmodel(shlex.split(command)[1:])
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def execute(block: Block, name: str, namespace: dict[str, Any]) -> str:
    """Run a Python block; what it prints. A traceback's line numbers are the document's."""
    source = "\n" * block.line + block.text
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(source, name, "exec"), namespace)
    return printed.getvalue()


def matches(shown: str, printed: str) -> bool:
    """Whether what is shown is what was printed, `...` standing for anything."""
    pattern = re.escape(shown).replace(re.escape("..."), ".*?")
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


@contextmanager
def workplace() -> Iterator[Path]:
    """A folder to run examples in: what they read is linked there, what they write stays there."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for shared in ("perfmodel", "hardware_specs", "kernels", "tests"):
            (folder / shared).symlink_to(ROOT / shared)
        (folder / "docs" / "images").mkdir(parents=True)
        with chdir(folder):
            yield folder


def elided(shown: str, printed: str) -> str:
    """`printed`, cut as `shown` is by its lines `...`.

    As many lines stand before the first cut and after the last one. A run of lines between two
    cuts starts at the line that is most like its first.
    """
    if shown and matches(shown, printed):
        return shown
    head, *runs = [run.splitlines() for run in re.split(r"^\.\.\.\n", shown, flags=re.MULTILINE)]
    if not runs:
        return printed
    new, at = printed.splitlines(), len(head)
    kept = new[:at]
    for run in filter(None, runs[:-1]):
        likeness = [SequenceMatcher(None, run[0], line).ratio() for line in new[at:]]
        at += likeness.index(max(likeness)) if likeness else 0
        kept += ["...", *new[at : at + len(run)]]
        at += len(run)
    kept += ["...", *new[len(new) - len(runs[-1]) :]]
    return "".join(f"{line}\n" for line in kept)


def refreshed(document: str) -> str:
    """A document with the output of its console and Python blocks as it is now."""
    edits: dict[tuple[int, int], str] = {}
    for block in blocks(document, "console"):
        if not block.text.startswith("$ "):
            continue  # commands without a prompt are only shown
        parts = []
        for example in examples(block):
            shown = example.shown
            if runnable(example):
                print("$", example.command, file=sys.stderr)
                shown = elided(shown, run(example.command))
            parts.append("".join(f"{line}\n" for line in example.lines) + shown)
        edits[block.start, block.end] = "".join(parts)
    python = blocks(document, "python")
    namespace: dict[str, Any] = {"__name__": "document"}
    while python and python[-1].prints is None:
        python.pop()  # nothing after the last shown output matters to it
    for block in python:
        printed = execute(block, "document", namespace)
        if block.prints is not None and block.prints_at is not None:
            edits[block.prints_at] = elided(block.prints, printed)
    for (start, end), text in sorted(edits.items(), reverse=True):
        document = document[:start] + text + document[end:]
    return document


def main(names: list[str]) -> None:
    """Bring the named documents up to date, or all."""
    sys.path.insert(0, str(ROOT))
    for path in [Path(name).resolve() for name in names] or documents():
        with workplace() as folder:
            old = path.read_text(encoding="utf-8")
            new = refreshed(old)
            for chart in (folder / "docs" / "images").iterdir():
                target = ROOT / "docs" / "images" / chart.name
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(chart, target)
        if new != old:
            path.write_text(new, encoding="utf-8")
            print(f"updated {path.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
