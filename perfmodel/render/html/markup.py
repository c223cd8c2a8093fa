"""Elements of HTML as text. Whatever is not an element itself is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_VOID = frozenset({"col", "input"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *children: str | Iterable[str], **attributes: object) -> Markup:
    """An element: tag("p", "text", class_="note", data_row=3).

    In names of attributes an underline is a hyphen. Those that are None or False are omitted, True
    has no value.
    """
    words = [name]
    for key, value in attributes.items():
        if value is not None and value is not False:
            attribute = key.removesuffix("_").replace("_", "-")
            text = "" if value is True else f'="{escape(str(value))}"'
            words.append(f"{attribute}{text}")
    head = f"<{' '.join(words)}>"
    return Markup(head if name in _VOID else f"{head}{joined(*children)}</{name}>")


def joined(*children: str | Iterable[str]) -> Markup:
    """Elements and texts behind each other."""
    return Markup(
        "".join(
            child if isinstance(child, Markup)
            else escape(child, quote=False) if isinstance(child, str)
            else joined(*child)
            for child in children
        )
    )  # fmt: skip


def section(ident: str, title: str, *children: str | Iterable[str]) -> Markup:
    """A section with its heading."""
    heading = tag("h2", title, id=f"{ident}-title")
    return tag("section", heading, *children, id=ident, aria_labelledby=f"{ident}-title")
