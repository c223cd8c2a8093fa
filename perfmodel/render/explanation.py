"""An explanation as text, Markdown, LaTeX or JSON: the first three have the same lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from perfmodel.napkin.explain import Explanation, KernelPage, Tiling
from perfmodel.render.formats import latex, markdown
from perfmodel.units import binary, seconds, si

SCHEMA_VERSION = 1
_BOX = "    "
_LOOPS = "Loop nest"
_PREAMBLE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\usepackage{amsmath}
\usepackage{amssymb}
\allowdisplaybreaks
\sloppy
\begin{document}
"""
Writer = Callable[[Any], str]
"""Writes a formula."""


def show(expression: Any) -> str:
    """A formula in one line of text: 2·q·d·⌈x/s_x⌉."""
    import sympy
    from sympy.printing.str import StrPrinter

    class Plain(StrPrinter):  # type: ignore[misc]
        def _print_ceiling(self, item: Any) -> str:
            return f"⌈{self._print(item.args[0])}⌉"

        def _print_Min(self, item: Any) -> str:
            return f"min({', '.join(self._print(part) for part in item.args)})"

        def _print_Piecewise(self, item: Any) -> str:
            parts = [f"{self._print(e)} if {self._print(c)}" for e, c in item.args[:-1]]
            return f"({', '.join(parts)}, else {self._print(item.args[-1][0])})"

    text = str(Plain().doprint(sympy.sympify(expression)))
    for power, sign in (("**2", "²"), ("**3", "³"), ("**4", "⁴")):
        text = text.replace(power, sign)
    return text.replace("**", "^").replace("*", "·").replace("sqrt", "√")


def mathematics(expression: Any) -> str:
    """A formula as LaTeX's, between dollars."""
    import sympy

    plain = sympy.sympify(expression)
    names = {s: _symbol(str(s)) for s in plain.free_symbols}
    return f"${sympy.latex(plain, symbol_names=names, mul_symbol='dot')}$"


def _symbol(name: str) -> str:
    if name == "σ":
        return r"\sigma"
    head, _, axis = name.partition("_")
    if axis:
        return rf"{head}_{{{_word(axis)}}}"
    return _word(name)


def _word(name: str) -> str:
    return name if len(name) == 1 else rf"\mathrm{{{name.replace('_', chr(92) + '_')}}}"


def as_text(explanation: Explanation) -> Iterator[str]:
    """For the terminal."""
    yield f"{_title(explanation)}\n"
    yield from (f"{line}\n" for line in _head(explanation))
    for number, page in enumerate(explanation.kernels, 1):
        yield f"\nKernel {number}: {' + '.join(page.nest.steps)}\n"
        for heading, body in _sections(explanation, page, show):
            yield f"\n  {heading}\n"
            yield from (f"{_BOX}{line}\n" for line in body)


def as_markdown(explanation: Explanation) -> Iterator[str]:
    """Headings, and bodies as code blocks, so that columns stay aligned."""
    yield f"## {markdown(_title(explanation))}\n\n"
    yield "\n".join(f"{markdown(line)}  " for line in _head(explanation)) + "\n"
    for number, page in enumerate(explanation.kernels, 1):
        yield f"\n### Kernel {number}: {markdown(' + '.join(page.nest.steps))}\n"
        for heading, body in _sections(explanation, page, show):
            fence = _fence(body)
            yield f"\n**{markdown(heading)}**\n\n{fence}text\n"
            yield from (f"{line}\n" for line in body)
            yield f"{fence}\n"


def as_latex(explanation: Explanation) -> Iterator[str]:
    """A complete document with the standard article class and amsmath."""
    yield f"{_PREAMBLE}\\section*{{{latex(_title(explanation))}}}\n"
    yield "\n\n".join(map(latex, _head(explanation))) + "\n"
    for number, page in enumerate(explanation.kernels, 1):
        yield f"\n\\subsection*{{Kernel {number}: {latex(' + '.join(page.nest.steps))}}}\n"
        for heading, body in _sections(explanation, page, mathematics):
            yield f"\n\\paragraph{{{latex(heading)}}}\n"
            if heading == _LOOPS:
                lines = "".join(f"{line}\n" for line in body).replace("·", "*")
                plain = lines.encode("ascii", "replace").decode()
                yield f"\\begin{{verbatim}}\n{plain}\\end{{verbatim}}\n"
            else:
                yield "".join(f"\n\\noindent {_mixed(line)}\n" for line in body)
    yield "\\end{document}\n"


