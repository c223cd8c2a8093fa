"""Parts of documents that commands write: blocks between markers. The other text is not changed."""

from __future__ import annotations

import re

from perfmodel.errors import TableError

_BLOCK = re.compile(r"<!-- (\w+): begin -->\n.*?<!-- \1: end -->\n?", re.DOTALL)


def between(text: str, block: str, name: str, what: str = "accuracy") -> str:
    """The text with the block between its two markers replaced; raises `TableError` without
    markers."""
    first, last = f"<!-- {what}: begin -->", f"<!-- {what}: end -->"
    head, begins, rest = text.partition(first)
    _, ends, tail = rest.partition(last)
    if not (begins and ends):
        raise TableError(f"{name}: no {first} and {last} to write between")
    return f"{head}{begins}\n{block}\n{ends}{tail}"


def blocks(text: str) -> list[str]:
    """The blocks between markers, markers included."""
    return [match[0] for match in _BLOCK.finditer(text)]


def kept(old: str, new: str) -> str:
    """The new page followed by the old page's blocks of other commands."""
    rest = [block.rstrip("\n") for block in blocks(old) if block not in new]
    return "\n\n".join([new.rstrip("\n"), *rest]) + "\n" if rest else new


def table_rows(text: str, first: str = "line") -> list[dict[str, str]]:
    """The rows of the first Markdown table whose first column is `first`, as cells by column.

    Raises `TableError` if there is none.
    """
    table = rf"^\| {re.escape(first)} \|.*\n\|[-:|]+\|\n(?:\|.*\|\n?)*"
    lines = re.search(table, text, re.MULTILINE)
    if lines is None:
        raise TableError(f"no table on the page begins with a column {first!r}; write it anew")
    head, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]]
                      for line in lines[0].splitlines())  # fmt: skip
    return [dict(zip(head, row, strict=True)) for row in rows]
