"""Text that is safe to print: on a terminal, in a narrow encoding, in a spreadsheet.

Names and cells come from other people's files. Control characters in them could drive the terminal,
and a spreadsheet runs a CSV cell that begins with an equals sign. Some output encodings cannot show
a character such as ⌈.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Sequence

LOOKALIKES = "perfmodel.lookalikes"
"""Name of the codec error handler that replaces characters an encoding lacks by similar ASCII."""

# Escape sequences of terminals: CSI (colours, cursor), OSC (titles, links), and two-letter ones.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[@-Z\\^_]"
)
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_ASCII = {
    "×": "x", "·": "*", "−": "-", "–": "-", "—": "-", "─": "-", "…": "...", "→": "->", "≤": "<=",
    "≥": ">=", "≠": "!=", "≈": "~", "√": "sqrt", "∞": "inf", "Σ": "sum", "∑": "sum", "⌈": "ceil(",
    "⌉": ")", "⌊": "floor(", "⌋": ")", "µ": "u", "μ": "u", "²": "^2", "³": "^3", "⁴": "^4",
    "°": " deg", "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "λ": "lambda",
    "σ": "sigma", "τ": "tau", "‘": "'", "’": "'", "“": "'", "”": "'", "⚠": "!",
}  # fmt: skip
# What a spreadsheet takes for a formula at the start of a cell, the full-width signs included.
_FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")

# Names of functions, but no arXiv numbers.
_SYMBOLS = re.compile(r" \((?![\d.]+\))[^)]*\)")


def whole_number(text: str) -> int | None:
    """The number that a text of at most 20 ASCII digits is; None for any other text.

    `str.isdigit` also takes the digits of other scripts and ², and Python converts no text of more
    than 4300 digits.
    """
    return int(text) if len(text) <= 20 and text.isascii() and text.isdigit() else None


def opening(text: str) -> str:
    """A text up to its first stop, without names in brackets."""
    return re.split("[:;.] ", _SYMBOLS.sub("", text))[0]


def listed(items: Sequence[str], most: int) -> str:
    """As many items as fit into `most` characters, at least one; then the total number."""
    line = ", ".join(items)
    count = len(items)
    while len(line) > most and count > 1:
        count -= 1
        line = ", ".join([*items[:count], f"... ({len(items)})"])
    return line


def printable(text: str) -> str:
    """`text` on one line, without escape sequences and without what does not print."""
    if text.isprintable():
        return text
    body = _ESCAPES.sub("", text)
    return "".join(char if char.isprintable() else " " if char.isspace() else "" for char in body)


def without_controls(text: str) -> str:
    """`text` as data for a terminal: line ends and tabs stay, escape sequences do not."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def quoted(text: str, most: int = 80) -> str:
    """`text` in quotes for a message: at most `most` characters, control characters escaped."""
    excerpt = text if len(text) <= most else f"{text[: most // 2]}...{text[-most // 4 :]}"
    return repr(excerpt)


def csv_cell(text: str) -> str:
    """A text as a CSV cell that no spreadsheet runs: an apostrophe is put before a formula.

    Numbers are unchanged. `csv_text` restores the text.
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def csv_text(cell: str) -> str:
    """The text of a cell written by `csv_cell`."""
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell, 1) else cell


def _lookalikes(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that cannot be encoded by similar ASCII, else by a question mark."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = (_ascii(char) for char in error.object[error.start : error.end])
    return "".join(letters), error.end


def _ascii(char: str) -> str:
    if char in _ASCII:
        return _ASCII[char]
    parts = unicodedata.normalize("NFKD", char)
    letters = "".join(part for part in parts if part.isascii() and part.isprintable())
    return letters or "?"


codecs.register_error(LOOKALIKES, _lookalikes)