def _mixed(line: str) -> str:
    """A line with formulas between dollars, its other text escaped."""
    parts = re.split(r"(\$[^$]*\$)", line)
    return "".join(part if part.startswith("$") else latex(part) for part in parts)


def _fence(lines: list[str]) -> str:
    """A code fence that no line closes: three backticks, or more than any line begins with."""
    matches = (re.match(r"\s*(`*)", line) for line in lines)
    return "`" * max(3, *(len(ticks[1]) + 1 for ticks in matches if ticks))


def _title(explanation: Explanation) -> str:
    count = len(explanation.kernels)
    kernels = "1 kernel" if count == 1 else f"{count} kernels"
    return f"{explanation.case.algorithm.name}, {explanation.schedule} schedule: {kernels}"


def _head(explanation: Explanation) -> Iterator[str]:
    if explanation.about:
        yield f"{explanation.about}."
    if explanation.source:
        yield f"Source: {explanation.source}."
    sizes = explanation.case.sizes
    yield "Axes: " + "; ".join(
        f"{axis} = {sizes[axis]}" + (f" ({extent})" if str(extent) != axis else "")
        for axis, extent in explanation.extents.items()
    )
    yield "Tiles: g_a of an axis spread over blocks, s_a of an axis streamed; counts in elements."


def _sections(
    explanation: Explanation, page: KernelPage, show: Writer
) -> Iterator[tuple[str, list[str]]]:
    yield _LOOPS, ["  " * depth + line for depth, line in page.loops]
    yield "What each axis allows", list(_verdicts(page))
    if page.formulas is None:
        yield "Formulas", [page.note]
    else:
        yield "Traffic of each tensor", list(_traffic(page, show))
        yield "Transfer cost H and memory M", list(_cost(page, show))
        yield "Best tile", list(_optimum(page, show))
    yield "Lower bound", list(_bound(page, show))
    if page.numbers is not None:
        yield (
            f"On {explanation.device.name if explanation.device else ''}",
            list(_numbers(explanation, page, show)),
        )


def _verdicts(page: KernelPage) -> Iterator[str]:
    for axis, verdict in page.verdicts.items():
        ways = []
        if verdict.groupable:
            ways.append("group")
        if verdict.passes:
            ways.append("stream" if verdict.passes == 1 else "stream in two passes")
        reasons = [] if verdict.groupable else [verdict.group_reason]
        if verdict.passes != 1:
            reasons.append(verdict.stream_reason)
        yield f"{axis}: {' or '.join(ways) or 'hold whole'}" + "".join(f" — {r}" for r in reasons)


def _traffic(page: KernelPage, show: Writer) -> Iterator[str]:
    assert page.formulas is not None
    tables = (("read", page.formulas.reads), ("write", page.formulas.writes))
    for verb, table in tables:
        for name, formula in table.items():
            yield f"{verb:<5} {name:<6} {show(formula)}"


def _cost(page: KernelPage, show: Writer) -> Iterator[str]:
    assert page.formulas is not None
    yield f"H = {show(page.formulas.transfer)}"
    yield f"M ≥ {show(page.formulas.memory)}"
    if page.note:
        yield f"({page.note})"
    yield "Where tiles divide their axes:"
    yield f"H = {show(page.formulas.smooth_transfer)}"
    yield f"M ≥ {show(page.formulas.smooth_memory)}"


