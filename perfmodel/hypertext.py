"""Small HTML tables for notebooks: all text escaped, no script, colours inherited."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from perfmodel.plaintext import printable

_CELL = "text-align:left;padding:2px 10px"
_NUMBER = "text-align:right;padding:2px 10px"


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], note: str = "") -> str:
    """A table whose first column is text and whose other columns are numbers; colours are
    inherited."""
    head = "".join(_cell("th", text, i) for i, text in enumerate(header))
    lines = [
        "<tr>" + "".join(_cell("td", text, i) for i, text in enumerate(row)) + "</tr>"
        for row in rows
    ]
    footer = f'<div style="opacity:0.7">{_escape(note)}</div>' if note else ""
    return (
        f"<div><strong>{_escape(title)}</strong>"
        f"<table>{f'<thead><tr>{head}</tr></thead>' if header else ''}"
        f"<tbody>{''.join(lines)}</tbody></table>{footer}</div>"
    )


def _cell(tag: str, text: str, i: int) -> str:
    return f'<{tag} style="{_NUMBER if i else _CELL}">{_escape(text)}</{tag}>'


def _escape(text: str) -> str:
    return html.escape(printable(text))
