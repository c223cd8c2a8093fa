"""Plain text in LaTeX: special characters, and those beyond Latin, written out."""

from __future__ import annotations

import re

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


def escaped(text: str) -> str:
    """Plain text with LaTeX's special characters, and ours beyond Latin, written out."""
    return re.sub(r"[^\x00-\xff]", "?", "".join(_SPECIAL.get(c, c) for c in text))
