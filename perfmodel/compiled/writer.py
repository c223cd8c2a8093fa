"""A graph as C: one function that computes eight problems at a time, menus searched in loops.

Numbers and menus of a device are parameters, so that one function serves all devices whose graphs
have the same operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from perfmodel.compiled.graph import MASKS, REDUCTIONS, SEARCHES, Graph

_INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "greater": ">", "less": "<",
    "greater_equal": ">=", "less_equal": "<=", "equal": "==", "not_equal": "!=",
    "logical_and": "&", "logical_or": "|",
}  # fmt: skip
# Functions whose names C has already.
_OWN_NAME = frozenset({"floor", "ceil", "trunc", "sqrt", "exp", "cbrt", "log2", "exp2",
                       "remainder", "isfinite"})  # fmt: skip


@dataclass(frozen=True)
class Program:
    """A graph as C, and the numbers that one device puts into it."""

    source: str
    """The C source; its only parameters are those of `run`."""
    inputs: tuple[str, ...]
    """Names of the arrays over problems, in order."""
    constants: np.ndarray
    """Numbers that the source calls K."""
    tables: tuple[np.ndarray, ...]
    """Menus that the source calls T."""


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self.graph, self.lines = graph, [""]
        self.lines.clear()
        self.constants: dict[float, int] = {}
        self.tables: dict[int, int] = {}
        self.inputs: dict[str, int] = {}
        self.flags = graph.by_column()
        self.masks: set[int] = set()

    def number(self, node: int) -> str:
        """A node as a vector of numbers."""
        value = self.graph.value(node)
        if value is not None:
            return f"B(K[{self.constants.setdefault(value, len(self.constants))}])"
        return f"NUM(v{node})" if node in self.masks else f"v{node}"

    def truth(self, node: int) -> str:
        """A node as a mask."""
        return f"v{node}" if node in self.masks else f"TRUE({self.number(node)})"

    def row(self, table: int) -> str:
        """A menu by its name in C."""
        return f"T[{self.tables.setdefault(table, len(self.tables))}]"

    def expression(self, node: int) -> str:
        """A node from its arguments; notes whether it is a mask."""
        op, *rest = self.graph.nodes[node]
        if op == "input":
            return f"load(X[{self.inputs.setdefault(rest[0], len(self.inputs))}] + i)"
        if op == "table":
            return f"B({self.row(rest[0])}[c])"
        if op in ("pick", "lookup"):
            return f"gather({self.row(rest[0])}, {self.number(rest[1])})"
        arguments = self.graph.arguments(node)
        if op == "where" and {*arguments[1:]} <= self.masks:
            self.masks.add(node)
            yes, no = (f"v{each}" for each in arguments[1:])
            return f"({self.truth(rest[0])} & {yes}) | (~{self.truth(rest[0])} & {no})"
        if op == "where":
            yes, no = (self.number(each) for each in arguments[1:])
            return f"choose({self.truth(rest[0])}, {yes}, {no})"
        if op in MASKS:
            self.masks.add(node)
        form = self.truth if op.startswith("logical") else self.number
        names = [form(each) for each in arguments]
        if op == "logical_not":
            return f"~{names[0]}"
        if op == "negative":
            return f"-{names[0]}"
        if op in _INFIX:
            text = f"{names[0]} {_INFIX[op]} {names[1]}"
            return f"(Q)({text})" if op in MASKS else text
        return f"{op}{'_' if op in _OWN_NAME else ''}({', '.join(names)})"

    def define(self, node: int, indent: str) -> None:
        """The statement that computes a node."""
        if self.graph.value(node) is None:
            text = self.expression(node)
            kind = "Q" if node in self.masks else "V"
            self.lines.append(f"{indent}const {kind} v{node} = {text};")

    def reduce(self, node: int) -> None:
        """The loop over the columns of a menu."""
        op, body = self.graph.nodes[node]
        columns = sorted(self.graph.closure([body], self.flags))
        menu = next(rest[0] for name, *rest in map(self.graph.nodes.__getitem__, columns)
                    if name == "table")  # fmt: skip
        self.row(menu)
        first = "INFINITY" if op == "argmin" else "-INFINITY"
        place = "" if op == "largest" else f", v{node} = B(0.0)"
        best = f"v{node}" if op == "largest" else f"b{node}"
        self.lines += [
            f"    V {best} = B({first}){place};",
            f"    for (long c = 0; c < M[{self.tables[menu]}]; c++) {{",
        ]
        for each in columns:
            self.define(each, "      ")
        value = self.number(body)
        if op == "largest":
            self.lines.append(f"      {best} = maximum({best}, {value});")
        else:
            sign = "<" if SEARCHES[op] == "less" else ">"
            self.lines += [
                f"      const Q better = (Q)({value} {sign} {best});",
                f"      {best} = choose(better, {value}, {best});",
                f"      v{node} = choose(better, B(c), v{node});",
            ]
        self.lines.append("    }")

    def program(self, outputs: Sequence[int], guards: Sequence[tuple[int, str]]) -> Program:
        """The whole source."""
        for node in self.needed([*outputs, *(node for node, _ in guards)]):
            if self.graph.nodes[node][0] in REDUCTIONS:
                self.reduce(node)
            else:
                self.define(node, "    ")
        for place, node in enumerate(outputs):
            self.lines.append(f"    store(Y + {place} * stride + i, {self.number(node)});")
        starts = []
        for place, (node, quantifier) in enumerate(guards):
            sign = "|" if quantifier == "any" else "&"
            self.lines.append(f"    g{place} {sign}= {self.truth(node)};")
            starts.append(f"  Q g{place} = (Q){{}}{'' if quantifier == 'any' else ' - 1'};")
        ends = [
            f"  G[{place}] = {f'some(g{place})' if quantifier == 'any' else f'!some(~g{place})'};"
            for place, (_, quantifier) in enumerate(guards)
        ]
        text = [
            files("perfmodel.compiled").joinpath("primitives.c").read_text(encoding="utf-8"),
            "void run(long n, const double *const *X, double *Y, long stride, const double *K,",
            "         const double *const *T, const long *M, long *G) {",
            *starts, "  for (long i = 0; i < n; i += L) {", *self.lines, "  }", *ends, "}", "",
        ]  # fmt: skip
        return Program(
            "\n".join(text),
            tuple(self.inputs),
            np.array([*self.constants, 0.0]),
            tuple(self.graph.tables[table] for table in self.tables),
        )

    def needed(self, nodes: Sequence[int]) -> list[int]:
        """Nodes with one value a problem that some nodes are computed from, arguments first."""
        reached: set[int] = set()
        rest = list(nodes)
        while rest:
            node = rest.pop()
            if node in reached:
                continue
            reached.add(node)
            rest += self.graph.arguments(node)
            if self.graph.nodes[node][0] == "pick":
                rest.append(self.graph.nodes[node][2])
        return sorted(node for node in reached if not self.flags[node])


def write(graph: Graph, outputs: Sequence[int], guards: Sequence[tuple[int, str]]) -> Program:
    """A function of some nodes and of whether any or all of other nodes hold."""
    return _Writer(graph).program(outputs, guards)
