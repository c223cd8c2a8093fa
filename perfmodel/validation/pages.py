"""Parts of documents that commands write: blocks between markers; the rest stays as it is."""

from __future__ import annotations

import re

from perfmodel.errors import TableError

_BLOCK = re.compile(r"<!-- (\w+): begin -->\n.*?<!-- \1: end -->\n?", re.DOTALL)


def between(text: str, block: str, name: str, what: str = "accuracy") -> str:
    """A text with another block between its two markers; raises `TableError` without them."""
    first, last = f"<!-- {what}: begin -->", f"<!-- {what}: end -->"
    head, begins, rest = text.partition(first)
    _, ends, tail = rest.partition(last)
    if not (begins and ends):
        raise TableError(f"{name}: no {first} and {last} to write between")
    return f"{head}{begins}\n{block}\n{ends}{tail}"


def kept(old: str, new: str) -> str:
    """A page written anew, with the blocks of other commands that the old one had, at its end."""
    blocks = [found[0].rstrip("\n") for found in _BLOCK.finditer(old) if found[0] not in new]
    return "\n\n".join([new.rstrip("\n"), *blocks]) + "\n" if blocks else new
