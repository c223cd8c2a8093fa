"""An explanation as a complete LaTeX document, with the standard article class and amsmath."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perfmodel.napkin.explain import Explanation, KernelPage
from perfmodel.render.formats import latex as escaped
from perfmodel.units import binary, seconds, si

_PREAMBLE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\usepackage{amsmath}
\usepackage{amssymb}
\allowdisplaybreaks
\sloppy
\begin{document}
"""


def formula(expression: Any) -> str:
    """A formula as LaTeX mathematics."""
    import sympy

    plain = sympy.sympify(expression)
    names = {s: _symbol(str(s)) for s in plain.free_symbols}
    return str(sympy.latex(plain, symbol_names=names, mul_symbol="dot"))


def _symbol(name: str) -> str:
    if name == "σ":
        return r"\sigma"
    head, _, axis = name.partition("_")
    if axis:
        return rf"{head}_{{{_word(axis)}}}"
    return _word(name)


def _word(name: str) -> str:
    return name if len(name) == 1 else rf"\mathrm{{{name.replace('_', chr(92) + '_')}}}"


def render(explanation: Explanation) -> Iterator[str]:
    """The document, from \\documentclass to \\end{document}."""
    yield _PREAMBLE
    yield rf"\section*{{{escaped(explanation.case.algorithm.name)}, {explanation.schedule}}}" + "\n"
    if explanation.about:
        yield escaped(f"{explanation.about}. ")
    if explanation.source:
        yield escaped(f"Source: {explanation.source}.") + "\n"
    sizes = explanation.case.sizes
    axes = ", ".join(f"${_word(axis)} = {sizes[axis]}$" for axis in explanation.extents)
    yield f"\n\\noindent Axes: {axes}. Counts are in elements.\n"
    for number, page in enumerate(explanation.kernels, 1):
        yield from _page(explanation, page, number)
    yield "\\end{document}\n"


def _page(explanation: Explanation, page: KernelPage, number: int) -> Iterator[str]:
    title = escaped(" + ".join(page.nest.steps))
    yield f"\n\\subsection*{{Kernel {number}: {title}}}\n"
    yield "\\begin{verbatim}\n"
    yield "".join("  " * depth + _ascii(text) + "\n" for depth, text in page.loops)
    yield "\\end{verbatim}\n"
    formulas = page.formulas
    if formulas is None:
        yield f"\\noindent {escaped(page.note)}\n"
    else:
        yield _align("Traffic", [*_rows("read", formulas.reads), *_rows("write", formulas.writes)])
        yield _align(
            "Transfer and memory, tiles dividing their axes",
            [
                ("H", "=", formula(formulas.smooth_transfer)),
                ("M", r"\ge", formula(formulas.smooth_memory)),
            ],
        )
        yield _best(page)
    order = " (order of magnitude)" if page.bound.order_only else ""
    yield _align(
        f"Lower bound, {page.bound.name}{order}", [("H", r"\ge", formula(page.bound.value))]
    )
    if page.numbers is not None:
        yield _numbers(explanation, page)


def _rows(verb: str, table: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [(rf"\text{{{verb} }}{_word(name)}", "=", formula(item)) for name, item in table.items()]


def _align(heading: str, rows: list[tuple[str, str, str]]) -> str:
    body = " \\\\\n".join(f"  {left} &{relation} {right}" for left, relation, right in rows)
    return f"\\noindent {escaped(heading)}:\n\\begin{{align*}}\n{body}\n\\end{{align*}}\n"


def _best(page: KernelPage) -> str:
    best = page.optimum
    if best is None:
        return "\\noindent The best tile has no closed form.\n"
    rows = []
    for axis, item in best.tiles.items():
        parts = axis.split("·")
        sides = [f"{'g' if a in page.nest.grid else 's'}_{{{_word(a)}}}" for a in parts]
        rows.append((r" \cdot ".join(sides) + r"^{*}", "=", formula(item)))
    rows.append(("H^{*}", "=", formula(best.transfer)))
    rows.append((r"\beta", "=", formula(best.beta)))
    return _align("Best tile", rows)


def _numbers(explanation: Explanation, page: KernelPage) -> str:
    numbers = page.numbers
    assert numbers is not None
    device = explanation.device.name if explanation.device else ""
    lines = [f"On {escaped(device)}: $M = {numbers.memory:.0f}$ elements"]
    if numbers.best is not None:
        lines.append(f"$H^* = {numbers.best:.4g}$, lower bound ${numbers.bound:.4g}$")
    for tiling in numbers.tilings:
        tiles = escaped(", ".join(f"{axis} = {tile}" for axis, tile in tiling.tiles.items()))
        lines.append(
            f"{tiling.what}: {tiles or 'held whole'}; {si(tiling.bytes, 'B')}, "
            f"{binary(tiling.shared_bytes)} shared, {escaped(seconds(tiling.seconds))}"
        )
    return "\\noindent " + "; ".join(lines) + ".\n"


def _ascii(text: str) -> str:
    """The text of a verbatim block."""
    return text.replace("·", "*").encode("ascii", "replace").decode()