def _optimum(page: KernelPage, show: Writer) -> Iterator[str]:
    best = page.optimum
    if best is None:
        yield "no closed form: the leading terms do not settle the tiles; the search below does"
        return
    for axis, formula in best.tiles.items():
        yield f"{_tile(page, axis, show)}* = {show(formula)}"
    thin = ", ".join(_tile(page, axis, show) for axis in best.vanishing)
    if thin:
        yield f"{thin} as thin as allowed: H does not depend on it"
    terms = [
        f"{show(t.alpha)} · M^-{show(t.beta)}" if t.beta != 0 else show(t.alpha) for t in best.terms
    ]
    yield f"H* = {' + '.join(terms)}"
    if best.beta == 0:
        yield "β = 0: every tensor crosses a fixed number of times, whatever M"
        return
    ratio = float(best.narrower(2))
    yield (
        f"β = {show(best.beta)}: a tenth of M moves {float(best.smaller(0.1)):.3g}× as much; "
        f"half the bits move {ratio:.3g}× fewer bytes"
    )


def _tile(page: KernelPage, axis: str, show: Writer) -> str:
    """g_q, s_x, or g_r·g_q where only a product is determined."""
    import sympy

    parts = axis.split("·")
    sides = (f"{'g' if part in page.nest.grid else 's'}_{part}" for part in parts)
    return "·".join(show(sympy.Symbol(side)) for side in sides)


def _bound(page: KernelPage, show: Writer) -> Iterator[str]:
    yield f"{page.bound.name}"
    yield f"H ≥ {show(page.bound.value)}" + (
        " (order of magnitude)" if page.bound.order_only else ""
    )


def _numbers(explanation: Explanation, page: KernelPage, show: Writer) -> Iterator[str]:
    numbers = page.numbers
    assert numbers is not None
    dtype = explanation.case.dtype
    memory = f"{numbers.memory_elements:,.0f} elements of {dtype}"
    yield f"M = {memory} in a block's shared memory and registers"
    if numbers.best_elements is not None:
        tiles = ", ".join(
            f"{_tile(page, a, show)} = {t:,.0f}" for a, t in numbers.best_tiles.items()
        )
        factor = numbers.best_elements / numbers.bound_elements
        yield f"H* = {numbers.best_elements:,.0f} elements{f' at {tiles}' if tiles else ''}"
        yield f"lower bound {numbers.bound_elements:,.0f} elements; H* is {factor:.3g}× that"
        if numbers.saturated:
            names = ", ".join(numbers.saturated)
            yield f"the best tile of {names} exceeds it: held whole, each tensor crosses once"
    if numbers.divisibility:
        rules = ", ".join(f"{_tile(page, a, show)} by {n}" for a, n in numbers.divisibility.items())
        yield f"divisibility (instruction shape, 128-byte lines): {rules}"
    for tiling in numbers.tilings:
        yield from _tiling(page, tiling, show)


def _tiling(page: KernelPage, tiling: Tiling, show: Writer) -> Iterator[str]:
    tiles = ", ".join(f"{_tile(page, a, show)} = {t}" for a, t in tiling.tiles.items()) or "whole"
    yield (
        f"{tiling.what}: {tiles}; {tiling.threads} threads, {tiling.stages} buffers, "
        f"{binary(tiling.shared_bytes)} shared, {binary(tiling.register_bytes)} registers"
    )
    yield (
        f"  H = {tiling.elements:,.0f} elements, {si(tiling.bytes, 'B')}; {tiling.factor:.3g}× the "
        f"bound; {seconds(tiling.seconds)}"
    )


def as_json(explanation: Explanation) -> Iterator[str]:
    """One JSON document: what the explanation has, formulas as text."""
    case, device = explanation.case, explanation.device
    head: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "algorithm": case.algorithm.name}
    head |= {"parameters": case.parameters, "sizes": case.sizes, "device": device and device.slug}
    members = {name: value for name, value in _plain(explanation).items() if name not in head}
    yield json.dumps(_plain(head) | members, indent=1) + "\n"


_NOT_TOLD = ("case", "fused")
"""Members that are told otherwise."""


def _plain(value: Any) -> Any:
    """Plain data: members of a class by their name, what is no number or text as text."""
    if is_dataclass(value):
        members = ((each.name, getattr(value, each.name)) for each in fields(value))
        return {name: _plain(each) for name, each in members if name not in _NOT_TOLD}
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list | frozenset):
        return [_plain(each) for each in value]
    return value if isinstance(value, int | float | str | None) else str(value)
